/* Any call from any thread: mapping, eviction, release, lookups and statistics at once leave bytes and books right. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define UNIT    ((size_t)EXECMEM_UNIT_BYTES)
#define THREADS 4
#define SHARED  3
#define STEPS   4000

static struct execmem_allocator *allocator;
static struct execmem_region shared[SHARED];
static int stop;

static void write_and_check(uintptr_t at, unsigned char value, unsigned flags)
{
	struct execmem_view view;

	OK(execmem_map_rw(allocator, (execmem_rx){at}, 32, flags, &view));
	memset(view.rw.at, value, 32);
	OK(execmem_publish(&view, 0, 32, 0));
	for (int i = 0; i < 32; i++)
		EXPECT_EQUAL(value, ((const unsigned char *)at)[i]);
	OK(execmem_unmap_rw(&view));
}

static int release(const struct execmem_region *region, size_t offset, size_t bytes)
{
	(void)offset;
	(void)bytes;
	return execmem_release(region);
}

/* The racer below may have a view open there. */
static void retry(int (*call)(const struct execmem_region *, size_t, size_t), const struct execmem_region *region)
{
	int error;

	while ((error = call(region, UNIT, 4096)) == EXECMEM_ERROR_BUSY)
		sched_yield();
	OK(error);
}

static void *worker(void *argument)
{
	uint64_t id = (uintptr_t)argument, random = 0x1234567 + id * 0x9e3779b97f4a7c15u;

	for (int step = 0; step < STEPS; step++) {
		uint64_t r = next_random(&random);
		struct execmem_region own;
		struct execmem_found found;
		struct execmem_near near;

		/* A lane of each shared region is this thread's: lanes share windows, and so mappings. */
		write_and_check(shared[r % SHARED].rx.at + (r >> 8) % 8 * UNIT + id * 4096 + (r >> 16) % 4000,
				(unsigned char)step, r >> 60 == 0);
		if (r % 16)
			continue;
		near = (struct execmem_near){shared[0].rx.at, (size_t)1 << 30};
		OK(execmem_reserve(allocator, 2 * UNIT, r & 1024 ? &near : NULL, (unsigned)id, &own, &own));
		OK(execmem_commit(&own, 0, UNIT + 4096));
		write_and_check(own.rx.at + UNIT, (unsigned char)step, 0);
		OK(execmem_lookup(allocator, (void *)(own.rx.at + UNIT), &found));
		EXPECT(found.start.at == own.rx.at && found.owner == &own && found.kind == id);
		if (r & 2048)
			retry(execmem_decommit, &own);
		retry(release, &own);
		EXPECT_EQUAL(EXECMEM_ERROR_RELEASED, execmem_release(&own));
	}
	return NULL;
}

/* Maps what others release: found or not, but never something else. */
static void *racer(void *argument)
{
	uint64_t random = 77;

	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint64_t r = next_random(&random);
		uintptr_t at = shared[0].rx.at + (r % 4096) * UNIT;
		struct execmem_view view;
		struct execmem_stats stats;
		struct execmem_found found;
		int error = execmem_map_rw(allocator, (execmem_rx){at}, 1, 0, &view);

		EXPECT(error == 0 || error == EXECMEM_ERROR_NOT_FOUND || error == EXECMEM_ERROR_NOT_COMMITTED);
		if (!error)
			OK(execmem_unmap_rw(&view));
		error = execmem_lookup(allocator, (void *)at, &found);
		EXPECT(error == EXECMEM_ERROR_NOT_FOUND || at - found.start.at < found.bytes);
		OK(execmem_stats(allocator, &stats));
		EXPECT(stats.views_mapped <= 3 + stats.views_open + THREADS + 1);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS], race;
	struct execmem_stats stats;

	allocator = make(NULL);
	for (int i = 0; i < SHARED; i++)
		shared[i] = committed(allocator, 8 * UNIT);
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT_EQUAL(0, pthread_create(&thread[i], NULL, worker, (void *)i));
	EXPECT_EQUAL(0, pthread_create(&race, NULL, racer, NULL));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(race, NULL);
	stats = stats_of(allocator);
	EXPECT_EQUAL(0, stats.views_open);
	EXPECT_EQUAL(stats.views_cached, stats.views_mapped);
	EXPECT_EQUAL(SHARED, stats.regions);
	EXPECT_EQUAL(SHARED * 8 * UNIT, stats.committed_bytes);
	EXPECT_EQUAL(SHARED * 8 * UNIT, stats.file_used_bytes);
	for (int i = 0; i < SHARED; i++)
		OK(execmem_release(&shared[i]));
	EXPECT_EQUAL(0, file_blocks());
	OK(execmem_destroy(allocator));
	return 0;
}
