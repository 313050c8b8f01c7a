/*
 * What the checks of allocators of blocks share.
 */
#ifndef JA_BLOCKS_H
#define JA_BLOCKS_H

#include "../alloc/alloc.h"
#include "subject_blocks.h"

/* The subject's operations: BLOCKS(allocate)(blocks, ...). Only behind alloc_claims("blocks"). */
#define BLOCKS(operation_) (subject.blocks->operation_)

#define BLOCKS_LIVE        40 /* at most, in a walk */

/* Begins to watch anew, and makes one: over the watched table where that is claimed. Asserted; null where it fails. */
struct subject_blocks *blocks_make(void);
/* The same without an assertion and without beginning anew: what create answers. */
int blocks_create(struct subject_blocks **blocks);
/* Destroys it where that is claimed. Asserted. */
bool blocks_end(struct subject_blocks *blocks);

/*
 * Blocks of many sizes are taken, written, and given back in an order at random, `steps` times; in the end all are
 * given back. `after` is called after each step, and ends the walk where it is false; may be null. Asserted: each
 * operation works.
 */
bool blocks_walk(struct subject_blocks *blocks, unsigned steps, bool (*after)(void));
/* The same, and asserted: a block is as large as was asked for, lies apart, and holds what was written to it. */
bool blocks_walk_judged(struct subject_blocks *blocks, unsigned steps);

/* Takes a block of at least `bytes`, writes a function that returns `value` to its beginning. Asserted. */
bool blocks_put(struct subject_blocks *blocks, size_t bytes, unsigned value, struct subject_block *block);

#endif
