/*
 * Random sequences of every call against a model of what is reserved, committed, open and written: results, bytes,
 * statistics, /proc/self/maps and the file's blocks agree. Argument: number of sequences, seed.
 */
#define _GNU_SOURCE
#include "test.h"

#include <string.h>

#define UNIT    ((size_t)EXECMEM_UNIT_BYTES)
#define REGIONS 6
#define VIEWS   8
#define UNITS   6 /* at most, a region */
#define STEPS   400

static size_t page;
static unsigned seed_cache;

struct model_region {
	bool live;
	struct execmem_region region;
	unsigned char *bytes; /* what each byte holds */
	bool *committed;      /* by page */
};

static struct model_region region[REGIONS];
static struct {
	bool open;
	int region;
	size_t offset;
	struct execmem_view view;
} view[VIEWS];

static void change(struct execmem_config *config)
{
	config->rw_cache = seed_cache % 17;
	config->window_bytes = page << (seed_cache % 3 * 2);
	config->grow_bytes = UNIT << (seed_cache % 4);
	if (seed_cache % 5 == 4)
		config->backends[0] = EXECMEM_BACKEND_TOGGLE;
	if (seed_cache % 3 == 1)
		config->emulation = EXECMEM_EMULATION_ON;
}

static bool all(const struct model_region *r, size_t offset, size_t bytes, bool value)
{
	for (size_t p = offset / page; p <= (offset + bytes - 1) / page; p++) {
		if (r->committed[p] != value)
			return false;
	}
	return true;
}

static bool open_in(int r, size_t offset, size_t bytes)
{
	for (int v = 0; v < VIEWS; v++) {
		if (view[v].open && view[v].region == r && view[v].offset < offset + bytes &&
		    offset < view[v].offset + view[v].view.bytes)
			return true;
	}
	return false;
}

static void check_bytes(int r)
{
	const struct model_region *m = &region[r];

	for (size_t p = 0; p < m->region.bytes / page; p++) {
		if (m->committed[p])
			EXPECT(memcmp((const void *)(m->region.rx.at + p * page), m->bytes + p * page, page) == 0);
	}
}

static void step(struct execmem_allocator *allocator, uint64_t *seed)
{
	uint64_t random = next_random(seed);
	int r = (int)((random >> 8) % REGIONS), v = (int)((random >> 16) % VIEWS);
	struct model_region *m = &region[r];
	size_t pages, offset, bytes;
	int error;

	if (!m->live) {
		size_t units = 1 + (random >> 24) % UNITS;

		OK(execmem_reserve(allocator, units * UNIT - (random >> 32) % UNIT, NULL, (unsigned)r, m, &m->region));
		EXPECT_EQUAL(units * UNIT, m->region.bytes);
		m->live = true;
		memset(m->committed, 0, UNITS * UNIT / page * sizeof(bool));
		return;
	}
	pages = m->region.bytes / page;
	offset = (random >> 24) % pages * page;
	bytes = (1 + (random >> 40) % (random & 1 ? 4 : pages)) * page;
	switch (random % 8) {
	case 0:
	case 1:
		error = execmem_commit(&m->region, offset, bytes);
		if (offset + bytes > m->region.bytes) {
			EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, error);
		} else if (!all(m, offset, bytes, false)) {
			EXPECT_EQUAL(EXECMEM_ERROR_COMMITTED, error);
		} else {
			OK(error);
			memset(m->committed + offset / page, 1, bytes / page);
			memset(m->bytes + offset, 0, bytes);
		}
		break;
	case 2:
		error = execmem_decommit(&m->region, offset, bytes);
		if (offset + bytes > m->region.bytes) {
			EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, error);
		} else if (!all(m, offset, bytes, true)) {
			EXPECT_EQUAL(EXECMEM_ERROR_NOT_COMMITTED, error);
		} else if (open_in(r, offset, bytes)) {
			EXPECT_EQUAL(EXECMEM_ERROR_BUSY, error);
		} else if (error != EXECMEM_ERROR_BUSY) { /* a mapping that is open may reach into an emptied unit */
			OK(error);
			memset(m->committed + offset / page, 0, bytes / page);
		}
		break;
	case 3:
		if ((random >> 48) % 8)
			break;
		error = execmem_release(&m->region);
		if (open_in(r, 0, m->region.bytes)) {
			EXPECT_EQUAL(EXECMEM_ERROR_BUSY, error);
		} else {
			OK(error);
			m->live = false;
		}
		break;
	case 4:
		if (view[v].open) {
			OK(execmem_unmap_rw(&view[v].view));
			view[v].open = false;
		}
		break;
	default:
		if (!view[v].open) {
			offset += (random >> 50) % page;
			bytes = 1 + (random >> 30) % (random & 8 ? 200 : 3 * UNIT);
			error = execmem_map_rw(allocator, (execmem_rx){m->region.rx.at + offset}, bytes,
					       (random >> 60) % 4 == 0, &view[v].view);
			if (offset + bytes > m->region.bytes) {
				EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, error);
				break;
			}
			if (!all(m, offset, bytes, true)) {
				EXPECT_EQUAL(EXECMEM_ERROR_NOT_COMMITTED, error);
				break;
			}
			if (error == EXECMEM_ERROR_BUSY) {
				EXPECT_EQUAL(EXECMEM_BACKEND_TOGGLE, execmem_backend(allocator));
				break;
			}
			OK(error);
			view[v].open = true;
			view[v].region = r;
			view[v].offset = offset;
		}
		for (int i = 0; i < 4; i++) {
			size_t at = next_random(seed) % view[v].view.bytes, n = view[v].view.bytes - at;

			n = n > 64 ? 64 : n;
			memset(view[v].view.rw.at + at, (int)random, n);
			memset(region[view[v].region].bytes + view[v].offset + at, (int)random, n);
			OK(execmem_publish(&view[v].view, at, n, 0));
		}
		check_bytes(view[v].region);
	}
}

