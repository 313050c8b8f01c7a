/*
 * Allocating, cutting and freeing blocks of a code heap.
 */
#include "code_heap.h"

/* ---- What the callback will be told, when the lock is free ---- */

struct news {
	bool any;
	struct execmem_code_warning warning;
};

/* heap->lock is held. */
static void note(struct execmem_code_heap *heap, struct news *news, enum execmem_code_event event, size_t bytes,
		 int error)
{
	if (!heap->config.warn)
		return;
	news->any = true;
	news->warning.event = event;
	news->warning.bytes = bytes;
	news->warning.error = error;
	execmem_code_figures_locked(heap, &news->warning.figures);
}

/* The number of free blocks may have changed. */
static inline void watch_list(struct execmem_code_heap *heap, struct news *news, size_t bytes)
{
	if (heap->warned) {
		/* The list has a block a region less at most. */
		if (heap->free_count <= heap->config.free_blocks / 2 + heap->region_count &&
		    execmem_code_list_length(heap) <= heap->config.free_blocks / 2)
			heap->warned = false;
	} else if (heap->free_count > heap->config.free_blocks &&
		   execmem_code_list_length(heap) > heap->config.free_blocks) {
		heap->warned = true;
		note(heap, news, EXECMEM_CODE_FREE_LIST, bytes, 0);
	}
}

static inline void end(struct execmem_code_heap *heap, const struct news *news)
{
	execmem_unlock(&heap->allocator->os, &heap->lock);
	if (news->any)
		heap->config.warn(heap->config.context, &news->warning);
}

/* ---- Allocating ---- */

/* The segments of a block for so many bytes. */
static size_t count_for(const struct execmem_code_heap *heap, size_t bytes)
{
	size_t count = ((bytes - 1) >> heap->shift) + 1;

	return count > heap->config.minimum ? count : heap->config.minimum;
}

/* Finds a place, in another region if need be; *grown is that region or null. */
static int find_place(struct execmem_code_heap *heap, struct execmem_code_wish *wish, struct execmem_code_place *place,
		      struct execmem_code_region **grown)
{
	int error;

	*grown = NULL;
	if (execmem_code_search(heap, wish, place))
		return 0;
	error = execmem_code_grow(heap, wish, grown);
	wish->all = error != 0;
	if (error && wish->align == 1)
		return error;
	if (execmem_code_search(heap, wish, place))
		return 0;
	return error ? error : EXECMEM_ERROR_FULL;
}

/* Makes a block of `count` segments at a place, whose memory is committed. */
static void take(const struct execmem_code_place *place, size_t count, size_t unused, unsigned kind)
{
	struct execmem_code_region *region = place->region;
	struct execmem_code_heap *heap = region->heap;
	size_t before = place->at - place->free, behind = place->free_count - before - count;

	if (place->alone)
		execmem_code_best_remove_alone(region, place->free, place->free_count);
	else
		execmem_code_index_remove(region, place->free, place->free_count,
					  (struct execmem_code_change){place->free, place->free + place->free_count});
	heap->free_count--;
	if (before) {
		execmem_code_change(region->used, place->at - 1, false);
		execmem_code_bits_set(&region->blocks, place->at);
	}
	if (behind) {
		execmem_code_change(region->used, place->at + count, false);
		execmem_code_bits_set(&region->blocks, place->at + count);
	}
	execmem_code_remember(region, place->at, count, unused, kind);
	if (before) {
		execmem_code_index_insert(region, place->free, before);
		heap->free_count++;
	}
	if (behind) {
		execmem_code_index_insert(region, place->at + count, behind);
		heap->free_count++;
	}
	if (heap->config.policy == EXECMEM_CODE_NEAR)
		execmem_code_near_changed(region, place->at, count, true);
	execmem_code_pages_taken(region, place->at, count);
	if (place->at + count > region->top)
		region->top = place->at + count;
	heap->used += count;
	if (heap->used > heap->largest_used)
		heap->largest_used = heap->used;
	heap->unused_bytes += unused;
	heap->live_count++;
	heap->allocations++;
}

static int allocate(struct execmem_code_heap *heap, size_t bytes, struct execmem_code_wish *wish, unsigned kind,
		    struct execmem_code *code, struct news *news)
{
	struct execmem_code_place place;
	struct execmem_code_region *grown;
	size_t count = wish->count, behind;
	int error = find_place(heap, wish, &place, &grown);

	if (error) {
		note(heap, news, EXECMEM_CODE_FULL, bytes, error);
		return error;
	}
	behind = place.free + place.free_count - (place.at + count);
	if (behind < heap->config.minimum)
		count += behind;
	if (place.at + count > place.region->committed) {
		error = execmem_code_commit(place.region, place.at + count);
		if (error) {
			if (grown)
				(void)execmem_code_release_region(grown);
			return error;
		}
	}
	code->rx.at = place.region->start + (place.at << heap->shift);
	code->bytes = count << heap->shift;
	code->code_bytes = bytes;
	code->kind = kind;
	take(&place, count, code->bytes - bytes, kind);
	watch_list(heap, news, bytes);
	return 0;
}

int execmem_code_allocate(struct execmem_code_heap *heap, size_t bytes, const struct execmem_code_request *request,
			  struct execmem_code *code)
{
	struct execmem_code_wish wish = {.align = 1};
	struct news news;
	unsigned kind;
	int error;

