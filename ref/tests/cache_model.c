/* Hits, misses, evictions, pinning and order equal a simple model's, for every size of the cache. */
#include "test.h"

#include <string.h>

#define UNIT    ((size_t)EXECMEM_UNIT_BYTES)
#define REGIONS 3
#define WINDOWS 8
#define VIEWS   12
#define STEPS   3000

/* The model: an array of (region, window), most recent first; pins by window. */
static struct {
	int key[64];
	int count;
	int pins[REGIONS * WINDOWS];
	int mapped[REGIONS * WINDOWS]; /* alive: in the cache or pinned */
	unsigned long hits, misses, evictions;
} model;

static unsigned capacity;
static bool keep_order;

static int find(int key)
{
	for (int i = 0; i < model.count; i++) {
		if (model.key[i] == key)
			return i;
	}
	return -1;
}

static void remove_at(int i)
{
	memmove(model.key + i, model.key + i + 1, (size_t)(--model.count - i) * sizeof(model.key[0]));
}

static void push(int key)
{
	memmove(model.key + 1, model.key, (size_t)model.count++ * sizeof(model.key[0]));
	model.key[0] = key;
}

static void model_map(int key)
{
	int at = find(key);

	if (model.mapped[key]) {
		model.hits++;
		if (at >= 0 && !keep_order) {
			remove_at(at);
			push(key);
		}
	} else {
		model.misses++;
		model.mapped[key] = 1;
		if (capacity && (unsigned)model.count == capacity) {
			for (int i = model.count - 1; i >= 0; i--) {
				if (model.pins[model.key[i]])
					continue;
				model.mapped[model.key[i]] = 0;
				model.evictions++;
				remove_at(i);
				break;
			}
		}
		if ((unsigned)model.count < capacity)
			push(key);
	}
	model.pins[key]++;
}

static void model_unmap(int key)
{
	if (--model.pins[key] == 0 && find(key) < 0)
		model.mapped[key] = 0;
}

static void change(struct execmem_config *config)
{
	config->rw_cache = capacity;
	config->keep_order = keep_order;
}

static void run(uint64_t seed)
{
	struct execmem_allocator *allocator = make(change);
	struct execmem_region region[REGIONS];
	struct execmem_view view[VIEWS];
	int key[VIEWS];
	bool open[VIEWS] = {false};

	memset(&model, 0, sizeof(model));
	for (int i = 0; i < REGIONS; i++)
		region[i] = committed(allocator, WINDOWS * UNIT);
	for (int step = 0; step < STEPS; step++) {
		uint64_t random = next_random(&seed);
		int v = (int)(random % VIEWS), k = (int)(random >> 8) & 0xffff;
		struct execmem_stats stats;
		int alive = 0;

		if (open[v]) {
			OK(execmem_unmap_rw(&view[v]));
			model_unmap(key[v]);
			open[v] = false;
		} else if (random >> 40 & 1) { /* fewer views open than there could be */
			key[v] = k % (REGIONS * WINDOWS);
			OK(execmem_map_rw(allocator,
					  (execmem_rx){region[key[v] / WINDOWS].rx.at +
						       (size_t)(key[v] % WINDOWS) * UNIT + (random >> 24) % 60000},
					  1 + (random >> 44) % 5000, 0, &view[v]));
			model_map(key[v]);
			open[v] = true;
		}
		for (int i = 0; i < REGIONS * WINDOWS; i++)
			alive += model.mapped[i];
		stats = stats_of(allocator);
		EXPECT_EQUAL(model.hits, stats.hits);
		EXPECT_EQUAL(model.misses, stats.misses);
		EXPECT_EQUAL(model.evictions, stats.evictions);
		EXPECT_EQUAL(model.count, stats.views_cached);
		EXPECT_EQUAL(alive, stats.views_mapped);
		EXPECT_EQUAL(stats.rw_maps - stats.rw_unmaps, stats.views_mapped);
	}
	for (int i = 0; i < VIEWS; i++) {
		if (open[i])
			OK(execmem_unmap_rw(&view[i]));
	}
	for (int i = 0; i < REGIONS; i++)
		OK(execmem_release(&region[i]));
	EXPECT_EQUAL(0, stats_of(allocator).views_mapped);
	OK(execmem_destroy(allocator));
}

int main(void)
{
	unsigned long mappings = count_mappings();

	for (capacity = 0; capacity <= EXECMEM_RW_CACHE_MAX; capacity++) {
		for (int order = 0; order < 2; order++) {
			keep_order = order;
			run(0x9e3779b97f4a7c15u + capacity);
		}
	}
	EXPECT(count_mappings() <= mappings + 1); /* the C library's own */
	return 0;
}
