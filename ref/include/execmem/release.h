/*
 * Giving memory back: which pages nothing live lies on, and how the system takes them.
 *
 * Four layers, each of which can be used without those below it in this file:
 *	layout    a region of blocks of one size: which blocks touch which page
 *	pages     a count of live blocks for each page, kept current by the owner: policy `exact`
 *	scudo     the decisions of Scudo's D82031 and its count of free blocks: policy `scudo`
 *	releaser  the system: hole punching for memory files, discarding for private memory
 * The first three ask the system for nothing. The code heap (execmem/code_heap.h) is an owner by itself:
 * execmem_code_release.
 *
 * A page is given back only if it lies in the region as a whole and every block that touches it is free. Afterwards it
 * reads as zero, and is mapped as before.
 *
 * Threads: no call locks anything but execmem_code_release; an owner calls under its own lock.
 *
 * Source: LLVM D82031 (2020), for `scudo` and for the width of packed counters.
 */
#ifndef EXECMEM_RELEASE_H
#define EXECMEM_RELEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <execmem/code_heap.h>
#include <execmem/os.h>
#include <execmem/stub_heap.h>

enum execmem_release_policy {
	EXECMEM_RELEASE_EXACT, /* every wholly free page that was used since it was given back, at any time */
	EXECMEM_RELEASE_SCUDO  /* as enum execmem_release_verdict says */
};

/* ---- Layout ---- */

/*
 * Blocks side by side. All in bytes from the beginning of the region's page 0. The region owns [first, end): of pages
 * that reach beyond either, the rest is somebody else's, and they are never given back. What lies behind the last block
 * holds nothing.
 */
struct execmem_release_layout {
	size_t page_bytes;  /* a power of two, 16 to 2^20 */
	size_t block_bytes; /* 1 to 2^30 */
	size_t first;       /* where block 0 begins */
	size_t blocks;
	size_t end; /* at least where the last block ends; at most SIZE_MAX - page_bytes */
};

/* Whether all bounds above are kept. */
bool execmem_release_layout_is_right(const struct execmem_release_layout *layout);

/* Pages that the region touches: 0 to the answer - 1. */
size_t execmem_release_page_count(const struct execmem_release_layout *layout);

/* The blocks that touch a page: how many, and *block the first; 0 where none does. */
size_t execmem_release_touching(const struct execmem_release_layout *layout, size_t page, size_t *block);

/* The pages that a block touches: *page the first, and how many. */
size_t execmem_release_touched(const struct execmem_release_layout *layout, size_t block, size_t *page);

/* The pages that lie wholly in [first, end): [*low, *high). */
void execmem_release_whole(const struct execmem_release_layout *layout, size_t *low, size_t *high);

/* The most blocks that can touch one page, in a region of any length. */
size_t execmem_release_most(const struct execmem_release_layout *layout);

/* ---- Packed counters: one a page ---- */

/* As wide as `most` needs, rounded up to a power of two of bits, so that none lies across two words. */
struct execmem_release_counters {
	uintptr_t *words;
	unsigned shift; /* a counter has 1 << shift bits: 0 to 5 */
};

/* Bits of a counter that counts to `most`: 1, 2, 4, 8, 16 or 32. */
unsigned execmem_release_counter_bits(size_t most);

/* Bytes of `pages` counters of 1 << shift bits: whole words. */
size_t execmem_release_counter_bytes(size_t pages, unsigned shift);

static inline size_t execmem_release_counter_get(const struct execmem_release_counters *counters, size_t page)
{
	unsigned per_word = (sizeof(uintptr_t) == 8 ? 6 : 5) - counters->shift;
	unsigned at = (unsigned)(page & (((size_t)1 << per_word) - 1)) << counters->shift;
	uintptr_t mask = UINTPTR_MAX >> (8 * sizeof(uintptr_t) - ((size_t)1 << counters->shift));

	return counters->words[page >> per_word] >> at & mask;
}

