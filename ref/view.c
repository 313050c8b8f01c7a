/*
 * Opening and closing views.
 */
#include "rwcache.h"

#define UNIT ((size_t)EXECMEM_UNIT_BYTES)

static bool overlap(size_t offset, size_t bytes, size_t other, size_t other_bytes)
{
	return offset < other + other_bytes && other < offset + bytes;
}

bool execmem_view_in(const struct execmem_region_record *record, size_t offset, size_t bytes)
{
	for (const struct execmem_view_handle *open = record->open; open; open = open->next) {
		if (overlap(offset, bytes, open->offset, open->bytes))
			return true;
	}
	return false;
}

bool execmem_pinned_in(const struct execmem_region_record *record, size_t offset, size_t bytes)
{
	for (const struct execmem_mapping *mapping = record->mappings; mapping; mapping = mapping->next) {
		if (mapping->pins && overlap(offset, bytes, mapping->offset, mapping->bytes))
			return true;
	}
	return false;
}

/* A mapping that covers the range, moved to the front of its region's, or null. */
static struct execmem_mapping *find(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	for (struct execmem_mapping **at = &record->mappings; *at; at = &(*at)->next) {
		struct execmem_mapping *mapping = *at;

		record->counters.steps++;
		if (mapping->single_use || offset < mapping->offset ||
		    offset + bytes > mapping->offset + mapping->bytes)
			continue;
		if (at != &record->mappings && !record->allocator->cache.keep_order) {
			*at = mapping->next;
			mapping->next = record->mappings;
			record->mappings = mapping;
		}
		execmem_mapping_touch(mapping);
		return mapping;
	}
	return NULL;
}

/* What a new mapping covers: pages where it will not be shared, else whole windows as far as the file has a place. */
static void choose_extent(const struct execmem_region_record *record, size_t offset, size_t bytes, bool single_use,
			  size_t *from, size_t *to)
{
	const struct execmem_allocator *allocator = record->allocator;
	bool whole = !single_use && allocator->backend == EXECMEM_BACKEND_DOUBLE;
	size_t mask = (whole ? allocator->window_bytes : allocator->page_bytes) - 1;
	size_t first = offset / UNIT, last = (offset + bytes - 1) / UNIT;

	*from = offset & ~mask;
	*to = (offset + bytes + mask) & ~mask;
	if (!whole)
		return;
	while (first > *from / UNIT && record->units[first - 1].file_unit != EXECMEM_UNIT_NONE)
		first--;
	if (*from < first * UNIT)
		*from = first * UNIT;
	while ((last + 1) * UNIT < *to && (last + 1) * UNIT < record->bytes &&
	       record->units[last + 1].file_unit != EXECMEM_UNIT_NONE)
		last++;
	if (*to > (last + 1) * UNIT)
		*to = (last + 1) * UNIT;
}

static int get_handle(struct execmem_region_record *record, struct execmem_view_handle **handle)
{
	struct execmem_allocator *allocator = record->allocator;
	void *memory;
	int error;

	if (record->closed) {
		*handle = record->closed;
		return 0;
	}
	error = execmem_memory_get(&allocator->memory, &allocator->os, sizeof(**handle), &memory);
	if (error)
		return execmem_refuse(allocator, "map", error, sizeof(**handle));
	*handle = memory;
	(*handle)->region = record;
	record->closed = *handle;
	return 0;
}

static void open_handle(struct execmem_region_record *record, struct execmem_view_handle *handle)
{
	record->closed = handle->next;
	handle->previous = NULL;
	handle->next = record->open;
	if (handle->next)
		handle->next->previous = handle;
	record->open = handle;
	record->views_open++;
	__atomic_store_n(&handle->generation, handle->generation + 1, __ATOMIC_RELEASE);
}

static void close_handle(struct execmem_region_record *record, struct execmem_view_handle *handle)
{
	__atomic_store_n(&handle->generation, handle->generation + 1, __ATOMIC_RELEASE);
	record->counters.publishes += __atomic_exchange_n(&handle->publishes, 0, __ATOMIC_RELAXED);
	if (handle->previous)
		handle->previous->next = handle->next;
	else
		record->open = handle->next;
	if (handle->next)
		handle->next->previous = handle->previous;
	handle->next = record->closed;
	record->closed = handle;
	record->views_open--;
}

/* Finds or makes the mapping for a view, and pins it. */
static int get_mapping(struct execmem_region_record *record, size_t offset, size_t bytes, bool single_use,
		       struct execmem_mapping **mapping)
{
	size_t from, to;
	int error;

