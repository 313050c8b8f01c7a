/*
 * What the library's own files share: the allocator, its regions and views.
 *
 * Locks are taken in this order, and a file says where it takes less:
 *	heaps_lock, a code or stub heap's lock, allocator->lock, region->lock, cache.lock, file.lock, memory.lock,
 *refusal_lock A second region's lock is only ever tried, never waited for, while one is held; except by
 *execmem_fork_prepare, which holds allocator->lock and takes all of them.
 */
#ifndef EXECMEM_INTERNAL_ALLOCATOR_H
#define EXECMEM_INTERNAL_ALLOCATOR_H

#include <execmem/allocator.h>
#include <execmem/rangemap.h>
#include <execmem/region.h>
#include <execmem/rwcache.h>
#include <execmem/stats.h>

#include "file.h"
#include "lock.h"
#include "memory.h"

/* Apart by this, two fields are not written through one cache line. */
#define EXECMEM_LINE      64

#define EXECMEM_UNIT_NONE UINT32_MAX

/* Masks have one bit a page of the unit, the lowest address in bit 0. */
struct execmem_unit {
	uint32_t file_unit; /* where its bytes are in the memory file, in units; EXECMEM_UNIT_NONE: nowhere */
	uint16_t committed;
	uint16_t dirty; /* not committed, but their old bytes could not be punched out of the file yet */
};
/* A unit has a place in the file exactly while (committed | dirty) is not 0, where the backend has a file. */

/* A writable mapping, or with a toggling backend some pages that are writable now. Guarded by the region's lock. */
struct execmem_mapping {
	struct execmem_region_record *region;
	struct execmem_mapping *next;          /* in the region, most recent first */
	struct execmem_mapping *newer, *older; /* in the cache's order; cache.lock */
	unsigned char *rw;
	size_t offset, bytes; /* what it covers of the region */
	unsigned pins;        /* open views */
	unsigned backoff;     /* hits that will not try to move it to front */
	bool cached;          /* cache.lock and the region's lock to change, either to read */
	bool single_use;
};

/* What a view leads to. Its memory is never used for anything else, so that a stale view can be told. */
struct execmem_view_handle {
	uintptr_t generation;                 /* odd: open. Atomic: publishing reads it without a lock */
	uintptr_t publishes;                  /* since it was opened. Atomic */
	struct execmem_region_record *region; /* for ever */
	struct execmem_mapping *mapping;
	size_t offset, bytes; /* of the region */
	struct execmem_view_handle *next, *previous;
};

struct execmem_region_counters {
	uint64_t commits, decommits, rx_maps, rw_maps, rw_unmaps, hits, misses, bypasses, evictions, steps, publishes,
		remaps;
};

#define EXECMEM_INLINE_UNITS 2

/*
 * Where the range map leads. Apart from the rest and close together, because with many regions the time of a look-up is
 * that of finding this memory. Faces stay with their record for ever.
 */
struct execmem_region_face {
	struct execmem_region_record *record;
	struct execmem_code_region *code; /* atomic: null, or what a code heap knows of the region */
	struct execmem_stub_region *stub; /* likewise a stub heap */
};

#define EXECMEM_FACES 64 /* in a piece of memory */

/* A region. Its memory is never used for anything else, so that a stale execmem_region can be told. */
struct execmem_region_record {
	struct execmem_lock lock;
	unsigned kind;
	uintptr_t generation; /* odd: live */
	uintptr_t start;
	size_t bytes;
	struct execmem_region_face *face;
	struct execmem_allocator *allocator; /* for ever */
	struct execmem_unit *units;
	unsigned char *published; /* one bit a granule, or null: all of it may have been executed */
	struct execmem_mapping *mappings;
	struct execmem_view_handle *open, *closed;
	struct execmem_region_record *next, *previous; /* allocator->lock; next alone in the list of free records */
	size_t committed_bytes;
	unsigned views_open, mapping_count;
	struct execmem_region_counters counters;
	struct execmem_unit inline_units[EXECMEM_INLINE_UNITS];
};

/* The cached mappings of all regions. */
struct execmem_cache {
	struct execmem_lock lock;
	unsigned count, capacity;
	bool keep_order;
	uintptr_t mover;                /* a place on the stack of the thread that moved a mapping to the front last */
	struct execmem_mapping *newest; /* atomic: hits look without the lock */
	struct execmem_mapping *oldest;
};

enum execmem_fork_state { EXECMEM_FORK_NONE, EXECMEM_FORK_PREPARED };

/* The holes are wanted: EXECMEM_LINE. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct execmem_allocator {
	struct execmem_rangemap map; /* first: execmem_map_of */
	/* Not changed after creation, but by execmem_fork_child and execmem_set_emulation. */
	struct execmem_os os;
	enum execmem_backend backend;
	size_t page_bytes;
	unsigned page_shift;
	size_t window_bytes;
	unsigned executable; /* the protection of committed pages */
	bool emulation;      /* atomic */
	bool unnamed;        /* atomic: the system names no memory */
	uint32_t *same;      /* 0 in a fork that has not called execmem_fork_child; null: compare process */
	uint64_t process;

	_Alignas(EXECMEM_LINE) struct execmem_cache cache;
	_Alignas(EXECMEM_LINE) struct execmem_lock lock; /* the list of regions, and what follows */
	struct execmem_region_record *regions, *free_records;
	struct execmem_region_face *faces; /* face_count of them have no record yet */
	unsigned face_count;
	size_t region_count, reserved_bytes;
	uint64_t reserves, releases, probes;
	struct execmem_region_counters released; /* the counters of regions that are gone */
	enum execmem_fork_state fork_state;
	int fork_file;
	bool dying;
	_Alignas(EXECMEM_LINE) struct execmem_lock heaps_lock; /* the lists of heaps */
	struct execmem_code_heap *heaps;
	struct execmem_stub_heap *stub_heaps;
	struct execmem_file file;
	struct execmem_memory memory;
	struct execmem_lock refusal_lock;
	struct execmem_refusal refusal;
};