/* Adds `amount`, 1 or (uintptr_t)-1, to a counter that neither ends above its most nor below 0. */
static inline void execmem_release_counter_add(struct execmem_release_counters *counters, size_t page, uintptr_t amount)
{
	unsigned per_word = (sizeof(uintptr_t) == 8 ? 6 : 5) - counters->shift;
	unsigned at = (unsigned)(page & (((size_t)1 << per_word) - 1)) << counters->shift;

	counters->words[page >> per_word] += amount << at;
}

/* ---- Pages: live blocks of each, kept current ---- */

/*
 * `pending` has a bit for each page that is wholly free, wholly the region's, and was used since it was given back
 * last: finding what to release is a walk over it, and pending_count says when there is nothing to find.
 */
struct execmem_release_pages {
	struct execmem_release_layout layout;
	struct execmem_release_counters live;
	uintptr_t *pending;
	size_t page_count, pending_count, low, high; /* pages outside [low, high) are never pending */
	unsigned page_shift;
};

/* Bytes of memory that execmem_release_pages_init needs. */
size_t execmem_release_pages_bytes(const struct execmem_release_layout *layout);

/*
 * Nothing is live, and nothing pending. `memory`: zero, aligned to a pointer, to be kept by the caller.
 *
 * EXECMEM_ERROR_ARGUMENT  a layout that is not right
 */
EXECMEM_MUST_CHECK int execmem_release_pages_init(struct execmem_release_pages *pages,
						  const struct execmem_release_layout *layout, void *memory);

/* Block `block`, which was free, is live now. Constant time for blocks of up to a page. */
void execmem_release_take(struct execmem_release_pages *pages, size_t block);

/* Block `block`, which was live, is free now. Likewise. */
void execmem_release_give(struct execmem_release_pages *pages, size_t block);

/*
 * The next run of pages of a bitmap from page *page on: how many, and *page its first; 0 where there is none below
 * `pages`. A run ends at `pages`.
 */
size_t execmem_release_next_run(const uintptr_t *bits, size_t pages, size_t *page);

/* ---- Scudo: the decisions of D82031 ---- */

/* What is known of a region whose blocks have one size. */
struct execmem_release_class {
	size_t page_bytes, block_bytes;
	uint64_t allocated_bytes;            /* ever handed to the class */
	uint64_t pushed_bytes, popped_bytes; /* in blocks freed and allocated, since the beginning */
	uint64_t pushed_at_last;             /* pushed_bytes when pages were released last */
	uint64_t last_ns;                    /* when a release was last tried */
};

enum execmem_release_verdict {
	EXECMEM_RELEASE_GO,
	EXECMEM_RELEASE_FEW_FREE,   /* less than a page is free */
	EXECMEM_RELEASE_FEW_NEW,    /* less than a page was freed since the last release */
	EXECMEM_RELEASE_FEW_PUSHED, /* small blocks, not forced: less than 1/16 of the memory was freed since */
	EXECMEM_RELEASE_DENSE,      /* small blocks, forced or not: too little is free for pages to be wholly free */
	EXECMEM_RELEASE_NEVER,      /* not forced, and a negative interval */
	EXECMEM_RELEASE_EARLY       /* not forced, and tried less than the interval ago */
};

/*
 * Whether to release now, by the rules of D82031 in their order; the enumerators above are that order. Small blocks are
 * those of less than 1/16 of a page.
 *
 * Three places of the source are right at pages of 4 KiB, and with 64 bits, alone. Here they are the same there, and
 * right everywhere:
 *	- the share that must be free is 99 - block / 16 percent, so that with pages of 64 KiB it falls below zero from
 *	  blocks of 1600 bytes on, as an unsigned number is huge, and such blocks are never released. Here the block's
 *	  size is taken in parts of a page: 99 - (block * 4096 / page) / 16;
 *	- free bytes * 100 overflows 32 bits from 41 MiB on. Here everything is counted in 64 bits;
 *	- of a class that was handed less than 16 pages, a sixteenth is less than the page that had to be freed anyway:
 *	  64 KiB at 4 KiB pages, 1 MiB at 64 KiB. Kept as it is: it only lets a small class be looked at sooner.
 */
