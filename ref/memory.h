/*
 * The allocator's own memory: bookkeeping objects of powers of two of bytes, zeroed, from chunks of the system's.
 *
 * Small objects' memory stays mapped until the allocator is destroyed, so that a stale pointer to one is safe to look
 * at.
 */
#ifndef EXECMEM_MEMORY_H
#define EXECMEM_MEMORY_H

#include "lock.h"

#define EXECMEM_MEMORY_CLASSES 9 /* 64 bytes to 16 KiB */

struct execmem_memory_free {
	struct execmem_memory_free *next;
	size_t bytes;
};

struct execmem_memory {
	struct execmem_lock lock;
	size_t page_bytes;
	struct execmem_memory_free *chunks; /* every chunk, for the end */
	unsigned char *fresh;               /* not yet handed out of the newest chunk */
	size_t fresh_bytes;
	struct execmem_memory_free *free[EXECMEM_MEMORY_CLASSES];
	struct execmem_memory_free *large; /* free objects above the classes that the system did not take back */
	size_t bytes;                      /* mapped in all */
};

void execmem_memory_create(struct execmem_memory *memory, size_t page_bytes);

/* Gives every chunk back. Negative errno where the system refuses: the rest is taken by calling again. */
int execmem_memory_destroy(struct execmem_memory *memory, const struct execmem_os *os);

/* `bytes` zero bytes, aligned to 64. Negative errno. Any thread. */
int execmem_memory_get(struct execmem_memory *memory, const struct execmem_os *os, size_t bytes, void **object);

/* Takes back what get gave for `bytes`; null does nothing. Never fails. Any thread. */
void execmem_memory_put(struct execmem_memory *memory, const struct execmem_os *os, void *object, size_t bytes);

#endif
