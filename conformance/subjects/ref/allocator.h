/*
 * libexecmem as operations of a subject: allocator.c, stub_heap.c, release.c.
 */
#ifndef REF_ALLOCATOR_H
#define REF_ALLOCATOR_H

#include <execmem/os.h>

#include <subject_allocator.h>
#include <subject_stub_heap.h>

extern const struct subject_allocator_operations ref_allocator;
extern const struct subject_stub_heap_operations ref_stub_heap;

/* The suite's word for an error of the library, and the library's table over the suite's. */
int ref_error(int error);
struct execmem_os ref_table(const struct subject_os *os);

#endif
