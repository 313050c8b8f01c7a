/* A single-use view has a mapping of the pages asked for, and is never cached; it does not disturb the cache. */
#include "test.h"

int main(void)
{
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region region = committed(allocator, 65536);
	struct execmem_view view, cached;
	struct execmem_stats stats;
	long writable = watch.writable;

	OK(execmem_map_rw(allocator, region.rx, 1, 0, &cached));
	EXPECT_EQUAL(writable + 65536, watch.writable);
	OK(execmem_map_rw(allocator, (execmem_rx){region.rx.at + 4000}, 200, EXECMEM_MAP_SINGLE_USE, &view));
	EXPECT_EQUAL(writable + 65536 + 8192, watch.writable);
	view.rw.at[199] = 99;
	EXPECT(((const unsigned char *)region.rx.at)[4199] == 99 && cached.rw.at[4199] == 99);
	stats = stats_of(allocator);
	EXPECT(stats.bypasses == 1 && stats.misses == 1 && stats.hits == 0 && stats.views_mapped == 2);
	EXPECT(stats.views_cached == 1 && stats.views_open == 2);
	OK(execmem_unmap_rw(&view));
	stats = stats_of(allocator);
	EXPECT(stats.views_mapped == 1 && stats.views_cached == 1);
	OK(execmem_unmap_rw(&cached));
	EXPECT_EQUAL(1, stats_of(allocator).views_mapped);
	OK(execmem_release(&region));
	EXPECT_EQUAL(0, stats_of(allocator).views_mapped);
	OK(execmem_destroy(allocator));
	return 0;
}
