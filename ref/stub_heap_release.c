/*
 * Giving back the pages of a stub heap's records.
 *
 * As execmem_stub_free_pages, which offers a run at a time, but the heap stays locked until all of them went together.
 */
#include <execmem/release.h>

#include "stub_heap.h"

/* A place in the walk over all OS pages of data. */
struct cursor {
	struct execmem_stub_heap *heap;
	unsigned type;
	struct execmem_stub_region *region;
	uint32_t pair;
	unsigned part;
};

static struct cursor begin_walk(struct execmem_stub_heap *heap)
{
	return (struct cursor){.heap = heap, .region = heap->type_count ? heap->types[0].regions : NULL};
}

/* The next pair of pages of data from the cursor on, or null. */
static struct execmem_stub_pages *pages_at(struct cursor *at)
{
	for (;;) {
		if (at->region && at->pair < at->region->made)
			return &at->region->pages[at->pair];
		at->pair = at->part = 0;
		if (at->region) {
			at->region = at->region->next;
		} else {
			if (++at->type >= at->heap->type_count)
				return NULL;
			at->region = at->heap->types[at->type].regions;
		}
	}
}

/* The next run of pages that may go: how many, *address the first; the cursor is at its beginning. 0 at the end. */
static unsigned next_run(struct cursor *at, struct execmem_stub_pages **pages, uintptr_t *address)
{
	const struct execmem_stub_heap *heap = at->heap;

	while ((*pages = pages_at(at)) != NULL) {
		for (; at->part < heap->parts; at->part++) {
			unsigned end = at->part;

			while (end < heap->parts && (*pages)->counts[end] == EXECMEM_STUB_TOUCHED)
				end++;
			if (end == at->part)
				continue;
			*address = at->region->start + ((uintptr_t)at->pair << (heap->shift + 1)) + heap->stub_page +
				   ((uintptr_t)at->part << heap->allocator->page_shift);
			return end - at->part;
		}
		at->pair++;
		at->part = 0;
	}
	return 0;
}

/* The first `runs` runs from the cursor on went. */
static void settle(struct cursor *at, size_t runs)
{
	struct execmem_stub_pages *pages;
	uintptr_t address;

	while (runs--) {
		unsigned count = next_run(at, &pages, &address);

		while (count--)
			pages->counts[at->part++] = 0;
	}
}

static int release_all(struct execmem_stub_heap *heap)
{
	struct cursor at = begin_walk(heap), settled = at;
	struct execmem_stub_pages *pages;
	uintptr_t address;
	unsigned count;
	size_t done;
	int error = 0;

	while (!error && (count = next_run(&at, &pages, &address)) != 0) {
		error = execmem_release_private(heap->releaser, (void *)address,
						(size_t)count << heap->allocator->page_shift, &done);
		settle(&settled, done);
		at.part += count;
	}
	if (!error) {
		error = execmem_release_flush(heap->releaser, &done);
		settle(&settled, done);
	}
	return execmem_refuse(heap->allocator, "discard", error, 0);
}

static int get_releaser(struct execmem_stub_heap *heap)
{
	struct execmem_allocator *allocator = heap->allocator;
	void *memory;
	int error;

	if (heap->releaser)
		return 0;
	error = execmem_memory_get(&allocator->memory, &allocator->os, sizeof(*heap->releaser), &memory);
	if (error)
		return execmem_refuse(allocator, "map", error, sizeof(*heap->releaser));
	heap->releaser = memory;
	execmem_releaser_init(heap->releaser, &allocator->os);
	return 0;
}

void execmem_stub_put_releaser(struct execmem_stub_heap *heap)
{
	struct execmem_allocator *allocator = heap->allocator;

	execmem_memory_put(&allocator->memory, &allocator->os, heap->releaser, sizeof(*heap->releaser));
	heap->releaser = NULL;
}

int execmem_stub_release(struct execmem_stub_heap *heap, struct execmem_code_released *released)
{
	struct execmem_code_released result = {.verdict = EXECMEM_RELEASE_GO};
	int error;

	if (!heap)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_stub_begin(heap);
	if (error)
		return error;
	error = get_releaser(heap);
	if (!error) {
		struct execmem_release_stats *stats = &heap->releaser->stats, before = *stats;

		stats->attempts++;
		error = release_all(heap);
		result.ranges = (size_t)(stats->ranges - before.ranges);
		result.pages = (size_t)(stats->pages - before.pages);
		result.bytes = (size_t)(stats->bytes - before.bytes);
	}
	execmem_unlock(&heap->allocator->os, &heap->lock);
	if (released)
		*released = result;
	return error;
}

int execmem_stub_release_stats(struct execmem_stub_heap *heap, struct execmem_release_stats *stats)
{
	int error;

	if (!heap || !stats)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_stub_begin(heap);
	if (error)
		return error;
	*stats = heap->releaser ? heap->releaser->stats : (struct execmem_release_stats){0};
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return 0;
}
