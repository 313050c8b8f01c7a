/*
 * The code heap: blocks of code of any size, in regions of its own.
 *
 * A heap is an array of segments. A block is a whole number of them, at least the configured minimum, and blocks lie
 * side by side: each byte of a region belongs to exactly one block, which is live or free. Free neighbours are merged
 * at once, and a remainder below the minimum stays with the block, so no free block is ever smaller. Nothing but code
 * is in the pages: what the heap knows of them is kept apart.
 *
 * Generated stubs (dispatch, resolve, lookup) live here too: they share pages with jitted code, and every block keeps
 * the kind that it was asked for with.
 *
 * Threads: any call from any thread, but execmem_code_heap_destroy. One heap's calls exclude each other; finding a
 * block takes no lock. Blocks are written through execmem/rwcache.h.
 *
 * Sources: HotSpot's code cache (JDK-8029799) for segments, the minimum, and the figures; dotnet/runtime #83632 for
 * stubs among jitted code.
 */
#ifndef EXECMEM_CODE_HEAP_H
#define EXECMEM_CODE_HEAP_H

#include <execmem/region.h>

struct execmem_code_heap;

#define EXECMEM_CODE_SEGMENT_MIN          16
#define EXECMEM_CODE_SEGMENT_MAX          4096
#define EXECMEM_CODE_MINIMUM_MAX          64
#define EXECMEM_CODE_REGION_DEFAULT       16777216
#define EXECMEM_CODE_NEAR_PERCENT_DEFAULT 50
#define EXECMEM_CODE_FREE_BLOCKS_DEFAULT  10000 /* hotspot-8029799 */

/* Where a block goes among the free blocks that it fits into. It is cut from their beginning. */
enum execmem_code_policy {
	EXECMEM_CODE_FIRST, /* the lowest address */
	EXECMEM_CODE_BEST,  /* the smallest; of equals, the lowest address */
	/*
	 * Where writing it needs no other mapping: fewer mappings are made (execmem/rwcache.h), for more address space.
	 * Windows are as the allocator's, counted from the region's beginning. A part is what of a free block lies in
	 * one window, or in what one mapping covers, without what must stay before it so as not to be a free block
	 * below the minimum. A block is cut from the beginning of a part.
	 *
	 * 1. Of what is mapped for writing now, most recent first, and then of the window that 2 or 3 chose last: the
	 *    smallest part that it fits into; of equals, the lowest.
	 *
	 * 2. Unless it has an alignment above a segment's, or a target: of the windows up to the last that was ever
	 *    used, with at least near_percent of a whole one's bytes free, the one with most of them, of equals the
	 *    lowest, that has such a part.
	 *
	 * 3. The end of the lowest region that ends in a free block: that block's first window in which it fits.
	 *
	 * 4. As EXECMEM_CODE_BEST: a block larger than a window, or where nothing else is left. It may lie across
	 *    windows.
	 */
	EXECMEM_CODE_NEAR
};

/*
 * Figures of a heap, as JDK-8029799 defines the first eight. What has never been part of a block counts as free for
 * allocation, but is on no list.
 */
struct execmem_code_figures {
	size_t free_blocks;  /* length of the free list */
	size_t free_bytes;   /* in it */
	size_t unused_bytes; /* in live blocks: their bytes less what was asked for */
	/*
	 * One byte a segment up to footprint_bytes: what the segment map of that design would take. This one has none;
	 * what it takes instead is metadata_bytes.
	 */
	size_t segment_map_bytes;
	size_t used_bytes;            /* in live blocks */
	size_t largest_used_bytes;    /* the most there ever was */
	size_t wasted_bytes;          /* free list, unused bytes and segment map together */
	uint64_t overhead_per_myriad; /* wasted / largest used, in 1/100 of a percent, rounded to nearest */

