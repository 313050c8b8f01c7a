/*
 * What the files of the code heap share.
 *
 * A region has two bits a segment. `blocks` marks the first segment of every block, live or free; above it, a bit for
 * each of its words that is not zero, and so on up to one word, so that the block of any address is found in bounded
 * time. `used` marks the first and the last segment of a live block, and has zero in those of a free block: whether a
 * neighbour is free is one bit. The bits of `used` between the two are no marks; a live block that is long enough keeps
 * the count of its unused bytes there.
 *
 * While a block is live, the bits that lead to it do not change, so that finding it needs no lock. All words of both
 * are stored atomically, with heap->lock held.
 */
#ifndef EXECMEM_INTERNAL_CODE_HEAP_H
#define EXECMEM_INTERNAL_CODE_HEAP_H

#include <execmem/code_heap.h>

#include "allocator.h"

#define EXECMEM_CODE_WORD_BITS    ((unsigned)(sizeof(uintptr_t) * 8))
#define EXECMEM_CODE_WORD_SHIFT   (sizeof(uintptr_t) > 4 ? 6u : 5u)
/* Of segments up to 2^31: 6 words of 64 bits, 7 of 32. */
#define EXECMEM_CODE_LEVELS       7
/* Segments of a group: four words. */
#define EXECMEM_CODE_GROUP_SHIFT  (EXECMEM_CODE_WORD_SHIFT + 2)
#define EXECMEM_CODE_NONE         SIZE_MAX
/* Of a region, and so of a block: they fit 31 bits with the tag of a leaf (code_heap_trie.c). */
#define EXECMEM_CODE_SEGMENTS_MAX ((size_t)1 << 30)

struct execmem_code_bits {
	uintptr_t *level[EXECMEM_CODE_LEVELS];
	unsigned levels;
};

/* Free blocks of fewer segments than a word has bits: by size, and for each size by group. */
struct execmem_code_classes {
	/*
	 * level[0][(g / bits of a word) * bits of a word + size] has a bit for group g, if a free block of the size
	 * begins in it; the levels above as in execmem_code_bits, one such hierarchy a size.
	 */
	uintptr_t *level[EXECMEM_CODE_LEVELS];
	unsigned levels;
	uintptr_t sizes; /* bit `size`: there is one */
};

/* A crit-bit tree (Bernstein) of larger free blocks, by size, then address. */
struct execmem_code_trie_node {
	uint32_t child[2]; /* a node's index << 1, or a leaf: a block's first segment << 1 | 1 */
	uint32_t bit;      /* of the key: the highest in which the two sides differ */
};

struct execmem_code_trie {
	uint32_t root;        /* 0: empty */
	uint32_t free, fresh; /* nodes given back, linked by child[0]; the first never used. 0 is no node */
	struct execmem_code_trie_node *nodes;
};

/* The largest free block that begins in each group; above it, the maximum of each EXECMEM_CODE_FANOUT. */
#define EXECMEM_CODE_FANOUT_SHIFT 4
#define EXECMEM_CODE_MAXIMA       8
struct execmem_code_maxima {
	uint32_t *level[EXECMEM_CODE_MAXIMA];
	size_t count[EXECMEM_CODE_MAXIMA];
	unsigned levels;
};

/* A number by segment, for few or for many of them: code_heap_side.c. */
struct execmem_code_side {
	uint32_t *references; /* by group */
	unsigned char *cells;
	uint32_t most;  /* the largest number */
	unsigned shift; /* in a table, a number has 1 << shift bits */
	uint32_t fresh; /* units of cells from which on none was ever used */
	uint32_t free[3];
};

struct execmem_code_region {
	/* Read without a lock. */
	uintptr_t start;
	size_t segments; /* one more segment, a live block that is none, ends the bitmaps */
	struct execmem_code_heap *heap;
	uintptr_t *used;
	struct execmem_code_bits blocks;
	struct execmem_code_side unused; /* unused bytes of blocks that are too short to keep them in `used` */
	struct execmem_code_side kinds;  /* kind + 1 of blocks of another kind than the heap's */

