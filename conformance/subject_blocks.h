/*
 * The subject interface of allocators that hand out memory for code by the block, as most JIT libraries and closure
 * allocators do: a size in, an address to run at out. How a block is written is the allocator's business.
 *
 * Claims and errors are as in subject_allocator.h: 0, a negative errno, or one of enum subject_error; outputs are left
 * untouched on an error. An allocator that answers "it failed" alone has its adapter answer SUBJECT_ERROR_OTHER.
 */
#ifndef SUBJECT_BLOCKS_H
#define SUBJECT_BLOCKS_H

#include "subject_allocator.h"

struct subject_blocks; /* the subject's own */

/* By value; copies are equal. `own` is the subject's. */
struct subject_block {
	uintptr_t rx; /* where it runs, without a mode bit; a multiple of 8 */
	size_t bytes; /* at least what was asked for, readable at rx */
	uintptr_t own[2];
};

struct subject_blocks_operations {
	/* Claim "blocks". Any thread may call all but create, at the same time. */
	int (*create)(struct subject_blocks **blocks);
	int (*allocate)(struct subject_blocks *blocks, size_t bytes, struct subject_block *block);
	int (*release)(struct subject_blocks *blocks, const struct subject_block *block);
	/* Copies `bytes` bytes to `offset` in the block; on return they can be read and run at rx, by this thread. */
	int (*write)(struct subject_blocks *blocks, const struct subject_block *block, size_t offset, const void *code,
		     size_t bytes);

	/* Claim "blocks-destroy": what is left of it is given back, blocks included. */
	int (*destroy)(struct subject_blocks *blocks);
	/*
	 * Claim "blocks-os-table": as create, reaching the system through `os` alone. A hosted subject's adapter calls
	 * hosted_over(os) and then what create calls (hosted/hosted.h).
	 */
	int (*create_over)(const struct subject_os *os, struct subject_blocks **blocks);
	/*
	 * Claim "blocks-make": a block that holds code of the subject's own making, a function that takes nothing and
	 * returns `value` (0 to 255); rx with its mode bit here, where the port has one.
	 */
	int (*make)(struct subject_blocks *blocks, unsigned value, struct subject_block *block);
};

/* X(operation, claim): every operation, once. */
#define SUBJECT_BLOCKS_CLAIMS(X)                                                                                       \
	X(create, "blocks")                                                                                            \
	X(allocate, "blocks")                                                                                          \
	X(release, "blocks")                                                                                           \
	X(write, "blocks")                                                                                             \
	X(destroy, "blocks-destroy")                                                                                   \
	X(create_over, "blocks-os-table")                                                                              \
	X(make, "blocks-make")

#endif