	size_t live_blocks;
	size_t footprint_bytes; /* up to the end of the highest block ever, in each region */
	size_t committed_bytes; /* memory that the system has given */
	size_t reserved_bytes;  /* address space */
	size_t largest_free;    /* bytes of the largest free block, memory never used included */
	size_t metadata_bytes;  /* bookkeeping in use, as far as footprint_bytes and lists require */
	size_t metadata_mapped; /* address space mapped for it */
	unsigned regions;       /* of which the first is there from the beginning */
	uint64_t allocations;   /* that succeeded, since creation, as are the rest */
	uint64_t frees;         /* likewise */
	uint64_t searches;      /* for a free block */
	uint64_t search_steps;  /* words and nodes looked at while searching */
	size_t most_steps;      /* in one search */
};

enum execmem_code_event {
	EXECMEM_CODE_FREE_LIST, /* the free list is longer than the bound; said again once it was half as long */
	EXECMEM_CODE_FULL       /* an allocation failed for want of space */
};

/* What the callback of a heap is told. */
struct execmem_code_warning {
	enum execmem_code_event event;
	size_t bytes; /* what was asked for */
	int error;    /* what the allocation returns: 0, or why there is no space */
	struct execmem_code_figures figures;
};

struct execmem_code_config {
	size_t segment_bytes; /* a power of two, EXECMEM_CODE_SEGMENT_MIN to _MAX */
	unsigned minimum;     /* of a block, in segments: 1 to EXECMEM_CODE_MINIMUM_MAX */
	enum execmem_code_policy policy;
	unsigned near_percent; /* 0 to 100: less makes more mappings, and more takes more memory */
	/* Reserved at first: at least a block. Each further region is as large as all before it, if it can be. */
	size_t region_bytes;
	size_t maximum_bytes; /* reserved at most, in all regions; whole units */
	unsigned kind;        /* of the regions, and of blocks asked for without one: 0 to EXECMEM_KIND_MAX */
	size_t free_blocks;   /* the bound of EXECMEM_CODE_FREE_LIST */
	/*
	 * Called in the thread whose call met the event, without a lock, before that call returns; may use the heap.
	 * May be null.
	 */
	void (*warn)(void *context, const struct execmem_code_warning *warning);
	void *context;
};

/* Segments of 32 bytes, a minimum of one, best fit, 16 MiB at first and as much as there is at most, kind 0. */
struct execmem_code_config execmem_code_config_default(void);

/*
 * Makes a heap with its first region, of which nothing is committed.
 *
 * EXECMEM_ERROR_ARGUMENT  a value outside the bounds of struct execmem_code_config, or a segment larger than a window
 * The errors of execmem_reserve; and of the system, where bookkeeping cannot be had
 */
EXECMEM_MUST_CHECK int execmem_code_heap_create(struct execmem_allocator *allocator,
						const struct execmem_code_config *config,
						struct execmem_code_heap **heap);

/*
 * Releases all regions, live blocks or not. No other thread may be using the heap, look up an address of it or run its
 * code, or do so afterwards.
 *
 * EXECMEM_ERROR_BUSY    a view of a block is open
 * A negative errno      the system refuses to unmap
 * EXECMEM_ERROR_FORKED  nothing is changed
 *
 * After the first two, regions below the one that is in the way are gone; if there were any, the heap can do nothing
 * any more but be destroyed by calling again.
 */
EXECMEM_MUST_CHECK int execmem_code_heap_destroy(struct execmem_code_heap *heap);

/* A block. */
struct execmem_code {
	execmem_rx rx;     /* its beginning, and the code's */
	size_t bytes;      /* of the block: whole segments */
	size_t code_bytes; /* of them asked for */
	unsigned kind;
};

/* What a block must be like; each field may be 0. */
struct execmem_code_request {
	size_t align;  /* of the code's beginning: a power of two up to EXECMEM_UNIT_BYTES; 0: that of segments */
	unsigned kind; /* 0 to EXECMEM_KIND_MAX */
	/*
	 * Null, or where it must lie, as for execmem_reserve. Where no region of the heap has room there, one is
	 * reserved within reach.
	 */
	const struct execmem_near *near;
};

