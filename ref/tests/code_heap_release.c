/*
 * What a code heap gives back: every page of which no byte is live and that was used, and no other, as the file's
 * blocks say; what is live stays as it is, what went reads as zero and is used again. Random steps on both backends and
 * on large pages; and the patterns that are hard.
 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <execmem/code_heap.h>
#include <execmem/release.h>

#define OS_PAGE ((size_t)4096)
#define SPAN    ((size_t)4 << 20) /* of the heap that is looked at: its first region */

static struct execmem_allocator *allocator;
static struct execmem_code_heap *heap;
static uintptr_t start; /* of the heap's region */
static bool toggles;

static void toggle(struct execmem_config *config)
{
	config->backends[0] = EXECMEM_BACKEND_TOGGLE;
	config->backends[1] = EXECMEM_BACKEND_END;
}

/* ---- A model: which bytes are live, which pages of the system hold something ---- */

static struct {
	unsigned char live[SPAN / 16];      /* by 16 bytes */
	unsigned char held[SPAN / OS_PAGE]; /* since they were given back last */
	unsigned char owed[SPAN / OS_PAGE]; /* by page: used since it was given back last */
} model;

static void mark(const struct execmem_code *block, bool live)
{
	size_t from = block->rx.at - start, to = from + block->bytes, page = watch.page_bytes;

	EXPECT(from < SPAN && to <= SPAN);
	memset(&model.live[from / 16], live, block->bytes / 16);
	if (!live)
		return;
	for (size_t i = from / OS_PAGE; i <= (to - 1) / OS_PAGE; i++)
		model.held[i] = 1;
	for (size_t i = from / page; i <= (to - 1) / page; i++)
		model.owed[i] = 1;
}

/* Pages that are to go, and how many of the system's pages in them hold something. */
static size_t expected(size_t *held, bool settle)
{
	size_t page = watch.page_bytes, count = 0;

	*held = 0;
	for (size_t i = 0; i < SPAN / page; i++) {
		if (!model.owed[i] || memchr(&model.live[i * page / 16], 1, page / 16))
			continue;
		count++;
		for (size_t k = i * page / OS_PAGE; k < (i + 1) * page / OS_PAGE; k++) {
			*held += model.held[k];
			if (settle)
				model.held[k] = 0;
		}
		if (settle)
			model.owed[i] = 0;
	}
	return count;
}

static size_t resident(void)
{
	static unsigned char seen[SPAN / OS_PAGE];
	size_t count = 0;

	if (!toggles)
		return watch_blocks();
	EXPECT_EQUAL(0, mincore((void *)start, SPAN, seen));
	for (size_t i = 0; i < SPAN / OS_PAGE; i++)
		count += seen[i] & 1;
	return count * OS_PAGE;
}

static unsigned char content(const struct execmem_code *block)
{
	return (unsigned char)(block->rx.at / 16) | 1;
}

static void fill(struct execmem_code *block)
{
	static unsigned char code[4 * 65536];

	/* All of the block: execmem_write asks for no block's bounds. */
	memset(code, content(block), block->bytes);
	OK(execmem_write(allocator, block->rx, code, block->bytes, 0));
	mark(block, true);
}

static void check(const struct execmem_code *block)
{
	const unsigned char *at = (const unsigned char *)block->rx.at;

	EXPECT_EQUAL(content(block), at[0]);
	EXPECT_EQUAL(content(block), at[block->bytes - 1]);
}

static void release(void)
{
	struct execmem_code_released released;
	size_t before = resident(), held, pages = expected(&held, true), page = watch.page_bytes;

	OK(execmem_code_release(heap, NULL, &released));
	EXPECT_EQUAL(pages, released.pages);
	EXPECT_EQUAL(pages * page, released.bytes);
	EXPECT(released.ranges <= released.pages && (released.ranges > 0) == (released.pages > 0));
	EXPECT_EQUAL(EXECMEM_RELEASE_GO, released.verdict);
	EXPECT_EQUAL(held * OS_PAGE, before - resident());
	OK(execmem_code_release(heap, NULL, &released));
	EXPECT_EQUAL(0, released.pages);
}

static void make_heap(enum execmem_code_policy policy, size_t segment, unsigned minimum)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code first;

	config.policy = policy;
	config.segment_bytes = segment;
	config.minimum = minimum;
	config.region_bytes = SPAN;
	config.maximum_bytes = SPAN;
	memset(&model, 0, sizeof(model));
	OK(execmem_code_heap_create(allocator, &config, &heap));
	start = 0;
	OK(execmem_code_allocate(heap, 1, NULL, &first));
	start = first.rx.at & ~(uintptr_t)65535;
	OK(execmem_code_free(heap, first.rx));
	(void)memset(&model.owed[(first.rx.at - start) / watch.page_bytes], 1, 1);
	release();
}

