/*
 * Pages of a stub heap and their slots; regions.
 */
#include "stub_heap.h"

#define W EXECMEM_STUB_WORD_BITS

/* ---- Slots; heap->lock is held ---- */

void execmem_stub_pages_link(struct execmem_stub_pages *pages)
{
	struct execmem_stub_type *type = pages->region->type;

	pages->previous = NULL;
	pages->next = type->open;
	if (pages->next)
		pages->next->previous = pages;
	type->open = pages;
}

void execmem_stub_pages_unlink(struct execmem_stub_pages *pages)
{
	if (pages->previous)
		pages->previous->next = pages->next;
	else
		pages->region->type->open = pages->next;
	if (pages->next)
		pages->next->previous = pages->previous;
}

/* The OS pages of data that the record of a slot touches: *first to the result. */
static inline unsigned parts_of(const struct execmem_stub_type *type, unsigned page_shift, uint32_t slot,
				unsigned *first)
{
	uint32_t at = slot * type->pitch;

	*first = at >> page_shift;
	return (at + type->record_bytes - 1) >> page_shift;
}

static uintptr_t code_of(const struct execmem_stub_pages *pages)
{
	const struct execmem_stub_region *region = pages->region;

	return region->start + ((uintptr_t)(pages - region->pages) << (region->heap->shift + 1));
}

/* The slots of a word that there are. */
static uintptr_t slots_of(const struct execmem_stub_type *type, uint32_t word)
{
	uint32_t left = type->slots - word * W;

	return left < W ? ((uintptr_t)1 << left) - 1 : UINTPTR_MAX;
}

int execmem_stub_take(struct execmem_stub_heap *heap, struct execmem_stub_type *type, bool live, execmem_rx *slots,
		      size_t count, size_t *taken)
{
	unsigned page_shift = heap->allocator->page_shift, first, last;
	struct execmem_stub_pages *pages;
	uintptr_t free, mask = 0, code;
	size_t done = 0;

	if (!type->open) {
		int error = execmem_stub_grow(heap, type);

		if (error)
			return error;
	}
	pages = type->open;
	if (!pages)
		__builtin_unreachable(); /* growing made one */
	code = code_of(pages);
	while (!(free = ~pages->taken[pages->hint] & slots_of(type, pages->hint)))
		pages->hint++;
	for (; free && done < count; free &= free - 1) {
		uint32_t slot = pages->hint * W + (unsigned)__builtin_ctzl(free);

		mask |= free & -free;
		last = parts_of(type, page_shift, slot, &first);
		for (unsigned part = first; part <= last; part++)
			pages->counts[part] = (uint16_t)((pages->counts[part] + 1) | EXECMEM_STUB_TOUCHED);
		slots[done++].at = code + (uintptr_t)slot * type->pitch;
	}
	pages->taken[pages->hint] |= mask;
	if (live)
		__atomic_fetch_or(&pages->live[pages->hint], mask, __ATOMIC_ACQ_REL);
	pages->free -= (uint32_t)done;
	pages->region->taken += done;
	if (pages->free == 0)
		execmem_stub_pages_unlink(pages);
	*taken = done;
	return 0;
}

void execmem_stub_give(const struct execmem_stub_place *place)
{
	struct execmem_stub_pages *pages = place->pages;
	const struct execmem_stub_region *region = place->region;
	unsigned first, last = parts_of(region->type, region->heap->allocator->page_shift, place->slot, &first);

	pages->taken[place->slot / W] &= ~((uintptr_t)1 << (place->slot % W));
	for (unsigned part = first; part <= last; part++)
		pages->counts[part]--;
	if (place->slot / W < pages->hint)
		pages->hint = place->slot / W;
	if (pages->free++ == 0)
		execmem_stub_pages_link(pages);
	pages->region->taken--;
}

