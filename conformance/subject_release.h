/*
 * The subject interface of page release: which pages a subject gives back to the system, and when.
 *
 * Three claims, each for itself: "release-decisions" for the rules of LLVM's D82031; "release-class" for a region of
 * blocks of one size, in memory of the suite's; "release-heap" for a heap of code over an allocator that claims
 * "allocator" and "os-table".
 *
 * Operations return 0 or a negative number as those of subject_allocator.h, and leave outputs untouched on an error,
 * `released` apart.
 */
#ifndef SUBJECT_RELEASE_H
#define SUBJECT_RELEASE_H

#include "subject_allocator.h"

enum subject_release_policy {
	SUBJECT_RELEASE_EXACT, /* every wholly free page that was used since it was given back */
	SUBJECT_RELEASE_SCUDO  /* D82031: decides, then every wholly free page */
};

/* In the order of the rules: the first that applies. */
enum subject_release_verdict {
	SUBJECT_RELEASE_GO,
	SUBJECT_RELEASE_FEW_FREE,   /* less than a page is free */
	SUBJECT_RELEASE_FEW_NEW,    /* less than a page was freed since the last release */
	SUBJECT_RELEASE_FEW_PUSHED, /* small blocks, not forced: less than 1/16 of the memory was freed since */
	SUBJECT_RELEASE_DENSE,      /* small blocks: less than their share is free */
	SUBJECT_RELEASE_NEVER,      /* not forced: a negative interval */
	SUBJECT_RELEASE_EARLY       /* not forced: the interval is not over */
};

struct subject_release_request {
	enum subject_release_policy policy;
	bool forced;
	int32_t interval_ms;
	uint64_t now_ns;
};

/* What one call gave back; written on an error as well. */
struct subject_released {
	enum subject_release_verdict verdict;
	uint64_t ranges, pages, bytes; /* pages of the page size that the table answers */
};

/* What a decision rests on. Bytes, but the last. */
struct subject_release_state {
	size_t page_bytes, block_bytes;
	uint64_t allocated, pushed, popped, pushed_at_last;
	uint64_t last_ns;
};

/*
 * Blocks side by side, from `first` on, in bytes from the beginning of page 0. The region owns [first, end): what of
 * its first and last page lies outside is somebody else's.
 */
struct subject_release_layout {
	size_t page_bytes, block_bytes, first, blocks, end;
};

/* Where page 0 is. */
struct subject_release_place {
	unsigned char *address; /* where it is mapped */
	int file;               /* the descriptor of the memory file behind it, or SUBJECT_NO_FILE: it is private */
	uint64_t offset;        /* of page 0 in the file */
};

struct subject_class;
struct subject_heap;

struct subject_release_operations {
	/* claim "release-decisions" */
	enum subject_release_verdict (*decide)(const struct subject_release_state *state, bool forced,
					       int32_t interval_ms, uint64_t now_ns);

	/* claim "release-class": all blocks are free at first, and handed to the class */
	int (*class_create)(const struct subject_os *os, const struct subject_release_layout *layout,
			    const struct subject_release_place *place, struct subject_class **made);
	int (*class_destroy)(struct subject_class *class_);
	void (*class_take)(struct subject_class *class_, size_t block); /* a free block becomes live */
	void (*class_give)(struct subject_class *class_, size_t block); /* a live one becomes free */
	int (*class_release)(struct subject_class *class_, const struct subject_release_request *request,
			     struct subject_released *released);

	/* claim "release-heap": `bytes` of blocks are multiples of 64, and blocks begin at multiples of 64 */
	int (*heap_create)(struct subject_allocator *allocator, size_t region_bytes, struct subject_heap **heap);
	int (*heap_destroy)(struct subject_heap *heap);
	int (*heap_allocate)(struct subject_heap *heap, size_t bytes, uintptr_t *rx);
	int (*heap_free)(struct subject_heap *heap, uintptr_t rx);
	int (*heap_release)(struct subject_heap *heap, struct subject_released *released); /* exact */
};

#define SUBJECT_RELEASE_CLAIMS(X)                                                                                      \
	X(decide, "release-decisions")                                                                                 \
	X(class_create, "release-class")                                                                               \
	X(class_destroy, "release-class")                                                                              \
	X(class_take, "release-class")                                                                                 \
	X(class_give, "release-class")                                                                                 \
	X(class_release, "release-class")                                                                              \
	X(heap_create, "release-heap")                                                                                 \
	X(heap_destroy, "release-heap")                                                                                \
	X(heap_allocate, "release-heap")                                                                               \
	X(heap_free, "release-heap")                                                                                   \
	X(heap_release, "release-heap")

#endif
