/*
 * The memory file of an allocator: which of its units are handed out.
 */
#ifndef EXECMEM_FILE_H
#define EXECMEM_FILE_H

#include <stdbool.h>

#include "lock.h"

struct execmem_allocator;

struct execmem_file {
	struct execmem_lock lock;
	int file;
	bool exists;
	uint32_t units;    /* its length */
	uint32_t step;     /* units by which it grows */
	uint32_t capacity; /* units that the two tables can hold, a multiple of the bits of a word */
	uintptr_t *used;   /* a bit a unit: handed out, or dirty */
	uintptr_t *dirty;  /* a bit a unit: given back, but not punched yet */
	uint32_t used_count, dirty_count;
	uint32_t lowest; /* no free unit lies below */
};

/*
 * Makes the file, trying with and without the right to execute, and seals it against shrinking. Negative errno of the
 * last try; each refusal is noted by execmem_file_refused.
 */
int execmem_file_create(struct execmem_allocator *allocator, int *file,
			void (*refused)(void *to, const char *call, int error), void *to);

/*
 * Takes from 1 to `wanted` units, contiguous: all of them if the file has such a run or can grow. *first is the first
 * unit, *count how many. All read as zero. An execmem error. Takes file.lock.
 */
int execmem_file_take(struct execmem_allocator *allocator, uint32_t wanted, uint32_t *first, uint32_t *count);

/* Gives units back and punches them out; what the system refuses to punch is kept for later. Takes file.lock. */
void execmem_file_give(struct execmem_allocator *allocator, uint32_t first, uint32_t count);

/* Closes the file. Its tables go with the allocator's memory. Negative errno; calling again is right. */
int execmem_file_close(struct execmem_allocator *allocator);

#endif