	if (!heap || !code || bytes == 0 || bytes > SIZE_MAX / 4)
		return EXECMEM_ERROR_ARGUMENT;
	kind = heap->config.kind;
	if (request) {
		if (request->align & (request->align - 1) || request->align > EXECMEM_UNIT_BYTES ||
		    request->kind > EXECMEM_KIND_MAX)
			return EXECMEM_ERROR_ARGUMENT;
		kind = request->kind;
		wish.near = request->near;
		if (request->align > (size_t)1 << heap->shift)
			wish.align = request->align >> heap->shift;
	}
	wish.count = count_for(heap, bytes);
	if (wish.count > EXECMEM_CODE_SEGMENTS_MAX)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_code_begin(heap);
	if (error)
		return error;
	news.any = false;
	error = allocate(heap, bytes, &wish, kind, code, &news);
	end(heap, &news);
	return error;
}

/* ---- Freeing ---- */

/* Finds the live block that begins at an address. */
static int locate(struct execmem_code_heap *heap, execmem_rx rx, struct execmem_code_region **region, size_t *i)
{
	uintptr_t at = rx.at;
	const struct execmem_region_face *face = execmem_rangemap_face(&heap->allocator->map, at);
	struct execmem_code_region *found = face ? __atomic_load_n(&face->code, __ATOMIC_ACQUIRE) : NULL;
	size_t offset, block;

	if (!found || found->heap != heap)
		return EXECMEM_ERROR_NOT_FOUND;
	offset = at - found->start;
	block = execmem_code_previous(&found->blocks, offset >> heap->shift);
	if (!execmem_code_test(found->used, block))
		return EXECMEM_ERROR_FREED;
	if (block << heap->shift != offset)
		return EXECMEM_ERROR_INTERIOR;
	*region = found;
	*i = block;
	return 0;
}

/* The segments of a block that is in the map and marked used, but no longer counted, are free; merged on both sides. */
static void give(struct execmem_code_region *region, size_t i, size_t count)
{
	struct execmem_code_heap *heap = region->heap;
	size_t low = i, middle = i + count, high = middle;
	bool below = i && !execmem_code_test(region->used, i - 1), above = !execmem_code_test(region->used, middle);

	if (below)
		low = execmem_code_previous(&region->blocks, i - 1);
	if (above)
		high = execmem_code_next(&region->blocks, middle + 1);
	if (below)
		execmem_code_index_remove(region, low, i - low, (struct execmem_code_change){low, high});
	if (above)
		execmem_code_index_remove(region, middle, high - middle, (struct execmem_code_change){low, high});
	execmem_code_change(region->used, i, false);
	execmem_code_change(region->used, middle - 1, false);
	if (below)
		execmem_code_bits_clear(&region->blocks, i);
	if (above)
		execmem_code_bits_clear(&region->blocks, middle);
	execmem_code_index_insert(region, low, high - low);
	if (heap->config.policy == EXECMEM_CODE_NEAR)
		execmem_code_near_changed(region, i, count, false);
	execmem_code_pages_given(region, i, count, low, high);
	heap->free_count += 1 - (size_t)below - (size_t)above;
	heap->used -= count;
}

int execmem_code_free(struct execmem_code_heap *heap, execmem_rx rx)
{
	struct execmem_code_region *region;
	struct news news;
	size_t i, count;
	int error;

	if (!heap)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_code_begin(heap);
	if (error)
		return error;
	news.any = false;
	error = locate(heap, rx, &region, &i);
	if (!error) {
		count = execmem_code_segments(region, i);
		heap->unused_bytes -= execmem_code_unused(region, i, count);
		execmem_code_forget(region, i, count);
		heap->live_count--;
		heap->frees++;
		give(region, i, count);
		watch_list(heap, &news, 0);
	}
	end(heap, &news);
	return error;
}

/* Cuts a block of `count` segments. *count becomes what is left. */
static int shrink(struct execmem_code_region *region, size_t i, size_t bytes, size_t *count)
{
	struct execmem_code_heap *heap = region->heap;
	size_t left = count_for(heap, bytes), rest = *count - left;
	size_t unused = execmem_code_unused(region, i, *count);

	if (bytes > (*count << heap->shift) - unused)
		return EXECMEM_ERROR_ARGUMENT;
	if (rest < heap->config.minimum && execmem_code_test(region->used, i + *count))
		rest = 0;
	left = *count - rest;
	heap->unused_bytes -= unused;
	unused = (left << heap->shift) - bytes;
	heap->unused_bytes += unused;
	/* Not execmem_code_forget: to readers the block stays what it is. */
	execmem_code_remember(region, i, left, unused, execmem_code_kind_at(region, i));
	if (rest) {
		execmem_code_bits_set(&region->blocks, i + left);
		give(region, i + left, rest);
	}
	*count = left;
	return 0;
}

int execmem_code_shrink(struct execmem_code_heap *heap, execmem_rx rx, size_t bytes, size_t *block_bytes)
{
	struct execmem_code_region *region;
	struct news news;
	size_t i, count;
	int error;

	if (!heap || bytes == 0)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_code_begin(heap);
	if (error)
		return error;
	news.any = false;
	error = locate(heap, rx, &region, &i);
	if (!error) {
		count = execmem_code_segments(region, i);
		error = shrink(region, i, bytes, &count);
		watch_list(heap, &news, bytes);
	}
	if (!error && block_bytes)
		*block_bytes = count << heap->shift;
	end(heap, &news);
	return error;
}
