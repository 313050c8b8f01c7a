/*
 * Allocating, publishing, freeing and finding stubs.
 */
#include "stub_heap.h"

#define BATCH 64

int execmem_stub_begin(struct execmem_stub_heap *heap)
{
	int error = execmem_check_process(heap->allocator);

	if (error)
		return error;
	execmem_lock(&heap->allocator->os, &heap->lock);
	if (!heap->dying)
		return 0;
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return EXECMEM_ERROR_STATE;
}

static void end(struct execmem_stub_heap *heap)
{
	execmem_unlock(&heap->allocator->os, &heap->lock);
}

static struct execmem_stub stub_at(const struct execmem_stub_heap *heap, execmem_rx rx)
{
	return (struct execmem_stub){rx, (void *)(rx.at + heap->stub_page)};
}

/* ---- Where an address leads ---- */

int execmem_stub_locate(struct execmem_allocator *allocator, uintptr_t address, struct execmem_stub_place *place)
{
	const struct execmem_region_face *face = execmem_rangemap_face(&allocator->map, address);
	struct execmem_stub_region *region = face ? __atomic_load_n(&face->stub, __ATOMIC_ACQUIRE) : NULL;
	uintptr_t offset, start;
	const struct execmem_stub_type *type;
	uint32_t within;

	if (!region)
		return EXECMEM_ERROR_NOT_FOUND;
	type = region->type;
	start = __atomic_load_n(&region->start, __ATOMIC_ACQUIRE);
	offset = address - start;
	/* The tables may be another region's by now, or nobody's. */
	if (!start || offset >= type->region_bytes ||
	    offset >> (region->heap->shift + 1) >= __atomic_load_n(&region->made, __ATOMIC_ACQUIRE))
		return EXECMEM_ERROR_NOT_FOUND;
	within = (uint32_t)(offset & (region->heap->stub_page - 1));
	place->region = region;
	place->pages = &region->pages[offset >> (region->heap->shift + 1)];
	place->in_record = offset >> region->heap->shift & 1;
	place->slot = (uint32_t)((uint64_t)within * type->reciprocal >> 32);
	place->rest = within - place->slot * type->pitch;
	place->at = address - place->rest - (place->in_record ? region->heap->stub_page : 0);
	if (place->slot >= type->slots || place->rest >= (place->in_record ? type->record_bytes : type->code_bytes))
		return EXECMEM_ERROR_PADDING;
	return 0;
}

int execmem_stub_locate_slot(struct execmem_stub_heap *heap, execmem_rx rx, struct execmem_stub_place *place)
{
	int error = execmem_stub_locate(heap->allocator, rx.at, place);

	if (error == EXECMEM_ERROR_NOT_FOUND || place->region->heap != heap)
		return EXECMEM_ERROR_NOT_FOUND;
	if (error)
		return error;
	return place->in_record || place->rest ? EXECMEM_ERROR_INTERIOR : 0;
}

bool execmem_stub_end(const struct execmem_stub_place *place)
{
	uintptr_t *word = &place->pages->live[place->slot / EXECMEM_STUB_WORD_BITS];
	uintptr_t bit = (uintptr_t)1 << (place->slot % EXECMEM_STUB_WORD_BITS);

	return __atomic_fetch_and(word, ~bit, __ATOMIC_ACQ_REL) & bit;
}

int execmem_stub_find(struct execmem_allocator *allocator, const void *address, struct execmem_stub_found *found)
{
	struct execmem_stub_place place;
	int error = execmem_stub_locate(allocator, (uintptr_t)address, &place);

	if (error)
		return error;
	*found = (struct execmem_stub_found){
		.stub = stub_at(place.region->heap, (execmem_rx){place.at}),
		.slot = place.slot,
		.kind = place.region->type->kind,
		.in_record = place.in_record,
		.live = execmem_stub_is_live(&place),
	};
	return 0;
}

/* ---- Allocating ---- */

/* Frees live stubs that nobody knows of. heap->lock is held. */
static void take_back(struct execmem_stub_heap *heap, const struct execmem_stub *stubs, size_t count)
{
	while (count) {
		struct execmem_stub_place place;

		if (execmem_stub_locate_slot(heap, stubs[--count].rx, &place) == 0 && execmem_stub_end(&place))
			execmem_stub_give(&place);
	}
}

int execmem_stub_allocate_many(struct execmem_stub_heap *heap, unsigned kind, struct execmem_stub *stubs, size_t count)
{
	struct execmem_stub_type *type;
	execmem_rx slots[BATCH];
	size_t done = 0, taken;
	int error;

	if (!heap || !stubs || count == 0)
		return EXECMEM_ERROR_ARGUMENT;
	type = execmem_stub_type_of(heap, kind);
	if (!type)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_stub_begin(heap);
	if (error)
		return error;
	while (done < count && !error) {
		size_t wanted = count - done < BATCH ? count - done : BATCH;

		error = execmem_stub_take(heap, type, true, slots, wanted, &taken);
		for (size_t i = 0; !error && i < taken; i++)
			stubs[done++] = stub_at(heap, slots[i]);
	}
	if (error)
		take_back(heap, stubs, done);
	end(heap);
	return error;
}

int execmem_stub_allocate(struct execmem_stub_heap *heap, unsigned kind, struct execmem_stub *stub)
{
	struct execmem_stub made;
	int error = stub ? execmem_stub_allocate_many(heap, kind, &made, 1) : EXECMEM_ERROR_ARGUMENT;

	if (!error)
		*stub = made;
	return error;
}

int execmem_stub_publish(struct execmem_stub_heap *heap, execmem_rx rx, const void *record)
{
	struct execmem_stub_place place;
	int error;

	if (!heap)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_check_process(heap->allocator);
	if (!error)
		error = execmem_stub_locate_slot(heap, rx, &place);
	if (!error && !execmem_stub_is_live(&place))
		error = EXECMEM_ERROR_FREED;
	if (error)
		return error;
	if (record)
		__builtin_memcpy(stub_at(heap, rx).record, record, place.region->type->record_bytes);
	return 0;
}

/* ---- Freeing ---- */

static int free_slot(struct execmem_stub_heap *heap, execmem_rx rx, bool clear)
{
	struct execmem_stub_place place;
	int error;

	if (!heap)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_stub_begin(heap);
	if (error)
		return error;
	error = execmem_stub_locate_slot(heap, rx, &place);
	if (!error && !execmem_stub_is_live(&place))
		error = EXECMEM_ERROR_FREED;
	/* As long as it is live nobody else is given the record. */
	if (!error && clear)
		__builtin_memset((void *)(rx.at + heap->stub_page), 0, place.region->type->record_bytes);
	if (!error) {
		if (execmem_stub_end(&place))
			execmem_stub_give(&place);
		else
			error = EXECMEM_ERROR_FREED;
	}
	end(heap);
	return error;
}

int execmem_stub_free(struct execmem_stub_heap *heap, execmem_rx rx)
{
	return free_slot(heap, rx, false);
}

int execmem_stub_back_out(struct execmem_stub_heap *heap, execmem_rx rx)
{
	return free_slot(heap, rx, true);
}
