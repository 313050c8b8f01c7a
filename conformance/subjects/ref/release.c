/*
 * libexecmem's page release in the suite's words.
 */
#include "release.h"

#include <execmem/release.h>

#include "allocator.h"

_Static_assert((int)SUBJECT_RELEASE_SCUDO == (int)EXECMEM_RELEASE_SCUDO, "policies");
_Static_assert((int)SUBJECT_RELEASE_DENSE == (int)EXECMEM_RELEASE_DENSE &&
		       (int)SUBJECT_RELEASE_EARLY == (int)EXECMEM_RELEASE_EARLY,
	       "verdicts");
_Static_assert(sizeof(struct subject_release_layout) == sizeof(struct execmem_release_layout), "layouts");

static enum subject_release_verdict decide(const struct subject_release_state *state, bool forced, int32_t interval_ms,
					   uint64_t now_ns)
{
	const struct execmem_release_class size_class = {
		.page_bytes = state->page_bytes,
		.block_bytes = state->block_bytes,
		.allocated_bytes = state->allocated,
		.pushed_bytes = state->pushed,
		.popped_bytes = state->popped,
		.pushed_at_last = state->pushed_at_last,
		.last_ns = state->last_ns,
	};

	return (enum subject_release_verdict)execmem_release_decide(&size_class, forced, interval_ms, now_ns);
}

/* ---- A class: what its owner keeps ---- */

struct subject_class {
	struct execmem_os os;
	size_t bytes; /* mapped for all of this */
	struct execmem_release_area area;
	struct execmem_release_class size_class;
	struct execmem_release_pages pages;
	struct execmem_releaser releaser;
	struct execmem_release_batch *batches; /* room for a list of all blocks */
	unsigned char live[];                  /* by block */
};

static size_t up(size_t bytes, size_t to)
{
	return (bytes + to - 1) & ~(to - 1);
}

static int class_create(const struct subject_os *os, const struct subject_release_layout *given,
			const struct subject_release_place *place, struct subject_class **made)
{
	const struct execmem_release_layout layout = {given->page_bytes, given->block_bytes, given->first,
						      given->blocks, given->end};
	struct execmem_os table = ref_table(os);
	size_t counters, lists, batches = given->blocks / EXECMEM_RELEASE_BATCH + 1, bytes;
	struct subject_class *class_;
	unsigned char *rest;
	void *memory;
	int error;

	if (!execmem_release_layout_is_right(&layout))
		return SUBJECT_ERROR_ARGUMENT;
	counters = up(sizeof(*class_) + layout.blocks, sizeof(uint64_t));
	lists = counters + up(execmem_release_pages_bytes(&layout), sizeof(uint64_t));
	bytes = up(lists + batches * sizeof(struct execmem_release_batch), table.page_size(table.context));
	error = table.map(table.context, NULL, bytes, EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0, &memory);
	if (error)
		return error;
	class_ = memory;
	rest = memory;
	class_->os = table;
	class_->bytes = bytes;
	class_->area = (struct execmem_release_area){place->address, place->file, place->offset};
	class_->size_class = (struct execmem_release_class){
		.page_bytes = layout.page_bytes,
		.block_bytes = layout.block_bytes,
		.allocated_bytes = (uint64_t)layout.blocks * layout.block_bytes,
	};
	class_->batches = (struct execmem_release_batch *)__builtin_assume_aligned(rest + lists, sizeof(uint64_t));
	execmem_releaser_init(&class_->releaser, &class_->os);
	error = execmem_release_pages_init(&class_->pages, &layout, rest + counters);
	*made = class_;
	return ref_error(error);
}

static int class_destroy(struct subject_class *class_)
{
	const struct execmem_os os = class_->os;

	return os.unmap(os.context, class_, class_->bytes);
}

static void class_take(struct subject_class *class_, size_t block)
{
	class_->live[block] = 1;
	class_->size_class.popped_bytes += class_->size_class.block_bytes;
	execmem_release_take(&class_->pages, block);
}

static void class_give(struct subject_class *class_, size_t block)
{
	class_->live[block] = 0;
	class_->size_class.pushed_bytes += class_->size_class.block_bytes;
	execmem_release_give(&class_->pages, block);
}

static struct execmem_release_batch *free_list(struct subject_class *class_)
{
	struct execmem_release_batch *next = class_->batches, *list = NULL;

	for (size_t block = 0; block < class_->pages.layout.blocks; block++) {
		if (class_->live[block])
			continue;
		if (!list || list->count == EXECMEM_RELEASE_BATCH) {
			execmem_release_batch_clear(next);
			next->next = list;
			list = next++;
		}
		list->block[list->count++] = (uint32_t)block;
	}
	return list;
}

static int class_release(struct subject_class *class_, const struct subject_release_request *request,
			 struct subject_released *released)
{
	const struct execmem_release_stats before = class_->releaser.stats;
	enum execmem_release_verdict verdict = EXECMEM_RELEASE_GO;
	int error;

	if (request->policy == SUBJECT_RELEASE_EXACT)
		error = execmem_release_exact(&class_->releaser, &class_->pages, &class_->area);
	else
		error = execmem_release_scudo(&class_->releaser, &class_->pages.layout, &class_->area,
					      free_list(class_), &class_->size_class, request->forced,
					      request->interval_ms, request->now_ns, &verdict);
	*released = (struct subject_released){
		.verdict = (enum subject_release_verdict)verdict,
		.ranges = class_->releaser.stats.ranges - before.ranges,
		.pages = class_->releaser.stats.pages - before.pages,
		.bytes = class_->releaser.stats.bytes - before.bytes,
	};
	return ref_error(error);
}

/* ---- A heap ---- */

static struct execmem_code_heap *own(struct subject_heap *heap)
{
	return (struct execmem_code_heap *)heap;
}

static int heap_create(struct subject_allocator *allocator, size_t region_bytes, struct subject_heap **heap)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code_heap *made;
	int error;

	config.segment_bytes = 64;
	config.region_bytes = region_bytes;
	config.policy = EXECMEM_CODE_FIRST;
	error = execmem_code_heap_create((struct execmem_allocator *)allocator, &config, &made);
	if (!error)
		*heap = (struct subject_heap *)made;
	return ref_error(error);
}

static int heap_destroy(struct subject_heap *heap)
{
	return ref_error(execmem_code_heap_destroy(own(heap)));
}

static int heap_allocate(struct subject_heap *heap, size_t bytes, uintptr_t *rx)
{
	struct execmem_code code;
	const int error = execmem_code_allocate(own(heap), bytes, NULL, &code);

	if (!error)
		*rx = code.rx.at;
	return ref_error(error);
}

static int heap_free(struct subject_heap *heap, uintptr_t rx)
{
	return ref_error(execmem_code_free(own(heap), (execmem_rx){rx}));
}

static int heap_release(struct subject_heap *heap, struct subject_released *released)
{
	struct execmem_code_released result = {.verdict = EXECMEM_RELEASE_GO};
	const int error = execmem_code_release(own(heap), NULL, &result);

	*released = (struct subject_released){(enum subject_release_verdict)result.verdict, result.ranges, result.pages,
					      result.bytes};
	return ref_error(error);
}

const struct subject_release_operations ref_release = {
	.decide = decide,
	.class_create = class_create,
	.class_destroy = class_destroy,
	.class_take = class_take,
	.class_give = class_give,
	.class_release = class_release,
	.heap_create = heap_create,
	.heap_destroy = heap_destroy,
	.heap_allocate = heap_allocate,
	.heap_free = heap_free,
	.heap_release = heap_release,
};
