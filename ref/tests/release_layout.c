/*
 * Which blocks touch which page, the width of counters, and counting in them: every page size and alignment against
 * counting byte by byte.
 */
#include "test.h"

#include <string.h>

#include <execmem/release.h>

#define PAGES 24

static size_t widths[6];

static void check(const struct execmem_release_layout *layout)
{
	static uintptr_t words[PAGES * 65536 / 8];
	size_t pages = execmem_release_page_count(layout), most = execmem_release_most(layout), found = 0, low, high;
	unsigned bits = execmem_release_counter_bits(most);
	struct execmem_release_counters counters = {words, (unsigned)__builtin_ctz(bits)};
	static size_t expected[PAGES + 2];

	test_seed = layout->block_bytes;
	EXPECT(execmem_release_layout_is_right(layout));
	memset(expected, 0, sizeof(expected));
	memset(words, 0, execmem_release_counter_bytes(pages, counters.shift));
	EXPECT(pages <= PAGES + 2);
	EXPECT(pages * layout->page_bytes >= layout->end && (pages - 1) * layout->page_bytes < layout->end);
	for (size_t block = 0; block < layout->blocks; block++) {
		size_t start = layout->first + block * layout->block_bytes, last = start + layout->block_bytes - 1,
		       page;

		EXPECT_EQUAL(last / layout->page_bytes - start / layout->page_bytes + 1,
			     execmem_release_touched(layout, block, &page));
		EXPECT_EQUAL(start / layout->page_bytes, page);
		for (; page <= last / layout->page_bytes; page++) {
			expected[page]++;
			execmem_release_counter_add(&counters, page, 1);
		}
	}
	for (size_t page = 0; page < pages; page++) {
		size_t first = SIZE_MAX, count = execmem_release_touching(layout, page, &first);

		EXPECT_EQUAL(expected[page], count);
		EXPECT_EQUAL(expected[page], execmem_release_counter_get(&counters, page));
		found = count > found ? count : found;
		if (count) {
			size_t start = layout->first + first * layout->block_bytes;

			EXPECT(start < (page + 1) * layout->page_bytes &&
			       start + layout->block_bytes > page * layout->page_bytes);
			EXPECT(first == 0 || start <= page * layout->page_bytes);
		}
	}
	EXPECT(found <= most);
	/* No wider than is needed, as a power of two; at most as wide as two such counters. */
	EXPECT((bits & (bits - 1)) == 0 && (uint64_t)most < (uint64_t)1 << bits);
	EXPECT(bits == 1 || (uint64_t)most >= (uint64_t)1 << (bits / 2));
	widths[counters.shift]++;
	execmem_release_whole(layout, &low, &high);
	for (size_t page = 0; page < pages; page++) {
		bool whole =
			page * layout->page_bytes >= layout->first && (page + 1) * layout->page_bytes <= layout->end;

		EXPECT_EQUAL(whole, page >= low && page < high);
	}
	for (size_t block = 0; block < layout->blocks; block++) {
		size_t page, count = execmem_release_touched(layout, block, &page);

		while (count--)
			execmem_release_counter_add(&counters, page++, (uintptr_t)-1);
	}
	for (size_t i = 0; i < execmem_release_counter_bytes(pages, counters.shift) / sizeof(uintptr_t); i++)
		EXPECT_EQUAL(0, words[i]);
}

/* The most blocks are really found in a region that is long enough. */
static void check_most(size_t page, size_t block, size_t first)
{
	struct execmem_release_layout layout = {page, block, first, 0, 0};
	size_t found = 0, lowest;

	layout.blocks = (page / (block & -block) + 3) * (page / block + 2) + 3;
	layout.end = first + layout.blocks * block;
	for (size_t i = 0; i < execmem_release_page_count(&layout); i++) {
		size_t count = execmem_release_touching(&layout, i, &lowest);

		found = count > found ? count : found;
	}
	test_seed = block;
	EXPECT_EQUAL(found, execmem_release_most(&layout));
}