static void check_books(struct execmem_allocator *allocator)
{
	struct execmem_stats stats = stats_of(allocator);
	size_t committed_bytes = 0, reserved = 0, open = 0;

	for (int r = 0; r < REGIONS; r++) {
		if (!region[r].live)
			continue;
		check_bytes(r);
		reserved += region[r].region.bytes;
		for (size_t p = 0; p < region[r].region.bytes / page; p++)
			committed_bytes += region[r].committed[p] ? page : 0;
	}
	for (int v = 0; v < VIEWS; v++)
		open += view[v].open;
	EXPECT_EQUAL(reserved, stats.reserved_bytes);
	EXPECT_EQUAL(committed_bytes, stats.committed_bytes);
	EXPECT_EQUAL(open, stats.views_open);
	EXPECT(stats.views_mapped <= stats.views_cached + open);
	EXPECT_EQUAL(0, stats.deferred_bytes);
	EXPECT(file_blocks() <= committed_bytes);
}

static void run(uint64_t seed)
{
	struct execmem_allocator *allocator;
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;

	seed_cache = (unsigned)seed;
	page = (size_t)4096 << (seed % 3 * 2);
	watch.page_bytes = page;
	allocator = make(change);
	for (int i = 0; i < STEPS; i++) {
		step(allocator, &state);
		if (i % 20 == 0)
			check_books(allocator);
	}
	check_books(allocator);
	for (int v = 0; v < VIEWS; v++) {
		if (view[v].open)
			OK(execmem_unmap_rw(&view[v].view));
		view[v].open = false;
	}
	for (int r = 0; r < REGIONS; r++) {
		if (region[r].live)
			OK(execmem_release(&region[r].region));
		region[r].live = false;
	}
	EXPECT_EQUAL(0, stats_of(allocator).views_mapped);
	EXPECT_EQUAL(0, stats_of(allocator).file_used_bytes);
	EXPECT_EQUAL(0, file_blocks());
	OK(execmem_destroy(allocator));
}

int main(int argc, char **argv)
{
	uint64_t sequences = argc > 1 ? strtoull(argv[1], NULL, 0) : 45,
		 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	unsigned long mappings;

	for (int r = 0; r < REGIONS; r++) {
		region[r].bytes = malloc(UNITS * UNIT);
		region[r].committed = malloc(UNITS * UNIT / 4096 * sizeof(bool));
	}
	run(0);
	mappings = count_mappings();
	for (uint64_t i = 0; i < sequences; i++) {
		test_seed = seed + i;
		run(seed + i);
		EXPECT(count_mappings() <= mappings);
	}
	return 0;
}
