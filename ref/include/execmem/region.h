/*
 * Regions: address space for code, committed and given back page by page.
 *
 * A committed page is readable and executable, never writable: it is written through execmem/rwcache.h. Committing maps
 * it anew instead of changing a protection, so that it works under PR_SET_MDWE.
 *
 * Threads: any call from any thread. A region's calls exclude each other; those of two regions do not, except while the
 * memory file grows.
 */
#ifndef EXECMEM_REGION_H
#define EXECMEM_REGION_H

#include <execmem/rangemap.h>

struct execmem_region_record;

/* A region, by value: copies are equal. A copy outlives execmem_release only to be refused. */
struct execmem_region {
	execmem_rx rx; /* the first byte, a multiple of EXECMEM_UNIT_BYTES */
	size_t bytes;  /* a multiple of EXECMEM_UNIT_BYTES */
	struct execmem_region_record *record;
	uintptr_t generation;
};

/* Where a region must lie: every byte of it at most `reach` bytes below or above `target`. */
struct execmem_near {
	uintptr_t target;
	size_t reach;
};

/* What an address leads to. The kinds of the layers above are theirs; 0 to EXECMEM_KIND_MAX. */
#define EXECMEM_KIND_MAX 62

/*
 * Reserves at least `bytes` bytes (rounded up to units) that nothing can access. `near` may be null: anywhere. Else the
 * whole window around the target is probed, from the target outwards on both sides, until the system gives a range in
 * it. `kind` and `owner` are what execmem_lookup answers for the region's addresses.
 *
 * EXECMEM_ERROR_ARGUMENT       bytes is 0 or does not fit the address space, a kind too large
 * EXECMEM_ERROR_UNREACHABLE    no gap of that size lies in the window
 * EXECMEM_ERROR_ADDRESS_SPACE, _MAPPING_COUNT, or a negative errno   the system refuses
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE (being destroyed)
 */
EXECMEM_MUST_CHECK int execmem_reserve(struct execmem_allocator *allocator, size_t bytes,
				       const struct execmem_near *near, unsigned kind, void *owner,
				       struct execmem_region *region);

/*
 * Makes [offset, offset + bytes) of the region zero, readable and executable. Both are multiples of the page size.
 *
 * EXECMEM_ERROR_ARGUMENT   not multiples, or bytes is 0
 * EXECMEM_ERROR_OUTSIDE    not inside the region
 * EXECMEM_ERROR_COMMITTED  a page of it is committed
 * EXECMEM_ERROR_FILE_SIZE  the file-size limit, asked before growing, does not allow it
 * EXECMEM_ERROR_MAPPING_COUNT, _ADDRESS_SPACE, or a negative errno   the system refuses
 * EXECMEM_ERROR_RELEASED, EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_commit(const struct execmem_region *region, size_t offset, size_t bytes);

/*
 * Gives [offset, offset + bytes) back: the pages can no longer be accessed, and their memory returns to the system.
 * Nobody may be running code there. Where the system refuses to take the memory of a page that is no longer mapped, the
 * call succeeds all the same: the memory is offered again by later calls, and before it is used again; until then
 * statistics count it as deferred_bytes, and execmem_last_refusal names the refusal.
 *
 * EXECMEM_ERROR_ARGUMENT, _OUTSIDE   as execmem_commit
 * EXECMEM_ERROR_NOT_COMMITTED        a page of it is not committed
 * EXECMEM_ERROR_BUSY                 an open view reaches into it
 * EXECMEM_ERROR_MAPPING_COUNT, or a negative errno   the system refuses; cached views may be gone, nothing else is
 * EXECMEM_ERROR_RELEASED, EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_decommit(const struct execmem_region *region, size_t offset, size_t bytes);

/*
 * Gives the whole region back; what is committed in it first, as execmem_decommit does. Its cached views are unmapped
 * before it is.
 *
 * EXECMEM_ERROR_BUSY      a view of the region is open
 * A negative errno        the system refuses to unmap; cached views may be gone, nothing else is
 * EXECMEM_ERROR_RELEASED, EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_release(const struct execmem_region *region);

/* The map of an allocator's regions, which lies where the allocator does. */
inline const struct execmem_rangemap *execmem_map_of(const struct execmem_allocator *allocator)
{
	return (const struct execmem_rangemap *)allocator;
}

/*
 * The region that an address lies in, committed there or not. Constant time; takes no lock; any thread, signal handlers
 * and forks included. A region that is being released is found or not. Compiled in place; the library has it as a
 * function as well.
 *
 * EXECMEM_ERROR_NOT_FOUND
 */
EXECMEM_MUST_CHECK inline int execmem_lookup(struct execmem_allocator *allocator, const void *address,
					     struct execmem_found *found)
{
	return execmem_rangemap_lookup(execmem_map_of(allocator), (uintptr_t)address, found);
}

/* The kind alone: two dependent loads. -1 for an address of no region. Otherwise as execmem_lookup. */
inline int execmem_kind(struct execmem_allocator *allocator, const void *address)
{
	return execmem_rangemap_kind(execmem_map_of(allocator), (uintptr_t)address);
}

#endif