/*
 * Allocates a block for `bytes` bytes of code, in memory that is committed: readable and executable, of any content.
 * `request` may be null: the heap's kind, anywhere.
 *
 * The policy orders the free blocks that the code fits into, alignment and reach included. Where alignment is larger
 * than a segment, EXECMEM_CODE_TRIES blocks that are large enough and yet do not fit are passed over, and then only
 * those are looked at into which it fits however they lie; unless the heap cannot grow: then all are, before it is
 * full.
 *
 * EXECMEM_ERROR_ARGUMENT     bytes is 0 or more than a region can have, an alignment or kind out of bounds
 * EXECMEM_ERROR_FULL         no free block is large enough, and maximum_bytes does not allow another region
 * EXECMEM_ERROR_UNREACHABLE  no room within reach, neither in the heap nor for another region
 * EXECMEM_ERROR_FILE_SIZE, _ADDRESS_SPACE, _MAPPING_COUNT, or a negative errno   the system refuses memory
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE (being destroyed)
 * The first two lines apart, the callback is told EXECMEM_CODE_FULL as well where there was no space in the heap.
 */
EXECMEM_MUST_CHECK int execmem_code_allocate(struct execmem_code_heap *heap, size_t bytes,
					     const struct execmem_code_request *request, struct execmem_code *code);
#define EXECMEM_CODE_TRIES 64

/*
 * Frees the block that begins at `rx`. Nobody may be running it.
 *
 * EXECMEM_ERROR_NOT_FOUND  the address belongs to no region of this heap
 * EXECMEM_ERROR_INTERIOR   it lies inside a live block
 * EXECMEM_ERROR_FREED      it lies in memory that is free: freed before, or never allocated
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE
 */
EXECMEM_MUST_CHECK int execmem_code_free(struct execmem_code_heap *heap, execmem_rx rx);

/*
 * Cuts the code of a block to `bytes` bytes. The whole segments beyond, and beyond the minimum, are free afterwards;
 * fewer of them than a free block must have, and next to none, stay. *block_bytes, which may be null, is what the block
 * has then.
 *
 * EXECMEM_ERROR_ARGUMENT  bytes is 0, or more than the code has
 * EXECMEM_ERROR_NOT_FOUND, _INTERIOR, _FREED, _FORKED, _STATE  as execmem_code_free
 */
EXECMEM_MUST_CHECK int execmem_code_shrink(struct execmem_code_heap *heap, execmem_rx rx, size_t bytes,
					   size_t *block_bytes);

/*
 * The live block that an address lies in, its unused bytes included. Bounded time, whatever the heap holds; no lock;
 * any thread, signal handlers and forks included. The answer is exact for a block that is live during the call; for an
 * address in a block that is allocated, cut or freed meanwhile, it is that block, or none, or bounds that mix both.
 *
 * EXECMEM_ERROR_NOT_FOUND  no code heap has a live block there
 */
EXECMEM_MUST_CHECK int execmem_code_find(struct execmem_allocator *allocator, const void *address,
					 struct execmem_code *code);

/*
 * The kind of an address, for all layers: of the live block, in a code heap; -1 in its free memory; otherwise as
 * execmem_kind. As execmem_code_find.
 */
int execmem_code_kind(struct execmem_allocator *allocator, const void *address);

/*
 * EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_code_figures(struct execmem_code_heap *heap, struct execmem_code_figures *figures);

/*
 * Counts the live blocks by size: counts[i] those of at least i * step and less than (i + 1) * step bytes of code, the
 * last one all that are larger. Walks the heap, which is locked meanwhile.
 *
 * EXECMEM_ERROR_ARGUMENT  no counts, or a step of 0
 * EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_code_histogram(struct execmem_code_heap *heap, size_t step, size_t *counts,
					      size_t count);

/*
 * Calls `visit` for every block, live or free, by ascending address, until it returns other than 0, and returns that. A
 * free block has no code_bytes. The heap is locked meanwhile: `visit` must not use it. A region's last block reaches up
 * to the region's end, committed or not.
 *
 * EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_code_walk(struct execmem_code_heap *heap,
					 int (*visit)(void *context, const struct execmem_code *block), void *context);

#endif
