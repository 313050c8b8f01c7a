/*
 * Caches of free slots. A slot in one is taken, but not live.
 */
#include "stub_heap.h"

#define HALF (EXECMEM_STUB_CACHE_SLOTS / 2)

/* Gives the newest `count` slots back, and forgets them. heap->lock is held. */
static void give_newest(struct execmem_stub_cache *cache, unsigned count)
{
	if (count == 0)
		return;
	for (; count; count--) {
		struct execmem_stub_place place;
		execmem_rx *slot = &cache->slots[--cache->count];

		if (execmem_stub_locate_slot(cache->heap, *slot, &place) == 0)
			execmem_stub_give(&place);
		*slot = (execmem_rx){0};
	}
	cache->heap->returns++;
}

int execmem_stub_cache_create(struct execmem_stub_heap *heap, unsigned kind, struct execmem_stub_cache *cache)
{
	int error;

	if (!heap || !cache || !execmem_stub_type_of(heap, kind))
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_stub_begin(heap);
	if (error)
		return error;
	*cache = (struct execmem_stub_cache){.heap = heap, .kind = kind};
	heap->caches++;
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return 0;
}

static int fetch(struct execmem_stub_cache *cache)
{
	struct execmem_stub_heap *heap = cache->heap;
	struct execmem_stub_type *type = execmem_stub_type_of(heap, cache->kind);
	size_t taken;
	int error = execmem_stub_begin(heap);

	if (error)
		return error;
	error = execmem_stub_take(heap, type, false, cache->slots, HALF, &taken);
	if (!error) {
		heap->fetches++;
		/* The lowest address leaves first. */
		for (size_t i = 0; i < taken / 2; i++) {
			execmem_rx slot = cache->slots[i];

			cache->slots[i] = cache->slots[taken - 1 - i];
			cache->slots[taken - 1 - i] = slot;
		}
		cache->count = (unsigned)taken;
	}
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return error;
}

int execmem_stub_cache_allocate(struct execmem_stub_cache *cache, struct execmem_stub *stub)
{
	struct execmem_stub_place place;
	execmem_rx *slot;
	int error;

	if (!cache || !cache->heap || !stub)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_check_process(cache->heap->allocator);
	if (!error && cache->count == 0)
		error = fetch(cache);
	if (error)
		return error;
	slot = &cache->slots[cache->count - 1];
	error = execmem_stub_locate_slot(cache->heap, *slot, &place);
	if (error)
		return error;
	__atomic_fetch_or(&place.pages->live[place.slot / EXECMEM_STUB_WORD_BITS],
			  (uintptr_t)1 << (place.slot % EXECMEM_STUB_WORD_BITS), __ATOMIC_ACQ_REL);
	*stub = (struct execmem_stub){*slot, (void *)(slot->at + cache->heap->stub_page)};
	*slot = (execmem_rx){0};
	cache->count--;
	return 0;
}

int execmem_stub_cache_free(struct execmem_stub_cache *cache, execmem_rx rx)
{
	struct execmem_stub_place place;
	struct execmem_stub_heap *heap;
	int error;

	if (!cache || !cache->heap)
		return EXECMEM_ERROR_ARGUMENT;
	heap = cache->heap;
	error = execmem_check_process(heap->allocator);
	if (!error)
		error = execmem_stub_locate_slot(heap, rx, &place);
	if (!error && !execmem_stub_is_live(&place))
		error = EXECMEM_ERROR_FREED;
	if (error)
		return error;
	if (place.region->type->kind != cache->kind)
		return execmem_stub_free(heap, rx);
	if (cache->count == EXECMEM_STUB_CACHE_SLOTS) {
		error = execmem_stub_begin(heap);
		if (error)
			return error;
		give_newest(cache, HALF);
		execmem_unlock(&heap->allocator->os, &heap->lock);
	}
	if (!execmem_stub_end(&place))
		return EXECMEM_ERROR_FREED;
	cache->slots[cache->count++] = rx;
	return 0;
}

static int flush(struct execmem_stub_cache *cache, bool destroy)
{
	struct execmem_stub_heap *heap;
	int error;

	if (!cache || !cache->heap)
		return EXECMEM_ERROR_ARGUMENT;
	heap = cache->heap;
	error = execmem_check_process(heap->allocator);
	if (error)
		return error;
	execmem_lock(&heap->allocator->os, &heap->lock);
	give_newest(cache, cache->count);
	if (destroy) {
		heap->caches--;
		cache->heap = NULL;
	}
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return 0;
}

int execmem_stub_cache_flush(struct execmem_stub_cache *cache)
{
	return flush(cache, false);
}

int execmem_stub_cache_destroy(struct execmem_stub_cache *cache)
{
	return flush(cache, true);
}
