/*
 * The cache of writable mappings, and the mappings themselves. Opening and closing views is in view.c.
 *
 * A mapping's region is locked wherever it is touched; its place in the cache needs cache.lock as well. An eviction
 * happens under the lock of the region that needs the place, and only tries the victim's: a region that is locked by
 * another thread is in use.
 */
#include "rwcache.h"

/* Hits for which a mapping whose move to front met another thread's does not try again. */
#define BACKOFF    64

/* Bytes of stack that one thread's calls lie apart, and no two threads' stacks. */
#define STACK_NEAR ((uintptr_t)32768)

/* ---- Order; cache.lock is held ---- */

static void cache_remove(struct execmem_cache *cache, struct execmem_mapping *mapping)
{
	if (mapping->newer)
		mapping->newer->older = mapping->older;
	else
		__atomic_store_n(&cache->newest, mapping->older, __ATOMIC_RELAXED);
	if (mapping->older)
		mapping->older->newer = mapping->newer;
	else
		cache->oldest = mapping->newer;
	cache->count--;
	mapping->cached = false;
}

static void cache_push(struct execmem_cache *cache, struct execmem_mapping *mapping)
{
	mapping->newer = NULL;
	mapping->older = cache->newest;
	if (mapping->older)
		mapping->older->newer = mapping;
	else
		cache->oldest = mapping;
	__atomic_store_n(&cache->newest, mapping, __ATOMIC_RELAXED);
	cache->count++;
	mapping->cached = true;
}

/*
 * Whether two places on stacks may be one thread's: nobody here has a name for threads. A thread's calls from very
 * different depths look like two threads: its order of the cache may then be less than exact, as two threads' is.
 */
static bool same_thread(uintptr_t left, uintptr_t right)
{
	return left - right + STACK_NEAR < 2 * STACK_NEAR;
}

void execmem_mapping_touch(struct execmem_mapping *mapping)
{
	struct execmem_allocator *allocator = mapping->region->allocator;
	struct execmem_cache *cache = &allocator->cache;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (!mapping->cached || cache->keep_order || __atomic_load_n(&cache->newest, __ATOMIC_RELAXED) == mapping)
		return;
	if (mapping->backoff) {
		mapping->backoff--;
		return;
	}
	if (!execmem_lock_try(&cache->lock)) {
		mapping->backoff = BACKOFF;
		return;
	}
	cache_remove(cache, mapping);
	cache_push(cache, mapping);
	/* Threads that take turns would pass these lines from one processor to the other at every hit. */
	if (cache->mover && !same_thread(cache->mover, here))
		mapping->backoff = BACKOFF;
	cache->mover = here;
	execmem_unlock(&allocator->os, &cache->lock);
}

/* ---- Mappings; the region's lock is held ---- */

/* Maps [offset, offset + bytes) writable, at contiguous addresses though the file's units may be apart. */
static int map_writable(struct execmem_region_record *record, size_t offset, size_t bytes, unsigned char **rw)
{
	struct execmem_allocator *allocator = record->allocator;
	const struct execmem_os *os = &allocator->os;
	unsigned protection = EXECMEM_READ | EXECMEM_WRITE;
	int file = allocator->file.file, error;
	uint64_t at = 0;
	size_t run = execmem_file_run(record, offset, offset + bytes, &at), done = 0;
	void *address;

	if (run == bytes) {
		error = os->map(os->context, NULL, bytes, protection, file, at, &address);
		done = bytes;
	} else {
		error = os->map(os->context, NULL, bytes, EXECMEM_NONE, EXECMEM_NO_FILE, 0, &address);
	}
	if (error)
		return execmem_refuse(allocator, "map", error, bytes);
	for (; done < bytes; done += run) {
		run = execmem_file_run(record, offset + done, offset + bytes, &at);
		error = os->map_fixed(os->context, (unsigned char *)address + done, run, protection, file, at);
		if (error) {
			(void)os->unmap(os->context, address, bytes);
			return execmem_refuse(allocator, "map_fixed", error, 0);
		}
	}
	*rw = address;
	return 0;
}

static int protect(struct execmem_region_record *record, size_t offset, size_t bytes, unsigned protection)
{
	const struct execmem_os *os = &record->allocator->os;
	int error = os->protect(os->context, (void *)(record->start + offset), bytes, protection);

	return execmem_refuse(record->allocator, "protect", error, 0);
}

/* Fills rw. */
static int make_writable(struct execmem_mapping *mapping)
{
	struct execmem_region_record *record = mapping->region;
	int error;

	if (record->allocator->backend == EXECMEM_BACKEND_DOUBLE)
		return map_writable(record, mapping->offset, mapping->bytes, &mapping->rw);
	error = protect(record, mapping->offset, mapping->bytes, EXECMEM_READ | EXECMEM_WRITE);
	if (!error)
		mapping->rw = (unsigned char *)(record->start + mapping->offset);
	return error;
}

