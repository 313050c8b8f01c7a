/*
 * What the checks of stub heaps share: three kinds of stub, made of functions that return a number, and heaps of them
 * over the watched table.
 */
#ifndef CH_STUB_H
#define CH_STUB_H

#include "../alloc/alloc.h"
#include "subject_stub_heap.h"

/* The subject's operations; only behind alloc_claims(). */
#define STUB(operation_) (subject.stub_heap->operation_)
#define STUB_CLAIMS      "allocator os-table stub-heap"

enum stub_kind {
	STUB_SMALL = 5, /* a record smaller than its code */
	STUB_EVEN = 6,  /* a record of a whole pitch: no padding between records */
	STUB_WIDE = 7   /* a record larger than its code; with a patch where asked */
};
#define STUB_KINDS 3

struct stub {
	struct subject_allocator *allocator;
	struct subject_stub_heap *heap;
	struct subject_stub_kind kinds[STUB_KINDS];
	unsigned char code[STUB_KINDS][EXECMEM_PORT_PROBE_BYTES + 2 * sizeof(uintptr_t)];
	struct subject_patch patch;
	size_t page; /* of stubs */
};

/* Stub page sizes that are asked for: 4, 16 and 64 KiB, from the page size on. 0 ends. */
extern const size_t stub_pages[];
size_t stub_page_first(void); /* index of the first that the watched page allows */

/* Begins to watch anew, and makes an allocator with a heap. Asserted. `patched`: STUB_WIDE has a patch. */
bool stub_make(struct stub *it, size_t page, bool patched);
/* The same with the settings of the watched table, over an allocator that is there. */
int stub_create(struct stub *it, struct subject_allocator *allocator, size_t page, bool patched);
/* Destroys both, and asserts that nothing is left. */
bool stub_end(struct stub *it);

const struct subject_stub_kind *stub_kind(const struct stub *it, unsigned kind);
/* How many stubs a page of a kind has. */
uint32_t stub_slots(const struct stub *it, unsigned kind);
/* Allocates `count` stubs. Asserted. */
bool stub_take(struct stub *it, unsigned kind, struct subject_stub *stubs, unsigned count);
/* The number that functions of a kind return. */
unsigned stub_value(unsigned kind);
/* Fills a record with bytes of its own, none of them zero; asserts that they are there. */
void stub_fill(const struct stub *it, unsigned kind, const struct subject_stub *stub, unsigned salt);
bool stub_filled(const struct stub *it, unsigned kind, const struct subject_stub *stub, unsigned salt,
		 const char *what);
bool stub_figures(const struct stub *it, struct subject_stub_figures *figures);

#endif
