/*
 * Recorded calls of a code heap, as text. One call a line, numbers in decimal, bytes everywhere:
 *
 *   a BLOCK BYTES [HEAP]   allocates; BLOCK counts from 0, each next by one; HEAP is 0 to 7, 0 where it is left out
 *   f BLOCK                frees
 *   t BLOCK BYTES          cuts to its first BYTES bytes
 *
 * Pure: nothing here asks the system for anything.
 */
#ifndef EXECMEM_REPLAY_TRACE_H
#define EXECMEM_REPLAY_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_HEAPS      8u
#define TRACE_BYTES_MOST (1u << 30) /* of a block */
#define TRACE_LINE_LEAST 4          /* characters in a line, its end included */

enum trace_kind { TRACE_ALLOCATE, TRACE_FREE, TRACE_TRIM };

struct trace_event {
	uint32_t block, bytes; /* bytes: of an allocation asked for; of a trim left; 0 otherwise */
	uint8_t kind, heap;    /* heap: of the block, in every event of it */
};

struct trace_block {
	uint32_t bytes; /* 0 while it is not live */
	uint8_t heap;
};

struct trace {
	struct trace_event *events;
	struct trace_block *blocks; /* once read: no block is live in it */
	size_t count;
	uint32_t block_count;
	unsigned heaps;     /* heaps are below it */
	uint64_t live_most; /* bytes asked for in live blocks, at the moment when they were most */
};

/*
 * Reads `text`, which needs no end. `trace->events` and `->blocks` have room for `bytes` / TRACE_LINE_LEAST + 1 each.
 * Null; or what was expected on line *line, where a line is not understood, a block is not live, or there are no
 * events.
 */
const char *trace_read(const char *text, size_t bytes, struct trace *trace, size_t *line);

#endif
