/*
 * The templates of asm/x64.S for tests, assembled for three stub page sizes, and what calls of them need.
 */
#ifndef EXECMEM_TEST_STUBS_H
#define EXECMEM_TEST_STUBS_H

#include <execmem/stub_heap.h>

#include "test.h"

#define STUB_KINDS 4
enum stub_kind { STUB_PRECODE = 1, STUB_FIXUP, STUB_COUNTING, STUB_CLOSURE, STUB_PATCHED };

/* Kinds 1 to 4, assembled for `stub_page` bytes: 4096, 16384 or 65536. */
const struct execmem_stub_kind *stub_kinds(size_t stub_page);
/* Kind STUB_PATCHED: a function that returns its slot's address. Its record is not read. */
struct execmem_stub_kind stub_patched(void);

/* A heap with kinds 1 to 4, and STUB_PATCHED. */
struct execmem_stub_heap *stub_heap(struct execmem_allocator *allocator, size_t stub_page, size_t maximum_bytes);
struct execmem_stub_figures stub_figures(struct execmem_stub_heap *heap);

/* Fills the record so that the stub answers a call, and calls it: its answer depends on `value` alone. */
void stub_aim(unsigned kind, const struct execmem_stub *stub, uintptr_t value);
uintptr_t stub_call(unsigned kind, const struct execmem_stub *stub);
uintptr_t stub_answer(unsigned kind, const struct execmem_stub *stub, uintptr_t value);

#endif
