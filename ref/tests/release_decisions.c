/*
 * The decisions of policy `scudo`: at pages of 4 KiB those of D82031's published rules, written down here once more as
 * they stand there; at larger pages the same with everything as many times larger.
 */
#include "test.h"

#include <execmem/release.h>

/* Step by step, in the types of a 64-bit system. */
static enum execmem_release_verdict source(const struct execmem_release_class *c, bool forced, int32_t interval_ms,
					   uint64_t now_ns)
{
	uint64_t in_list = c->allocated_bytes - (c->popped_bytes - c->pushed_bytes);
	uint64_t pushed = c->pushed_bytes - c->pushed_at_last;

	if (in_list < c->page_bytes)
		return EXECMEM_RELEASE_FEW_FREE;
	if (pushed < c->page_bytes)
		return EXECMEM_RELEASE_FEW_NEW;
	if (c->block_bytes < c->page_bytes / 16) {
		if (!forced && pushed < c->allocated_bytes / 16)
			return EXECMEM_RELEASE_FEW_PUSHED;
		if (in_list * 100 / c->allocated_bytes < 100 - 1 - c->block_bytes / 16)
			return EXECMEM_RELEASE_DENSE;
	}
	if (!forced) {
		if (interval_ms < 0)
			return EXECMEM_RELEASE_NEVER;
		if (c->last_ns + (uint64_t)interval_ms * 1000000 > now_ns)
			return EXECMEM_RELEASE_EARLY;
	}
	return EXECMEM_RELEASE_GO;
}

/* Both, and the same four and sixteen times as large. */
static enum execmem_release_verdict decide(struct execmem_release_class c, bool forced, int32_t interval_ms,
					   uint64_t now_ns)
{
	enum execmem_release_verdict verdict = source(&c, forced, interval_ms, now_ns);

	EXPECT_EQUAL(verdict, execmem_release_decide(&c, forced, interval_ms, now_ns));
	for (int times = 0; times < 2; times++) {
		c.page_bytes *= 4;
		c.block_bytes *= 4;
		c.allocated_bytes *= 4;
		c.pushed_bytes *= 4;
		c.popped_bytes *= 4;
		c.pushed_at_last *= 4;
		EXPECT_EQUAL(verdict, execmem_release_decide(&c, forced, interval_ms, now_ns));
	}
	return verdict;
}

/* A MiB of blocks, some freed, of them some since the last release. */
static struct execmem_release_class mebibyte(size_t block, uint64_t freed, uint64_t since)
{
	return (struct execmem_release_class){
		.page_bytes = 4096,
		.block_bytes = block,
		.allocated_bytes = 1048576,
		.popped_bytes = 5 * 1048576,
		.pushed_bytes = 4 * 1048576 + freed,
		.pushed_at_last = 4 * 1048576 + freed - since,
		.last_ns = 7000000000,
	};
}

static const struct {
	const char *what;
	size_t block;
	uint64_t freed, since;
	bool forced;
	int32_t interval_ms;
	uint64_t now_ns;
	enum execmem_release_verdict verdict;
} cases[] = {
	{"a byte less than a page is free", 512, 4095, 4095, true, 0, 0, EXECMEM_RELEASE_FEW_FREE},
	{"a page is free", 512, 4096, 4096, true, 0, 0, EXECMEM_RELEASE_GO},
	{"a byte less than a page is new, forced or not", 512, 1048576, 4095, true, 0, 0, EXECMEM_RELEASE_FEW_NEW},
	{"a page is new", 512, 1048576, 4096, true, 0, 0, EXECMEM_RELEASE_GO},
	{"small: a byte less than 1/16 is new", 32, 1048576, 65535, false, 0, 7000000000, EXECMEM_RELEASE_FEW_PUSHED},
	{"small: 1/16 is new", 32, 1048576, 65536, false, 0, 7000000000, EXECMEM_RELEASE_GO},
	{"small, forced: 1/16 is not asked for", 32, 1048576, 4096, true, 0, 0, EXECMEM_RELEASE_GO},
	{"240: 1/16 is asked for", 240, 1048576, 65535, false, 0, 7000000000, EXECMEM_RELEASE_FEW_PUSHED},
	{"256 is not small", 256, 1048576, 4096, false, 0, 7000000000, EXECMEM_RELEASE_GO},
	{"256 has no share", 256, 8192, 8192, true, 0, 0, EXECMEM_RELEASE_GO},
	{"16: 98 percent must be free", 16, 1027604, 1027604, true, 0, 0, EXECMEM_RELEASE_DENSE},
	{"16: 98 percent are", 16, 1027605, 1027605, true, 0, 0, EXECMEM_RELEASE_GO},
	{"240: 84 percent must be free, forced or not", 240, 880803, 880803, true, 0, 0, EXECMEM_RELEASE_DENSE},
	{"240: 84 percent must be free", 240, 880803, 880803, false, 0, 7000000000, EXECMEM_RELEASE_DENSE},
	{"240: 84 percent are", 240, 880804, 880804, true, 0, 0, EXECMEM_RELEASE_GO},
	{"a negative interval: never", 512, 1048576, 1048576, false, -1, UINT64_MAX, EXECMEM_RELEASE_NEVER},
	{"a negative interval, forced", 512, 1048576, 1048576, true, -1, 0, EXECMEM_RELEASE_GO},
	{"a nanosecond too early", 512, 1048576, 1048576, false, 1000, 7999999999, EXECMEM_RELEASE_EARLY},
	{"not too early", 512, 1048576, 1048576, false, 1000, 8000000000, EXECMEM_RELEASE_GO},
	{"too early, forced", 512, 1048576, 1048576, true, 1000, 7000000000, EXECMEM_RELEASE_GO},
};

