/*
 * A heap of code that gives pages back.
 */
#include "../alloc/table.h"
#include "model.h"

#define PAGES  32u
#define EACH   16u /* blocks of a page */
#define BLOCKS (PAGES * EACH)

static struct {
	struct subject_allocator *allocator;
	struct subject_heap *heap;
	uintptr_t rx[BLOCKS];
	bool live[BLOCKS];
	bool gone[BLOCKS]; /* its page went since it was live */
} h;

static uint64_t file_bytes(void)
{
	const int64_t bytes = table_file_blocks(space.files[0].descriptor);

	if (bytes < 0)
		check_broken("the system does not say what the memory file holds", (long)bytes);
	return (uint64_t)bytes;
}

static bool put(unsigned i)
{
	h.live[i] = true;
	h.gone[i] = false;
	return ALLOC_OK(subject.release->heap_allocate(h.heap, check_page / EACH, &h.rx[i])) &&
	       alloc_put(h.allocator, h.rx[i], i % 251);
}

static bool drop(unsigned i)
{
	h.live[i] = false;
	return ALLOC_OK(subject.release->heap_free(h.heap, h.rx[i]));
}

static bool make(void)
{
	h.allocator = alloc_make(NULL);
	if (!h.allocator || !ALLOC_OK(subject.release->heap_create(h.allocator, 2 * PAGES * check_page, &h.heap)))
		return false;
	for (unsigned i = 0; i < BLOCKS; i++)
		if (!put(i))
			return false;
	return true;
}

static bool end(void)
{
	return ALLOC_OK(subject.release->heap_destroy(h.heap)) && alloc_end(h.allocator);
}

static bool is_page_of(uintptr_t page, unsigned i)
{
	return h.rx[i] / check_page == page;
}

/* Pages to be given back: all EACH blocks are known and free, and one was live since the page went. They are gone then.
 */
static unsigned free_pages(uintptr_t *pages)
{
	unsigned found = 0;

	for (unsigned i = 0; i < BLOCKS; i++) {
		const uintptr_t page = h.rx[i] / check_page;
		unsigned blocks = 0, live = 0, gone = 0;
		bool first = true;

		for (unsigned k = 0; k < BLOCKS; k++) {
			first &= k >= i || !is_page_of(page, k);
			blocks += is_page_of(page, k);
			live += is_page_of(page, k) && h.live[k];
			gone += is_page_of(page, k) && h.gone[k];
		}
		if (!first || blocks != EACH || live || gone == EACH)
			continue;
		pages[found++] = page * check_page;
		for (unsigned k = 0; k < BLOCKS; k++)
			h.gone[k] |= is_page_of(page, k);
	}
	return found;
}

static bool all_run(void)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		check_note_number("block", i);
		if (h.live[i] && !alloc_runs(h.rx[i], i % 251, "live code runs"))
			return false;
	}
	return true;
}

/* Of the calls since number `from`, none changes what is mapped, or how. */
static bool no_mapping_changed(unsigned long from)
{
	for (; from < watch.recorded; from++) {
		const struct watch_call *call = watch_call_at(from);

		check_note("call", watch_name[call->kind]);
		if (!CHECK_TRUE(call->kind != WATCH_MAP_FIXED && call->kind != WATCH_PROTECT &&
					call->kind != WATCH_UNMAP,
				"no mapping changes while pages go"))
			return false;
	}
	return true;
}

