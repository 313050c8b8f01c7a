/*
 * libexecmem's stub heap in the suite's words.
 */
#include <subject_stub_heap.h>

#include "allocator.h"

#include <execmem/release.h>
#include <execmem/stub_heap.h>

static struct execmem_stub_heap *own(struct subject_stub_heap *heap)
{
	return (struct execmem_stub_heap *)heap;
}

_Static_assert(sizeof(struct execmem_patch) == sizeof(struct subject_patch) &&
		       offsetof(struct execmem_patch, width) == offsetof(struct subject_patch, width),
	       "patches");

#define KINDS_MOST 8

static int create(struct subject_allocator *allocator, const struct subject_stub_kind *kinds, unsigned count,
		  size_t stub_page, struct subject_stub_heap **heap)
{
	struct execmem_stub_kind wanted[KINDS_MOST];
	const struct execmem_stub_config config = {.kinds = wanted, .kind_count = count, .stub_page = stub_page};
	struct execmem_stub_heap *made;
	int error;

	if (count > KINDS_MOST)
		return SUBJECT_ERROR_ARGUMENT;
	for (unsigned i = 0; i < count; i++) {
		const struct subject_stub_kind *kind = &kinds[i];

		wanted[i] = (struct execmem_stub_kind){
			.template = {kind->code, kind->code + kind->code_bytes, kind->pitch,
				     (const struct execmem_patch *)kind->patches, kind->patch_count},
			.record_bytes = kind->record_bytes,
			.kind = kind->kind,
		};
	}
	error = execmem_stub_heap_create((struct execmem_allocator *)allocator, &config, &made);
	if (!error)
		*heap = (struct subject_stub_heap *)made;
	return ref_error(error);
}

static int destroy(struct subject_stub_heap *heap)
{
	return ref_error(execmem_stub_heap_destroy(own(heap)));
}

static int stub_of(int error, const struct execmem_stub *made, struct subject_stub *stub)
{
	if (!error)
		*stub = (struct subject_stub){made->rx.at, made->record};
	return ref_error(error);
}

static int allocate(struct subject_stub_heap *heap, unsigned kind, struct subject_stub *stub)
{
	struct execmem_stub made;
	const int error = execmem_stub_allocate(own(heap), kind, &made);

	return stub_of(error, &made, stub);
}

/* Named as the operation. */
static int free(struct subject_stub_heap *heap, uintptr_t rx)
{
	return ref_error(execmem_stub_free(own(heap), (execmem_rx){rx}));
}

static int back_out(struct subject_stub_heap *heap, uintptr_t rx)
{
	return ref_error(execmem_stub_back_out(own(heap), (execmem_rx){rx}));
}

static int find(struct subject_allocator *allocator, uintptr_t address, struct subject_stub_found *found)
{
	struct execmem_stub_found it;
	const int error = execmem_stub_find((struct execmem_allocator *)allocator, (const void *)address, &it);

	if (!error)
		*found = (struct subject_stub_found){
			{it.stub.rx.at, it.stub.record}, it.slot, it.kind, it.in_record, it.live};
	return ref_error(error);
}

static int figures(struct subject_stub_heap *heap, struct subject_stub_figures *to)
{
	struct execmem_stub_figures from;
	const int error = execmem_stub_figures(own(heap), &from);

	if (!error)
		*to = (struct subject_stub_figures){from.live, from.cached, from.pages, from.wasted_bytes};
	return ref_error(error);
}

static int code_views(struct subject_stub_heap *heap, uint64_t *views)
{
	struct execmem_stub_figures from;
	const int error = execmem_stub_figures(own(heap), &from);

	if (!error)
		*views = from.code_views;
	return ref_error(error);
}

_Static_assert(sizeof(struct execmem_stub_cache) <= sizeof(struct subject_stub_cache), "caches");

static struct execmem_stub_cache *own_cache(struct subject_stub_cache *cache)
{
	return (struct execmem_stub_cache *)cache->own;
}

static int cache_create(struct subject_stub_heap *heap, unsigned kind, struct subject_stub_cache *cache)
{
	return ref_error(execmem_stub_cache_create(own(heap), kind, own_cache(cache)));
}

static int cache_allocate(struct subject_stub_cache *cache, struct subject_stub *stub)
{
	struct execmem_stub made;
	const int error = execmem_stub_cache_allocate(own_cache(cache), &made);

	return stub_of(error, &made, stub);
}

static int cache_free(struct subject_stub_cache *cache, uintptr_t rx)
{
	return ref_error(execmem_stub_cache_free(own_cache(cache), (execmem_rx){rx}));
}

static int cache_flush(struct subject_stub_cache *cache)
{
	return ref_error(execmem_stub_cache_flush(own_cache(cache)));
}

static int cache_destroy(struct subject_stub_cache *cache)
{
	return ref_error(execmem_stub_cache_destroy(own_cache(cache)));
}

static int trim(struct subject_stub_heap *heap, size_t *bytes)
{
	return ref_error(execmem_stub_trim(own(heap), bytes));
}

static int release(struct subject_stub_heap *heap, struct subject_released *to)
{
	struct execmem_code_released from = {.verdict = EXECMEM_RELEASE_GO};
	const int error = execmem_stub_release(own(heap), &from);

	*to = (struct subject_released){(enum subject_release_verdict)from.verdict, from.ranges, from.pages,
					from.bytes};
	return ref_error(error);
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name */
#define OPERATION(name_, claim_) .name_ = name_,
const struct subject_stub_heap_operations ref_stub_heap = {SUBJECT_STUB_HEAP_CLAIMS(OPERATION)};
