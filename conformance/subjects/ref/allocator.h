/*
 * libexecmem's allocator as operations of a subject: allocator.c.
 */
#ifndef REF_ALLOCATOR_H
#define REF_ALLOCATOR_H

#include <subject_allocator.h>

extern const struct subject_allocator_operations ref_allocator;

#endif
