/*
 * What the checks of code heaps share.
 */
#ifndef CH_CODE_HEAP_H
#define CH_CODE_HEAP_H

#include "../alloc/alloc.h"
#include "subject_code_heap.h"

/* CODE(allocate)(heap, ...). Only behind alloc_claims(). */
#define CODE(operation_) (subject.code_heap->operation_)

/* Segments of 64 bytes, a minimum of one, best fit, regions of a unit and 16 units at most, kind 5. */
struct subject_code_config code_config(void);

/* Makes a heap, over an allocator over the watched table. Asserted: null where it fails. */
struct code_pair {
	struct subject_allocator *allocator;
	struct subject_code_heap *heap;
};
bool code_make(const struct subject_code_config *config, struct code_pair *pair);
/* Destroys both, and asserts that nothing is left. */
bool code_end(const struct code_pair *pair);

/* An address that is not a region's: of the suite's own memory. */
#define CODE_FOREIGN ((uintptr_t)&watch)

#endif
