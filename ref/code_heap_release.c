/*
 * Giving back the pages of a code heap that lie in free blocks.
 *
 * Free neighbours are one block, so a page that becomes free as a whole does so when a block that touches it is freed,
 * and the merged block says so: no page needs a count of its own.
 */
#include "code_heap.h"

#include <execmem/release.h>

#define WORD_BITS (8 * sizeof(uintptr_t))

struct execmem_code_books {
	struct execmem_releaser releaser;
};

/* The pages that segments [low, high) lie on, [*from, *to): those that they touch, or those that they fill. */
static void pages_touched(const struct execmem_code_region *region, size_t low, size_t high, size_t *from, size_t *to)
{
	unsigned shift = region->heap->shift, page = region->heap->allocator->page_shift;

	*from = low << shift >> page;
	*to = (((high << shift) - 1) >> page) + 1;
}

static void pages_filled(const struct execmem_code_region *region, size_t low, size_t high, size_t *from, size_t *to)
{
	unsigned shift = region->heap->shift, page = region->heap->allocator->page_shift;

	*from = ((low << shift) + ((size_t)1 << page) - 1) >> page;
	*to = high << shift >> page;
}

void execmem_code_pages_taken(struct execmem_code_region *region, size_t i, size_t count)
{
	size_t page, end;

	region->heap->popped += count;
	pages_touched(region, i, i + count, &page, &end);
	/* Nearly always none of them was to be given back. */
	if (page / WORD_BITS == (end - 1) / WORD_BITS &&
	    (region->pending[page / WORD_BITS] >> (page % WORD_BITS) & (((uintptr_t)2 << (end - 1 - page)) - 1)) == 0)
		return;
	for (; page < end; page++) {
		uintptr_t *word = &region->pending[page / WORD_BITS], bit = (uintptr_t)1 << (page % WORD_BITS);

		region->pending_count -= (*word & bit) != 0;
		*word &= ~bit;
	}
}

void execmem_code_pages_given(struct execmem_code_region *region, size_t i, size_t count, size_t low, size_t high)
{
	size_t page, end, from, to;

	region->heap->pushed += count;
	/* Nearly always too little to fill one. */
	if (high - low < region->heap->allocator->page_bytes >> region->heap->shift)
		return;
	pages_touched(region, i, i + count, &page, &end);
	pages_filled(region, low, high, &from, &to);
	page = page > from ? page : from;
	end = end < to ? end : to;
	for (; page < end; page++) {
		uintptr_t *word = &region->pending[page / WORD_BITS], bit = (uintptr_t)1 << (page % WORD_BITS);

		region->pending_count += (*word & bit) == 0;
		*word |= bit;
	}
}

/* ---- Releasing; heap->lock is held ---- */

static void settle(struct execmem_code_region *region, size_t page, size_t count)
{
	region->pending_count -= count;
	for (; count; count--, page++)
		region->pending[page / WORD_BITS] &= ~((uintptr_t)1 << (page % WORD_BITS));
}

/* Pages in the memory file, where the units that they lie in need not be neighbours. */
static int punch(struct execmem_code_region *region, struct execmem_releaser *releaser, size_t page, size_t count)
{
	const struct execmem_region_record *record = region->region.record;
	unsigned shift = record->allocator->page_shift;
	size_t end = page + count;
	int error = 0;

	while (page < end && !error) {
		uint64_t at = 0;
		size_t bytes = execmem_file_run(record, page << shift, end << shift, &at);

		error = execmem_release_file(releaser, record->allocator->file.file, at, bytes);
		if (!error)
			settle(region, page, bytes >> shift);
		page += bytes >> shift;
	}
	return error;
}

/* The first `runs` runs that are pending from page *from on went. */
static void settle_runs(struct execmem_code_region *region, size_t pages, size_t *from, size_t runs)
{
	while (runs--) {
		size_t count = execmem_release_next_run(region->pending, pages, from);

		settle(region, *from, count);
		*from += count;
	}
}

/* The region is locked. */
static int release_region(struct execmem_code_region *region, struct execmem_releaser *releaser)
{
	const struct execmem_allocator *allocator = region->heap->allocator;
	unsigned shift = allocator->page_shift;
	bool has_file = allocator->backend == EXECMEM_BACKEND_DOUBLE;
	size_t pages = region->segments << region->heap->shift >> shift, page = 0, settled = 0, count, done;
	int error = 0;

	while (!error && (count = execmem_release_next_run(region->pending, pages, &page)) != 0) {
		if (has_file) {
			error = punch(region, releaser, page, count);
		} else {
			error = execmem_release_private(releaser, (void *)(region->start + (page << shift)),
							count << shift, &done);
			settle_runs(region, pages, &settled, done);
		}
		page += count;
	}
	if (!error && !has_file) {
		error = execmem_release_flush(releaser, &done);
		settle_runs(region, pages, &settled, done);
	}
	return error;
}