	/* heap->lock */
	struct execmem_code_region *next; /* by address */
	struct execmem_region region;
	size_t committed;                    /* segments, from the first on */
	size_t top;                          /* segments below which blocks have been */
	struct execmem_code_classes classes; /* best */
	struct execmem_code_trie trie;
	struct execmem_code_maxima maxima;  /* first */
	struct execmem_code_maxima windows; /* near: free segments of each window; 0 where none was ever used */
	uint32_t *bounds;                   /* near: of the largest part of each */
	size_t counted;                     /* near: windows below this segment are counted */
	uintptr_t *pending;                 /* a bit a page: to be given back (code_heap_release.c) */
	size_t pending_count;
	void *tables;
	size_t table_bytes;
};

struct execmem_code_heap {
	/* Not changed. */
	struct execmem_allocator *allocator;
	struct execmem_code_config config;
	unsigned shift;                            /* of a segment */
	unsigned unused_bits;                      /* that the unused bytes of a block need */
	struct execmem_code_heap *next, *previous; /* allocator->heaps_lock */

	_Alignas(EXECMEM_LINE) struct execmem_lock lock;
	bool dying, warned;
	struct execmem_code_region *regions; /* by address */
	unsigned region_count;
	size_t reserved_bytes;
	size_t used, largest_used; /* segments */
	size_t unused_bytes, free_count, live_count;
	struct execmem_code_region *near_region; /* near: the window that was chosen last */
	size_t near_window;
	uint64_t allocations, frees, searches, steps;
	size_t most_steps;
	struct execmem_code_books *books;        /* null until something is to be released */
	uint64_t pushed, popped, pushed_at_last; /* segments freed and taken; freed until the last release */
	uint64_t released_ns;                    /* when it was tried last */
};

/* Takes the lock. An execmem error where this process, or the heap, may not be used: then it is not taken. */
static inline int execmem_code_begin(struct execmem_code_heap *heap)
{
	int error = execmem_check_process(heap->allocator);

	if (error)
		return error;
	execmem_lock(&heap->allocator->os, &heap->lock);
	if (!heap->dying)
		return 0;
	execmem_unlock(&heap->allocator->os, &heap->lock);
	return EXECMEM_ERROR_STATE;
}

/* ---- Bits ---- */