static void check_bounds(void)
{
	const struct execmem_release_layout right = {4096, 64, 0, 64, 4096};
	struct execmem_release_layout wrong[8] = {right, right, right, right, right, right, right, right};

	EXPECT(execmem_release_layout_is_right(&right));
	wrong[0].page_bytes = 4095;
	wrong[1].page_bytes = 8;
	wrong[2].page_bytes = 0;
	wrong[3].block_bytes = 0;
	wrong[4].first = 1;
	wrong[5].blocks = SIZE_MAX / 64 + 2; /* 64 more than nothing, when it wraps */
	wrong[6].end = SIZE_MAX;
	wrong[7].first = 4097;
	for (size_t i = 0; i < 8; i++)
		EXPECT(!execmem_release_layout_is_right(&wrong[i]));
}

static void check_runs(void)
{
	uintptr_t bits[3] = {0, 0, 0};
	size_t word = 8 * sizeof(uintptr_t), page = 0;

	EXPECT_EQUAL(0, execmem_release_next_run(bits, 3 * word, &page));
	bits[0] = (uintptr_t)1 << (word - 1) | 5;
	bits[1] = UINTPTR_MAX;
	bits[2] = 3;
	EXPECT_EQUAL(1, execmem_release_next_run(bits, 3 * word, &page));
	EXPECT_EQUAL(0, page);
	page = 1;
	EXPECT_EQUAL(1, execmem_release_next_run(bits, 3 * word, &page));
	EXPECT_EQUAL(2, page);
	page = 3;
	EXPECT_EQUAL(word + 3, execmem_release_next_run(bits, 3 * word, &page));
	EXPECT_EQUAL(word - 1, page);
	EXPECT_EQUAL(word + 2, execmem_release_next_run(bits, 2 * word + 1, &page));
	EXPECT_EQUAL(1, execmem_release_next_run(bits, word, &page));
	page = word;
	EXPECT_EQUAL(0, execmem_release_next_run(bits, word, &page));
}

int main(void)
{
	static const size_t page_sizes[] = {16, 4096, 16384, 65536};
	uint64_t random = 0xabcdef12345;

	for (int i = 0; i < 3000; i++) {
		size_t page = page_sizes[next_random(&random) % 4], limit = page * PAGES;
		struct execmem_release_layout layout = {.page_bytes = page};
		uint64_t r = next_random(&random);

		layout.block_bytes = 1 + next_random(&random) % ((size_t)1 << (r % 18));
		if (r >> 8 & 1 && layout.block_bytes > 16)
			layout.block_bytes &= ~(size_t)15;
		if (layout.block_bytes < page / 512 && r >> 9 & 7)
			layout.block_bytes += page / 512;
		layout.first = r >> 12 & 1 ? 0 : next_random(&random) % (2 * page);
		layout.blocks = next_random(&random) % ((limit - layout.first) / layout.block_bytes + 1);
		layout.end = layout.first + layout.blocks * layout.block_bytes;
		if (r >> 13 & 1)
			layout.end += next_random(&random) % (limit + page - layout.end);
		if (layout.end)
			check(&layout);
	}
	for (size_t shift = 0; shift < 6; shift++)
		EXPECT(shift == 5 || widths[shift] > 20);
	for (size_t block = 1; block <= 3 * 64; block++) {
		for (size_t first = 0; first < 64; first++)
			check_most(64, block, first);
	}
	check_most(65536, 1, 0); /* 17 bits: a counter of 32 */
	EXPECT_EQUAL(32, execmem_release_counter_bits(65536));
	EXPECT_EQUAL(16, execmem_release_counter_bits(65535));
	EXPECT_EQUAL(16, execmem_release_counter_bits(256));
	EXPECT_EQUAL(8, execmem_release_counter_bits(255));
	EXPECT_EQUAL(2, execmem_release_counter_bits(2));
	EXPECT_EQUAL(1, execmem_release_counter_bits(1));
	EXPECT_EQUAL(1, execmem_release_counter_bits(0));
	check_bounds();
	check_runs();
	return 0;
}
