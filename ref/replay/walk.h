/*
 * A model, not the library: the list of regions that dotnet/runtime#83632 walks for each mapping that it makes. The
 * newest region comes first; with its third change the region found moves to the front. libexecmem looks an address up
 * in constant time instead (rangemap.h), so that this list exists to be counted and for nothing else.
 */
#ifndef EXECMEM_REPLAY_WALK_H
#define EXECMEM_REPLAY_WALK_H

#include <stdbool.h>
#include <stdint.h>

struct walk {
	uint32_t *next;   /* by region; the entry one past the last region is the head */
	uint32_t regions; /* numbers are below it; also the end mark */
	bool move;        /* to the front when found */
	uint64_t steps;   /* regions looked at so far, the one found included */
};

/* Ends the program with status 3 where memory is short. */
void walk_create(struct walk *walk, uint32_t regions, bool move);
void walk_destroy(struct walk *walk);

void walk_add(struct walk *walk, uint32_t region);
void walk_remove(struct walk *walk, uint32_t region);

/* Looks for a region that is in the list, and counts. */
void walk_find(struct walk *walk, uint32_t region);

#endif
