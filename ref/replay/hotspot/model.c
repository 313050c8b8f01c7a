/*
 * The replay of a trace on the model.
 */
#include "list.h"
#include "replay.h"

#define ARENA ((size_t)256 << 20) /* address space of a heap */

static void sum(struct execmem_code_figures *figures, const struct list_heap *heap)
{
	figures->free_blocks += heap->free_count;
	figures->free_bytes += heap->free_segments << heap->shift;
	figures->segment_map_bytes += heap->next;
	figures->used_bytes += (heap->next - heap->free_segments) << heap->shift;
	figures->largest_used_bytes += heap->used_most << heap->shift;
	figures->footprint_bytes += heap->next << heap->shift;
}

void replay_list(const struct replay_config *config, struct trace *trace, struct replay_result *result)
{
	struct list_heap heaps[TRACE_HEAPS] = {0};
	struct execmem_code_figures *figures = &result->figures;
	unsigned count = config->together ? 1 : trace->heaps, shift = (unsigned)__builtin_ctzll(config->segment);
	void **code = replay_get(trace->block_count * sizeof(*code));
	size_t free_most[TRACE_HEAPS] = {0};

	for (unsigned i = 0; i < count; i++)
		heaps[i] = (struct list_heap){.arena = replay_get(ARENA),
					      .map = replay_get(ARENA >> shift),
					      .shift = shift,
					      .minimum = config->minimum,
					      .first = config->policy == EXECMEM_CODE_FIRST};
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_event *event = &trace->events[i];
		struct list_heap *heap = &heaps[config->together ? 0 : event->heap];
		struct trace_block *block = &trace->blocks[event->block];

		if (event->kind != TRACE_ALLOCATE)
			figures->unused_bytes -= list_block_bytes(heap, code[event->block]) - block->bytes;
		if (event->kind == TRACE_FREE)
			list_free(heap, code[event->block]);
		else if (event->kind == TRACE_TRIM)
			list_trim(heap, code[event->block], event->bytes);
		else
			code[event->block] = list_allocate(heap, event->bytes);
		if ((heap->next << shift) + TRACE_BYTES_MOST / 8 > ARENA)
			replay_failed(i, "the arena of the model is full", 0);
		if (event->kind != TRACE_FREE)
			figures->unused_bytes += list_block_bytes(heap, code[event->block]) - event->bytes;
		block->bytes = event->bytes;
		if (heap->free_count > free_most[heap - heaps])
			free_most[heap - heaps] = heap->free_count;
		figures->allocations += event->kind == TRACE_ALLOCATE;
		figures->frees += event->kind == TRACE_FREE;
	}
	for (unsigned i = 0; i < count; i++) {
		sum(figures, &heaps[i]);
		result->free_blocks_most += free_most[i];
	}
	for (uint32_t i = 0; i < trace->block_count; i++) {
		size_t size = trace->blocks[i].bytes / REPLAY_STEP;

		if (trace->blocks[i].bytes == 0)
			continue;
		figures->live_blocks++;
		replay_sizes[size < REPLAY_SIZES ? size : REPLAY_SIZES - 1]++;
		trace->blocks[i].bytes = 0;
	}
	figures->metadata_bytes = figures->segment_map_bytes;
	replay_sum_up(figures);
}