static inline uintptr_t execmem_code_load(const uintptr_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void execmem_code_store(uintptr_t *word, uintptr_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static inline bool execmem_code_test(const uintptr_t *words, size_t i)
{
	return execmem_code_load(&words[i >> EXECMEM_CODE_WORD_SHIFT]) >> (i % EXECMEM_CODE_WORD_BITS) & 1;
}

static inline void execmem_code_change(uintptr_t *words, size_t i, bool value)
{
	uintptr_t *word = &words[i >> EXECMEM_CODE_WORD_SHIFT], bit = (uintptr_t)1 << (i % EXECMEM_CODE_WORD_BITS);

	execmem_code_store(word, value ? *word | bit : *word & ~bit);
}

static inline unsigned execmem_code_lowest(uintptr_t word)
{
	return (unsigned)__builtin_ctzl(word);
}

static inline unsigned execmem_code_highest(uintptr_t word)
{
	return EXECMEM_CODE_WORD_BITS - 1 - (unsigned)__builtin_clzl(word);
}

/* The same from the next word of level 0 on; back from the word before. */
size_t execmem_code_next_word(const struct execmem_code_bits *bits, size_t word);
size_t execmem_code_previous_word(const struct execmem_code_bits *bits, size_t word);

/*
 * The lowest bit that is set from `i` on. There must be one. As many bits are looked at as a word has, across two
 * words: whether one of them is set is easier to predict than whether one is in the first.
 */
static inline size_t execmem_code_next(const struct execmem_code_bits *bits, size_t i)
{
	size_t word = i >> EXECMEM_CODE_WORD_SHIFT;
	unsigned shift = i % EXECMEM_CODE_WORD_BITS;
	uintptr_t here = execmem_code_load(&bits->level[0][word]) >> shift |
			 execmem_code_load(&bits->level[0][word + 1]) << 1 << (EXECMEM_CODE_WORD_BITS - 1 - shift);

	return __builtin_expect(here != 0, 1) ? i + execmem_code_lowest(here) : execmem_code_next_word(bits, word);
}

/* The highest up to `i`. Likewise; before the first word lies one that is zero. */
static inline size_t execmem_code_previous(const struct execmem_code_bits *bits, size_t i)
{
	const uintptr_t *word = &bits->level[0][i >> EXECMEM_CODE_WORD_SHIFT];
	unsigned shift = EXECMEM_CODE_WORD_BITS - 1 - i % EXECMEM_CODE_WORD_BITS;
	uintptr_t here = execmem_code_load(word) << shift |
			 execmem_code_load(word - 1) >> 1 >> (EXECMEM_CODE_WORD_BITS - 1 - shift);

	return __builtin_expect(here != 0, 1) ? i - (EXECMEM_CODE_WORD_BITS - 1 - execmem_code_highest(here))
					      : execmem_code_previous_word(bits, i >> EXECMEM_CODE_WORD_SHIFT);
}

/* The first bit of a word was set, the last one cleared: the levels above. */
void execmem_code_bits_set_above(struct execmem_code_bits *bits, size_t word);
void execmem_code_bits_clear_above(struct execmem_code_bits *bits, size_t word);

static inline void execmem_code_bits_set(struct execmem_code_bits *bits, size_t i)
{
	uintptr_t *word = &bits->level[0][i >> EXECMEM_CODE_WORD_SHIFT], old = *word;

	execmem_code_store(word, old | (uintptr_t)1 << (i % EXECMEM_CODE_WORD_BITS));
	if (!old)
		execmem_code_bits_set_above(bits, i >> EXECMEM_CODE_WORD_SHIFT);
}

static inline void execmem_code_bits_clear(struct execmem_code_bits *bits, size_t i)
{
	uintptr_t *word = &bits->level[0][i >> EXECMEM_CODE_WORD_SHIFT];
	uintptr_t left = *word & ~((uintptr_t)1 << (i % EXECMEM_CODE_WORD_BITS));

	execmem_code_store(word, left);
	if (!left)
		execmem_code_bits_clear_above(bits, i >> EXECMEM_CODE_WORD_SHIFT);
}

/* ---- Blocks; heap->lock is held ---- */

/* Segments of the block that begins at `i`. */
static inline size_t execmem_code_segments(const struct execmem_code_region *region, size_t i)
{
	return execmem_code_next(&region->blocks, i + 1) - i;
}

/* Writes what a live block of `count` segments at `i` has to remember, and marks it used. */
void execmem_code_remember(struct execmem_code_region *region, size_t i, size_t count, size_t unused, unsigned kind);
unsigned execmem_code_kind_at(const struct execmem_code_region *region, size_t i);

/* Fits a side table to numbers up to `most`. */
void execmem_code_side_measure(struct execmem_code_side *side, size_t most);
/* Bytes that its cells may take; that they do. Its references take 4 a group. */
size_t execmem_code_side_room(const struct execmem_code_side *side, size_t groups);
size_t execmem_code_side_used(const struct execmem_code_side *side);
/* The number of a segment, or 0. Needs no lock, as long as the segment's own number does not change. */
uint32_t execmem_code_side_get(const struct execmem_code_side *side, size_t i);
/* Sets it; forgets it. */
void execmem_code_side_put(struct execmem_code_side *side, size_t i, uint32_t value);
void execmem_code_side_drop(struct execmem_code_side *side, size_t i);

/* Whether the bits of `used` between the marks hold the count of unused bytes. */
static inline bool execmem_code_fits_inline(const struct execmem_code_heap *heap, size_t count)
{
	return count >= heap->unused_bits + 2;
}

/* Forgets what a live block has to remember; the marks stay. */
static inline void execmem_code_forget(struct execmem_code_region *region, size_t i, size_t count)
{
	if (!execmem_code_fits_inline(region->heap, count))
		execmem_code_side_drop(&region->unused, i);
	if (region->kinds.references[i >> EXECMEM_CODE_GROUP_SHIFT])
		execmem_code_side_drop(&region->kinds, i);
}

/* Unused bytes of a live block. */
static inline size_t execmem_code_unused(const struct execmem_code_region *region, size_t i, size_t count)
{
	unsigned bits = region->heap->unused_bits, shift = (unsigned)((i + 1) % EXECMEM_CODE_WORD_BITS);
	const uintptr_t *word = &region->used[(i + 1) >> EXECMEM_CODE_WORD_SHIFT];
	uintptr_t value;

	if (!execmem_code_fits_inline(region->heap, count))
		return execmem_code_side_get(&region->unused, i);
	if (bits >= EXECMEM_CODE_WORD_BITS)
		__builtin_unreachable(); /* what the unused bytes of a minimum of segments need */
	value = execmem_code_load(word) >> shift;
	if (shift + bits > EXECMEM_CODE_WORD_BITS)
		value |= execmem_code_load(word + 1) << (EXECMEM_CODE_WORD_BITS - shift);
	return value & (((uintptr_t)1 << bits) - 1);
}

/* ---- Indexes of free blocks; heap->lock is held ---- */

/* What the map has in [low, high) is about to change, and does not count. */
struct execmem_code_change {
	size_t low, high;
};

/*
 * The smallest free block, of equals the lowest, that comes at or after a block of *count segments at *i in this order.
 * False where there is none. Adds to *steps what it looks at.
 */
bool execmem_code_best_next(const struct execmem_code_region *region, size_t *i, size_t *count, size_t *steps);
/*
 * The lowest free block of a size below the bits of a word, of which there is one. *alone: its group has no other of
 * the size for certain.
 */
size_t execmem_code_best_lowest(const struct execmem_code_region *region, size_t count, bool *alone, size_t *steps);
/* The lowest free block from *i on that has *count segments; *count becomes what it has. */
bool execmem_code_first_next(const struct execmem_code_region *region, size_t *i, size_t *count, size_t *steps);

/* The segments of the largest free block, 0 where there is none. */
size_t execmem_code_best_largest(const struct execmem_code_region *region);
void execmem_code_best_insert(struct execmem_code_region *region, size_t i, size_t count);
void execmem_code_best_remove(struct execmem_code_region *region, size_t i, size_t count,
			      struct execmem_code_change change);
/* The same for a block that execmem_code_best_lowest has found alone. */
void execmem_code_best_remove_alone(struct execmem_code_region *region, size_t i, size_t count);
void execmem_code_first_insert(struct execmem_code_region *region, size_t i, size_t count);
void execmem_code_first_remove(struct execmem_code_region *region, size_t i, size_t count,
			       struct execmem_code_change change);

/* A free block that is in the map comes to the index of the heap's policy. */
static inline void execmem_code_index_insert(struct execmem_code_region *region, size_t i, size_t count)
{
	if (region->heap->config.policy == EXECMEM_CODE_FIRST)
		execmem_code_first_insert(region, i, count);
	else
		execmem_code_best_insert(region, i, count);
}

/* It leaves the index, before it leaves the map. */
static inline void execmem_code_index_remove(struct execmem_code_region *region, size_t i, size_t count,
					     struct execmem_code_change change)
{
	if (region->heap->config.policy == EXECMEM_CODE_FIRST)
		execmem_code_first_remove(region, i, count, change);
	else
		execmem_code_best_remove(region, i, count, change);
}

void execmem_code_trie_insert(struct execmem_code_region *region, size_t i, size_t count);
void execmem_code_trie_remove(struct execmem_code_region *region, size_t i, size_t count);
size_t execmem_code_trie_largest(const struct execmem_code_region *region);
bool execmem_code_trie_next(const struct execmem_code_region *region, size_t *i, size_t *count, size_t *steps);

/* Sets a leaf, and the maxima above it. */
void execmem_code_maxima_set(struct execmem_code_maxima *maxima, size_t leaf, uint32_t value);
/* Segments were taken, or given back. */
void execmem_code_near_changed(struct execmem_code_region *region, size_t i, size_t count, bool taken);

/* ---- Searching; heap->lock is held ---- */

struct execmem_code_wish {
	size_t count;                    /* segments */
	size_t align;                    /* in segments */
	const struct execmem_near *near; /* or null */
	bool all;                        /* however many do not fit */
};

struct execmem_code_place {
	struct execmem_code_region *region;
	size_t free, free_count; /* the free block */
	size_t at;               /* where in it */
	bool alone;              /* as execmem_code_best_lowest says */
};

/* Segments [low, high) of a region. */
struct execmem_code_range {
	size_t low, high;
};

/* Those that a block near a target may have; all for null. False where there are none. */
bool execmem_code_range_of(const struct execmem_code_region *region, const struct execmem_near *near,
			   struct execmem_code_range *range);
/*
 * The lowest place inside a range in the free block of `count` segments at `i`, or EXECMEM_CODE_NONE. What is left
 * before it is no free block that is too small.
 */
size_t execmem_code_place_in(const struct execmem_code_region *region, const struct execmem_code_wish *wish,
			     const struct execmem_code_range *range, size_t i, size_t count);
/* What of the policy `near` is not `best`. False where that is to be asked. */
bool execmem_code_near_search(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
			      struct execmem_code_place *place, size_t *steps);
/* Finds a place by the heap's policy. */
bool execmem_code_search(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
			 struct execmem_code_place *place);

/* ---- Pages to be given back; heap->lock is held ---- */

/* Segments [i, i + count) are live now. */
void execmem_code_pages_taken(struct execmem_code_region *region, size_t i, size_t count);
/* They are free, and with their neighbours [low, high) is one free block. */
void execmem_code_pages_given(struct execmem_code_region *region, size_t i, size_t count, size_t low, size_t high);
/* Of a heap that goes. */
void execmem_code_put_books(struct execmem_code_heap *heap);

/* ---- Regions; heap->lock is held ---- */

/* Segments that a block must have to fit at any place. */
static inline size_t execmem_code_sure(const struct execmem_code_heap *heap, const struct execmem_code_wish *wish)
{
	return wish->align > 1 ? wish->count + heap->config.minimum + wish->align - 1 : wish->count;
}

/* Reserves another region, into which a wish fits. */
EXECMEM_MUST_CHECK int execmem_code_grow(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
					 struct execmem_code_region **region);
/* Releases a region. An execmem error, and then it is still there. */
int execmem_code_release_region(struct execmem_code_region *region);
/* Commits memory up to segment `end`, and some more. */
EXECMEM_MUST_CHECK int execmem_code_commit(struct execmem_code_region *region, size_t end);
/* How many free blocks are on the list, in the sense of struct execmem_code_figures. */
size_t execmem_code_list_length(const struct execmem_code_heap *heap);
/* Bytes of bookkeeping in use for a region. */
size_t execmem_code_region_metadata(const struct execmem_code_region *region);
/* What execmem_code_figures tells. */
void execmem_code_figures_locked(struct execmem_code_heap *heap, struct execmem_code_figures *figures);

#endif
