/* At the system's limit on mappings: an error of its own, nothing lost, and everything can be given back. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define UNIT ((size_t)EXECMEM_UNIT_BYTES)

int main(void)
{
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region region;
	struct execmem_refusal refusal;
	struct execmem_stats before, after;
	size_t page = 4096, count = 0, last;
	struct execmem_usage usage;
	struct execmem_view view;
	int error;

	OK(watch_os().limit(NULL, EXECMEM_LIMIT_MAPPINGS, &usage));
	EXPECT(usage.used > 5 && usage.limit > usage.used);
	if (usage.limit > 100000)
		return 0; /* a limit raised by the administrator: filling it would take long */
	/* Every other page committed: two mappings each. */
	OK(execmem_reserve(allocator, (usage.limit / 2 + 64) * 2 * page, NULL, 0, NULL, &region));
	while ((error = execmem_commit(&region, count * 2 * page, page)) == 0)
		count++;
	EXPECT_EQUAL(EXECMEM_ERROR_MAPPING_COUNT, error);
	EXPECT(count > usage.limit / 2 - 64);
	execmem_last_refusal(allocator, &refusal);
	EXPECT(strcmp(refusal.call, "map_fixed") == 0 && refusal.error == ENOMEM);

	before = stats_of(allocator);
	EXPECT(execmem_commit(&region, count * 2 * page, page) == EXECMEM_ERROR_MAPPING_COUNT);
	last = (count - 1) * 2 * page;
	error = execmem_map_rw(allocator, (execmem_rx){region.rx.at + last}, 1, 0, &view);
	if (error)
		EXPECT_EQUAL(EXECMEM_ERROR_MAPPING_COUNT, error);
	else
		OK(execmem_unmap_rw(&view));
	after = stats_of(allocator);
	EXPECT(before.committed_bytes == after.committed_bytes && before.file_used_bytes == after.file_used_bytes);

	/* The system refuses a fixed mapping there even where it would take one away; a whole region goes. */
	error = execmem_decommit(&region, last, page);
	if (error)
		EXPECT_EQUAL(EXECMEM_ERROR_MAPPING_COUNT, error);
	OK(execmem_release(&region));
	EXPECT_EQUAL(0, file_blocks());
	EXPECT(count_mappings() < usage.used + 10);
	OK(execmem_destroy(allocator));
	return 0;
}
