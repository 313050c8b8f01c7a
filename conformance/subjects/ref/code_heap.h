/*
 * libexecmem's code heap as operations of a subject: code_heap.c.
 */
#ifndef REF_CODE_HEAP_H
#define REF_CODE_HEAP_H

#include <subject_code_heap.h>

extern const struct subject_code_heap_operations ref_code_heap;

#endif
