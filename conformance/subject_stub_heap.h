/*
 * The subject interface of stub heaps: stubs cut from templates, each with a record one stub page above its code.
 *
 * A stub heap belongs to an allocator of subject_allocator.h, which the subject claims as well. Operations return 0 or
 * a negative number as those do, and leave their outputs untouched on an error.
 *
 * The checks give templates of their own, of a few instructions, and never ask for a stub page that is smaller than a
 * page of the system.
 */
#ifndef SUBJECT_STUB_HEAP_H
#define SUBJECT_STUB_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "subject.h"
#include "subject_allocator.h"
#include "subject_release.h"

struct subject_stub_heap; /* the subject's own */

/* One kind of stub. What it points at outlives the heap. */
struct subject_stub_kind {
	const unsigned char *code;
	uint32_t code_bytes;
	uint32_t pitch;                      /* bytes from slot to slot: at least code and record */
	uint32_t record_bytes;               /* in the data page, at the slot's offset */
	unsigned kind;                       /* 0 to 62 */
	const struct subject_patch *patches; /* words of the code that have the slot's address added in each slot */
	unsigned patch_count;
};

struct subject_stub {
	uintptr_t rx;          /* the slot */
	unsigned char *record; /* may be written */
};

struct subject_stub_found {
	struct subject_stub stub;
	uint32_t slot; /* of its page, from 0 */
	unsigned kind;
	bool in_record, live;
};

/* What is so now. */
struct subject_stub_figures {
	uint64_t live, cached; /* stubs; free slots that caches keep */
	uint64_t pages;        /* pairs of a code and a data page */
	uint64_t wasted;       /* bytes of memory that no stub uses */
};

#define SUBJECT_STUB_CACHE_WORDS 160
/* A cache of one thread. `own` is the subject's; those that need more allocate it. */
struct subject_stub_cache {
	uintptr_t own[SUBJECT_STUB_CACHE_WORDS];
};

struct subject_stub_heap_operations {
	/* Claim "stub-heap". */
	int (*create)(struct subject_allocator *allocator, const struct subject_stub_kind *kinds, unsigned count,
		      size_t stub_page, struct subject_stub_heap **heap);
	int (*destroy)(struct subject_stub_heap *heap); /* live stubs or not */
	int (*allocate)(struct subject_stub_heap *heap, unsigned kind, struct subject_stub *stub);
	/* FREED, INTERIOR (in a stub, not at its beginning), PADDING (of a page, in no stub), NOT_FOUND. */
	int (*free)(struct subject_stub_heap *heap, uintptr_t rx);
	int (*back_out)(struct subject_stub_heap *heap, uintptr_t rx); /* and clears the record */
	/* PADDING, NOT_FOUND. */
	int (*find)(struct subject_allocator *allocator, uintptr_t address, struct subject_stub_found *found);
	int (*figures)(struct subject_stub_heap *heap, struct subject_stub_figures *figures);

	/*
	 * Claim "stub-shared-code": the code of a kind without patches is one page of memory, that can no longer be
	 * written when it is mapped for the first time. How often a code page was opened for writing since creation.
	 */
	int (*code_views)(struct subject_stub_heap *heap, uint64_t *views);

	/* Claim "stub-cache": free slots of one kind that a thread keeps. */
	int (*cache_create)(struct subject_stub_heap *heap, unsigned kind, struct subject_stub_cache *cache);
	int (*cache_allocate)(struct subject_stub_cache *cache, struct subject_stub *stub);
	int (*cache_free)(struct subject_stub_cache *cache, uintptr_t rx); /* a stub of any kind */
	int (*cache_flush)(struct subject_stub_cache *cache);
	int (*cache_destroy)(struct subject_stub_cache *cache);

	/* Claim "stub-trim": gives pages back that hold nothing, as far as it can; how much address space. */
	int (*trim)(struct subject_stub_heap *heap, size_t *bytes);

	/* Claim "stub-release": discards every page of the system, of a data page, that no record of a live or cached
	 * stub touches, and that one did since it was zero. Nothing of the code goes, nor of the address space. */
	int (*release)(struct subject_stub_heap *heap, struct subject_released *released);
};

/* X(operation, claim): every operation, once. */
#define SUBJECT_STUB_HEAP_CLAIMS(X)                                                                                    \
	X(create, "stub-heap")                                                                                         \
	X(destroy, "stub-heap")                                                                                        \
	X(allocate, "stub-heap")                                                                                       \
	X(free, "stub-heap")                                                                                           \
	X(back_out, "stub-heap")                                                                                       \
	X(find, "stub-heap")                                                                                           \
	X(figures, "stub-heap")                                                                                        \
	X(code_views, "stub-shared-code")                                                                              \
	X(cache_create, "stub-cache")                                                                                  \
	X(cache_allocate, "stub-cache")                                                                                \
	X(cache_free, "stub-cache")                                                                                    \
	X(cache_flush, "stub-cache")                                                                                   \
	X(cache_destroy, "stub-cache")                                                                                 \
	X(trim, "stub-trim")                                                                                           \
	X(release, "stub-release")

#endif
