/*
 * Threads allocate, write, run and free code, while others release: what is live runs and stays what it is, and never
 * loses its execute permission; what was live once is never seen again.
 */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include <execmem/code_heap.h>
#include <execmem/release.h>

#define THREADS 3
#define LIVE    96
#define STEPS   2500

static struct execmem_allocator *allocator;
static struct execmem_code_heap *heap;
static int stop;
static uint64_t releases, ran;

/* mov $value, %eax; ret: at the beginning of a block, and once more at its end. */
static void write_code(struct execmem_code *block, unsigned value)
{
	static __thread unsigned char code[8192];
	const unsigned char function[] = {0xb8, (unsigned char)value, (unsigned char)(value >> 8), 0, 0, 0xc3};

	memset(code, 0xcc, block->code_bytes);
	memcpy(code, function, sizeof(function));
	memcpy(code + block->code_bytes - sizeof(function), function, sizeof(function));
	OK(execmem_write(allocator, block->rx, code, block->code_bytes, 0));
}

static void run_code(const struct execmem_code *block, unsigned value)
{
	EXPECT_EQUAL(value, ((unsigned (*)(void))block->rx.at)());
	EXPECT_EQUAL(value, ((unsigned (*)(void))(block->rx.at + block->code_bytes - 6))());
	__atomic_add_fetch(&ran, 2, __ATOMIC_RELAXED);
}

static void *worker(void *argument)
{
	uint64_t id = (uintptr_t)argument, random = 0x51234567 + id * 0x9e3779b97f4a7c15u;
	struct execmem_code block[LIVE] = {{.bytes = 0}};
	unsigned value[LIVE];

	for (int step = 0; step < STEPS; step++) {
		uint64_t r = next_random(&random);
		size_t i = r % LIVE;

		if (block[i].bytes) {
			run_code(&block[i], value[i]);
			OK(execmem_code_free(heap, block[i].rx));
			block[i].bytes = 0;
		} else {
			OK(execmem_code_allocate(heap, 12 + (r >> 8) % 8000, NULL, &block[i]));
			value[i] = (unsigned)(r >> 30) & 0xffff;
			write_code(&block[i], value[i]);
			run_code(&block[i], value[i]);
		}
		i = r >> 50 & 63;
		if (block[i].bytes)
			run_code(&block[i], value[i]);
	}
	for (size_t i = 0; i < LIVE; i++) {
		if (block[i].bytes)
			OK(execmem_code_free(heap, block[i].rx));
	}
	return NULL;
}

static void *releaser(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct execmem_code_released released;

		OK(execmem_code_release(heap, NULL, &released));
		__atomic_add_fetch(&releases, released.pages, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(void)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_release_stats stats;
	struct execmem_code_released released;
	pthread_t thread[THREADS], release[2];
	struct execmem_code last;

	allocator = make(NULL);
	config.region_bytes = 1048576;
	OK(execmem_code_heap_create(allocator, &config, &heap));
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT_EQUAL(0, pthread_create(&thread[i], NULL, worker, (void *)i));
	for (int i = 0; i < 2; i++)
		EXPECT_EQUAL(0, pthread_create(&release[i], NULL, releaser, NULL));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(release[i], NULL);
	OK(execmem_code_release(heap, NULL, &released));
	OK(execmem_code_release_stats(heap, &stats));
	EXPECT_EQUAL(releases + released.pages, stats.pages);
	EXPECT_EQUAL(stats.pages * 4096, stats.bytes);
	EXPECT(stats.pages > 500 && ran > 5000);
	EXPECT_EQUAL(0, file_blocks());
	/* And it goes on. */
	OK(execmem_code_allocate(heap, 100, NULL, &last));
	write_code(&last, 77);
	run_code(&last, 77);
	OK(execmem_code_heap_destroy(heap));
	OK(execmem_destroy(allocator));
	return 0;
}
