/*
 * How the code of stubs comes to where it runs: one sealed page, or pages that are written once.
 */
#include "../alloc/table.h"
#include "stub.h"

#define MOST 6000

static struct subject_stub stubs[MOST];
static struct stub it;

/* The place in a file that code at an address is mapped from; asserted: executable, never writable. */
static const struct space_extent *code_at(uintptr_t rx)
{
	const struct space_extent *extent = space_at(rx);

	check_note_number("code_at", rx);
	if (!CHECK_TRUE(extent && extent->protection == (SUBJECT_READ | SUBJECT_EXECUTE),
			"code is mapped for reading and executing") ||
	    !extent || !CHECK_TRUE(!(extent->ever & SUBJECT_WRITE), "code was never writable where it runs"))
		return NULL;
	return extent;
}

/* Mappings of a file that can be written, now. */
static unsigned writable(int file)
{
	unsigned count = 0;

	for (unsigned i = 0; i < space.count; i++)
		count += space.extents[i].file == file && space.extents[i].protection & SUBJECT_WRITE;
	return count;
}

CHECK(ch_stub_sealed, "CH-113",
      "code without patches is one page of a file that nobody can write any more, mapped as every code page")
{
	uint64_t views = 1;

	if (!alloc_claims(STUB_CLAIMS) || !alloc_claims("stub-shared-code"))
		return;
	for (size_t p = stub_page_first(); stub_pages[p]; p++) {
		uint64_t blocks = 0, bytes = 0;

		MUST(stub_make(&it, stub_pages[p], false));
		for (unsigned kind = STUB_SMALL; kind <= STUB_WIDE; kind++) {
			unsigned count = stub_slots(&it, kind) + 3;
			const struct space_extent *first;

			count = count < MOST ? count : MOST;
			MUST(stub_take(&it, kind, stubs, count));
			first = code_at(stubs[0].rx);
			MUST(first != NULL);
			MUST(CHECK_TRUE(first->file != SPACE_NO_FILE, "shared code is a file's"));
			MUST(CHECK_TRUE(space.files[first->file].seals & SUBJECT_SEAL_WRITE,
					"the file of shared code is sealed against writing"));
			MUST(CHECK_EQUAL(0, writable(first->file), "nobody has shared code mapped for writing"));
			for (unsigned i = 0; i < count; i++) {
				const uintptr_t in_page = (stubs[i].rx - stubs[0].rx) % (2 * it.page);
				const struct space_extent *extent = code_at(stubs[i].rx);

				MUST(extent && in_page < it.page);
				MUST(CHECK_EQUAL(first->file, extent->file, "all pages of a kind are of one file") &&
				     CHECK_EQUAL(first->offset + (stubs[0].rx - first->start) + in_page,
						 extent->offset + (stubs[i].rx - extent->start),
						 "all pages of a kind are one page of it"));
			}
			if (space.files[first->file].descriptor >= 0) {
				blocks = (uint64_t)table_file_blocks(space.files[first->file].descriptor);
				bytes = space.files[first->file].bytes;
			}
		}
		/* A page a kind, however many pages there are. */
		MUST(CHECK_TRUE(blocks <= bytes && bytes <= (uint64_t)STUB_KINDS * it.page,
				"shared code takes a page a kind"));
		MUST_OK(STUB(code_views)(it.heap, &views));
		MUST(CHECK_EQUAL(0, views, "shared code is never opened for writing"));
		MUST(stub_end(&it));
	}
}

CHECK(ch_stub_patched, "CH-114",
      "code with patches has its own address in each slot, and is written only before it runs")
{
	if (!alloc_claims(STUB_CLAIMS))
		return;
	for (size_t p = stub_page_first(); stub_pages[p]; p++) {
		unsigned count;

		MUST(stub_make(&it, stub_pages[p], true));
		count = stub_slots(&it, STUB_WIDE) + 3;
		count = count < MOST ? count : MOST;
		MUST(stub_take(&it, STUB_WIDE, stubs, count));
		for (unsigned i = 0; i < count; i++) {
			const struct space_extent *extent = code_at(stubs[i].rx);
			uintptr_t word;

			__builtin_memcpy(&word, (const unsigned char *)stubs[i].rx + it.patch.offset, sizeof(word));
			MUST(extent && CHECK_EQUAL(stubs[i].rx + 1, word, "a patch holds the slot's own address"));
			MUST(CHECK_TRUE(extent->file == SPACE_NO_FILE || !writable(extent->file),
					"no code stays mapped for writing"));
		}
		MUST(alloc_runs(stubs[count - 1].rx, stub_value(STUB_WIDE), "patched code runs"));
		MUST(WATCH_KEPT(WATCH_BOTH, "no mapping is writable and executable"));
		MUST(WATCH_KEPT(WATCH_FRESH, "no page is made executable where it lies"));
		MUST(stub_end(&it));
	}
}

static bool saw_sync(uintptr_t code, size_t bytes)
{
	for (unsigned long i = watch.recorded > WATCH_CALLS_KEPT ? watch.recorded - WATCH_CALLS_KEPT : 0;
	     i < watch.recorded; i++) {
		const struct watch_call *call = watch_call_at(i);

		if (call->kind == WATCH_SYNC_CODE && call->address <= code &&
		    call->address + call->bytes >= code + bytes)
			return true;
	}
	return false;
}

CHECK(ch_stub_synced, "CH-115",
      "code of a new page is synchronised at the address where it runs before a stub of it is issued")
{
	if (!alloc_claims(STUB_CLAIMS))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], true));
	for (unsigned kind = STUB_SMALL; kind <= STUB_WIDE; kind++) {
		const unsigned count = stub_slots(&it, kind) + 1;

		for (unsigned i = 0; i < count; i++) {
			MUST(stub_take(&it, kind, stubs, 1));
			if (i == 0 || i == count - 1)
				MUST(CHECK_TRUE(saw_sync(stubs[0].rx, stub_kind(&it, kind)->code_bytes),
						"the code of a stub was synchronised where it runs"));
		}
	}
	(void)stub_end(&it);
}