static int release_all(struct execmem_code_heap *heap)
{
	struct execmem_releaser *releaser = &heap->books->releaser;
	int error = 0;

	for (struct execmem_code_region *region = heap->regions; region && !error; region = region->next) {
		if (region->pending_count == 0)
			continue;
		/* A fork copies what is committed under this lock. */
		error = execmem_region_lock(&region->region);
		if (error)
			return error;
		error = release_region(region, releaser);
		execmem_region_unlock(region->region.record);
	}
	return error;
}

static enum execmem_release_verdict decide(struct execmem_code_heap *heap, const struct execmem_code_release *request,
					   struct execmem_release_class *size_class)
{
	size_t top = 0;

	for (const struct execmem_code_region *region = heap->regions; region; region = region->next)
		top += region->top;
	*size_class = (struct execmem_release_class){
		.page_bytes = heap->allocator->page_bytes,
		.block_bytes = (size_t)heap->config.minimum << heap->shift,
		.allocated_bytes = (uint64_t)top << heap->shift,
		.pushed_bytes = heap->pushed << heap->shift,
		.popped_bytes = heap->popped << heap->shift,
		.pushed_at_last = heap->pushed_at_last << heap->shift,
		.last_ns = heap->released_ns,
	};
	return execmem_release_decide(size_class, request->forced, request->interval_ms, request->now_ns);
}

/* What releasing needs is there from the first time on. */
static int get_books(struct execmem_code_heap *heap)
{
	struct execmem_allocator *allocator = heap->allocator;
	void *memory;
	int error;

	if (heap->books)
		return 0;
	error = execmem_memory_get(&allocator->memory, &allocator->os, sizeof(*heap->books), &memory);
	if (error)
		return execmem_refuse(allocator, "map", error, sizeof(*heap->books));
	heap->books = memory;
	execmem_releaser_init(&heap->books->releaser, &allocator->os);
	return 0;
}

void execmem_code_put_books(struct execmem_code_heap *heap)
{
	struct execmem_allocator *allocator = heap->allocator;

	execmem_memory_put(&allocator->memory, &allocator->os, heap->books, sizeof(*heap->books));
	heap->books = NULL;
}

static int release(struct execmem_code_heap *heap, const struct execmem_code_release *request,
		   struct execmem_code_released *released)
{
	struct execmem_release_class size_class;
	struct execmem_release_stats *stats, before;
	int error = get_books(heap);

	if (error)
		return error;
	stats = &heap->books->releaser.stats;
	stats->attempts++;
	if (request->policy == EXECMEM_RELEASE_SCUDO) {
		released->verdict = decide(heap, request, &size_class);
		if (released->verdict != EXECMEM_RELEASE_GO) {
			stats->skipped++;
			return 0;
		}
	}
	before = *stats;
	error = release_all(heap);
	released->ranges = (size_t)(stats->ranges - before.ranges);
	released->pages = (size_t)(stats->pages - before.pages);
	released->bytes = (size_t)(stats->bytes - before.bytes);
	if (released->ranges)
		heap->pushed_at_last = heap->pushed;
	heap->released_ns = request->now_ns;
	return execmem_refuse(heap->allocator,
			      heap->allocator->backend == EXECMEM_BACKEND_DOUBLE ? "file_punch" : "discard", error, 0);
}

int execmem_code_release(struct execmem_code_heap *heap, const struct execmem_code_release *request,
			 struct execmem_code_released *released)
{
	const struct execmem_code_release exact = {.policy = EXECMEM_RELEASE_EXACT};
	struct execmem_code_released result = {.verdict = EXECMEM_RELEASE_GO};
	int error;

	if (!request)
		request = &exact;
	if (!heap || (unsigned)request->policy > EXECMEM_RELEASE_SCUDO)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_code_begin(heap);
	if (error)
		return error;
	error = release(heap, request, &result);
	execmem_unlock(&heap->allocator->os, &heap->lock);
	if (released)
		*released = result;
	return error;
}

int execmem_code_release_stats(struct execmem_code_heap *heap, struct execmem_release_stats *stats)
{
	int error;

	if (!heap || !stats)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_code_begin(heap);
	if (error)
		return error;
	*stats = heap->books ? heap->books->releaser.stats : (struct execmem_release_stats){0};
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return 0;
}
