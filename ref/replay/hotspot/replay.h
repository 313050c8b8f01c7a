/*
 * What the files of the program share.
 */
#ifndef EXECMEM_REPLAY_HOTSPOT_H
#define EXECMEM_REPLAY_HOTSPOT_H

#include <stdbool.h>

#include <execmem/code_heap.h>
#include <execmem/release.h>
#include <execmem/stats.h>

#include "trace.h"

/* How a release is asked for. */
enum replay_release { REPLAY_KEEP, REPLAY_EXACT, REPLAY_SCUDO, REPLAY_FORCED };

struct replay_config {
	bool list; /* the model of list.h, in place of the library */
	enum execmem_code_policy policy;
	size_t segment, minimum;
	unsigned percent, views; /* near_percent; cached views */
	bool together;           /* all heaps of the trace are one */
	unsigned write;          /* as replay.c says */
	enum replay_release release;
	size_t every; /* frees between two releases */
};

struct replay_memory {
	uint64_t samples, sum, most, last; /* bytes that the memory file holds, sampled */
};

/* What comes of a replay. Sums over the heaps. */
struct replay_result {
	struct execmem_code_figures figures;
	size_t free_blocks_most; /* of the model alone */
	struct execmem_stats stats;
	struct execmem_release_stats released;
	struct replay_memory memory;
};

/* Sizes of live blocks by REPLAY_STEP bytes, the last one all that are larger. */
#define REPLAY_STEP  16
#define REPLAY_SIZES 4097
extern size_t replay_sizes[REPLAY_SIZES];

/* Both end the program with status 1 and a message where something goes wrong. */
void replay_library(const struct replay_config *config, struct trace *trace, size_t page, struct replay_result *result);
void replay_list(const struct replay_config *config, struct trace *trace, struct replay_result *result);

/* Memory that is never given back; ends the program with status 3 where there is none. */
void *replay_get(size_t bytes);
/* Ends the program with status 1. `event` counts from 0. */
_Noreturn void replay_failed(size_t event, const char *what, int error);
/* Wasted bytes and their share, from the rest of the figures. */
void replay_sum_up(struct execmem_code_figures *figures);

#endif
