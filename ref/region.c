/*
 * Reserving, releasing and finding regions. Committing is in commit.c.
 */
#include "allocator.h"
#include "linux_errno.h"

int execmem_ask_process(struct execmem_allocator *allocator)
{
	uint64_t identity;
	int error = allocator->os.identity(allocator->os.context, &identity);

	if (error) {
		/* In a child that has not moved every lock is held, for ever: none may be waited for. */
		if (execmem_lock_try(&allocator->refusal_lock)) {
			allocator->refusal = (struct execmem_refusal){"", "identity", -error};
			execmem_unlock(&allocator->os, &allocator->refusal_lock);
		}
		return error;
	}
	return identity == allocator->process ? 0 : EXECMEM_ERROR_FORKED;
}

int execmem_region_lock(const struct execmem_region *region)
{
	struct execmem_region_record *record = region->record;
	int error;

	if (!record)
		return EXECMEM_ERROR_RELEASED;
	error = execmem_check_process(record->allocator);
	if (error)
		return error;
	execmem_lock(&record->allocator->os, &record->lock);
	if (record->generation == region->generation)
		return 0;
	execmem_region_unlock(record);
	return EXECMEM_ERROR_RELEASED;
}

static size_t units_bytes(size_t bytes)
{
	return bytes / EXECMEM_UNIT_BYTES * sizeof(struct execmem_unit);
}

static void free_tables(struct execmem_region_record *record)
{
	struct execmem_allocator *allocator = record->allocator;

	if (record->units != record->inline_units)
		execmem_memory_put(&allocator->memory, &allocator->os, record->units, units_bytes(record->bytes));
	execmem_memory_put(&allocator->memory, &allocator->os, record->published,
			   execmem_published_bytes(record->bytes));
	record->units = NULL;
	record->published = NULL;
}

static int make_tables(struct execmem_region_record *record, size_t bytes)
{
	struct execmem_allocator *allocator = record->allocator;
	void *table;
	int error = 0;

	record->bytes = bytes;
	record->units = record->inline_units;
	record->published = NULL;
	if (units_bytes(bytes) > sizeof(record->inline_units)) {
		error = execmem_memory_get(&allocator->memory, &allocator->os, units_bytes(bytes), &table);
		if (!error)
			record->units = table;
	}
	if (!error && execmem_emulation(allocator)) {
		error = execmem_memory_get(&allocator->memory, &allocator->os, execmem_published_bytes(bytes), &table);
		if (!error)
			record->published = table;
	}
	for (size_t i = 0; !error && i < bytes / EXECMEM_UNIT_BYTES; i++)
		record->units[i] = (struct execmem_unit){.file_unit = EXECMEM_UNIT_NONE};
	if (error)
		free_tables(record);
	return execmem_refuse(allocator, "map", error, bytes);
}

/* allocator->lock is held. */
static int get_face(struct execmem_allocator *allocator, struct execmem_region_face **face)
{
	size_t bytes = EXECMEM_FACES * sizeof(**face);
	void *memory;
	int error;

	if (allocator->face_count == 0) {
		error = execmem_memory_get(&allocator->memory, &allocator->os, bytes, &memory);
		if (error)
			return execmem_refuse(allocator, "map", error, bytes);
		allocator->faces = memory;
		allocator->face_count = EXECMEM_FACES;
	}
	*face = &allocator->faces[EXECMEM_FACES - allocator->face_count];
	return 0;
}

/* allocator->lock is held. */
static int get_record(struct execmem_allocator *allocator, struct execmem_region_record **record)
{
	struct execmem_region_face *face;
	void *memory;
	int error;

	if (allocator->free_records) {
		*record = allocator->free_records;
		allocator->free_records = (*record)->next;
		return 0;
	}
	error = get_face(allocator, &face);
	if (error)
		return error;
	error = execmem_memory_get(&allocator->memory, &allocator->os, sizeof(**record), &memory);
	if (error)
		return execmem_refuse(allocator, "map", error, sizeof(**record));
	*record = memory;
	(*record)->allocator = allocator;
	(*record)->face = face;
	face->record = *record;
	allocator->face_count--;
	return 0;
}

/* allocator->lock is held. */
static void put_record(struct execmem_region_record *record)
{
	record->next = record->allocator->free_records;
	record->allocator->free_records = record;
}

static void name(struct execmem_allocator *allocator, uintptr_t start, size_t bytes)
{
	const struct execmem_os *os = &allocator->os;
	int error;

	if (__atomic_load_n(&allocator->unnamed, __ATOMIC_RELAXED))
		return;
	error = os->name(os->context, (void *)start, bytes, "execmem");
	if (error && error != -EAGAIN)
		__atomic_store_n(&allocator->unnamed, true, __ATOMIC_RELAXED);
}

/* Makes a record known. allocator->lock is held. */
static int publish_record(struct execmem_region_record *record, uintptr_t start, unsigned kind, void *owner)
{
	struct execmem_allocator *allocator = record->allocator;
	struct execmem_found found = {{start}, record->bytes, owner, kind};
	int error;

	record->start = start;
	record->kind = kind;
	record->mappings = NULL;
	record->open = NULL;
	record->committed_bytes = 0;
	record->mapping_count = 0;
	record->counters = (struct execmem_region_counters){0};
	record->generation++;
	error = execmem_rangemap_insert(&allocator->map, &allocator->os, &found, record->face);
	if (error) {
		record->generation++;
		return execmem_refuse(allocator, "map", error, allocator->map.leaf_bytes);
	}
	record->previous = NULL;
	record->next = allocator->regions;
	if (record->next)
		record->next->previous = record;
	allocator->regions = record;
	allocator->region_count++;
	allocator->reserved_bytes += record->bytes;
	allocator->reserves++;
	return 0;
}

