/*
 * Slots and records: one to one, used again, cleared where they lie, told from what is none.
 */
#include "stub.h"

#define MOST 6000 /* stubs of a check: more than two pages of the smallest kind have */

static struct subject_stub stubs[MOST];
static struct stub it;

/* So many stubs that a second page is begun. */
static unsigned beyond_a_page(unsigned kind)
{
	const uint32_t slots = stub_slots(&it, kind);

	return slots + 3 < MOST ? slots + 3 : MOST;
}

static int compare(const struct subject_stub *a, const struct subject_stub *b)
{
	return a->rx < b->rx ? -1 : a->rx > b->rx;
}

/* Heap sort, by address. */
static void sort(unsigned count)
{
	for (unsigned end = count, start = count / 2; end > 1;) {
		unsigned at, child;
		struct subject_stub moved;

		if (start) {
			start--;
		} else {
			end--;
			moved = stubs[0];
			stubs[0] = stubs[end];
			stubs[end] = moved;
		}
		moved = stubs[at = start];
		for (; (child = 2 * at + 1) < end; at = child) {
			if (child + 1 < end && compare(&stubs[child], &stubs[child + 1]) < 0)
				child++;
			if (compare(&moved, &stubs[child]) >= 0)
				break;
			stubs[at] = stubs[child];
		}
		stubs[at] = moved;
	}
}

/* No two of the stubs overlap, in code or record; all of `kind`. They are sorted afterwards. */
static bool apart(unsigned kind, unsigned count)
{
	const struct subject_stub_kind *k = stub_kind(&it, kind);
	struct subject_stub_found found;

	sort(count);
	for (unsigned i = 0; i < count; i++) {
		if ((uintptr_t)stubs[i].record != stubs[i].rx + it.page)
			return CHECK_EQUAL(stubs[i].rx + it.page, (uintptr_t)stubs[i].record,
					   "a record lies one stub page above its slot");
		if (STUB(find)(it.allocator, stubs[i].rx, &found) || found.stub.rx != stubs[i].rx || found.in_record ||
		    !found.live || found.kind != kind) {
			check_note_number("slot_at", stubs[i].rx);
			return CHECK_TRUE(false, "a stub that was issued is a live slot of its kind");
		}
		if (i && stubs[i].rx - stubs[i - 1].rx < k->pitch) {
			check_note_number("slot_at", stubs[i].rx);
			return CHECK_TRUE(false, "no slot is issued twice");
		}
	}
	return CHECK_TRUE(true, "slots and records are one to one");
}

CHECK(ch_stub_slots, "CH-101", "each stub has a slot and a record of its own, and runs")
{
	if (!alloc_claims(STUB_CLAIMS))
		return;
	for (size_t p = stub_page_first(); stub_pages[p]; p++) {
		MUST(stub_make(&it, stub_pages[p], true));
		for (unsigned kind = STUB_SMALL; kind <= STUB_WIDE; kind++) {
			const unsigned count = beyond_a_page(kind);
			const struct subject_stub_kind *k = stub_kind(&it, kind);

			MUST(stub_take(&it, kind, stubs, count));
			for (unsigned i = 0; i < count; i++)
				for (unsigned b = 0; b < k->record_bytes; b++)
					if (stubs[i].record[b])
						MUST(CHECK_EQUAL(0, stubs[i].record[b], "a new record is zero"));
			for (unsigned i = 0; i < count; i++)
				stub_fill(&it, kind, &stubs[i], i);
			for (unsigned i = 0; i < count; i++)
				MUST(stub_filled(&it, kind, &stubs[i], i, "a record is nobody else's"));
			for (unsigned i = 0; i < count; i += 1 + i / 2)
				MUST(alloc_runs(stubs[i].rx, stub_value(kind), "the template runs in each slot"));
			MUST(alloc_runs(stubs[count - 1].rx, stub_value(kind), "the template runs in the last slot"));
			MUST(apart(kind, count));
		}
		MUST(WATCH_KEPT(WATCH_BOTH, "no mapping is writable and executable"));
		MUST(WATCH_KEPT(WATCH_FRESH, "no page is made executable where it lies"));
		MUST(stub_end(&it));
	}
}

CHECK(ch_stub_reuse, "CH-102", "freed slots are issued again, each once, before there is another page")
{
	struct subject_stub_figures before, after;

	if (!alloc_claims(STUB_CLAIMS))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	for (unsigned kind = STUB_SMALL; kind <= STUB_WIDE; kind++) {
		const unsigned count = beyond_a_page(kind);
		unsigned freed = 0;

		MUST(stub_take(&it, kind, stubs, count));
		for (unsigned i = 0; i < count; i++)
			stub_fill(&it, kind, &stubs[i], i);
		MUST(stub_figures(&it, &before));
		/* Every third, the last first; then as many again. */
		for (unsigned i = count; i-- > 0;)
			if (i % 3 == 0) {
				MUST_OK(STUB(free)(it.heap, stubs[i].rx));
				freed++;
			}
		MUST(stub_figures(&it, &after));
		MUST(CHECK_EQUAL(before.live - freed, after.live, "what is freed is not live"));
		for (unsigned i = 0; i < count; i++)
			if (i % 3)
				MUST(stub_filled(&it, kind, &stubs[i], i, "the record of a live stub stays"));
		for (unsigned i = 0; i < count; i += 3)
			MUST_OK(STUB(allocate)(it.heap, kind, &stubs[i]));
		MUST(stub_figures(&it, &after));
		MUST(CHECK_EQUAL(before.live, after.live, "as many stubs live as before"));
		MUST(CHECK_EQUAL(before.pages, after.pages, "freed slots are used before a page is made"));
		MUST(apart(kind, count));
	}
	(void)stub_end(&it);
}

