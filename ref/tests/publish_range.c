/* Publishing synchronises exactly the written bytes, once, at their executable address; a batch merges what touches. */
#include "test.h"

int main(void)
{
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region region = committed(allocator, 65536);
	struct execmem_view view;
	struct execmem_range ranges[] = {{10, 5}, {15, 5}, {18, 2}, {40, 8}, {8, 1}};
	long syncs;

	OK(execmem_map_rw(allocator, (execmem_rx){region.rx.at + 4090}, 100, 0, &view));
	syncs = watch.syncs;
	OK(execmem_publish(&view, 3, 17, 0));
	EXPECT_EQUAL(syncs + 1, watch.syncs);
	EXPECT(watch.sync_at == region.rx.at + 4093 && watch.sync_bytes == 17);
	OK(execmem_publish_many(&view, ranges, 2, EXECMEM_PUBLISH_SERIALIZE));
	EXPECT_EQUAL(syncs + 2, watch.syncs);
	EXPECT(watch.sync_at == region.rx.at + 4100 && watch.sync_bytes == 10);
	OK(execmem_publish_many(&view, ranges, 5, 0));
	EXPECT_EQUAL(syncs + 5, watch.syncs);
	EXPECT(watch.sync_at == region.rx.at + 4098 && watch.sync_bytes == 1);
	EXPECT_EQUAL(3, stats_of(allocator).publishes);
	watch.fail_name = "sync_code";
	EXPECT_EQUAL(EXECMEM_ERROR_SYNC, execmem_publish(&view, 0, 1, 0));
	watch.fail_name = NULL;
	EXPECT_EQUAL(3, stats_of(allocator).publishes);
	OK(execmem_unmap_rw(&view));
	EXPECT_EQUAL(3, stats_of(allocator).publishes);
	OK(execmem_release(&region));
	EXPECT_EQUAL(3, stats_of(allocator).publishes);
	OK(execmem_destroy(allocator));
	return 0;
}
