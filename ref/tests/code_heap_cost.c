/*
 * Costs are counted, not timed: from 100 to a million blocks, with the worst patterns of free blocks, a search looks at
 * about as much as before, and no block is lost to one large one.
 */
#include "test.h"

#include <execmem/code_heap.h>

#define SEGMENT ((size_t)16)

static struct execmem_allocator *allocator;
static struct execmem_code *block;
static size_t warnings;

static void warn(void *context, const struct execmem_code_warning *warning)
{
	(void)context;
	warnings++;
	EXPECT_EQUAL(EXECMEM_CODE_FREE_LIST, warning->event);
	EXPECT_EQUAL(10001, warning->figures.free_blocks);
}

static struct execmem_code_figures figures_of(struct execmem_code_heap *heap)
{
	struct execmem_code_figures figures;

	OK(execmem_code_figures(heap, &figures));
	return figures;
}

/* Steps of a search since `from`, on average, are at most `bound`. */
static void check_average(struct execmem_code_heap *heap, const struct execmem_code_figures *from, size_t bound)
{
	struct execmem_code_figures now = figures_of(heap);
	size_t average = (size_t)((now.search_steps - from->search_steps) / (now.searches - from->searches));

	if (average > bound)
		EXPECT_EQUAL(bound, average);
}

static void run(enum execmem_code_policy policy, size_t blocks)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code_figures before, after;
	struct execmem_code_heap *heap;
	struct execmem_code large;
	/* Words and blocks of a group, and the levels of an index; with `near` words and blocks of a window, 1365 here.
	 */
	size_t bound = policy == EXECMEM_CODE_FIRST ? 250 : policy == EXECMEM_CODE_BEST ? 60 : 1365 + 128;

	config.policy = policy;
	config.segment_bytes = SEGMENT;
	config.region_bytes = (blocks * 4 * SEGMENT + 65536) & ~(size_t)65535;
	config.warn = warn;
	warnings = 0;
	OK(execmem_code_heap_create(allocator, &config, &heap));

	/* Many that are tiny, each with a larger one behind: a checkerboard of holes that are too small for anything.
	 */
	for (size_t i = 0; i < blocks; i++)
		OK(execmem_code_allocate(heap, i % 2 ? SEGMENT : 2 * SEGMENT, NULL, &block[i]));
	for (size_t i = 1; i < blocks; i += 2)
		OK(execmem_code_free(heap, block[i].rx));
	EXPECT_EQUAL(blocks / 2, figures_of(heap).free_blocks);
	EXPECT_EQUAL(blocks / 2 > 10000, warnings);
	before = figures_of(heap);
	for (size_t i = 1; i < 100; i += 2)
		OK(execmem_code_allocate(heap, 2 * SEGMENT, NULL, &block[i]));
	check_average(heap, &before, bound);
	/* The hole at the very end was not one: memory that was never used lies behind it. */
	EXPECT_EQUAL(blocks / 2 - 1, figures_of(heap).free_blocks);
	before = figures_of(heap);
	for (size_t i = 101; i < 200 && i < blocks; i += 2)
		OK(execmem_code_allocate(heap, SEGMENT, NULL, &block[i]));
	if (blocks >= 200)
		check_average(heap, &before, bound);

	/* One large block takes the place of all, once they are free: merged without a gap, in any order. */
	for (size_t i = 0; i < blocks; i += 2)
		OK(execmem_code_free(heap, block[i].rx));
	for (size_t i = 1; i < 200 && i < blocks; i += 2)
		OK(execmem_code_free(heap, block[i].rx));
	after = figures_of(heap);
	EXPECT_EQUAL(1, after.free_blocks);
	EXPECT_EQUAL(0, after.live_blocks);
	EXPECT_EQUAL(after.reserved_bytes, after.largest_free);
	OK(execmem_code_allocate(heap, after.reserved_bytes, NULL, &large));
	EXPECT_EQUAL(1, figures_of(heap).regions);
	OK(execmem_code_free(heap, large.rx));
	if (policy != EXECMEM_CODE_NEAR)
		EXPECT(after.most_steps <= bound);
	OK(execmem_code_heap_destroy(heap));
}

/* Sizes without end: each hole has a size of its own, and every hop of the tree is counted. */
static void run_sizes(enum execmem_code_policy policy, size_t blocks)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code_heap *heap;
	struct execmem_code spare;
	uint64_t random = 99;

	config.policy = policy;
	config.segment_bytes = SEGMENT;
	config.region_bytes = (size_t)512 << 20;
	OK(execmem_code_heap_create(allocator, &config, &heap));
	for (size_t i = 0; i < blocks; i++) {
		OK(execmem_code_allocate(heap, SEGMENT * (1 + next_random(&random) % 900), NULL, &block[i]));
		OK(execmem_code_allocate(heap, 1, NULL, &spare));
	}
	for (size_t i = 0; i < blocks; i++)
		OK(execmem_code_free(heap, block[i].rx));
	for (size_t i = 0; i < blocks; i++)
		OK(execmem_code_allocate(heap, SEGMENT * (1 + next_random(&random) % 900), NULL, &block[i]));
	EXPECT(figures_of(heap).most_steps <= (policy == EXECMEM_CODE_FIRST ? 250 : 160));
	OK(execmem_code_heap_destroy(heap));
}

int main(void)
{
	allocator = make(NULL);
	block = malloc(1000000 * sizeof(*block));
	for (enum execmem_code_policy policy = EXECMEM_CODE_FIRST; policy <= EXECMEM_CODE_NEAR; policy++) {
		for (size_t blocks = 100; blocks <= 1000000; blocks *= 100)
			run(policy, blocks);
	}
	run_sizes(EXECMEM_CODE_FIRST, 20000);
	run_sizes(EXECMEM_CODE_BEST, 20000);
	free(block);
	OK(execmem_destroy(allocator));
	return 0;
}
