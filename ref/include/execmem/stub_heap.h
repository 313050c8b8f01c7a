/*
 * The stub heap: stubs from templates, each with a record that its code reads.
 *
 * Pages come in pairs: a code page, which is one template repeated, and one stub page size above it a data page with
 * the records. Slot i of the one belongs to record i of the other. What a template's code does not cover, and what lies
 * between and behind the records, is padding and belongs to no stub.
 *
 * Code. Where a template has no patches its code is the same at every address: one page of it is written when the heap
 * is made, in a memory file that is sealed against writing before it is mapped, and that one page of memory is mapped
 * as every code page. Where it has patches (x86), or the allocator toggles, each page is written once, through a view
 * of single use. Data pages are private memory, readable and writable, zero at first: a fork has its own at once.
 *
 * A region of the heap holds one kind of stub, so that execmem_kind tells the kind of any address in it.
 *
 * Threads: any call from any thread, but execmem_stub_heap_destroy; a cache is one thread's at a time. Calls of one
 * heap exclude each other, those that a cache answers by itself apart. execmem_stub_find takes no lock.
 *
 * Sources: dotnet/runtime #83632 for interleaved pages, their sizes and where a backed-out record lies; LLVM's D82031
 * for caches that are emptied before they go.
 */
#ifndef EXECMEM_STUB_HEAP_H
#define EXECMEM_STUB_HEAP_H

#include <execmem/region.h>
#include <execmem/stub_page.h>

struct execmem_stub_heap;

/*
 * The stub page size to use under an OS page of `os_page` bytes where templates were assembled for the `count` sizes of
 * `assembled`, powers of two: what execmem_stub_page_size answers, or of those that are at least the OS page the next
 * larger one, or else the largest.
 *
 * EXECMEM_ERROR_ARGUMENT         os_page is no power of two, or count is 0
 * EXECMEM_ERROR_STUB_PAGE_REACH  all of them are smaller than the OS page
 */
EXECMEM_MUST_CHECK int execmem_stub_page_choose(size_t os_page, const size_t *assembled, size_t count,
						size_t *stub_page);

#define EXECMEM_STUB_PITCH_MIN 4

/* One kind of stub. */
struct execmem_stub_kind {
	struct execmem_template template; /* copied, but not what it points at, which must outlive the heap */
	uint32_t record_bytes;            /* 1 to the template's pitch */
	unsigned kind;                    /* 0 to EXECMEM_KIND_MAX: what execmem_kind answers; each kind once */
};

struct execmem_stub_config {
	const struct execmem_stub_kind *kinds; /* copied */
	unsigned kind_count;                   /* 1 to EXECMEM_KIND_MAX + 1 */
	/* What all templates were assembled for: a power of two, from the OS page size to EXECMEM_UNIT_BYTES. */
	size_t stub_page;
	size_t maximum_bytes; /* reserved at most; 0: no bound. The first region may take more than its kind needs */
};

/*
 * Makes a heap. It has no region yet.
 *
 * EXECMEM_ERROR_ARGUMENT         a value outside the bounds of struct execmem_stub_config, a kind given twice
 * EXECMEM_ERROR_STUB_PAGE_REACH  stub_page is smaller than the OS page: code and data would share one
 * EXECMEM_ERROR_TEMPLATE_SIZE    a template, its record or a patch does not fit, or a pitch is below
 *                                EXECMEM_STUB_PITCH_MIN
 * EXECMEM_ERROR_FILE_SIZE, _ADDRESS_SPACE, _MAPPING_COUNT, or a negative errno   the system refuses memory, the file of
 *                                the code or its seal (-EBUSY: another process has it mapped: forked meanwhile, without
 *                                execmem_fork_prepare)
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE (being destroyed)
 */
EXECMEM_MUST_CHECK int execmem_stub_heap_create(struct execmem_allocator *allocator,
						const struct execmem_stub_config *config,
						struct execmem_stub_heap **heap);

/*
 * Releases all regions, live stubs or not. No other thread may be using the heap, look up an address of it or run its
 * code, or do so afterwards.
 *
 * EXECMEM_ERROR_BUSY    a cache is not destroyed; nothing is changed
 * A negative errno      the system refuses to unmap or close: some regions may be gone, and the heap can do nothing any
 *                       more but be destroyed by calling again
 * EXECMEM_ERROR_FORKED  nothing is changed
 */
EXECMEM_MUST_CHECK int execmem_stub_heap_destroy(struct execmem_stub_heap *heap);

/* A stub. */
struct execmem_stub {
	execmem_rx rx; /* its slot's beginning, without a mode bit */
	void *record;  /* record_bytes, readable and writable, one stub page above rx */
};

/*
 * Allocates a stub. Its code can run at once; its record holds what it held last, or zeros, and is for the caller to
 * fill before anybody runs it.
 *
 * EXECMEM_ERROR_ARGUMENT  the heap has no such kind
 * EXECMEM_ERROR_FULL      no slot is free, and maximum_bytes does not allow another region
 * EXECMEM_ERROR_FILE_SIZE, _ADDRESS_SPACE, _MAPPING_COUNT, or a negative errno   the system refuses memory
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE (being destroyed)
 */
EXECMEM_MUST_CHECK int execmem_stub_allocate(struct execmem_stub_heap *heap, unsigned kind, struct execmem_stub *stub);

/* `count` stubs at once, all or none; neighbours as far as there are free ones. Errors as execmem_stub_allocate. */
EXECMEM_MUST_CHECK int execmem_stub_allocate_many(struct execmem_stub_heap *heap, unsigned kind,
						  struct execmem_stub *stubs, size_t count);

