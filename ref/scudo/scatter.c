/*
 * Blocks that several threads free at random, and the pages that libexecmem gives back for it: one block size, ever
 * more of the blocks freed.
 *
 * usage: scatter BLOCK PAGE BLOCKS THREADS SEED PERCENT...
 *
 * BLOCKS blocks of BLOCK bytes side by side in private memory, every page of it written. Threads take them all, then
 * free each with probability PERCENT, ascending, in an order of their own, a transfer batch at a time. What is freed
 * depends on SEED alone. For each PERCENT one line of JSON:
 *
 *	percent, pages    as asked for; pages that lie wholly in the region
 *	freed             blocks that are free
 *	naive             pages whose blocks are all free, found by looking at each block of each page
 *	released          pages that policy `exact` gave back so far
 *	resident          pages' worth of memory that the system says went so far; null where PAGE is not its page, or
 *the region was not written (BLOCKS * BLOCK above 2 GiB) forced            what a forced release by policy `scudo`
 *decides: "go", or the rule that stops it forced_pages      pages that it gave back: those that went before, once more
 *	micros            microseconds of the release by `exact`; of its walk and the system together
 *
 * Exit status: 0; 1 where the library returned an error; 2 usage; 3 out of memory.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <execmem/release.h>

#define THREADS_MOST 64

static struct {
	struct execmem_release_layout layout;
	struct execmem_release_pages pages;
	struct execmem_release_class size_class;
	struct execmem_releaser releaser;
	unsigned threads;
	uint64_t seed;
	size_t next;                   /* block that nobody took yet; under `lock` */
	pthread_mutex_t lock;          /* the class: its pages, its counters */
	unsigned char *freed;          /* by block: what the threads did, kept without the library */
	uint32_t *taken[THREADS_MOST]; /* a thread's blocks */
	size_t taken_count[THREADS_MOST];
	uint64_t low, high; /* blocks whose number lies in [low, high) are freed now */
	unsigned char *memory;
} s;

static void check(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "scatter: %s: error %d\n", what, error);
	exit(1);
}

static void *get(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (memory)
		return memory;
	fprintf(stderr, "scatter: out of memory: %zu bytes\n", bytes);
	exit(3);
}

/* A number from 0 to 2^32 - 1 for each block, by the mixing of splitmix64. */
static uint64_t number(size_t block)
{
	uint64_t z =
		(s.seed + ((uint64_t)s.layout.block_bytes << 32)) * 0x9e3779b97f4a7c15u + block * 0xd1342543de82ef95u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) >> 32;
}

/* Batches of blocks that are not yet taken: neighbours go to different threads. */
static void *take_all(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;

	for (;;) {
		size_t from, to;

		pthread_mutex_lock(&s.lock);
		from = s.next;
		to = from + EXECMEM_RELEASE_BATCH < s.layout.blocks ? from + EXECMEM_RELEASE_BATCH : s.layout.blocks;
		s.next = to;
		for (size_t block = from; block < to; block++)
			execmem_release_take(&s.pages, block);
		s.size_class.popped_bytes += (to - from) * s.layout.block_bytes;
		pthread_mutex_unlock(&s.lock);
		if (from == to)
			return NULL;
		for (size_t block = from; block < to; block++)
			s.taken[thread][s.taken_count[thread]++] = (uint32_t)block;
	}
}

static void push(struct execmem_release_batch *batch)
{
	pthread_mutex_lock(&s.lock);
	for (uint32_t i = 0; i < batch->count; i++)
		execmem_release_give(&s.pages, batch->block[i]);
	s.size_class.pushed_bytes += batch->count * s.layout.block_bytes;
	pthread_mutex_unlock(&s.lock);
	execmem_release_batch_clear(batch);
}

static void *free_some(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;
	size_t count = s.taken_count[thread], at = 0, step = count / 2 + count / 9 + 1;
	struct execmem_release_batch batch = {.count = 0};

	/* Far from one to the next, and each once: a step without a common divisor. */
	for (size_t a = step, b = count; b;) {
		size_t rest = a % b;

		a = b;
		b = rest;
		if (!b && a != 1) {
			step++;
			a = step;
			b = count;
		}
	}
	for (size_t i = 0; i < count; i++, at = at + step < count ? at + step : at + step - count) {
		uint32_t block = s.taken[thread][at];
		uint64_t n = number(block);

		if (n < s.low || n >= s.high)
			continue;
		s.freed[block] = 1;
		batch.block[batch.count++] = block;
		if (batch.count == EXECMEM_RELEASE_BATCH)
			push(&batch);
	}
	push(&batch);
	return NULL;
}

static void in_threads(void *(*run)(void *))
{
	pthread_t thread[THREADS_MOST];

	for (uintptr_t i = 0; i < s.threads; i++)
		check(pthread_create(&thread[i], NULL, run, (void *)i), "pthread_create");
	for (unsigned i = 0; i < s.threads; i++)
		pthread_join(thread[i], NULL);
}

/* Pages of which every block that touches them is free, without the library. */
static size_t naive(size_t *freed)
{
	size_t page = s.layout.page_bytes, block = s.layout.block_bytes, count = 0;

	*freed = 0;
	for (size_t i = 0; i < s.layout.blocks; i++)
		*freed += s.freed[i];
	for (size_t at = 0; at + page <= s.layout.end; at += page) {
		size_t i = at / block;

		while (i * block < at + page && s.freed[i])
			i++;
		count += i * block >= at + page;
	}
	return count;
}

