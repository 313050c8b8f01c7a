/*
 * A heap of code in several regions, whose blocks lie across pages: each byte of a page counts, in every region.
 */
#include "../alloc/table.h"
#include "model.h"

#define BLOCKS 24u
#define PAGES  (3 * BLOCKS)

static struct {
	struct subject_allocator *allocator;
	struct subject_heap *heap;
	size_t bytes; /* of a block */
	uintptr_t rx[BLOCKS];
	bool live[BLOCKS];
	uintptr_t page[PAGES]; /* that a block has touched */
	bool owed[PAGES];      /* since it went */
	unsigned pages;
} h;

/* Marks what a block touches. */
static void mark(unsigned i)
{
	for (uintptr_t at = h.rx[i] & ~(uintptr_t)(check_page - 1); at < h.rx[i] + h.bytes; at += check_page) {
		unsigned k = 0;

		while (k < h.pages && h.page[k] != at)
			k++;
		if (k == PAGES)
			check_broken("more pages than there are blocks for", (long)k);
		h.pages += k == h.pages;
		h.page[k] = at;
		h.owed[k] = true;
	}
}

/* A block has its number all over, but for the function at its beginning. */
static bool put(unsigned i)
{
	struct subject_view view;

	if (!ALLOC_OK(subject.release->heap_allocate(h.heap, h.bytes, &h.rx[i])) ||
	    !ALLOC_OK(ALLOC(open)(h.allocator, h.rx[i], h.bytes, 0, &view)))
		return false;
	for (size_t k = 0; k < h.bytes; k += check_page / 64)
		view.rw[k] = (unsigned char)(i + 1);
	h.live[i] = true;
	mark(i);
	return ALLOC_OK(ALLOC(close)(&view)) && alloc_put(h.allocator, h.rx[i], i);
}

static bool all_kept(void)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		const volatile unsigned char *at = (const unsigned char *)h.rx[i];

		check_note_number("block", i);
		for (size_t k = check_page / 4; h.live[i] && k < h.bytes; k += check_page / 64)
			if (at[k] != i + 1)
				return CHECK_EQUAL(i + 1, at[k], "live code keeps its bytes");
		if (h.live[i] && !alloc_runs(h.rx[i], i, "live code runs"))
			return false;
	}
	return true;
}

/* Pages that are to go, gone in the model at once. */
static unsigned owed(void)
{
	unsigned count = 0;

	for (unsigned k = 0; k < h.pages; k++) {
		bool live = false;

		for (unsigned i = 0; i < BLOCKS; i++)
			live |= h.live[i] && h.page[k] < h.rx[i] + h.bytes && h.rx[i] < h.page[k] + check_page;
		if (live || !h.owed[k])
			continue;
		count++;
		h.owed[k] = false;
	}
	return count;
}

static unsigned taken; /* so many holes are punched, and no more */

static int refuse_later(const struct watch_call *call)
{
	if (call->kind != WATCH_DISCARD && call->kind != WATCH_DISCARD_MANY && call->kind != WATCH_FILE_PUNCH)
		return 0;
	return taken-- == 0 ? -TABLE_ENOSPC : 0;
}

/* In one go, or with a refusal after the first hole. */
static bool releases(bool refused)
{
	const unsigned pages = owed();
	struct subject_released first = {.pages = 0}, rest;

	if (refused) {
		taken = 1;
		watch.refuse = refuse_later;
		if (!ALLOC_IS(-TABLE_ENOSPC, subject.release->heap_release(h.heap, &first)))
			return false;
		watch.refuse = NULL;
		if (!CHECK_TRUE(first.pages < pages, "what the system refuses is not counted"))
			return false;
	}
	return ALLOC_OK(subject.release->heap_release(h.heap, &rest)) &&
	       CHECK_EQUAL(pages, first.pages + rest.pages, "every page of which all is free goes, in every region") &&
	       CHECK_EQUAL((first.pages + rest.pages) * check_page, first.bytes + rest.bytes, "and is counted") &&
	       all_kept();
}

static bool drop(unsigned i)
{
	h.live[i] = false;
	return ALLOC_OK(subject.release->heap_free(h.heap, h.rx[i]));
}

CHECK(rl_heap_regions, "RL-020", "of a heap of several regions, whose blocks lie across pages, every free page goes")
{
	if (!alloc_claims("allocator os-table release-heap"))
		return;
	__builtin_memset(&h, 0, sizeof(h));
	/* A page and a half; not all regions are a whole number of these. */
	h.bytes = check_page + check_page / 2;
	h.allocator = alloc_make(NULL);
	MUST(h.allocator != NULL);
	MUST_OK(subject.release->heap_create(h.allocator, ALLOC_UNIT, &h.heap));
	for (unsigned i = 0; i < BLOCKS; i++)
		MUST(put(i));
	MUST(releases(false));
	for (unsigned turn = 0; turn < 3; turn++) {
		check_note_number("turn", turn);
		for (unsigned i = 0; i < BLOCKS; i++)
			if ((i + turn) % 4 && i % 9)
				MUST(drop(i));
		/* Some pages are used again before they went. */
		for (unsigned i = 0; i < BLOCKS; i++)
			if (!h.live[i] && turn != 1 && i % 3)
				MUST(put(i));
		MUST(releases(turn == 1));
		/* Each page that went has a live block again, or half of one. */
		for (unsigned i = 0; i < BLOCKS; i++)
			if (!h.live[i] && i % 2)
				MUST(put(i));
		MUST(releases(false));
		for (unsigned i = 0; i < BLOCKS; i++)
			if (!h.live[i])
				MUST(put(i));
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		MUST(drop(i));
	MUST(releases(true));
	MUST_OK(subject.release->heap_destroy(h.heap));
	MUST(alloc_end(h.allocator));
}
