/*
 * What the files of the stub heap share, and what the release of pages builds upon: execmem_stub_free_pages.
 *
 * A slot is free, or taken: live, or in a cache. Each page of stubs has a bit a slot for both: `taken` under the heap's
 * lock, `live` atomic, since caches change it without the lock. Whoever turns a live bit off owns the slot, so that of
 * two frees one is refused.
 *
 * Regions of one kind have the same tables, and the memory of a region that is gone serves the next of its kind alone:
 * a stale pointer to one leads to tables of the same shape, and is told by the region's start. They stay until the heap
 * is destroyed.
 */
#ifndef EXECMEM_INTERNAL_STUB_HEAP_H
#define EXECMEM_INTERNAL_STUB_HEAP_H

#include <execmem/stub_heap.h>

#include "allocator.h"

#define EXECMEM_STUB_WORD_BITS    ((unsigned)(sizeof(uintptr_t) * 8))
/* Pairs of pages in a region. */
#define EXECMEM_STUB_REGION_PAGES 16
/* Of the counter of an OS page of data: a record was here since the page was zero. The rest counts taken slots. */
#define EXECMEM_STUB_TOUCHED      0x8000u

struct execmem_releaser;
struct execmem_stub_region;

/* A pair of pages; heap->lock, but where it says otherwise. */
struct execmem_stub_pages {
	struct execmem_stub_region *region;
	struct execmem_stub_pages *next, *previous; /* of the kind's that have a free slot */
	uintptr_t *taken, *live;                    /* bits; those of `live` are atomic */
	uint16_t *counts; /* for each OS page of data, the taken slots whose record touches it, and _TOUCHED */
	uint32_t free;
	uint32_t hint; /* words below this one have no free slot */
};

/* What is the same for every stub of a kind. Not changed once the heap is made, but for what heap->lock guards. */
struct execmem_stub_type {
	struct execmem_template template;
	uint32_t pitch, code_bytes, record_bytes, slots;
	uint32_t reciprocal; /* ceil(2^32 / pitch): exact for what is below EXECMEM_UNIT_BYTES */
	unsigned kind, words;
	bool shared;          /* its code is a page of the sealed file */
	uint64_t file_offset; /* there */
	size_t region_bytes, table_bytes;

	struct execmem_stub_pages *open;     /* pages with a free slot */
	struct execmem_stub_region *regions; /* newest first */
	struct execmem_stub_region *spare;   /* tables without a region */
	size_t page_count, region_count, spare_count;
};

struct execmem_stub_region {
	/* Read without a lock. */
	uintptr_t start; /* atomic; 0 for tables without a region */
	struct execmem_stub_heap *heap;
	struct execmem_stub_type *type;
	uint32_t made; /* atomic: pairs of pages that can be used */

	struct execmem_stub_region *next, *previous;
	struct execmem_region region;
	size_t taken; /* slots */
	struct execmem_stub_pages pages[EXECMEM_STUB_REGION_PAGES];
};

/* The holes are wanted: EXECMEM_LINE. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct execmem_stub_heap {
	/* Not changed. */
	struct execmem_allocator *allocator;
	size_t stub_page, maximum_bytes;
	unsigned shift, parts; /* of a stub page; OS pages of one */
	int file;
	bool has_file;
	unsigned type_count;
	struct execmem_stub_type *types;
	unsigned char type_of[EXECMEM_KIND_MAX + 1]; /* index + 1 */
	struct execmem_stub_heap *next, *previous;   /* allocator->heaps_lock */

	_Alignas(EXECMEM_LINE) struct execmem_lock lock;
	bool dying;
	unsigned caches;
	size_t reserved_bytes;
	uint64_t code_views, fetches, returns;
	struct execmem_releaser *releaser; /* null until pages are to be given back: stub_heap_release.c */
};

/* A slot, as an address leads to it. */
struct execmem_stub_place {
	struct execmem_stub_region *region;
	struct execmem_stub_pages *pages;
	uint32_t slot;
	uintptr_t at;  /* the slot's beginning */
	uint32_t rest; /* bytes of the address behind the beginning of its code or record */
	bool in_record;
};

/* Where an address leads. 0, EXECMEM_ERROR_NOT_FOUND or _PADDING. No lock. */
int execmem_stub_locate(struct execmem_allocator *allocator, uintptr_t address, struct execmem_stub_place *place);
/* The same for an address that has to be that of a slot of `heap`: _NOT_FOUND, _PADDING or _INTERIOR. */
int execmem_stub_locate_slot(struct execmem_stub_heap *heap, execmem_rx rx, struct execmem_stub_place *place);

static inline bool execmem_stub_is_live(const struct execmem_stub_place *place)
{
	return __atomic_load_n(&place->pages->live[place->slot / EXECMEM_STUB_WORD_BITS], __ATOMIC_RELAXED) >>
		       (place->slot % EXECMEM_STUB_WORD_BITS) &
	       1;
}

/* Turns the live bit off. False where it was off. No lock. */
bool execmem_stub_end(const struct execmem_stub_place *place);

/* The type of a kind, or null. */
static inline struct execmem_stub_type *execmem_stub_type_of(struct execmem_stub_heap *heap, unsigned kind)
{
	return kind <= EXECMEM_KIND_MAX && heap->type_of[kind] ? &heap->types[heap->type_of[kind] - 1] : NULL;
}

/*
 * Takes up to `count` slots, at least one unless there is an error: *taken of them, as many as one word of bits has.
 * They become live if asked. heap->lock is held.
 */
EXECMEM_MUST_CHECK int execmem_stub_take(struct execmem_stub_heap *heap, struct execmem_stub_type *type, bool live,
					 execmem_rx *slots, size_t count, size_t *taken);
/* Makes a taken slot free. heap->lock is held. */
void execmem_stub_give(const struct execmem_stub_place *place);

/* Makes another pair of pages, in a region of its kind. heap->lock is held. */
EXECMEM_MUST_CHECK int execmem_stub_grow(struct execmem_stub_heap *heap, struct execmem_stub_type *type);
/* Releases a region; its tables become spare. An execmem error, and then it is still there. heap->lock is held. */
int execmem_stub_release_region(struct execmem_stub_region *region);
void execmem_stub_pages_link(struct execmem_stub_pages *pages);
void execmem_stub_pages_unlink(struct execmem_stub_pages *pages);
/* Checks the process, and locks the heap: EXECMEM_ERROR_FORKED or _STATE, and then it is not locked. */
EXECMEM_MUST_CHECK int execmem_stub_begin(struct execmem_stub_heap *heap);

/* Of a heap that goes. */
void execmem_stub_put_releaser(struct execmem_stub_heap *heap);

/* ---- The seam for the release of pages ---- */

/*
 * Calls `give` for every run of OS pages of data that hold no record of a live stub or of a slot in a cache, but may
 * have been written since they were zero: whole OS pages, of one data page, by no particular order. They are private
 * memory (execmem_os.discard). `give` returns how many bytes of the run, from its beginning, read as zero now: they are
 * not offered again before a record in them was taken. Padding is never offered by itself; a page that a live record
 * touches with one byte is not.
 *
 * heap->lock is held throughout, so that no slot of the pages can be taken meanwhile: `give` must not use the heap.
 * `counts` are current at all times; a walk looks at one counter an OS page of data.
 *
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE
 */
EXECMEM_MUST_CHECK int execmem_stub_free_pages(struct execmem_stub_heap *heap,
					       size_t (*give)(void *context, void *address, size_t bytes),
					       void *context);

#endif