/* Where the source is wrong: the share of blocks of 1600 bytes and more, with pages of 64 KiB. */
static void check_large_pages(void)
{
	struct execmem_release_class c = mebibyte(1600, 1048576, 1048576);

	c.page_bytes = 65536;
	EXPECT_EQUAL(EXECMEM_RELEASE_DENSE, source(&c, true, 0, 0));
	EXPECT_EQUAL(EXECMEM_RELEASE_GO, execmem_release_decide(&c, true, 0, 0));
	EXPECT_EQUAL(93, execmem_release_share(65536, 1600));
	EXPECT_EQUAL(84, execmem_release_share(65536, 4095));
	EXPECT_EQUAL(0, execmem_release_share(65536, 4096));
	EXPECT_EQUAL(96, execmem_release_share(16384, 192));
	EXPECT_EQUAL(98, execmem_release_share(4096, 16));
	EXPECT_EQUAL(99, execmem_release_share(4096, 1));
	EXPECT_EQUAL(84, execmem_release_share(4096, 255));
	for (size_t page = 4096; page <= 65536; page *= 2) {
		for (size_t block = 1; block < page / 16; block++)
			EXPECT(execmem_release_share(page, block) >= 84 && execmem_release_share(page, block) <= 99);
	}
	/* Nothing was ever handed out; and more is live than was, which only a wrong caller says. */
	EXPECT_EQUAL(EXECMEM_RELEASE_FEW_FREE,
		     execmem_release_decide(&(struct execmem_release_class){4096, 16, 0, 0, 0, 0, 0}, true, 0, 0));
	EXPECT_EQUAL(
		EXECMEM_RELEASE_FEW_FREE,
		execmem_release_decide(&(struct execmem_release_class){4096, 16, 8192, 0, 16384, 0, 0}, true, 0, 0));
	/* 3 GiB, whose bytes times 100 fit no 32 bits. */
	c = mebibyte(32, 0, 0);
	c.allocated_bytes = 3221225472;
	c.popped_bytes = 3221225472;
	c.pushed_bytes = 3221225472 / 100 * 97;
	c.pushed_at_last = 0;
	EXPECT_EQUAL(EXECMEM_RELEASE_DENSE, decide(c, true, 0, 0)); /* a rounding below 97 */
	c.pushed_bytes += 100;
	EXPECT_EQUAL(EXECMEM_RELEASE_GO, decide(c, true, 0, 0));
}

int main(void)
{
	struct execmem_release_class c;
	uint64_t random = 0x9e3779b97f4a7c15u;
	size_t seen[EXECMEM_RELEASE_EARLY + 1] = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test_seed = i;
		EXPECT_EQUAL(cases[i].verdict, decide(mebibyte(cases[i].block, cases[i].freed, cases[i].since),
						      cases[i].forced, cases[i].interval_ms, cases[i].now_ns));
	}
	check_large_pages();
	for (int i = 0; i < 2000000; i++) {
		uint64_t r = next_random(&random), now, all;

		test_seed = random;
		c.page_bytes = 4096;
		c.block_bytes = 16 * (1 + r % 20);
		c.allocated_bytes = all = 16 + (next_random(&random) % ((uint64_t)1 << (12 + r % 28)) & ~(uint64_t)15);
		/* Near the bounds as often as anywhere. */
		c.pushed_bytes =
			r >> 8 & 1 ? all - next_random(&random) % (all / 5 + 1) : next_random(&random) % (all + 1);
		c.popped_bytes = all;
		c.pushed_at_last = r >> 9 & 1
					   ? c.pushed_bytes - (c.pushed_bytes < all / 16 ? 0 : all / 16 - (r >> 10 & 1))
					   : next_random(&random) % (c.pushed_bytes + 1);
		c.last_ns = next_random(&random) % 1000000000;
		now = c.last_ns + next_random(&random) % 20000000;
		seen[decide(c, r >> 11 & 1, (int32_t)(r >> 12 & 15) - 2, now)]++;
	}
	for (int i = 0; i <= EXECMEM_RELEASE_EARLY; i++)
		EXPECT(seen[i] > 1000);
	/* What a release was, and what was only tried. */
	c.pushed_bytes = 9;
	c.pushed_at_last = 3;
	execmem_release_tried(&c, 0, 5);
	EXPECT_EQUAL(3, c.pushed_at_last);
	EXPECT_EQUAL(5, c.last_ns);
	execmem_release_tried(&c, 1, 6);
	EXPECT_EQUAL(9, c.pushed_at_last);
	EXPECT_EQUAL(6, c.last_ns);
	return 0;
}