int execmem_stub_free_pages(struct execmem_stub_heap *heap, size_t (*give)(void *context, void *address, size_t bytes),
			    void *context)
{
	size_t page_bytes = heap->allocator->page_bytes;
	int error = execmem_stub_begin(heap);

	if (error)
		return error;
	for (unsigned t = 0; t < heap->type_count; t++) {
		for (struct execmem_stub_region *region = heap->types[t].regions; region; region = region->next) {
			for (uint32_t i = 0; i < region->made; i++) {
				struct execmem_stub_pages *pages = &region->pages[i];
				uintptr_t data = code_of(pages) + heap->stub_page;
				unsigned end;

				for (unsigned part = 0; part < heap->parts; part = end) {
					size_t given;

					for (end = part;
					     end < heap->parts && pages->counts[end] == EXECMEM_STUB_TOUCHED;)
						end++;
					if (end == part) {
						end++;
						continue;
					}
					given = give(context, (void *)(data + part * page_bytes),
						     (end - part) * page_bytes);
					for (; part < end && given >= page_bytes; given -= page_bytes)
						pages->counts[part++] = 0;
				}
			}
		}
	}
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return 0;
}

/* ---- Regions; heap->lock is held ---- */

/* The tables of a region without one. */
static int get_tables(struct execmem_stub_heap *heap, struct execmem_stub_type *type,
		      struct execmem_stub_region **tables)
{
	struct execmem_allocator *allocator = heap->allocator;
	struct execmem_stub_region *made;
	uintptr_t *words;
	void *memory;
	int error;

	if (type->spare) {
		*tables = type->spare;
		type->spare = (*tables)->next;
		type->spare_count--;
		return 0;
	}
	error = execmem_memory_get(&allocator->memory, &allocator->os, type->table_bytes, &memory);
	if (error)
		return execmem_refuse(allocator, "map", error, type->table_bytes);
	made = memory;
	made->heap = heap;
	made->type = type;
	words = (uintptr_t *)(made + 1);
	for (unsigned i = 0; i < EXECMEM_STUB_REGION_PAGES; i++) {
		made->pages[i].region = made;
		made->pages[i].taken = words;
		made->pages[i].live = words + type->words;
		words += 2 * (size_t)type->words;
	}
	for (unsigned i = 0; i < EXECMEM_STUB_REGION_PAGES; i++)
		made->pages[i].counts = (uint16_t *)words + (size_t)i * heap->parts;
	*tables = made;
	return 0;
}

static void put_tables(struct execmem_stub_region *tables)
{
	tables->next = tables->type->spare;
	tables->type->spare = tables;
	tables->type->spare_count++;
}

static int add_region(struct execmem_stub_heap *heap, struct execmem_stub_type *type)
{
	struct execmem_stub_region *made;
	int error;

	if (heap->maximum_bytes && (heap->reserved_bytes > heap->maximum_bytes ||
				    type->region_bytes > heap->maximum_bytes - heap->reserved_bytes))
		return EXECMEM_ERROR_FULL;
	error = get_tables(heap, type, &made);
	if (error)
		return error;
	error = execmem_reserve(heap->allocator, type->region_bytes, NULL, type->kind, heap, &made->region);
	if (error) {
		put_tables(made);
		return error;
	}
	__atomic_store_n(&made->start, made->region.rx.at, __ATOMIC_RELEASE);
	made->previous = NULL;
	made->next = type->regions;
	if (made->next)
		made->next->previous = made;
	type->regions = made;
	type->region_count++;
	heap->reserved_bytes += type->region_bytes;
	__atomic_store_n(&made->region.record->face->stub, made, __ATOMIC_RELEASE);
	return 0;
}

int execmem_stub_release_region(struct execmem_stub_region *region)
{
	struct execmem_stub_type *type = region->type;
	struct execmem_region_record *record = region->region.record;
	uint32_t made = region->made;
	int error;

	/* First: the record may be another region's as soon as this one is released. */
	__atomic_store_n(&record->face->stub, NULL, __ATOMIC_RELEASE);
	error = execmem_release(&region->region);
	if (error) {
		__atomic_store_n(&record->face->stub, region, __ATOMIC_RELEASE);
		return error;
	}
	__atomic_store_n(&region->start, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&region->made, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < made; i++) {
		struct execmem_stub_pages *pages = &region->pages[i];

		if (pages->free)
			execmem_stub_pages_unlink(pages);
		for (unsigned word = 0; word < type->words; word++) {
			pages->taken[word] = 0;
			__atomic_store_n(&pages->live[word], 0, __ATOMIC_RELAXED);
		}
		for (unsigned part = 0; part < region->heap->parts; part++)
			pages->counts[part] = 0;
	}
	if (region->previous)
		region->previous->next = region->next;
	else
		type->regions = region->next;
	if (region->next)
		region->next->previous = region->previous;
	region->heap->reserved_bytes -= type->region_bytes;
	region->taken = 0;
	type->page_count -= made;
	type->region_count--;
	put_tables(region);
	return 0;
}