static void random_steps(uint64_t seed, enum execmem_code_policy policy)
{
	static struct execmem_code block[400];
	uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
	const size_t segment = (size_t)16 << seed % 4;
	size_t most = 64 + ((size_t)16 << seed % 9);

	test_seed = seed;
	memset(block, 0, sizeof(block));
	make_heap(policy, segment, 1 + (unsigned)seed % 3);
	for (int step = 0; step < 1500; step++) {
		uint64_t r = next_random(&random);
		size_t i = r % 400;

		/* Phases that fill, and that empty. */
		if (!block[i].bytes) {
			if ((r >> 10 & 3) == 0 && step / 300 % 2)
				continue;
			OK(execmem_code_allocate(heap, 1 + (r >> 16) % most, NULL, &block[i]));
			fill(&block[i]);
		} else if ((r >> 10 & 3) == 0 || step / 300 % 2) {
			check(&block[i]);
			OK(execmem_code_free(heap, block[i].rx));
			mark(&block[i], false);
			block[i].bytes = 0;
		} else if (block[i].bytes > segment) {
			size_t left, bytes = 1 + (r >> 16) % block[i].code_bytes;
			struct execmem_code tail = block[i];

			OK(execmem_code_shrink(heap, block[i].rx, bytes, &left));
			tail.rx.at += left;
			tail.bytes -= left;
			if (tail.bytes)
				mark(&tail, false);
			block[i].bytes = left;
			block[i].code_bytes = bytes;
		}
		if (r >> 40 & 63)
			continue;
		release();
		for (size_t k = 0; k < 400; k++) {
			if (block[k].bytes)
				check(&block[k]);
		}
	}
	for (size_t i = 0; i < 400; i++) {
		if (!block[i].bytes)
			continue;
		OK(execmem_code_free(heap, block[i].rx));
		mark(&block[i], false);
	}
	release();
	EXPECT_EQUAL(0, resident());
	for (size_t i = 0; i < 65536; i += 512)
		EXPECT_EQUAL(0, ((const unsigned char *)start)[i]);
	OK(execmem_code_heap_destroy(heap));
}

/* ---- Hard patterns ---- */

static void free_one(const struct execmem_code *block)
{
	OK(execmem_code_free(heap, block->rx));
	mark(block, false);
}

/* Blocks side by side, in few writes. */
static void fill_many(const struct execmem_code *block, size_t count)
{
	static unsigned char code[65536];
	const size_t each = sizeof(code) / block->bytes;

	for (size_t i = 0; i < count; i++) {
		memset(code + i % each * block->bytes, content(&block[i]), block->bytes);
		mark(&block[i], true);
		if (i % each == each - 1 || i == count - 1)
			OK(execmem_write(allocator, block[i - i % each].rx, code, (i % each + 1) * block->bytes, 0));
	}
}

static void patterns(void)
{
	static struct execmem_code block[65536];
	const size_t count = (SPAN - 65536) / 64;
	struct execmem_code_released released;
	struct execmem_code large;
	size_t page = watch.page_bytes, each = page / 64;

	make_heap(EXECMEM_CODE_FIRST, 64, 1);
	for (size_t i = 0; i < count; i++) {
		OK(execmem_code_allocate(heap, 64, NULL, &block[i]));
		EXPECT_EQUAL(start + i * 64, block[i].rx.at);
	}
	fill_many(block, count);
	/* One that is free, in the last group; a free span a block less than a page, and one of a page across two. */
	free_one(&block[count - 1]);
	release();
	for (size_t i = 0; i < each - 1; i++)
		free_one(&block[4 * each + i]);
	for (size_t i = each / 2; i < each + each / 2; i++)
		free_one(&block[8 * each + i]);
	OK(execmem_code_release(heap, NULL, &released));
	EXPECT_EQUAL(0, released.pages);
	/* The last of a page, and exactly that page goes. */
	free_one(&block[5 * each - 1]);
	release();
	check(&block[5 * each]);
	/* A checkerboard: nothing. Its other half: everything. */
	for (size_t i = 16 * each; i < 32 * each; i += 2)
		free_one(&block[i]);
	OK(execmem_code_release(heap, NULL, &released));
	EXPECT_EQUAL(0, released.pages);
	for (size_t i = 16 * each + 1; i < 32 * each; i += 2)
		free_one(&block[i]);
	OK(execmem_code_release(heap, NULL, &released));
	EXPECT_EQUAL(16, released.pages);
	EXPECT_EQUAL(1, released.ranges);
	(void)expected(&(size_t){0}, true);
	/* Many that are tiny, then one that is large, over pages that went. */
	for (size_t i = 0; i < count; i++) {
		bool gone = i == count - 1 || (i >= 4 * each && i < 5 * each) ||
			    (i >= 8 * each + each / 2 && i < 9 * each + each / 2) || (i >= 16 * each && i < 32 * each);

		if (!gone)
			free_one(&block[i]);
	}
	release();
	EXPECT_EQUAL(0, resident());
	OK(execmem_code_allocate(heap, SPAN - 65536, NULL, &large));
	for (size_t i = 0; i < SPAN - 65536; i += 256)
		EXPECT_EQUAL(0, ((const unsigned char *)large.rx.at)[i]);
	OK(execmem_code_free(heap, large.rx));
	OK(execmem_code_heap_destroy(heap));
}

