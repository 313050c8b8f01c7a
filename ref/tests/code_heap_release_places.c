/*
 * Heaps that grow in turn share the memory file, so that neighbours in a heap are none in the file: what one gives back
 * is all its own, and nothing of the other's. And a release that found no page leaves what was freed as new.
 */
#include "test.h"

#include <string.h>

#include <execmem/code_heap.h>
#include <execmem/release.h>

#define BLOCK  ((size_t)65536)
#define BLOCKS 32 /* of each heap */
#define SPAN   (BLOCKS * BLOCK)

static struct execmem_allocator *allocator;

static struct execmem_code_heap *make_heap(size_t bytes, size_t segment, unsigned minimum)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code_heap *heap;

	config.segment_bytes = segment;
	config.minimum = minimum;
	config.policy = EXECMEM_CODE_FIRST;
	config.region_bytes = config.maximum_bytes = bytes;
	OK(execmem_code_heap_create(allocator, &config, &heap));
	return heap;
}

static void fill(const struct execmem_code *block, unsigned char value)
{
	static unsigned char code[BLOCK];

	memset(code, value, block->bytes);
	OK(execmem_write(allocator, block->rx, code, block->bytes, 0));
}

static void holds(const struct execmem_code *block, unsigned char value)
{
	const unsigned char *at = (const unsigned char *)block->rx.at;

	for (size_t i = 0; i < block->bytes; i++)
		EXPECT_EQUAL(value, at[i]);
}

static void places(void)
{
	static struct execmem_code block[2][BLOCKS];
	struct execmem_code_heap *heap[2] = {make_heap(SPAN, 64, 1), make_heap(SPAN, 64, 1)};
	struct execmem_code_released released;
	struct execmem_release_stats stats;

	for (size_t i = 0; i < BLOCKS; i++) {
		for (size_t k = 0; k < 2; k++) {
			OK(execmem_code_allocate(heap[k], BLOCK, NULL, &block[k][i]));
			fill(&block[k][i], (unsigned char)(1 + k));
		}
	}
	EXPECT_EQUAL(2 * SPAN, file_blocks());
	/* One free block, from the second block of the heap to its last but one. */
	for (size_t i = 1; i < BLOCKS - 1; i++)
		OK(execmem_code_free(heap[0], block[0][i].rx));
	OK(execmem_code_release(heap[0], NULL, &released));
	EXPECT_EQUAL((BLOCKS - 2) * BLOCK, released.bytes);
	EXPECT_EQUAL((BLOCKS - 2) * BLOCK / watch.page_bytes, released.pages);
	EXPECT_EQUAL(2 * SPAN - released.bytes, file_blocks());
	OK(execmem_code_release_stats(heap[0], &stats));
	EXPECT(stats.calls > 1); /* otherwise this shows nothing */
	EXPECT_EQUAL(stats.calls, released.ranges);
	for (size_t i = 0; i < BLOCKS; i++)
		holds(&block[1][i], 2);
	holds(&block[0][0], 1);
	holds(&block[0][BLOCKS - 1], 1);
	/* After the file's blocks were counted: reading gives a page to what has none. */
	for (size_t i = 1; i < BLOCKS - 1; i++)
		holds(&block[0][i], 0);
	OK(execmem_code_heap_destroy(heap[0]));
	OK(execmem_code_heap_destroy(heap[1]));
}

static void nothing_went(void)
{
	const struct execmem_code_release forced = {.policy = EXECMEM_RELEASE_SCUDO, .forced = true};
	struct execmem_code_heap *heap = make_heap(SPAN, 64, 64); /* its smallest block is not small */
	struct execmem_code block[BLOCKS];
	struct execmem_code_released released;

	for (size_t i = 0; i < BLOCKS; i++)
		OK(execmem_code_allocate(heap, watch.page_bytes, NULL, &block[i]));
	/* Half of each page is live. */
	for (size_t i = 0; i < BLOCKS; i++)
		OK(execmem_code_shrink(heap, block[i].rx, watch.page_bytes / 2, NULL));
	for (int times = 0; times < 3; times++) {
		OK(execmem_code_release(heap, &forced, &released));
		EXPECT_EQUAL(EXECMEM_RELEASE_GO, released.verdict);
		EXPECT_EQUAL(0, released.ranges);
	}
	/* As soon as a page went, there is nothing new. */
	OK(execmem_code_free(heap, block[1].rx));
	OK(execmem_code_release(heap, &forced, &released));
	EXPECT_EQUAL(1, released.pages);
	OK(execmem_code_release(heap, &forced, &released));
	EXPECT_EQUAL(EXECMEM_RELEASE_FEW_NEW, released.verdict);
	OK(execmem_code_heap_destroy(heap));
}

int main(void)
{
	allocator = make(NULL);
	places();
	OK(execmem_destroy(allocator));
	watch.page_bytes = 65536;
	allocator = make(NULL);
	places();
	nothing_went();
	EXPECT_EQUAL(0, file_blocks());
	OK(execmem_destroy(allocator));
	return 0;
}
