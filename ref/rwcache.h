/*
 * Writable mappings and their cache, for view.c and the rest of the library.
 */
#ifndef EXECMEM_INTERNAL_RWCACHE_H
#define EXECMEM_INTERNAL_RWCACHE_H

#include "allocator.h"

/*
 * Makes a mapping of [offset, offset + bytes) of a region, pinned once, and puts it into the cache unless it is of
 * single use or toggles, evicting the least recent that nobody has open where the cache is full. Where all are in use
 * it stays outside, and goes when it is closed. The region's lock is held; takes cache.lock. On an error nothing is
 * changed.
 */
EXECMEM_MUST_CHECK int execmem_mapping_create(struct execmem_region_record *record, size_t offset, size_t bytes,
					      bool single_use, struct execmem_mapping **mapping);

/*
 * Unmaps a mapping that nobody has open, or only the caller who is closing it; on an error it stays as it is. The
 * region's lock is held; takes cache.lock if it is cached.
 */
EXECMEM_MUST_CHECK int execmem_mapping_destroy(struct execmem_mapping *mapping);

/* A mapping was hit: it is the most recent now. The region's lock is held; tries cache.lock. */
void execmem_mapping_touch(struct execmem_mapping *mapping);

#endif
