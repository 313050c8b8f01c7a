#include "trace.h"

struct reader {
	const char *at, *end;
};

/* A number after one blank. False where there is none, or it is above `most`. */
static int number(struct reader *r, uint64_t most, uint64_t *value)
{
	const char *first = r->at + 1;

	if (r->at == r->end || *r->at != ' ')
		return 0;
	*value = 0;
	for (r->at = first; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
		*value = *value * 10 + (uint64_t)(*r->at - '0');
		if (*value > most)
			return 0;
	}
	return r->at > first;
}

static int at_end(const struct reader *r)
{
	return r->at == r->end || *r->at == '\n';
}

static const char *read_line(struct reader *r, struct trace *trace, struct trace_event *event)
{
	const char word = *r->at++;
	uint64_t block, bytes = 0, heap = 0;

	if (word != 'a' && word != 'f' && word != 't')
		return "a BLOCK BYTES [HEAP], f BLOCK or t BLOCK BYTES";
	if (!number(r, UINT32_MAX, &block) || (word != 'f' && (!number(r, TRACE_BYTES_MOST, &bytes) || bytes == 0)) ||
	    (word == 'a' && !at_end(r) && !number(r, TRACE_HEAPS - 1, &heap)) || !at_end(r))
		return word == 'a'   ? "a BLOCK BYTES [HEAP], BYTES from 1 to 1073741824, HEAP from 0 to 7"
		       : word == 'f' ? "f BLOCK"
				     : "t BLOCK BYTES, BYTES from 1 to 1073741824";
	if (word == 'a') {
		if (block != trace->block_count)
			return "the next number of a block, which counts from 0";
		trace->blocks[trace->block_count++] = (struct trace_block){.heap = (uint8_t)heap};
		if (heap >= trace->heaps)
			trace->heaps = (unsigned)heap + 1;
	} else if (block >= trace->block_count || trace->blocks[block].bytes == 0) {
		return "the number of a block that is live";
	} else if (word == 't' && bytes > trace->blocks[block].bytes) {
		return "t BLOCK BYTES, BYTES at most what the block has";
	}
	*event = (struct trace_event){(uint32_t)block, (uint32_t)bytes,
				      word == 'a'   ? TRACE_ALLOCATE
				      : word == 'f' ? TRACE_FREE
						    : TRACE_TRIM,
				      trace->blocks[block].heap};
	return NULL;
}

const char *trace_read(const char *text, size_t bytes, struct trace *trace, size_t *line)
{
	struct reader r = {text, text + bytes};
	uint64_t live = 0;

	trace->count = 0;
	trace->block_count = 0;
	trace->heaps = 0;
	trace->live_most = 0;
	for (*line = 1; r.at < r.end; ++*line, r.at++) {
		struct trace_event *event = &trace->events[trace->count];
		const char *expected = read_line(&r, trace, event);

		if (expected)
			return expected;
		live = live - trace->blocks[event->block].bytes + event->bytes;
		trace->blocks[event->block].bytes = event->bytes;
		if (live > trace->live_most)
			trace->live_most = live;
		trace->count++;
	}
	if (trace->count == 0)
		return "at least one line";
	for (uint32_t i = 0; i < trace->block_count; i++)
		trace->blocks[i].bytes = 0;
	return NULL;
}