/* The code page that a slot lies in. */
static bool page_of(unsigned kind, uintptr_t rx, uintptr_t *code)
{
	struct subject_stub_found found;

	if (!ALLOC_OK(STUB(find)(it.allocator, rx, &found)))
		return false;
	*code = rx - (uintptr_t)found.slot * stub_kind(&it, kind)->pitch;
	return true;
}

/* The bytes of a data page as the check writes them: none is zero. */
static unsigned char pattern(size_t at)
{
	return (unsigned char)(at * 7 + at / 256 * 3) | 1;
}

CHECK(ch_stub_back_out, "CH-103", "backing out clears the record, one stub page above the slot, and nothing else")
{
	if (!alloc_claims(STUB_CLAIMS))
		return;
	for (size_t p = stub_page_first(); stub_pages[p]; p++) {
		const unsigned middle = 17;

		MUST(stub_make(&it, stub_pages[p], true));
		for (unsigned kind = STUB_SMALL; kind <= STUB_WIDE; kind++) {
			const uint32_t bytes = stub_kind(&it, kind)->record_bytes;
			unsigned char *data;
			uintptr_t code;
			size_t record;

			MUST(stub_take(&it, kind, stubs, 2 * middle) && page_of(kind, stubs[middle].rx, &code));
			data = (unsigned char *)(code + it.page);
			record = (size_t)(stubs[middle].record - data);
			for (size_t i = 0; i < it.page; i++)
				data[i] = pattern(i);
			MUST_OK(STUB(back_out)(it.heap, stubs[middle].rx));
			for (size_t i = 0; i < it.page; i++) {
				const bool cleared = i >= record && i < record + bytes;

				if (data[i] == (cleared ? 0 : pattern(i)))
					continue;
				check_note_number("kind", kind);
				check_note_signed("byte_of_the_record", (int64_t)i - (int64_t)record);
				MUST(CHECK_EQUAL(cleared ? 0 : pattern(i), data[i],
						 cleared ? "backing out clears the whole record"
							 : "backing out clears nothing but the record"));
			}
			MUST(CHECK_TRUE(true, "the record alone is cleared"));
			MUST(alloc_runs(stubs[middle].rx, stub_value(kind), "its code is as it was"));
			MUST(ALLOC_IS(SUBJECT_ERROR_FREED, STUB(back_out)(it.heap, stubs[middle].rx)));
		}
		MUST(stub_end(&it));
	}
}

static bool lives[65536 / 8]; /* a slot of the page that is judged */

/* Judges the classification of one address. */
static bool told(unsigned kind, uintptr_t code, size_t at)
{
	const struct subject_stub_kind *k = stub_kind(&it, kind);
	const bool record = at >= it.page;
	const size_t within = record ? at - it.page : at;
	const uint32_t slot = (uint32_t)(within / k->pitch), rest = (uint32_t)(within % k->pitch);
	const bool padding = slot >= stub_slots(&it, kind) || rest >= (record ? k->record_bytes : k->code_bytes);
	struct subject_stub_found found = {.kind = 99};
	const int error = STUB(find)(it.allocator, code + at, &found);

	if (padding ? error == SUBJECT_ERROR_PADDING && found.kind == 99
		    : !error && found.kind == kind && found.slot == slot && found.in_record == record &&
			      found.live == lives[slot] && found.stub.rx == code + (uintptr_t)slot * k->pitch &&
			      (uintptr_t)found.stub.record == found.stub.rx + it.page)
		return true;
	check_note("error_actual", alloc_error_name(error));
	check_note_number("kind", kind);
	check_note_number("offset_in_pair", at);
	check_note_number("slot_expected", slot);
	check_note_number("slot_actual", found.slot);
	return CHECK_TRUE(false, padding ? "padding is no stub" : "an address leads to its stub");
}

CHECK(ch_stub_find, "CH-104",
      "every byte of a pair of pages is told: slot, kind, record and whether it lives, or nothing")
{
	struct subject_stub_found found;

	if (!alloc_claims(STUB_CLAIMS))
		return;
	for (size_t p = stub_page_first(); stub_pages[p]; p++) {
		MUST(stub_make(&it, stub_pages[p], true));
		MUST(ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, STUB(find)(it.allocator, (uintptr_t)&it, &found)));
		MUST(ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, STUB(find)(it.allocator, 0, &found)));
		MUST(ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, STUB(find)(it.allocator, UINTPTR_MAX, &found)));
		for (unsigned kind = STUB_SMALL; kind <= STUB_WIDE; kind++) {
			uint32_t live = stub_slots(&it, kind) / 2;
			uintptr_t code;

			live = live < MOST ? live : MOST;
			MUST(stub_take(&it, kind, stubs, live) && page_of(kind, stubs[0].rx, &code));
			for (uint32_t i = 0; i < stub_slots(&it, kind); i++)
				lives[i] = false;
			for (uint32_t i = 0; i < live; i++)
				if (stubs[i].rx - code < it.page)
					lives[(stubs[i].rx - code) / stub_kind(&it, kind)->pitch] = true;
			/* All of a small pair; of a large one the ends, and a byte of 61. */
			for (size_t at = 0; at < 2 * it.page;
			     at += it.page > 4096 && at % it.page > 512 && at % it.page < it.page - 512 ? 61 : 1)
				MUST(told(kind, code, at));
			MUST(CHECK_TRUE(true, "every byte is told"));
		}
		MUST(stub_end(&it));
	}
}
