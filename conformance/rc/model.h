/*
 * A model of a cache of writable mappings, of the suite's own: what must be mapped, and what counters must say, after
 * each operation. It makes no system call and knows no allocator.
 *
 * All mappings of all regions are in one order, the most recently used first (with keep_order, the most recently made).
 * A view is served by the first mapping of its region that covers it and is not of single use; the search looks at
 * those of the region alone, from the first on. Where there is none, whole windows are mapped, as far as the region
 * reaches. A new mapping enters the cache, for which the last one of the cache that nobody has open goes where the
 * cache is full; where all are open it stays outside, and goes when nobody has it open any more. (dotnet-83632: an
 * entry a mapping, most recent first, and regions moved to front on a hit.)
 */
#ifndef RC_MODEL_H
#define RC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_REGIONS       3
#define MODEL_MAPPINGS_MOST 64

struct model_mapping {
	unsigned number; /* its name: from 1 */
	unsigned region;
	size_t from, to; /* bytes of the region */
	unsigned pins;   /* open views */
	bool cached, single;
	const unsigned char *rw; /* the player's: where it was seen */
};

struct model_counters {
	uint64_t hits, misses, bypasses, evictions, maps, unmaps, steps;
};

struct model {
	unsigned capacity;
	bool keep_order;
	size_t window, page;
	size_t bytes[MODEL_REGIONS]; /* of each region */
	struct model_mapping mappings[MODEL_MAPPINGS_MOST];
	unsigned count, made;
	struct model_counters counters;
};

/* The mapping that serves a view; made where its number is model->made and was not before. Never null. */
struct model_mapping *model_open(struct model *model, unsigned region, size_t offset, size_t bytes, bool single);
void model_close(struct model *model, unsigned number);
/* The pages go: so do mappings over them, which nobody must have open. */
void model_drop(struct model *model, unsigned region, size_t from, size_t to);

struct model_mapping *model_of(struct model *model, unsigned number); /* or null */
/* Has somebody opened a mapping over a byte of the range? */
bool model_pinned(const struct model *model, unsigned region, size_t from, size_t to);
unsigned model_cached(const struct model *model);

#endif
