/* Reserving, committing, writing and releasing over and over ends at the mappings, bytes and blocks it began with. */
#include "test.h"

#define UNIT ((size_t)EXECMEM_UNIT_BYTES)

int main(int argc, char **argv)
{
	unsigned long steps = argc > 1 ? strtoul(argv[1], NULL, 0) : 20000, mappings = 0;
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region live[8] = {{{0}, 0, NULL, 0}};
	uint64_t random = 42, metadata = 0;

	for (unsigned long i = 0; i < steps; i++) {
		uint64_t r = next_random(&random);
		struct execmem_region *region = &live[r % 8];

		if (region->record) {
			OK(execmem_release(region));
			region->record = NULL;
			continue;
		}
		OK(execmem_reserve(allocator, (1 + (r >> 8) % 6) * UNIT, NULL, 0, NULL, region));
		OK(execmem_commit(region, 0, 4096 * (1 + (r >> 16) % 16)));
		OK(execmem_write(allocator, region->rx, "x", 1, 0));
		if (i == steps / 2) {
			metadata = stats_of(allocator).metadata_bytes;
		}
	}
	for (int i = 0; i < 8; i++) {
		if (live[i].record)
			OK(execmem_release(&live[i]));
	}
	EXPECT_EQUAL(0, file_blocks());
	EXPECT_EQUAL(0, stats_of(allocator).file_used_bytes);
	EXPECT(stats_of(allocator).file_bytes <= 8 * 6 * UNIT + EXECMEM_GROW_BYTES_DEFAULT);
	if (metadata)
		EXPECT_EQUAL(metadata, stats_of(allocator).metadata_bytes);
	mappings = count_mappings();
	OK(execmem_destroy(allocator));
	/* The allocator, two tables, a chunk of memory and the wiped page, some of which the system merges. */
	EXPECT(mappings - count_mappings() <= 6);
	return 0;
}
