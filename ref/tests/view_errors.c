/* Views are checked: closed twice, published outside or after closing, empty or wrapping ranges; nothing changes. */
#include "test.h"

#define UNIT EXECMEM_UNIT_BYTES

int main(void)
{
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region region = committed(allocator, 2 * UNIT);
	struct execmem_view view, copy, other;
	struct execmem_range ranges[2] = {{0, 4}, {90, 20}};
	execmem_rx at = {region.rx.at + 100};
	long syncs;

	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_map_rw(allocator, at, 0, 0, &view));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_map_rw(allocator, at, SIZE_MAX, 0, &view));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_map_rw(allocator, at, 1, 2, &view));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_map_rw(allocator, (execmem_rx){16}, 1, 0, &view));
	EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, execmem_map_rw(allocator, at, 2 * UNIT, 0, &view));
	OK(execmem_decommit(&region, UNIT, 4096));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_COMMITTED, execmem_map_rw(allocator, at, UNIT, 0, &view));

	OK(execmem_map_rw(allocator, at, 100, 0, &view));
	copy = view;
	EXPECT(view.bytes == 100 && view.rx.at == at.at && view.rw.at);
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_publish(&view, 0, 0, 0));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_publish(&view, 0, 1, 2));
	EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, execmem_publish(&view, 0, 101, 0));
	EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, execmem_publish(&view, 101, 1, 0));
	EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, execmem_publish(&view, 50, SIZE_MAX - 10, 0));
	syncs = watch.syncs;
	EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, execmem_publish_many(&view, ranges, 2, 0));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_publish_many(&view, ranges, 0, 0));
	EXPECT_EQUAL(syncs, watch.syncs);
	EXPECT_EQUAL(0, stats_of(allocator).publishes);

	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_decommit(&region, 0, 4096));
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_release(&region));
	OK(execmem_decommit(&region, 4096, 4096)); /* a page of the same mapping that no view covers */

	OK(execmem_unmap_rw(&view));
	EXPECT(!view.rw.at);
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_OPEN, execmem_unmap_rw(&view));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_OPEN, execmem_unmap_rw(&copy));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_OPEN, execmem_publish(&copy, 0, 1, 0));

	/* The handle is used again: the old copy must not close the new view. */
	OK(execmem_map_rw(allocator, at, 100, 0, &other));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_OPEN, execmem_unmap_rw(&copy));
	EXPECT_EQUAL(1, stats_of(allocator).views_open);
	OK(execmem_publish(&other, 99, 1, 0));
	OK(execmem_unmap_rw(&other));
	OK(execmem_release(&region));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_map_rw(allocator, at, 1, 0, &view));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_OPEN, execmem_unmap_rw(&other));
	OK(execmem_destroy(allocator));
	return 0;
}