static int end_writable(struct execmem_mapping *mapping)
{
	struct execmem_allocator *allocator = mapping->region->allocator;
	int error;

	if (allocator->backend == EXECMEM_BACKEND_TOGGLE)
		return protect(mapping->region, mapping->offset, mapping->bytes, allocator->executable);
	error = allocator->os.unmap(allocator->os.context, mapping->rw, mapping->bytes);
	return execmem_refuse(allocator, "unmap", error, 0);
}

/* Takes a mapping that is no more from its region. */
static void forget(struct execmem_mapping *mapping)
{
	struct execmem_region_record *record = mapping->region;
	struct execmem_mapping **at = &record->mappings;

	while (*at != mapping)
		at = &(*at)->next;
	*at = mapping->next;
	record->mapping_count--;
	record->counters.rw_unmaps++;
	execmem_memory_put(&record->allocator->memory, &record->allocator->os, mapping, sizeof(*mapping));
}

int execmem_mapping_destroy(struct execmem_mapping *mapping)
{
	struct execmem_allocator *allocator = mapping->region->allocator;
	int error = end_writable(mapping);

	if (error)
		return error;
	if (mapping->cached) {
		execmem_lock(&allocator->os, &allocator->cache.lock);
		cache_remove(&allocator->cache, mapping);
		execmem_unlock(&allocator->os, &allocator->cache.lock);
	}
	forget(mapping);
	return 0;
}

/* Unmaps one mapping of the cache for `record`. 1: done; 0: all are in use; or an error. cache.lock is held. */
static int evict(struct execmem_region_record *record)
{
	struct execmem_allocator *allocator = record->allocator;
	struct execmem_mapping *victim;

	for (victim = allocator->cache.oldest; victim; victim = victim->newer) {
		struct execmem_region_record *owner = victim->region;
		int result = 0;

		if (owner != record && !execmem_lock_try(&owner->lock))
			continue;
		if (victim->pins == 0) {
			result = end_writable(victim);
			if (result == 0) {
				cache_remove(&allocator->cache, victim);
				forget(victim);
				owner->counters.evictions++;
				result = 1;
			}
		}
		if (owner != record)
			execmem_region_unlock(owner);
		if (result)
			return result;
	}
	return 0;
}

/* Puts a new mapping into the cache if it has room or can make some. */
static int cache_insert(struct execmem_mapping *mapping)
{
	struct execmem_allocator *allocator = mapping->region->allocator;
	struct execmem_cache *cache = &allocator->cache;
	int result = 1;

	if (cache->capacity == 0)
		return 0;
	execmem_lock(&allocator->os, &cache->lock);
	if (cache->count == cache->capacity)
		result = evict(mapping->region);
	if (result == 1)
		cache_push(cache, mapping);
	execmem_unlock(&allocator->os, &cache->lock);
	return result < 0 ? result : 0;
}

int execmem_mapping_create(struct execmem_region_record *record, size_t offset, size_t bytes, bool single_use,
			   struct execmem_mapping **mapping)
{
	struct execmem_allocator *allocator = record->allocator;
	struct execmem_mapping *made;
	void *memory;
	int error;

	error = execmem_memory_get(&allocator->memory, &allocator->os, sizeof(*made), &memory);
	if (error)
		return execmem_refuse(allocator, "map", error, sizeof(*made));
	made = memory;
	*made = (struct execmem_mapping){
		.region = record, .offset = offset, .bytes = bytes, .pins = 1, .single_use = single_use};
	error = make_writable(made);
	if (error) {
		execmem_memory_put(&allocator->memory, &allocator->os, made, sizeof(*made));
		return error;
	}
	if (!single_use && allocator->backend == EXECMEM_BACKEND_DOUBLE)
		error = cache_insert(made);
	if (error) {
		(void)end_writable(made);
		execmem_memory_put(&allocator->memory, &allocator->os, made, sizeof(*made));
		return error;
	}
	made->next = record->mappings;
	record->mappings = made;
	record->mapping_count++;
	record->counters.rw_maps++;
	*mapping = made;
	return 0;
}

int execmem_drop_mappings(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	struct execmem_mapping *next;
	int error;

	for (struct execmem_mapping *mapping = record->mappings; mapping; mapping = next) {
		next = mapping->next;
		if (mapping->pins || mapping->offset >= offset + bytes || offset >= mapping->offset + mapping->bytes)
			continue;
		error = execmem_mapping_destroy(mapping);
		if (error)
			return error;
	}
	return 0;
}