int execmem_stub_trim(struct execmem_stub_heap *heap, size_t *bytes)
{
	size_t given = 0;
	int error;

	if (!heap)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_stub_begin(heap);
	if (error)
		return error;
	for (unsigned t = 0; t < heap->type_count && !error; t++) {
		struct execmem_stub_region *region = heap->types[t].regions, *next;

		for (; region && !error; region = next) {
			next = region->next;
			if (region->taken)
				continue;
			error = execmem_stub_release_region(region);
			if (!error)
				given += heap->types[t].region_bytes;
		}
	}
	execmem_unlock(&heap->allocator->os, &heap->lock);
	if (!error && bytes)
		*bytes = given;
	return error;
}

/* ---- Pages; heap->lock is held ---- */

static int map_fixed(struct execmem_allocator *allocator, uintptr_t at, size_t bytes, unsigned protection, int file,
		     uint64_t offset)
{
	return execmem_refuse(
		allocator, "map_fixed",
		allocator->os.map_fixed(allocator->os.context, (void *)at, bytes, protection, file, offset), 0);
}

/* Maps the page of the sealed file at `code`. */
static int map_shared(struct execmem_stub_heap *heap, const struct execmem_stub_type *type, uintptr_t code)
{
	struct execmem_allocator *allocator = heap->allocator;
	int error = map_fixed(allocator, code, heap->stub_page, allocator->executable, heap->file, type->file_offset);

	if (error)
		return error;
	/* It was written at another address. */
	error = allocator->os.sync_code(allocator->os.context, (void *)code, heap->stub_page);
	if (!error)
		return 0;
	(void)map_fixed(allocator, code, heap->stub_page, EXECMEM_NONE, EXECMEM_NO_FILE, 0);
	(void)execmem_refuse(allocator, "sync_code", error, 0);
	return EXECMEM_ERROR_SYNC;
}

/* Writes a page of its own at `code`, through a view that is used once. */
static int write_page(struct execmem_stub_heap *heap, const struct execmem_stub_type *type,
		      const struct execmem_region *region, uintptr_t code)
{
	size_t bytes = heap->stub_page, offset = code - region->rx.at;
	struct execmem_view view;
	int error = execmem_commit(region, offset, bytes), closing, undone;

	if (error == EXECMEM_ERROR_COMMITTED)
		error = 0;
	if (error)
		return error;
	error = execmem_map_rw(heap->allocator, (execmem_rx){code}, bytes, EXECMEM_MAP_SINGLE_USE, &view);
	if (!error) {
		heap->code_views++;
		error = execmem_stub_page_fill(&type->template, view.rw, view.rx, bytes);
		if (!error)
			error = execmem_publish(&view, 0, bytes, 0);
		closing = execmem_unmap_rw(&view);
		if (closing && execmem_unmap_rw(&view))
			execmem_abandon_view(&view);
		else
			closing = 0;
		if (!error)
			error = closing;
	}
	/* What cannot be undone is committed already at the next try. */
	undone = error ? execmem_decommit(region, offset, bytes) : 0;
	(void)undone;
	return error;
}

int execmem_stub_grow(struct execmem_stub_heap *heap, struct execmem_stub_type *type)
{
	struct execmem_allocator *allocator = heap->allocator;
	struct execmem_stub_region *region = type->regions;
	struct execmem_stub_pages *pages;
	uintptr_t code, data;
	int error = 0;

	if (!region || region->made == EXECMEM_STUB_REGION_PAGES) {
		error = add_region(heap, type);
		if (error)
			return error;
		region = type->regions;
	}
	pages = &region->pages[region->made];
	code = code_of(pages);
	data = code + heap->stub_page;
	error = map_fixed(allocator, data, heap->stub_page, EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0);
	if (error)
		return error;
	error = type->shared ? map_shared(heap, type, code) : write_page(heap, type, &region->region, code);
	if (error) {
		(void)map_fixed(allocator, data, heap->stub_page, EXECMEM_NONE, EXECMEM_NO_FILE, 0);
		return error;
	}
	pages->free = type->slots;
	pages->hint = 0;
	execmem_stub_pages_link(pages);
	type->page_count++;
	__atomic_store_n(&region->made, region->made + 1, __ATOMIC_RELEASE);
	return 0;
}