enum execmem_release_verdict execmem_release_decide(const struct execmem_release_class *size_class, bool forced,
						    int32_t interval_ms, uint64_t now_ns);

/* The percentage of a class of small blocks that must be free. */
unsigned execmem_release_share(size_t page_bytes, size_t block_bytes);

/* Notes that a release was tried: what was pushed counts anew only if something was released. */
void execmem_release_tried(struct execmem_release_class *size_class, uint64_t ranges, uint64_t now_ns);

/* A transfer batch: free blocks that go from thread to thread at once; a free list is a list of them. */
#define EXECMEM_RELEASE_BATCH 62
struct execmem_release_batch {
	struct execmem_release_batch *next;
	uint32_t count;
	uint32_t block[EXECMEM_RELEASE_BATCH];
};

/*
 * To be called before a batch that was emptied goes to the free list of its own class: one that still names blocks
 * would be counted with them, and its pages never be free.
 */
static inline void execmem_release_batch_clear(struct execmem_release_batch *batch)
{
	batch->count = 0;
}

/* ---- Releaser: the system ---- */

/* Counters never wrap (64 bits). */
#define EXECMEM_RELEASE_COUNTERS(X)                                                                                    \
	X(attempts, "releases tried")                                                                                  \
	X(skipped, "of them, those that a policy turned down")                                                         \
	X(ranges, "runs of pages given back")                                                                          \
	X(pages, "pages given back")                                                                                   \
	X(bytes, "bytes given back")                                                                                   \
	X(calls, "calls of the system's operations for it")                                                            \
	X(batched, "of them, calls for many ranges that the system took")                                              \
	X(fallbacks, "ranges that went one by one because the system did not take them together")                      \
	X(refused, "ranges that the system would not take; they stay to be released")                                  \
	X(uncounted, "releases given up because there was no memory for counters")

struct execmem_release_stats {
#define EXECMEM_RELEASE_FIELD(name_, text_) uint64_t name_;
	EXECMEM_RELEASE_COUNTERS(EXECMEM_RELEASE_FIELD)
#undef EXECMEM_RELEASE_FIELD
};

#define EXECMEM_RELEASE_SPANS 1024 /* ranges in one call */
#define EXECMEM_RELEASE_WORDS 1024 /* of the buffer for counters */

/* Used by one thread at a time. */
struct execmem_releaser {
	const struct execmem_os *os;
	bool one_by_one; /* the system takes no ranges together */
	struct execmem_release_stats stats;
	size_t count;
	struct execmem_span spans[EXECMEM_RELEASE_SPANS];
	uintptr_t words[EXECMEM_RELEASE_WORDS];
};

/* `os` must outlive it. */
void execmem_releaser_init(struct execmem_releaser *releaser, const struct execmem_os *os);

/* Where a region's page 0 is. */
struct execmem_release_area {
	unsigned char *address; /* private memory; not looked at where there is a file */
	int file;               /* or EXECMEM_NO_FILE */
	uint64_t offset;        /* of page 0 in it */
};

/*
 * Gives back every pending page. Where the system refuses, its negative errno; ranges up to there are given back, the
 * rest stays pending.
 */
EXECMEM_MUST_CHECK int execmem_release_exact(struct execmem_releaser *releaser, struct execmem_release_pages *pages,
					     const struct execmem_release_area *area);