/*
 * Fills the record of a live stub from `record`, unless that is null: the caller has filled it. The record is complete
 * to a thread that learns of the stub through a store that the publisher made after the call with release semantics,
 * and that the thread reads with acquire semantics; execmem_publish of code that calls the stub is one.
 *
 * EXECMEM_ERROR_NOT_FOUND, _PADDING, _INTERIOR, _FREED, _FORKED   as execmem_stub_free
 */
EXECMEM_MUST_CHECK int execmem_stub_publish(struct execmem_stub_heap *heap, execmem_rx rx, const void *record);

/*
 * Frees the stub whose slot begins at `rx`. Nobody may be running it. Its record is not touched.
 *
 * EXECMEM_ERROR_NOT_FOUND  the address belongs to no page of this heap
 * EXECMEM_ERROR_PADDING    it belongs to no stub's code or record, but to what lies between or behind them
 * EXECMEM_ERROR_INTERIOR   it lies inside a stub's code, or in its record
 * EXECMEM_ERROR_FREED      the slot is free: it was freed before, or never allocated
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE
 *                          after any of them nothing is changed
 */
EXECMEM_MUST_CHECK int execmem_stub_free(struct execmem_stub_heap *heap, execmem_rx rx);

/*
 * The same for a stub that nobody was told of, and will not be: fills its record with zeros, at one stub page size
 * above it, before the slot is free. Errors as execmem_stub_free.
 */
EXECMEM_MUST_CHECK int execmem_stub_back_out(struct execmem_stub_heap *heap, execmem_rx rx);

/* What an address leads to. */
struct execmem_stub_found {
	struct execmem_stub stub;
	uint32_t slot; /* of its page, from 0 */
	unsigned kind;
	bool in_record; /* the address lies in the record, else in the code */
	bool live;      /* allocated, and not free or in a cache */
};

/*
 * The slot that an address lies in, of its code or its record. Constant time: two dependent loads to the region, and no
 * search in it; no lock; any thread, signal handlers and forks included.
 *
 * EXECMEM_ERROR_NOT_FOUND  no stub heap has a page there
 * EXECMEM_ERROR_PADDING    one has, but the address belongs to no stub
 */
EXECMEM_MUST_CHECK int execmem_stub_find(struct execmem_allocator *allocator, const void *address,
					 struct execmem_stub_found *found);

/*
 * Gives regions back whose slots are all free. *bytes, which may be null, is their address space.
 *
 * A negative errno      the system refuses to unmap; other regions may be gone
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE
 */
EXECMEM_MUST_CHECK int execmem_stub_trim(struct execmem_stub_heap *heap, size_t *bytes);

/* ---- Caches: free slots of one kind that a thread keeps, so that most of its calls take no lock ---- */

#define EXECMEM_STUB_CACHE_SLOTS 64 /* of which half are fetched or brought back at a time */

/* The caller's memory; its content is the library's. Slots in it are neither live nor free to others. */
struct execmem_stub_cache {
	struct execmem_stub_heap *heap; /* null: destroyed */
	unsigned kind, count;
	execmem_rx slots[EXECMEM_STUB_CACHE_SLOTS]; /* those from `count` on are zero */
};

/*
 * An empty cache. It must not be moved or copied, and must be destroyed before its heap.
 *
 * EXECMEM_ERROR_ARGUMENT  the heap has no such kind
 * EXECMEM_ERROR_FORKED, EXECMEM_ERROR_STATE
 */
EXECMEM_MUST_CHECK int execmem_stub_cache_create(struct execmem_stub_heap *heap, unsigned kind,
						 struct execmem_stub_cache *cache);
/* As execmem_stub_allocate, of the cache's kind. */
EXECMEM_MUST_CHECK int execmem_stub_cache_allocate(struct execmem_stub_cache *cache, struct execmem_stub *stub);
/* As execmem_stub_free. A stub of another kind goes to the heap. */
EXECMEM_MUST_CHECK int execmem_stub_cache_free(struct execmem_stub_cache *cache, execmem_rx rx);
/* Gives all slots back to the heap. EXECMEM_ERROR_FORKED: nothing is changed. */
EXECMEM_MUST_CHECK int execmem_stub_cache_flush(struct execmem_stub_cache *cache);
/*
 * Flushes, and ends the cache. In a child of fork the caches of other threads are to be destroyed too, unless one of
 * their calls was under way. EXECMEM_ERROR_FORKED: nothing is changed.
 */
EXECMEM_MUST_CHECK int execmem_stub_cache_destroy(struct execmem_stub_cache *cache);

/* ---- Figures ---- */

struct execmem_stub_figures {
	size_t live;           /* stubs */
	size_t cached;         /* slots in caches */
	size_t slots;          /* of all pages */
	size_t pages, regions; /* pairs of pages */
	unsigned caches;       /* not destroyed */
	size_t reserved_bytes; /* address space */
	size_t code_bytes;     /* mapped as code */
	size_t code_memory;    /* that it takes: a page a kind that shares one and has stubs, else all of code_bytes */
	size_t data_bytes;     /* mapped as data */
	size_t data_memory; /* of the OS pages of data that hold, or have held since they were given back, a record */
	size_t metadata_bytes;
	uint64_t code_views; /* writable views of code that were opened since the heap was made */
	uint64_t fetches;    /* by caches, of half their slots or less */
	uint64_t returns;    /* likewise, back to the heap */
	/*
	 * Memory that no stub uses: code_memory and data_memory less the live stubs' records, and less their code where
	 * code is not shared. And what it would be if the same stubs lay side by side, on stub pages of 4 and of 16
	 * KiB, or of an OS page where that is larger.
	 */
	size_t wasted_bytes, wasted_4k, wasted_16k;
};

/* EXECMEM_ERROR_FORKED */
EXECMEM_MUST_CHECK int execmem_stub_figures(struct execmem_stub_heap *heap, struct execmem_stub_figures *figures);

#endif
