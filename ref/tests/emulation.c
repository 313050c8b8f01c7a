/* Where rewritten code is stale, publishing over published code maps its pages anew, and no others; elsewhere nothing.
 */
#include "test.h"

static void on(struct execmem_config *config)
{
	config->emulation = EXECMEM_EMULATION_ON;
}

static void off(struct execmem_config *config)
{
	config->emulation = EXECMEM_EMULATION_OFF;
}

int main(void)
{
	static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};
	struct execmem_allocator *allocator;
	struct execmem_region region;
	long remaps;

	/* Probed: not stale here, then as if it were. */
	allocator = make(NULL);
	EXPECT(!execmem_emulation(allocator));
	region = committed(allocator, 65536);
	remaps = watch.remaps;
	OK(execmem_write(allocator, region.rx, code, sizeof(code), 0));
	OK(execmem_write(allocator, region.rx, code, sizeof(code), 0));
	EXPECT_EQUAL(remaps, watch.remaps);
	/* Turned on late: everything may have been executed. */
	execmem_set_emulation(allocator, true);
	OK(execmem_write(allocator, (execmem_rx){region.rx.at + 128}, code, sizeof(code), 0));
	EXPECT_EQUAL(remaps + 1, watch.remaps);
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));

	watch.stale = true;
	allocator = make(off);
	EXPECT(!execmem_emulation(allocator));
	OK(execmem_destroy(allocator));
	watch.stale = false;
	allocator = make(on);
	EXPECT(execmem_emulation(allocator));
	OK(execmem_destroy(allocator));
	watch.stale = true;
	allocator = make(NULL);
	EXPECT(execmem_emulation(allocator));

	region = committed(allocator, 65536);
	remaps = watch.remaps;
	OK(execmem_write(allocator, (execmem_rx){region.rx.at + 4090}, code, sizeof(code), 0));
	OK(execmem_write(allocator, (execmem_rx){region.rx.at + 256}, code, sizeof(code), 0));
	EXPECT_EQUAL(remaps, watch.remaps);
	OK(execmem_write(allocator, (execmem_rx){region.rx.at + 4093}, code, sizeof(code), 0));
	EXPECT_EQUAL(remaps + 1, watch.remaps); /* two pages, one call */
	EXPECT_EQUAL(0xb8, *(const unsigned char *)(region.rx.at + 4093));
	EXPECT_EQUAL(1, stats_of(allocator).remaps);
	watch.fail_name = "map_fixed";
	EXPECT(execmem_write(allocator, (execmem_rx){region.rx.at + 256}, code, sizeof(code), 0) < 0);
	watch.fail_name = NULL;
	EXPECT_EQUAL(0, stats_of(allocator).views_open);
	OK(execmem_write(allocator, (execmem_rx){region.rx.at + 256}, code, sizeof(code), 0));
	EXPECT_EQUAL(remaps + 2, watch.remaps);
	/* Committed anew: never executed. */
	OK(execmem_decommit(&region, 0, 4096));
	OK(execmem_commit(&region, 0, 4096));
	remaps = watch.remaps;
	OK(execmem_write(allocator, (execmem_rx){region.rx.at + 256}, code, sizeof(code), 0));
	EXPECT_EQUAL(remaps, watch.remaps);
	EXPECT_EQUAL(7, ((int (*)(void))(region.rx.at + 256))());
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
	return 0;
}