/*
 * Policy `scudo`: decides, counts the blocks of `free_list` for each page, gives back every page whose count is that of
 * the blocks that touch it, and notes it in `size_class`. Pages that went before go again, as in the source. *verdict
 * is what was decided.
 *
 * Each free block must be listed once. The counters take the releaser's buffer where they fit into its bytes, and
 * mapped memory otherwise.
 *
 * EXECMEM_ERROR_ARGUMENT  a layout that is not right
 * A negative errno        the system has no memory for the counters: nothing is released. Or it refuses to take a
 *                         range: those before it are given back
 */
EXECMEM_MUST_CHECK int execmem_release_scudo(struct execmem_releaser *releaser,
					     const struct execmem_release_layout *layout,
					     const struct execmem_release_area *area,
					     const struct execmem_release_batch *free_list,
					     struct execmem_release_class *size_class, bool forced, int32_t interval_ms,
					     uint64_t now_ns, enum execmem_release_verdict *verdict);

/*
 * One range that its caller knows to be free, whole pages. Ranges of private memory are collected: some go when
 * EXECMEM_RELEASE_SPANS of them are there, and the rest at execmem_release_flush. Both set *done to the ranges that
 * went since the last call that did, from the first on, also on an error. On an error the others are forgotten.
 */
EXECMEM_MUST_CHECK int execmem_release_private(struct execmem_releaser *releaser, void *address, size_t bytes,
					       size_t *done);
EXECMEM_MUST_CHECK int execmem_release_flush(struct execmem_releaser *releaser, size_t *done);
/* In a file: goes at once. */
EXECMEM_MUST_CHECK int execmem_release_file(struct execmem_releaser *releaser, int file, uint64_t offset,
					    uint64_t bytes);

/* ---- The code heap ---- */

struct execmem_code_release {
	enum execmem_release_policy policy;
	/* For EXECMEM_RELEASE_SCUDO. The block of its decisions is the heap's smallest: `minimum` segments. */
	bool forced;
	int32_t interval_ms;
	uint64_t now_ns; /* of a clock that does not go back */
};

struct execmem_code_released {
	enum execmem_release_verdict verdict;
	size_t ranges, pages, bytes; /* given back by this call */
};

/*
 * Gives back the pages of a heap that lie in free blocks as a whole and were used since they were given back last. They
 * stay committed and executable, and read as zero. No page changes its protection or mapping, so code may run anywhere
 * in the heap meanwhile. `request` null: exact. The heap is locked meanwhile; `released` may be null, and is written on
 * an error as well.
 *
 * A page may hold more memory than was there for it, once it is written again: where the system has none left it
 * raises SIGBUS, as for any memory file.
 *
 * EXECMEM_ERROR_ARGUMENT, _FORKED, _STATE
 * A negative errno        the system refuses to take a range back, or has no memory for bookkeeping. What is not given
 *                         back stays to be released
 */
EXECMEM_MUST_CHECK int execmem_code_release(struct execmem_code_heap *heap, const struct execmem_code_release *request,
					    struct execmem_code_released *released);

/* All zero for a heap that released nothing yet. EXECMEM_ERROR_ARGUMENT, _FORKED, _STATE */
EXECMEM_MUST_CHECK int execmem_code_release_stats(struct execmem_code_heap *heap, struct execmem_release_stats *stats);

/* ---- The stub heap ---- */

/*
 * Gives back the pages of records of a stub heap that no live stub's record touches, nor one of a slot in a cache, and
 * that were used since they were given back last. They are private memory: they go in batches where the system takes
 * them so. Records read as zero afterwards, until they are filled again; code is not touched. The heap is locked
 * meanwhile. `released` as above; its verdict is EXECMEM_RELEASE_GO.
 *
 * EXECMEM_ERROR_ARGUMENT, _FORKED, _STATE, or a negative errno, as execmem_code_release
 */
EXECMEM_MUST_CHECK int execmem_stub_release(struct execmem_stub_heap *heap, struct execmem_code_released *released);
/* As execmem_code_release_stats. */
EXECMEM_MUST_CHECK int execmem_stub_release_stats(struct execmem_stub_heap *heap, struct execmem_release_stats *stats);

#endif
