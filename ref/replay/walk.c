#include "walk.h"

#include <stdio.h>
#include <stdlib.h>

void walk_create(struct walk *walk, uint32_t regions, bool move)
{
	*walk = (struct walk){.regions = regions, .move = move};
	walk->next = calloc((size_t)regions + 1, sizeof(*walk->next));
	if (!walk->next) {
		fprintf(stderr, "replay: out of memory for a list of %u regions\n", regions);
		exit(3);
	}
	walk->next[regions] = regions;
}

void walk_destroy(struct walk *walk)
{
	free(walk->next);
}

void walk_add(struct walk *walk, uint32_t region)
{
	walk->next[region] = walk->next[walk->regions];
	walk->next[walk->regions] = region;
}

/* The entry before a region, with the number of regions looked at. */
static uint32_t before(const struct walk *walk, uint32_t region, uint64_t *looked)
{
	uint32_t at = walk->regions;

	for (*looked = 1; walk->next[at] != region; at = walk->next[at])
		(*looked)++;
	return at;
}

void walk_remove(struct walk *walk, uint32_t region)
{
	uint64_t looked;
	uint32_t at = before(walk, region, &looked);

	walk->next[at] = walk->next[region];
}

void walk_find(struct walk *walk, uint32_t region)
{
	uint64_t looked;
	uint32_t at = before(walk, region, &looked);

	walk->steps += looked;
	if (walk->move) {
		walk->next[at] = walk->next[region];
		walk_add(walk, region);
	}
}
