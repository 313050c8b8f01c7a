/*
 * A model, not the library: the heap of HotSpot's code cache (JDK-8029799, and JDK 17), to be compared with.
 *
 * Blocks are whole segments and begin with a header of 16 bytes, in the memory of the code itself. Free blocks are in
 * one list by address, neighbours merged. A search walks the list for the smallest that is large enough, and ends early
 * at one that fits exactly; what is left over is cut off in front, unless it is less than the minimum. Where nothing
 * fits, the block comes behind all others. With more than LIST_HINT_FROM free blocks, the walk that looks for the place
 * of a freed one begins where the last one ended, if that is below it. The segment map has a byte a segment, the
 * distance to the block's beginning in hops of at most 254.
 *
 * Nothing is ever committed or refused: the arena must have room.
 */
#ifndef EXECMEM_REPLAY_LIST_H
#define EXECMEM_REPLAY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIST_HEADER    16
#define LIST_HINT_FROM 100

struct list_block;

struct list_heap {
	/* Set by the user. */
	unsigned char *arena; /* aligned as a segment */
	unsigned char *map;   /* a byte a segment */
	unsigned shift;       /* of a segment: 32 bytes at least */
	size_t minimum;       /* segments of a block */
	bool first;           /* the lowest that is large enough, in place of the smallest */

	/* Zero at first. Sizes in segments. */
	struct list_block *free, *last_insert;
	size_t next; /* behind all blocks */
	size_t free_count, free_segments;
	size_t used_most;
};

/* The code of a block of `bytes` bytes. */
void *list_allocate(struct list_heap *heap, size_t bytes);
void list_free(struct list_heap *heap, void *code);
/* Frees the segments that `bytes` bytes do not need; there must be at least the minimum of them, or none. */
void list_trim(struct list_heap *heap, void *code, size_t bytes);
/* Bytes of the code's block, header included. */
size_t list_block_bytes(const struct list_heap *heap, const void *code);

#endif
