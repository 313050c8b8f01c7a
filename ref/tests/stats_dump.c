/* The dump is one write of one line a figure, with numbers of up to 64 bits. */
#include "test.h"

#include <string.h>

int main(void)
{
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region region = committed(allocator, 3 * 65536);
	unsigned long lines = 0;

	OK(execmem_write(allocator, region.rx, "abc", 3, 0));
	OK(execmem_write(allocator, region.rx, "abc", 3, 0));
	OK(execmem_stats_dump(allocator));
	EXPECT(watch.text[watch.text_bytes - 1] == '\n');
	for (size_t i = 0; i < watch.text_bytes; i++)
		lines += watch.text[i] == '\n';
	EXPECT_EQUAL(sizeof(struct execmem_stats) / sizeof(uint64_t), lines);
	EXPECT(strstr(watch.text, "execmem: hits 1  "));
	EXPECT(strstr(watch.text, "execmem: misses 1  "));
	EXPECT(strstr(watch.text, "execmem: publishes 2  "));
	EXPECT(strstr(watch.text, "execmem: committed_bytes 196608  "));
	watch.fail_name = "write";
	EXPECT(execmem_stats_dump(allocator) < 0);
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
	return 0;
}
