/* Any call of the code heap from any thread: no block is issued twice, each holds what its owner wrote, lookups agree.
 */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include <execmem/code_heap.h>

#define THREADS 4
#define LIVE    64
#define STEPS   3000

static struct execmem_allocator *allocator;
static struct execmem_code_heap *heap;
static int stop;
static unsigned warned;

static void check(const struct execmem_code *block, unsigned char value)
{
	struct execmem_code found;
	const unsigned char *at = (const unsigned char *)block->rx.at;

	for (size_t i = 0; i < block->code_bytes; i++)
		EXPECT_EQUAL(value, at[i]);
	/* Of a live block, whatever goes on around it, the answer is exact. */
	OK(execmem_code_find(allocator, at + block->code_bytes - 1, &found));
	EXPECT_EQUAL(block->rx.at, found.rx.at);
	EXPECT_EQUAL(block->bytes, found.bytes);
	EXPECT_EQUAL(block->code_bytes, found.code_bytes);
	EXPECT_EQUAL(block->kind, found.kind);
	EXPECT_EQUAL(block->kind, execmem_code_kind(allocator, at + block->bytes - 1));
}

static void *worker(void *argument)
{
	uint64_t id = (uintptr_t)argument, random = 0x3234567 + id * 0x9e3779b97f4a7c15u;
	struct execmem_code block[LIVE] = {{.bytes = 0}};
	unsigned char value[LIVE], code[600];

	for (int step = 0; step < STEPS; step++) {
		uint64_t r = next_random(&random);
		size_t i = r % LIVE;

		if (block[i].bytes == 0) {
			struct execmem_code_request request = {.kind = (unsigned)(r >> 20) % 3,
							       .align = r >> 30 & 7 ? 0 : 64};

			OK(execmem_code_allocate(heap, 1 + (r >> 8) % sizeof(code), &request, &block[i]));
			value[i] = (unsigned char)(id * 64 + (r >> 40) % 64);
			memset(code, value[i], block[i].code_bytes);
			OK(execmem_write(allocator, block[i].rx, code, block[i].code_bytes, 0));
			check(&block[i], value[i]);
			continue;
		}
		check(&block[i], value[i]);
		if (r >> 50 & 1) {
			OK(execmem_code_free(heap, block[i].rx));
			block[i].bytes = 0;
		} else {
			block[i].code_bytes = 1 + (r >> 12) % block[i].code_bytes;
			OK(execmem_code_shrink(heap, block[i].rx, block[i].code_bytes, &block[i].bytes));
			check(&block[i], value[i]);
		}
	}
	for (size_t i = 0; i < LIVE; i++) {
		if (block[i].bytes)
			OK(execmem_code_free(heap, block[i].rx));
	}
	return NULL;
}

/* Looks at everything, whatever it may be. */
static void *racer(void *argument)
{
	uintptr_t start = (uintptr_t)argument;
	uint64_t random = 77;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct execmem_code_figures figures;
		struct execmem_code found;
		const void *at = (const void *)(start + next_random(&random) % 300000);
		size_t counts[4];
		int error = execmem_code_find(allocator, at, &found);

		EXPECT(error == 0 || error == EXECMEM_ERROR_NOT_FOUND);
		EXPECT(execmem_code_kind(allocator, at) < 3);
		if (next_random(&random) % 64)
			continue;
		OK(execmem_code_figures(heap, &figures));
		EXPECT(figures.used_bytes <= figures.footprint_bytes &&
		       figures.unused_bytes < figures.used_bytes + (figures.used_bytes == 0));
		OK(execmem_code_histogram(heap, 64, counts, 4));
		EXPECT(counts[0] + counts[1] + counts[2] + counts[3] <= (size_t)THREADS * LIVE);
	}
	return NULL;
}

static void warn(void *context, const struct execmem_code_warning *warning)
{
	(void)context;
	EXPECT_EQUAL(EXECMEM_CODE_FREE_LIST, warning->event);
	__atomic_add_fetch(&warned, 1, __ATOMIC_RELAXED);
}

static void run(enum execmem_code_policy policy)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code_figures figures;
	struct execmem_code first;
	pthread_t thread[THREADS], race;

	config.policy = policy;
	config.segment_bytes = 16;
	config.region_bytes = 65536;
	config.free_blocks = 8;
	config.warn = warn;
	stop = 0;
	warned = 0;
	OK(execmem_code_heap_create(allocator, &config, &heap));
	OK(execmem_code_allocate(heap, 1, NULL, &first));
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT_EQUAL(0, pthread_create(&thread[i], NULL, worker, (void *)i));
	EXPECT_EQUAL(0, pthread_create(&race, NULL, racer, (void *)first.rx.at));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(race, NULL);
	OK(execmem_code_figures(heap, &figures));
	EXPECT_EQUAL(1, figures.live_blocks);
	EXPECT_EQUAL(15, figures.unused_bytes);
	EXPECT(warned > 0);
	OK(execmem_code_heap_destroy(heap));
}

int main(void)
{
	allocator = make(NULL);
	for (enum execmem_code_policy policy = EXECMEM_CODE_FIRST; policy <= EXECMEM_CODE_NEAR; policy++)
		run(policy);
	EXPECT_EQUAL(0, file_blocks());
	OK(execmem_destroy(allocator));
	return 0;
}