/* ---- Refusals and decisions ---- */

static void refused(void)
{
	struct execmem_code block[4];
	struct execmem_code_released released = {0};
	struct execmem_release_stats stats;

	make_heap(EXECMEM_CODE_FIRST, 64, 1);
	for (int i = 0; i < 4; i++) {
		OK(execmem_code_allocate(heap, 4 * watch.page_bytes, NULL, &block[i]));
		fill(&block[i]);
	}
	free_one(&block[0]);
	free_one(&block[2]);
	watch.fail_name = toggles ? "discard" : "file_punch";
	watch.fail_with = EIO;
	if (toggles) /* together they would go */
		free_one(&block[1]);
	EXPECT_EQUAL(-EIO, execmem_code_release(heap, NULL, &released));
	EXPECT_EQUAL(0, released.pages);
	watch.fail_name = NULL;
	release();
	OK(execmem_code_release_stats(heap, &stats));
	EXPECT_EQUAL(toggles ? 12 : 8, stats.pages - 1);
	EXPECT_EQUAL(1, stats.refused);
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_release(NULL, NULL, NULL));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT,
		     execmem_code_release(heap, &(struct execmem_code_release){.policy = 2}, NULL));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_release_stats(heap, NULL));
	OK(execmem_code_heap_destroy(heap));
}

static struct execmem_code_released scudo(bool forced, int32_t interval_ms, uint64_t now_ns)
{
	struct execmem_code_release request = {EXECMEM_RELEASE_SCUDO, forced, interval_ms, now_ns};
	struct execmem_code_released released;

	OK(execmem_code_release(heap, &request, &released));
	return released;
}

/* The heap counts what the decisions ask for. */
static void decisions(void)
{
	static struct execmem_code block[1024];
	size_t page = watch.page_bytes, each = page / 64;

	make_heap(EXECMEM_CODE_FIRST, 64, 1);
	for (size_t i = 0; i < 1024; i++) {
		OK(execmem_code_allocate(heap, page / 16, NULL, &block[i])); /* 64 pages, used to the last byte */
		fill(&block[i]);
	}
	EXPECT_EQUAL(EXECMEM_RELEASE_FEW_FREE, scudo(true, 0, 0).verdict);
	free_one(&block[0]);
	for (size_t i = 2; i < 17; i++)
		free_one(&block[i]);
	/* A page is free in all, of 64; small blocks want 95 percent. */
	EXPECT_EQUAL(EXECMEM_RELEASE_FEW_PUSHED, scudo(false, 0, 0).verdict);
	EXPECT_EQUAL(EXECMEM_RELEASE_DENSE, scudo(true, 0, 0).verdict);
	for (size_t i = 17; i < 1004; i++)
		free_one(&block[i]);
	EXPECT_EQUAL(EXECMEM_RELEASE_NEVER, scudo(false, -1, 0).verdict);
	EXPECT_EQUAL(EXECMEM_RELEASE_EARLY, scudo(false, 10, 9999999).verdict);
	/* All but the first, which block 1 lies in, and the last two. */
	EXPECT_EQUAL(61, scudo(false, 10, 10000000).pages);
	EXPECT_EQUAL(EXECMEM_RELEASE_FEW_NEW, scudo(true, 0, 0).verdict);
	free_one(&block[1]);
	EXPECT_EQUAL(EXECMEM_RELEASE_FEW_NEW, scudo(true, 0, 0).verdict);
	for (size_t i = 1004; i < 1023; i++)
		free_one(&block[i]);
	EXPECT_EQUAL(2, scudo(true, 0, 0).pages);
	(void)each;
	OK(execmem_code_heap_destroy(heap));
}

static void everything(bool with_toggle)
{
	toggles = with_toggle;
	allocator = make(with_toggle ? toggle : NULL);
	for (uint64_t seed = 1; seed <= 6; seed++)
		random_steps(seed, (enum execmem_code_policy)(seed % 3));
	patterns();
	refused();
	if (watch.page_bytes == 4096)
		decisions();
	if (!with_toggle)
		EXPECT_EQUAL(0, file_blocks());
	OK(execmem_destroy(allocator));
}

int main(void)
{
	everything(false);
	everything(true);
	watch.page_bytes = 65536;
	everything(false);
	return 0;
}
