/*
 * Any call of the stub heap from any thread, with caches and without: no slot is issued twice, each stub answers with
 * what its owner wrote, of two frees at once one is refused, and lookups agree while regions come and go.
 */
#define _GNU_SOURCE
#include "stubs.h"

#include "../stub_heap.h"

#include <pthread.h>

#define THREADS 4
#define LIVE    300
#define STEPS   20000
#define RACES   300

static struct execmem_allocator *allocator;
static struct execmem_stub_heap *heap;
static int stop;

static void check(const struct execmem_stub *stub, unsigned kind, uintptr_t value)
{
	struct execmem_stub_found found;

	if (kind != STUB_COUNTING) /* which counts in a cell that all share */
		EXPECT_EQUAL(stub_answer(kind, stub, value), stub_call(kind, stub));
	OK(execmem_stub_find(allocator, (const char *)stub->record + 11, &found));
	EXPECT(found.live && found.in_record && found.kind == kind && found.stub.rx.at == stub->rx.at);
}

static void *worker(void *argument)
{
	uint64_t id = (uintptr_t)argument, random = 0x1234567 + id * 0x9e3779b97f4a7c15u;
	struct execmem_stub_cache cache;
	struct execmem_stub stub[LIVE] = {{{0}, NULL}};
	unsigned own = 1 + (unsigned)id % (STUB_KINDS + 1), kind[LIVE];

	OK(execmem_stub_cache_create(heap, own, &cache));
	for (int step = 0; step < STEPS; step++) {
		uint64_t r = next_random(&random);
		size_t i = r % LIVE;

		if (!stub[i].record) {
			kind[i] = r >> 20 & 3 ? own : 1 + (unsigned)(r >> 24) % (STUB_KINDS + 1);
			OK(kind[i] == own && r >> 30 & 3 ? execmem_stub_cache_allocate(&cache, &stub[i])
							 : execmem_stub_allocate(heap, kind[i], &stub[i]));
			stub_aim(kind[i], &stub[i], id * LIVE + i);
			OK(execmem_stub_publish(heap, stub[i].rx, NULL));
			continue;
		}
		check(&stub[i], kind[i], id * LIVE + i);
		OK(r >> 40 & 3   ? execmem_stub_cache_free(&cache, stub[i].rx)
		   : r >> 42 & 1 ? execmem_stub_back_out(heap, stub[i].rx)
				 : execmem_stub_free(heap, stub[i].rx));
		stub[i].record = NULL;
		if (step % 500 == 0)
			OK(execmem_stub_cache_flush(&cache));
	}
	for (size_t i = 0; i < LIVE; i++) {
		if (stub[i].record)
			OK(execmem_stub_free(heap, stub[i].rx));
	}
	OK(execmem_stub_cache_destroy(&cache));
	return NULL;
}

static size_t give(void *context, void *address, size_t bytes)
{
	(void)context;
	OK(allocator->os.discard(allocator->os.context, address, bytes));
	return bytes;
}

/* Gives back what is free, all the time: nobody who has a stub may notice. */
static void *collector(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct execmem_stub_figures figures = stub_figures(heap);

		EXPECT(figures.live + figures.cached <= figures.slots);
		OK(execmem_stub_trim(heap, NULL));
		OK(execmem_stub_free_pages(heap, give, NULL));
	}
	return NULL;
}

/* Two threads free the same stub, each into its own cache or to the heap: one of them did. */

static struct execmem_stub shared;
static pthread_barrier_t barrier;

static void *racer(void *argument)
{
	struct execmem_stub_cache cache;
	unsigned *won = argument;

	OK(execmem_stub_cache_create(heap, STUB_CLOSURE, &cache));
	for (int i = 0; i < RACES; i++) {
		int error;

		pthread_barrier_wait(&barrier);
		error = (i + won[1]) % 3 ? execmem_stub_cache_free(&cache, shared.rx)
					 : execmem_stub_free(heap, shared.rx);
		EXPECT(error == 0 || error == EXECMEM_ERROR_FREED);
		won[0] += error == 0;
		pthread_barrier_wait(&barrier);
	}
	OK(execmem_stub_cache_destroy(&cache));
	return NULL;
}

static void race(void)
{
	unsigned won[2][2] = {{0, 0}, {0, 1}};
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 3);
	for (int i = 0; i < 2; i++)
		EXPECT_EQUAL(0, pthread_create(&threads[i], NULL, racer, won[i]));
	for (int i = 0; i < RACES; i++) {
		OK(execmem_stub_allocate(heap, STUB_CLOSURE, &shared));
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQUAL(RACES, won[0][0] + won[1][0]);
	pthread_barrier_destroy(&barrier);
}

int main(void)
{
	pthread_t threads[THREADS + 1];
	struct execmem_stub_figures figures;

	allocator = make(NULL);
	heap = stub_heap(allocator, 4096, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT_EQUAL(0, pthread_create(&threads[i], NULL, worker, (void *)i));
	EXPECT_EQUAL(0, pthread_create(&threads[THREADS], NULL, collector, NULL));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(threads[THREADS], NULL);
	race();
	figures = stub_figures(heap);
	EXPECT_EQUAL(0, figures.live);
	EXPECT_EQUAL(0, figures.cached);
	EXPECT_EQUAL(0, figures.caches);
	OK(execmem_stub_trim(heap, NULL));
	EXPECT_EQUAL(0, stub_figures(heap).regions);
	OK(execmem_stub_heap_destroy(heap));
	OK(execmem_destroy(allocator));
	return 0;
}
