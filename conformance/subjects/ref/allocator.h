/*
 * libexecmem as operations of a subject: allocator.c, stub_heap.c.
 */
#ifndef REF_ALLOCATOR_H
#define REF_ALLOCATOR_H

#include <subject_allocator.h>
#include <subject_stub_heap.h>

extern const struct subject_allocator_operations ref_allocator;
extern const struct subject_stub_heap_operations ref_stub_heap;

/* An error of libexecmem in the suite's words. */
int ref_error_of(int error);

#endif