_Static_assert(offsetof(struct execmem_allocator, map) == 0, "execmem_map_of");

/* As execmem_check_process, by asking the system. */
int execmem_ask_process(struct execmem_allocator *allocator);

/* EXECMEM_ERROR_FORKED in a fork that has not called execmem_fork_child, else 0. */
static inline int execmem_check_process(struct execmem_allocator *allocator)
{
	if (!allocator->same)
		return execmem_ask_process(allocator);
	return __atomic_load_n(allocator->same, __ATOMIC_RELAXED) ? 0 : EXECMEM_ERROR_FORKED;
}

/*
 * Notes a refused call, and tells which limit a negative errno stands for: an execmem error, or the errno itself.
 * `bytes` is how much address space the call would have taken (0: none). Takes refusal_lock.
 */
int execmem_note_refusal(struct execmem_allocator *allocator, const char *call, int error, size_t bytes);

/* The same for a result that may be 0, and stays 0 then; never 0 otherwise. */
static inline int execmem_refuse(struct execmem_allocator *allocator, const char *call, int error, size_t bytes)
{
	int translated;

	if (error == 0)
		return 0;
	translated = execmem_note_refusal(allocator, call, error, bytes);
	return translated ? translated : error;
}

/*
 * Locks the record of a region handed out earlier. EXECMEM_ERROR_RELEASED and _FORKED, and then it is not locked.
 */
int execmem_region_lock(const struct execmem_region *region);
static inline void execmem_region_unlock(struct execmem_region_record *record)
{
	execmem_unlock(&record->allocator->os, &record->lock);
}

/* Whether every page that [offset, offset + bytes) touches is committed. Under the region's lock. */
static inline bool execmem_is_committed(const struct execmem_region_record *record, size_t offset, size_t bytes)
{
	unsigned shift = record->allocator->page_shift, in_unit = EXECMEM_UNIT_SHIFT - shift;
	size_t page = offset >> shift, last = (offset + bytes - 1) >> shift;

	for (; page >> in_unit != last >> in_unit; page = ((page >> in_unit) + 1) << in_unit) {
		unsigned from = 1u << (page & ((1u << in_unit) - 1)), all = (1u << (1u << in_unit)) - 1;

		if (~record->units[page >> in_unit].committed & (all & ~(from - 1)))
			return false;
	}
	return !(~record->units[page >> in_unit].committed &
		 ((2u << (last & ((1u << in_unit) - 1))) - (1u << (page & ((1u << in_unit) - 1)))));
}

/*
 * The longest run from `offset` on, at most to `end`, that is contiguous in the memory file: its bytes, and *at the
 * file's offset. Units without a place end it. Under the region's lock.
 */
size_t execmem_file_run(const struct execmem_region_record *record, size_t offset, size_t end, uint64_t *at);

/* rwcache: unmaps those of a region's mappings that touch [offset, offset + bytes) and that nobody has open. */
EXECMEM_MUST_CHECK int execmem_drop_mappings(struct execmem_region_record *record, size_t offset, size_t bytes);
/*
 * rwcache: closes an open view of which the caller knows nothing, so that it could never be closed, nor its region
 * released. A mapping that the system refuses to unmap stays, open to nobody, until its region goes. Never fails.
 */
void execmem_abandon_view(struct execmem_view *view);
/* Whether an open view touches the range; whether an open view's mapping does. Under the region's lock. */
bool execmem_view_in(const struct execmem_region_record *record, size_t offset, size_t bytes);
bool execmem_pinned_in(const struct execmem_region_record *record, size_t offset, size_t bytes);

/* emulation: one bit for each granule of `published`. */
#define EXECMEM_GRANULE_SHIFT 6
/* Bytes of the table of a region of `bytes` bytes. */
size_t execmem_published_bytes(size_t bytes);
/* Notes that the range is published; whether a granule of it was before. Under the region's lock. */
bool execmem_published_set(struct execmem_region_record *record, size_t offset, size_t bytes);
/* Forgets that the range was published: it is mapped anew. Under the region's lock. */
void execmem_published_clear(struct execmem_region_record *record, size_t offset, size_t bytes);
/* Finds out whether the memory file can be mapped for both uses, and, if asked, whether rewritten code is stale. */
EXECMEM_MUST_CHECK int execmem_probe_double(struct execmem_allocator *allocator, bool run, bool *stale,
					    struct execmem_refusals *refusals);

/* near: reserves `bytes` bytes, aligned to the unit. Takes no lock. *probes is how many places were tried. */
EXECMEM_MUST_CHECK int execmem_reserve_anywhere(struct execmem_allocator *allocator, size_t bytes, uintptr_t *start);
EXECMEM_MUST_CHECK int execmem_reserve_near(struct execmem_allocator *allocator, size_t bytes,
					    const struct execmem_near *near, uintptr_t *start, uint64_t *probes);

#endif
