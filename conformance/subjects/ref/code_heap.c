/*
 * libexecmem's code heap in the suite's words.
 */
#include "code_heap.h"

#include <execmem/code_heap.h>

#include "allocator.h"

_Static_assert((int)SUBJECT_CODE_FIRST == (int)EXECMEM_CODE_FIRST && (int)SUBJECT_CODE_BEST == (int)EXECMEM_CODE_BEST &&
		       (int)SUBJECT_CODE_NEAR == (int)EXECMEM_CODE_NEAR,
	       "policies");
_Static_assert((int)SUBJECT_CODE_FREE_LIST == (int)EXECMEM_CODE_FREE_LIST &&
		       (int)SUBJECT_CODE_FULL == (int)EXECMEM_CODE_FULL,
	       "events");

static struct execmem_code_heap *own(struct subject_code_heap *heap)
{
	return (struct execmem_code_heap *)heap;
}

static struct subject_code code_of(const struct execmem_code *from)
{
	return (struct subject_code){from->rx.at, from->bytes, from->code_bytes, from->kind};
}

static struct subject_code_figures figures_of(const struct execmem_code_figures *from)
{
	return (struct subject_code_figures){
		.free_blocks = from->free_blocks,
		.free_bytes = from->free_bytes,
		.unused_bytes = from->unused_bytes,
		.segment_map_bytes = from->segment_map_bytes,
		.used_bytes = from->used_bytes,
		.largest_used_bytes = from->largest_used_bytes,
		.wasted_bytes = from->wasted_bytes,
		.overhead_per_myriad = from->overhead_per_myriad,
		.live_blocks = from->live_blocks,
		.footprint_bytes = from->footprint_bytes,
		.reserved_bytes = from->reserved_bytes,
		.largest_free = from->largest_free,
		.metadata_bytes = from->metadata_bytes,
		.regions = from->regions,
		.allocations = from->allocations,
		.frees = from->frees,
		.searches = from->searches,
		.search_steps = from->search_steps,
		.most_steps = from->most_steps,
	};
}

/* The suite's callback: one heap at a time has one. */
static struct {
	void (*warn)(void *context, const struct subject_code_warning *warning);
	void *context;
} told;

static void warn(void *context, const struct execmem_code_warning *warning)
{
	const struct subject_code_warning same = {
		.event = (enum subject_code_event)warning->event,
		.bytes = warning->bytes,
		.error = ref_error(warning->error),
		.figures = figures_of(&warning->figures),
	};

	(void)context;
	told.warn(told.context, &same);
}

static int create(struct subject_allocator *allocator, const struct subject_code_config *from,
		  struct subject_code_heap **heap)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code_heap *made;
	int error;

	config.segment_bytes = from->segment_bytes;
	config.minimum = from->minimum;
	config.policy = (enum execmem_code_policy)from->policy;
	config.near_percent = from->near_percent;
	config.region_bytes = from->region_bytes;
	config.maximum_bytes = from->maximum_bytes;
	config.kind = from->kind;
	config.free_blocks = from->free_blocks;
	if (from->warn) {
		told.warn = from->warn;
		told.context = from->context;
		config.warn = warn;
	}
	error = execmem_code_heap_create((struct execmem_allocator *)allocator, &config, &made);
	if (!error)
		*heap = (struct subject_code_heap *)made;
	return ref_error(error);
}

static int destroy(struct subject_code_heap *heap)
{
	return ref_error(execmem_code_heap_destroy(own(heap)));
}

static int allocate_any(struct subject_code_heap *heap, size_t bytes, const struct execmem_code_request *request,
			struct subject_code *code)
{
	struct execmem_code made;
	const int error = execmem_code_allocate(own(heap), bytes, request, &made);

	if (!error)
		*code = code_of(&made);
	return ref_error(error);
}

static int allocate(struct subject_code_heap *heap, size_t bytes, const struct subject_code_request *from,
		    struct subject_code *code)
{
	const struct execmem_code_request request = {from ? from->align : 0, from ? from->kind : 0, NULL};

	return allocate_any(heap, bytes, from ? &request : NULL, code);
}

static int allocate_near(struct subject_code_heap *heap, size_t bytes, const struct subject_code_request *from,
			 uintptr_t target, size_t reach, struct subject_code *code)
{
	const struct execmem_near near = {target, reach};
	const struct execmem_code_request request = {from->align, from->kind, &near};

	return allocate_any(heap, bytes, &request, code);
}

static int free_block(struct subject_code_heap *heap, uintptr_t rx)
{
	return ref_error(execmem_code_free(own(heap), (execmem_rx){rx}));
}

static int shrink(struct subject_code_heap *heap, uintptr_t rx, size_t bytes, size_t *block_bytes)
{
	return ref_error(execmem_code_shrink(own(heap), (execmem_rx){rx}, bytes, block_bytes));
}

struct walk {
	int (*visit)(void *context, const struct subject_code *block);
	void *context;
};

static int visit(void *context, const struct execmem_code *block)
{
	const struct walk *walk = context;
	const struct subject_code same = code_of(block);

	return walk->visit(walk->context, &same);
}

static int walk(struct subject_code_heap *heap, int (*each)(void *context, const struct subject_code *block),
		void *context)
{
	struct walk walk = {each, context};

	return ref_error(execmem_code_walk(own(heap), visit, &walk));
}

static int find(struct subject_allocator *allocator, uintptr_t address, struct subject_code *code)
{
	struct execmem_code found;
	const int error = execmem_code_find((struct execmem_allocator *)allocator, (const void *)address, &found);

	if (!error)
		*code = code_of(&found);
	return ref_error(error);
}

static int kind(struct subject_allocator *allocator, uintptr_t address)
{
	return execmem_code_kind((struct execmem_allocator *)allocator, (const void *)address);
}

static int figures(struct subject_code_heap *heap, struct subject_code_figures *to)
{
	struct execmem_code_figures from;
	const int error = execmem_code_figures(own(heap), &from);

	if (!error)
		*to = figures_of(&from);
	return ref_error(error);
}

static int histogram(struct subject_code_heap *heap, size_t step, size_t *counts, size_t count)
{
	return ref_error(execmem_code_histogram(own(heap), step, counts, count));
}

const struct subject_code_heap_operations ref_code_heap = {
	.create = create,
	.destroy = destroy,
	.allocate = allocate,
	.free = free_block,
	.walk = walk,
	.allocate_near = allocate_near,
	.shrink = shrink,
	.find = find,
	.kind = kind,
	.figures = figures,
	.histogram = histogram,
};
