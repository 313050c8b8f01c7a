/*
 * What the benchmarks of the code heap share: heaps.c, beside asmjit's, and heaps_alone.c.
 */
#ifndef EXECMEM_BENCH_HEAPS_H
#define EXECMEM_BENCH_HEAPS_H

#include "bench.h"

#include <execmem/code_heap.h>
#include <execmem/rwcache.h>

#define LIVE       50000
#define MOST_LIVE  200000
#define OPERATIONS 2000 /* a round */
#define REGION     ((size_t)128 << 20)

/* Blocks of one thread, the same on both sides, but for where they are. */
struct set {
	struct execmem_allocator *allocator;
	struct execmem_code_heap *heap;
	size_t live;
	uintptr_t *block;
	uint64_t random, requested;
	uint16_t *bytes;
	struct execmem_view *view; /* of the heap's only region; null: blocks are not written */
	bool publish;
	struct bench_peer *peer;
};

struct execmem_code_heap *set_heap(struct execmem_allocator *allocator);
void set_make(struct set *set, uint64_t seed);             /* empty, without a heap */
void set_free(struct set *set);                            /* not its heap */
void set_open(struct set *set, struct execmem_view *view); /* all of its heap's first region, to be written */
void set_grow(struct set *set, size_t live);
/* Releases a block and allocates another, `count` times; the argument is a set. */
void set_exchange(void *set, size_t count);

/* How much two threads do in the time in which one does as much as each: 1 to 2. */
double bench_two_threads(void (*work)(void *, size_t), void **both, size_t count);
/* Measure and report the cost from 100 to MOST_LIVE blocks, and two threads. */
void bench_heap_growth(struct execmem_allocator *allocator, bool write);
void bench_heap_threads(struct execmem_allocator *allocator, bool apart, bool two_processors);

#endif
