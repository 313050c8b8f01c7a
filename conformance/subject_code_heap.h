/*
 * The subject interface of code heaps: blocks of code of any size, side by side in regions of an allocator.
 *
 * A heap is an array of segments; a block is a whole number of them, at least the minimum. Free neighbours are one
 * block, and none is smaller than the minimum: what would be left of one stays with the block. Claims and errors are as
 * in subject_allocator.h.
 */
#ifndef SUBJECT_CODE_HEAP_H
#define SUBJECT_CODE_HEAP_H

#include "subject_allocator.h"

struct subject_code_heap; /* the subject's own */

/* Where a block goes: at the beginning of a free block that it fits into. */
enum subject_code_policy {
	SUBJECT_CODE_FIRST, /* the lowest address */
	SUBJECT_CODE_BEST,  /* the smallest; of equals, the lowest address */
	SUBJECT_CODE_NEAR   /* where it needs no other writable mapping; the subject's choice */
};

struct subject_code_figures {
	size_t free_blocks;       /* below the footprint */
	size_t free_bytes;        /* in them */
	size_t unused_bytes;      /* of live blocks, not asked for */
	size_t segment_map_bytes; /* a byte a segment of the footprint */
	size_t used_bytes;        /* in live blocks */
	size_t largest_used_bytes;
	size_t wasted_bytes;          /* free_bytes + unused_bytes + segment_map_bytes */
	uint64_t overhead_per_myriad; /* wasted / largest used, rounded to nearest */

	size_t live_blocks;
	size_t footprint_bytes; /* up to the end of the highest block ever, in each region */
	size_t reserved_bytes;
	size_t largest_free;   /* memory never used included */
	size_t metadata_bytes; /* apart from the code */
	unsigned regions;
	uint64_t allocations, frees, searches, search_steps;
	size_t most_steps; /* in one search */
};

enum subject_code_event {
	SUBJECT_CODE_FREE_LIST, /* more free blocks than the bound; again once there were half as many */
	SUBJECT_CODE_FULL       /* an allocation failed for want of space */
};

struct subject_code_warning {
	enum subject_code_event event;
	size_t bytes; /* asked for */
	int error;    /* what the allocation answers */
	struct subject_code_figures figures;
};

struct subject_code_config {
	size_t segment_bytes; /* a power of two from 16 to 4096 */
	unsigned minimum;     /* of a block, in segments */
	enum subject_code_policy policy;
	unsigned near_percent; /* of policy near: windows with fewer bytes free are not chosen for them */
	size_t region_bytes;   /* of the first region: a multiple of 64 KiB */
	size_t maximum_bytes;  /* of all: likewise */
	unsigned kind;         /* of blocks that are asked for without a request: 0 to 62 */
	size_t free_blocks;    /* the bound of SUBJECT_CODE_FREE_LIST */
	/* Claim "code-figures". Called without a lock; may be null. */
	void (*warn)(void *context, const struct subject_code_warning *warning);
	void *context;
};

struct subject_code {
	uintptr_t rx;
	size_t bytes;      /* of the block */
	size_t code_bytes; /* asked for */
	unsigned kind;
};

struct subject_code_request {
	size_t align;  /* a power of two up to 64 KiB, or 0: as it comes */
	unsigned kind; /* 0 to 62 */
};

struct subject_code_heap_operations {
	/* Claim "code-heap". Without a policy that it has, create answers SUBJECT_ERROR_UNSUPPORTED. */
	int (*create)(struct subject_allocator *allocator, const struct subject_code_config *config,
		      struct subject_code_heap **heap);
	int (*destroy)(struct subject_code_heap *heap);
	/* SUBJECT_ERROR_FULL where there is no room and no further region is allowed. `request` may be null. */
	int (*allocate)(struct subject_code_heap *heap, size_t bytes, const struct subject_code_request *request,
			struct subject_code *code);
	/* SUBJECT_ERROR_NOT_FOUND: no region of this heap; _INTERIOR: inside a live block; _FREED: in a free one. */
	int (*free)(struct subject_code_heap *heap, uintptr_t rx);
	/* Every block, live or free, by ascending address; a free one has no code_bytes. Ends where `visit` says so. */
	int (*walk)(struct subject_code_heap *heap, int (*visit)(void *context, const struct subject_code *block),
		    void *context);

	/* Claim "code-near": every byte at most `reach` bytes from `target`. */
	int (*allocate_near)(struct subject_code_heap *heap, size_t bytes, const struct subject_code_request *request,
			     uintptr_t target, size_t reach, struct subject_code *code);
	/* Claim "code-shrink": the block's code is cut to `bytes`, at least 1 and at most what it has; else
	 * SUBJECT_ERROR_ARGUMENT. `block_bytes` may be null. */
	int (*shrink)(struct subject_code_heap *heap, uintptr_t rx, size_t bytes, size_t *block_bytes);
	/* Claim "code-find": of any address; -1 for the kind of what is free. */
	int (*find)(struct subject_allocator *allocator, uintptr_t address, struct subject_code *code);
	int (*kind)(struct subject_allocator *allocator, uintptr_t address);
	/* Claim "code-figures". counts[i]: live blocks of at least i * step, and less than one step more, bytes asked
	 * for; the last counts all that are larger. */
	int (*figures)(struct subject_code_heap *heap, struct subject_code_figures *figures);
	int (*histogram)(struct subject_code_heap *heap, size_t step, size_t *counts, size_t count);
};

/* X(operation, claim): every operation, once. */
#define SUBJECT_CODE_HEAP_CLAIMS(X)                                                                                    \
	X(create, "code-heap")                                                                                         \
	X(destroy, "code-heap")                                                                                        \
	X(allocate, "code-heap")                                                                                       \
	X(free, "code-heap")                                                                                           \
	X(walk, "code-heap")                                                                                           \
	X(allocate_near, "code-near")                                                                                  \
	X(shrink, "code-shrink")                                                                                       \
	X(find, "code-find")                                                                                           \
	X(kind, "code-find")                                                                                           \
	X(figures, "code-figures")                                                                                     \
	X(histogram, "code-figures")

#endif