static bool releases(void)
{
	static uintptr_t pages[PAGES];
	const uint64_t before = file_bytes();
	const unsigned free = free_pages(pages);
	const unsigned long calls = watch.recorded;
	struct subject_released released;

	if (!ALLOC_OK(subject.release->heap_release(h.heap, &released)) || !no_mapping_changed(calls) ||
	    !CHECK_EQUAL(free, released.pages, "every page of which all is free goes") ||
	    !CHECK_EQUAL((uint64_t)free * check_page, released.bytes, "the count of bytes is that of the pages") ||
	    !CHECK_EQUAL((uint64_t)free * check_page, before - file_bytes(), "the memory file has lost as much"))
		return false;
	for (unsigned i = 0; i < free; i++) {
		const struct space_extent *extent = space_at(pages[i]);

		for (size_t at = 0; at < check_page; at += 64)
			if (!CHECK_EQUAL(0, *(const volatile unsigned char *)(pages[i] + at),
					 "what went reads as zero"))
				return false;
		if (!CHECK_TRUE(extent && extent->protection & SUBJECT_EXECUTE, "and is executable as before"))
			return false;
	}
	/* Reading gave each page its memory again: a heap does not know. */
	return ALLOC_OK(subject.release->heap_release(h.heap, &released)) &&
	       CHECK_EQUAL(0, released.pages, "what went does not go again before it is used") && all_run();
}

CHECK(rl_heap, "RL-020", "pages of a heap go, stay mapped, are used again; live code is untouched")
{
	if (!alloc_claims("allocator os-table release-heap"))
		return;
	MUST(make() && all_run() && releases());
	/* All of pages 4 to 7 and 10; each second block of page 12; a page's worth across pages 14 and 15. */
	for (unsigned i = 0; i < BLOCKS; i++) {
		const unsigned page = i / EACH;
		const bool across = i >= 14 * EACH + EACH / 2 && i < 15 * EACH + EACH / 2;

		if ((page >= 4 && page < 8) || page == 10 || (page == 12 && i & 1) || across)
			MUST(drop(i));
	}
	MUST(releases());
	/* The other half of page 12, and everything from page 20 on. */
	for (unsigned i = 0; i < BLOCKS; i++)
		if (h.live[i] && (i / EACH == 12 || i / EACH >= 20))
			MUST(drop(i));
	MUST(releases());
	for (unsigned i = 0; i < BLOCKS; i++)
		if (!h.live[i])
			MUST(put(i));
	MUST(all_run());
	for (unsigned i = 0; i < BLOCKS; i++)
		MUST(drop(i));
	MUST(releases() && end());
}

/* ---- While others run ---- */

static struct {
	uint32_t stop, wrong, calls;
} shared;

static void run_in_loop(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&shared.stop, __ATOMIC_ACQUIRE)) {
		for (unsigned i = 0; i < BLOCKS; i += 2 * EACH)
			if (alloc_run(h.rx[i]) != i % 251)
				__atomic_store_n(&shared.wrong, 1, __ATOMIC_RELEASE);
		__atomic_add_fetch(&shared.calls, 1, __ATOMIC_RELEASE);
	}
}

CHECK(rl_running, "RL-021", "a thread runs code of pages between those that come and go")
{
	struct execmem_port_thread thread = {.run = run_in_loop};
	struct subject_released released;
	bool right = true;

	if (!alloc_claims("allocator os-table release-heap"))
		return;
	MUST(make());
	shared.stop = shared.wrong = shared.calls = 0;
	if (execmem_port_thread_start(&thread))
		check_broken("the system refuses a thread", 0);
	/* The first block of every second page stays, and all of the pages between them goes. */
	for (unsigned round = 0; round < 6 && right; round++) {
		const uint32_t seen = __atomic_load_n(&shared.calls, __ATOMIC_ACQUIRE);

		for (unsigned i = 0; i < BLOCKS && right; i++)
			right = i % (2 * EACH) == 0 || drop(i);
		right = right && ALLOC_OK(subject.release->heap_release(h.heap, &released)) &&
			CHECK_EQUAL(PAGES / 2, released.pages, "the pages between those that stay go");
		for (unsigned i = 0; i < BLOCKS && right; i++)
			right = i % (2 * EACH) == 0 || put(i);
		while (right && !shared.wrong && __atomic_load_n(&shared.calls, __ATOMIC_ACQUIRE) == seen)
			;
	}
	__atomic_store_n(&shared.stop, 1, __ATOMIC_RELEASE);
	execmem_port_thread_join(&thread);
	MUST(right && CHECK_EQUAL(0, shared.wrong, "code that stays answers as before") && all_run() && end());
}