int execmem_reserve(struct execmem_allocator *allocator, size_t bytes, const struct execmem_near *near, unsigned kind,
		    void *owner, struct execmem_region *region)
{
	struct execmem_region_record *record = NULL;
	uintptr_t start = 0;
	uint64_t probes = 0;
	int error;

	if (!allocator || !region || bytes == 0 || bytes > SIZE_MAX / 2 || kind > EXECMEM_KIND_MAX)
		return EXECMEM_ERROR_ARGUMENT;
	bytes = (bytes + EXECMEM_UNIT_BYTES - 1) & ~(size_t)(EXECMEM_UNIT_BYTES - 1);
	error = execmem_check_process(allocator);
	if (error)
		return error;

	/* The system is asked without a lock: probing for a place may take long. */
	error = near ? execmem_reserve_near(allocator, bytes, near, &start, &probes)
		     : execmem_reserve_anywhere(allocator, bytes, &start);
	if (!error)
		name(allocator, start, bytes);

	execmem_lock(&allocator->os, &allocator->lock);
	allocator->probes += probes;
	if (!error && allocator->dying)
		error = EXECMEM_ERROR_STATE;
	else if (!error)
		error = get_record(allocator, &record);
	if (!error) {
		/* Nobody else has this record; but a stale copy of an earlier region may lock it, to find out. */
		execmem_lock(&allocator->os, &record->lock);
		error = make_tables(record, bytes);
		if (!error) {
			error = publish_record(record, start, kind, owner);
			if (error)
				free_tables(record);
		}
		if (error)
			put_record(record);
		else
			*region = (struct execmem_region){{start}, bytes, record, record->generation};
		execmem_region_unlock(record);
	}
	execmem_unlock(&allocator->os, &allocator->lock);
	if (error && start)
		(void)allocator->os.unmap(allocator->os.context, (void *)start, bytes);
	return error;
}

static void add_counters(struct execmem_region_counters *to, const struct execmem_region_counters *from)
{
	to->commits += from->commits;
	to->decommits += from->decommits;
	to->rx_maps += from->rx_maps;
	to->rw_maps += from->rw_maps;
	to->rw_unmaps += from->rw_unmaps;
	to->hits += from->hits;
	to->misses += from->misses;
	to->bypasses += from->bypasses;
	to->evictions += from->evictions;
	to->steps += from->steps;
	to->publishes += from->publishes;
	to->remaps += from->remaps;
}

/* Both locks are held, and the region's addresses are no longer mapped. */
static void forget(struct execmem_region_record *record)
{
	struct execmem_allocator *allocator = record->allocator;

	execmem_rangemap_remove(&allocator->map, record->start, record->bytes);
	record->generation++;
	if (record->previous)
		record->previous->next = record->next;
	else
		allocator->regions = record->next;
	if (record->next)
		record->next->previous = record->previous;
	allocator->region_count--;
	allocator->reserved_bytes -= record->bytes;
	allocator->releases++;
	add_counters(&allocator->released, &record->counters);
}

static void give_units(struct execmem_region_record *record)
{
	struct execmem_allocator *allocator = record->allocator;
	uint64_t at;
	size_t run;

	for (size_t offset = 0; offset < record->bytes; offset += run ? run : EXECMEM_UNIT_BYTES) {
		run = execmem_file_run(record, offset, record->bytes, &at);
		if (run)
			execmem_file_give(allocator, (uint32_t)(at / EXECMEM_UNIT_BYTES),
					  (uint32_t)(run / EXECMEM_UNIT_BYTES));
	}
}

int execmem_release(const struct execmem_region *region)
{
	struct execmem_region_record *record;
	struct execmem_allocator *allocator;
	int error;

	if (!region || !region->record)
		return EXECMEM_ERROR_ARGUMENT;
	allocator = region->record->allocator;
	error = execmem_check_process(allocator);
	if (error)
		return error;
	execmem_lock(&allocator->os, &allocator->lock);
	error = execmem_region_lock(region);
	if (error) {
		execmem_unlock(&allocator->os, &allocator->lock);
		return error;
	}
	record = region->record;
	if (record->views_open)
		error = EXECMEM_ERROR_BUSY;
	if (!error)
		error = execmem_drop_mappings(record, 0, record->bytes);
	if (!error)
		error = execmem_refuse(allocator, "unmap",
				       allocator->os.unmap(allocator->os.context, (void *)record->start, record->bytes),
				       0);
	if (!error) {
		/* Before another thread, given the same addresses by the system, can make them known: it needs the
		 * lock. */
		forget(record);
		give_units(record);
		free_tables(record);
	}
	execmem_region_unlock(record);
	if (!error)
		put_record(record);
	execmem_unlock(&allocator->os, &allocator->lock);
	return error;
}

extern inline const struct execmem_rangemap *execmem_map_of(const struct execmem_allocator *allocator);
extern inline int execmem_lookup(struct execmem_allocator *allocator, const void *address, struct execmem_found *found);
extern inline int execmem_kind(struct execmem_allocator *allocator, const void *address);