	if (!single_use) {
		*mapping = find(record, offset, bytes);
		if (*mapping) {
			(*mapping)->pins++;
			record->counters.hits++;
			return 0;
		}
	}
	choose_extent(record, offset, bytes, single_use, &from, &to);
	/* Closing either view would make pages executable that the other still writes. */
	if (record->allocator->backend == EXECMEM_BACKEND_TOGGLE && execmem_pinned_in(record, from, to - from))
		return EXECMEM_ERROR_BUSY;
	error = execmem_mapping_create(record, from, to - from, single_use, mapping);
	if (error)
		return error;
	if (single_use)
		record->counters.bypasses++;
	else
		record->counters.misses++;
	return 0;
}

/* The region's lock is held. */
static int map_locked(struct execmem_region_record *record, uintptr_t rx, size_t bytes, unsigned flags,
		      struct execmem_view *view)
{
	size_t offset = rx - record->start;
	struct execmem_view_handle *handle = NULL;
	struct execmem_mapping *mapping = NULL;
	int error;

	/* The record may have gone to another region since the address was looked up. */
	if (record->generation % 2 == 0 || offset >= record->bytes)
		return EXECMEM_ERROR_NOT_FOUND;
	if (bytes > record->bytes - offset)
		return EXECMEM_ERROR_OUTSIDE;
	if (!execmem_is_committed(record, offset, bytes))
		return EXECMEM_ERROR_NOT_COMMITTED;
	error = get_handle(record, &handle);
	if (error)
		return error;
	error = get_mapping(record, offset, bytes, flags & EXECMEM_MAP_SINGLE_USE, &mapping);
	if (error)
		return error;
	handle->mapping = mapping;
	handle->offset = offset;
	handle->bytes = bytes;
	open_handle(record, handle);
	*view = (struct execmem_view){
		.rw = {mapping->rw + (offset - mapping->offset)},
		.rx = {rx},
		.bytes = bytes,
		.handle = handle,
		.generation = handle->generation,
	};
	return 0;
}

int execmem_map_rw(struct execmem_allocator *allocator, execmem_rx rx, size_t bytes, unsigned flags,
		   struct execmem_view *view)
{
	const struct execmem_region_face *face;
	struct execmem_region_record *record;
	uintptr_t start = rx.at;
	int error;

	if (!allocator || !view || bytes == 0 || bytes - 1 > UINTPTR_MAX - start || flags & ~EXECMEM_MAP_SINGLE_USE)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_check_process(allocator);
	if (error)
		return error;
	face = execmem_rangemap_face(&allocator->map, start);
	if (!face)
		return EXECMEM_ERROR_NOT_FOUND;
	record = face->record;
	execmem_lock(&allocator->os, &record->lock);
	error = map_locked(record, start, bytes, flags, view);
	execmem_region_unlock(record);
	return error;
}

void execmem_abandon_view(struct execmem_view *view)
{
	struct execmem_view_handle *handle = view->handle;
	struct execmem_region_record *record = handle->region;
	struct execmem_mapping *mapping = handle->mapping;
	int kept;

	execmem_lock(&record->allocator->os, &record->lock);
	close_handle(record, handle);
	mapping->pins--;
	kept = mapping->pins || mapping->cached ? 0 : execmem_mapping_destroy(mapping);
	(void)kept; /* where it is refused, the mapping stays with its region and goes with it */
	execmem_region_unlock(record);
	view->rw.at = NULL;
}

int execmem_unmap_rw(struct execmem_view *view)
{
	struct execmem_region_record *record;
	struct execmem_view_handle *handle;
	struct execmem_mapping *mapping;
	int error;

	if (!view || !view->handle)
		return EXECMEM_ERROR_NOT_OPEN;
	handle = view->handle;
	record = handle->region;
	error = execmem_check_process(record->allocator);
	if (error)
		return error;
	execmem_lock(&record->allocator->os, &record->lock);
	mapping = handle->mapping;
	if (handle->generation != view->generation)
		error = EXECMEM_ERROR_NOT_OPEN;
	else if (mapping->pins == 1 && !mapping->cached)
		error = execmem_mapping_destroy(mapping);
	else
		mapping->pins--;
	if (!error)
		close_handle(record, handle);
	execmem_region_unlock(record);
	if (!error)
		view->rw.at = NULL;
	return error;
}