static size_t resident(void)
{
	size_t bytes = (s.layout.end + s.layout.page_bytes - 1) & ~(s.layout.page_bytes - 1), count = 0;
	unsigned char *seen = get(bytes / s.layout.page_bytes);

	check(mincore(s.memory, bytes, seen), "mincore");
	for (size_t i = 0; i < bytes / s.layout.page_bytes; i++)
		count += seen[i] & 1;
	free(seen);
	return count;
}

/* The free blocks as a list of batches. */
static struct execmem_release_batch *free_list(size_t freed, struct execmem_release_batch **memory)
{
	struct execmem_release_batch *list = NULL, *next;

	next = *memory = get((freed / EXECMEM_RELEASE_BATCH + 1) * sizeof(*next));
	for (size_t block = 0; block < s.layout.blocks; block++) {
		if (!s.freed[block])
			continue;
		if (!list || list->count == EXECMEM_RELEASE_BATCH) {
			next->next = list;
			list = next++;
		}
		list->block[list->count++] = (uint32_t)block;
	}
	return list;
}

static size_t forced(size_t freed, enum execmem_release_verdict *verdict)
{
	static struct execmem_releaser other;
	const struct execmem_release_area area = {s.memory, EXECMEM_NO_FILE, 0};
	struct execmem_release_batch *memory, *list = free_list(freed, &memory);

	execmem_releaser_init(&other, s.releaser.os);
	check(execmem_release_scudo(&other, &s.layout, &area, list, &s.size_class, true, 0, 0, verdict),
	      "execmem_release_scudo");
	free(memory);
	return (size_t)other.stats.bytes / s.layout.page_bytes;
}

static double micros(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void report(unsigned percent, bool measured, size_t before)
{
	static const char *const verdicts[] = {"go", "few-free", "few-new", "few-pushed", "dense", "never", "early"};
	const struct execmem_release_area area = {s.memory, EXECMEM_NO_FILE, 0};
	enum execmem_release_verdict verdict;
	size_t freed, expected = naive(&freed), released, again;
	double start = micros(), end;
	char gone[32] = "null";

	check(execmem_release_exact(&s.releaser, &s.pages, &area), "execmem_release_exact");
	end = micros();
	released = (size_t)s.releaser.stats.bytes / s.layout.page_bytes;
	if (measured)
		snprintf(gone, sizeof(gone), "%zu", before - resident());
	again = forced(freed, &verdict);
	printf("{\"percent\": %u, \"pages\": %zu, \"freed\": %zu, \"naive\": %zu, \"released\": %zu, \"resident\": %s, "
	       "\"forced\": \"%s\", \"forced_pages\": %zu, \"micros\": %.1f}\n",
	       percent, s.layout.end / s.layout.page_bytes, freed, expected, released, gone, verdicts[verdict], again,
	       end - start);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct execmem_os os;
	size_t os_page = (size_t)sysconf(_SC_PAGESIZE), bytes, before;
	bool measured;

	if (argc < 7) {
		fprintf(stderr, "usage: scatter BLOCK PAGE BLOCKS THREADS SEED PERCENT...\n");
		return 2;
	}
	s.layout.block_bytes = strtoull(argv[1], NULL, 10);
	s.layout.page_bytes = strtoull(argv[2], NULL, 10);
	s.layout.blocks = strtoull(argv[3], NULL, 10);
	s.threads = (unsigned)strtoul(argv[4], NULL, 10);
	s.seed = strtoull(argv[5], NULL, 10);
	s.layout.end = s.layout.blocks * s.layout.block_bytes;
	if (!execmem_release_layout_is_right(&s.layout) || s.layout.page_bytes % os_page || s.layout.blocks == 0 ||
	    s.layout.blocks > UINT32_MAX || s.threads == 0 || s.threads > THREADS_MOST) {
		fprintf(stderr, "scatter: a number that cannot be\n");
		return 2;
	}
	os = execmem_os_linux(os_page);
	execmem_releaser_init(&s.releaser, &os);
	pthread_mutex_init(&s.lock, NULL);
	check(execmem_release_pages_init(&s.pages, &s.layout, get(execmem_release_pages_bytes(&s.layout))),
	      "execmem_release_pages_init");
	s.size_class = (struct execmem_release_class){.page_bytes = s.layout.page_bytes,
						      .block_bytes = s.layout.block_bytes,
						      .allocated_bytes = s.layout.end};
	s.freed = get(s.layout.blocks + 1);
	for (unsigned i = 0; i < s.threads; i++)
		s.taken[i] = get(s.layout.blocks * sizeof(uint32_t));
	bytes = (s.layout.end + s.layout.page_bytes - 1) & ~(s.layout.page_bytes - 1);
	s.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s.memory == MAP_FAILED) {
		fprintf(stderr, "scatter: out of address space: %zu bytes\n", bytes);
		return 3;
	}
	(void)madvise(s.memory, bytes, MADV_NOHUGEPAGE);
	measured = s.layout.page_bytes == os_page && bytes <= (size_t)2 << 30;
	for (size_t i = 0; measured && i < bytes; i += os_page)
		s.memory[i] = 1;
	before = measured ? resident() : 0;
	in_threads(take_all);
	for (int i = 6; i < argc; i++) {
		unsigned percent = (unsigned)strtoul(argv[i], NULL, 10);

		s.high = ((uint64_t)percent << 32) / 100;
		if (percent > 100 || s.high < s.low) {
			fprintf(stderr, "scatter: PERCENT: expected 0 to 100, ascending, found %s\n", argv[i]);
			return 2;
		}
		in_threads(free_some);
		s.low = s.high;
		report(percent, measured, before);
	}
	return 0;
}
