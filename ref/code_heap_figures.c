/*
 * The figures of a code heap, and walking its blocks.
 */
#include "code_heap.h"

static bool is_live(const struct execmem_code_region *region, size_t i)
{
	return execmem_code_test(region->used, i);
}

/* Whether what lies behind everything that was ever used is a block of its own. */
static bool has_fresh(const struct execmem_code_region *region)
{
	return region->top < region->segments && execmem_code_test(region->blocks.level[0], region->top);
}

size_t execmem_code_list_length(const struct execmem_code_heap *heap)
{
	size_t length = heap->free_count;

	for (const struct execmem_code_region *region = heap->regions; region; region = region->next)
		length -= has_fresh(region);
	return length;
}

/* The segments of the largest free block. */
static size_t largest_free(const struct execmem_code_region *region)
{
	if (region->heap->config.policy == EXECMEM_CODE_FIRST)
		return region->maxima.level[region->maxima.levels - 1][0];
	return execmem_code_best_largest(region);
}

/*
 * wasted / used in 1/100 of a percent, to the nearest: long division in base 2, since a 64-bit division is a library
 * call on 32-bit ports. Both are bytes in an address space, so that nothing overflows.
 */
static uint64_t overhead(size_t wasted, size_t used)
{
	uint64_t rest = (uint64_t)wasted * 10000 + used / 2, divisor = used;
	uint64_t result = 0;
	unsigned shift = 0;

	if (used == 0)
		return 0;
	while (divisor << shift <= rest / 2)
		shift++;
	for (;; shift--) {
		if (divisor << shift <= rest) {
			rest -= divisor << shift;
			result |= (uint64_t)1 << shift;
		}
		if (shift == 0)
			return result;
	}
}

void execmem_code_figures_locked(struct execmem_code_heap *heap, struct execmem_code_figures *figures)
{
	struct execmem_code_figures sum = {0};
	size_t top = 0, committed = 0, largest = 0;

	sum.metadata_bytes = sizeof(*heap);
	sum.metadata_mapped = sum.metadata_bytes;
	for (const struct execmem_code_region *region = heap->regions; region; region = region->next) {
		size_t free = largest_free(region);

		top += region->top;
		committed += region->committed;
		largest = free > largest ? free : largest;
		sum.metadata_bytes += execmem_code_region_metadata(region);
		sum.metadata_mapped += region->table_bytes + sizeof(*region);
	}
	sum.free_blocks = execmem_code_list_length(heap);
	sum.free_bytes = (top - heap->used) << heap->shift;
	sum.unused_bytes = heap->unused_bytes;
	sum.segment_map_bytes = top;
	sum.used_bytes = heap->used << heap->shift;
	sum.largest_used_bytes = heap->largest_used << heap->shift;
	sum.wasted_bytes = sum.free_bytes + sum.unused_bytes + sum.segment_map_bytes;
	sum.overhead_per_myriad = overhead(sum.wasted_bytes, sum.largest_used_bytes);
	sum.live_blocks = heap->live_count;
	sum.footprint_bytes = top << heap->shift;
	sum.committed_bytes = committed << heap->shift;
	sum.reserved_bytes = heap->reserved_bytes;
	sum.largest_free = largest << heap->shift;
	sum.regions = heap->region_count;
	sum.allocations = heap->allocations;
	sum.frees = heap->frees;
	sum.searches = heap->searches;
	sum.search_steps = heap->steps;
	sum.most_steps = heap->most_steps;
	*figures = sum;
}

int execmem_code_figures(struct execmem_code_heap *heap, struct execmem_code_figures *figures)
{
	int error = heap && figures ? execmem_code_begin(heap) : EXECMEM_ERROR_ARGUMENT;

	if (error)
		return error;
	execmem_code_figures_locked(heap, figures);
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return 0;
}

/* heap->lock is held. */
static int walk(const struct execmem_code_heap *heap, int (*visit)(void *, const struct execmem_code *), void *context)
{
	for (const struct execmem_code_region *region = heap->regions; region; region = region->next) {
		for (size_t i = 0, count; i < region->segments; i += count) {
			struct execmem_code block = {.rx = {region->start + (i << heap->shift)}};
			int result;

			count = execmem_code_segments(region, i);
			block.bytes = count << heap->shift;
			if (is_live(region, i)) {
				block.code_bytes = block.bytes - execmem_code_unused(region, i, count);
				block.kind = execmem_code_kind_at(region, i);
			}
			result = visit(context, &block);
			if (result)
				return result;
		}
	}
	return 0;
}

int execmem_code_walk(struct execmem_code_heap *heap, int (*visit)(void *context, const struct execmem_code *block),
		      void *context)
{
	int result = heap && visit ? execmem_code_begin(heap) : EXECMEM_ERROR_ARGUMENT;

	if (result)
		return result;
	result = walk(heap, visit, context);
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return result;
}

struct histogram {
	size_t step, *counts, count;
};

static int count_block(void *context, const struct execmem_code *block)
{
	const struct histogram *histogram = context;
	size_t i = block->code_bytes / histogram->step;

	if (block->code_bytes)
		histogram->counts[i < histogram->count ? i : histogram->count - 1]++;
	return 0;
}

int execmem_code_histogram(struct execmem_code_heap *heap, size_t step, size_t *counts, size_t count)
{
	struct histogram histogram = {step, counts, count};
	int error = heap && counts && count && step ? execmem_code_begin(heap) : EXECMEM_ERROR_ARGUMENT;

	if (error)
		return error;
	for (size_t i = 0; i < count; i++)
		counts[i] = 0;
	(void)walk(heap, count_block, &histogram);
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return 0;
}
