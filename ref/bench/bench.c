/*
 * The library against what it replaces, natively: medians over rounds in which the two sides of every ratio take turns,
 * so that a slow moment of the machine meets both. Prints a table; exit status 1 where a goal is missed.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <execmem/region.h>
#include <execmem/rwcache.h>

#define UNIT           ((size_t)EXECMEM_UNIT_BYTES)
#define WINDOW         UNIT
#define REGIONS        100000
#define LIST           256
#define LOOKS          4096

/* Two threads that share nothing must be this much quicker than one before anything is said about threads. */
#define TWO_PROCESSORS 1.8

static unsigned char code[16] = {0xb8, 7, 0, 0, 0, 0xc3};
static unsigned char *page; /* the mprotect pair's, and */
static int file;            /* the bare mapping's */
static struct execmem_allocator *cached, *uncached, *many;
static struct execmem_region hit, fresh, miss;
static size_t fresh_at;

void *bench_must(void *pointer)
{
	if (!pointer || pointer == MAP_FAILED)
		bench_fail("memory");
	return pointer;
}

static struct execmem_allocator *create(unsigned rw_cache)
{
	struct execmem_config config = execmem_config_default(execmem_os_linux((size_t)sysconf(_SC_PAGESIZE)));
	struct execmem_allocator *allocator;

	config.rw_cache = rw_cache;
	bench_ok(execmem_create(&config, &allocator, NULL), "execmem_create");
	return allocator;
}

static struct execmem_region reserve(struct execmem_allocator *allocator, size_t bytes, bool commit)
{
	struct execmem_region region;

	bench_ok(execmem_reserve(allocator, bytes, NULL, 1, NULL, &region), "execmem_reserve");
	if (commit)
		bench_ok(execmem_commit(&region, 0, bytes), "execmem_commit");
	return region;
}

/* ---- Writing ---- */

static void write_at(struct execmem_allocator *allocator, const struct execmem_region *region, size_t offset)
{
	struct execmem_view view;

	if (execmem_map_rw(allocator, (execmem_rx){region->rx.at + offset}, sizeof(code), 0, &view))
		bench_fail("execmem_map_rw");
	memcpy(view.rw.at, code, sizeof(code));
	if (execmem_publish(&view, 0, sizeof(code), 0) || execmem_unmap_rw(&view))
		bench_fail("execmem_publish");
}

/* New code, one piece behind the other; at the end of the region it is emptied, which is not timed. */
static void write_fresh(size_t count)
{
	for (size_t i = 0; i < count; i++, fresh_at += 64)
		write_at(cached, &fresh, fresh_at);
}

static void empty_fresh(size_t count)
{
	if (fresh_at + count * 64 <= fresh.bytes)
		return;
	bench_ok(execmem_decommit(&fresh, 0, fresh.bytes), "execmem_decommit");
	bench_ok(execmem_commit(&fresh, 0, fresh.bytes), "execmem_commit");
	for (size_t i = 0; i < fresh.bytes; i += 4096) /* pages are there, and the view is cached */
		write_at(cached, &fresh, i);
	fresh_at = 64;
}

static void write_again(size_t count)
{
	for (size_t i = 0; i < count; i++)
		write_at(cached, &hit, i % 64 * 64);
}

static void protect_pair(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
			bench_fail("mprotect");
		memcpy(page + i % 64 * 64, code, sizeof(code));
		if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
			bench_fail("mprotect");
	}
}

static void write_missed(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct execmem_view view;

		if (execmem_map_rw(uncached, miss.rx, sizeof(code), 0, &view))
			bench_fail("execmem_map_rw");
		view.rw.at[0] = 1;
		if (execmem_unmap_rw(&view))
			bench_fail("execmem_unmap_rw");
	}
}

static void map_bare(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned char *at = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

		if (at == MAP_FAILED)
			bench_fail("mmap");
		at[0] = 1;
		munmap(at, WINDOW);
	}
}

/* ---- Looking up ---- */

static struct node {
	struct node *next;
	uintptr_t start, end;
	char other[40]; /* a cache line, as a descriptor of a range is at least */
} *list;
static uintptr_t *starts; /* of the regions */
static const void *looks[LOOKS];
static volatile uintptr_t sink;

static void choose_looks(size_t regions)
{
	uint64_t state = 88172645463325252u;

	for (size_t i = 0; i < LOOKS; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		looks[i] = (const void *)(starts[(state >> 8) % regions] + (state >> 40) % UNIT);
	}
}

static void look_up(size_t count)
{
	struct execmem_found found;
	uintptr_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (execmem_lookup(many, looks[i % LOOKS], &found))
			bench_fail("execmem_lookup");
		sum += found.start.at;
	}
	sink = sum;
}

/* The same by the function that the library has of it, as another language or a plug-in would. */
static void look_up_by_call(size_t count)
{
	int (*volatile chosen)(struct execmem_allocator *, const void *, struct execmem_found *) = execmem_lookup;
	int (*call)(struct execmem_allocator *, const void *, struct execmem_found *) = chosen;
	struct execmem_found found;
	uintptr_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (call(many, looks[i % LOOKS], &found))
			bench_fail("execmem_lookup");
		sum += found.start.at;
	}
	sink = sum;
}

static void look_up_kind(size_t count)
{
	uintptr_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (uintptr_t)execmem_kind(many, looks[i % LOOKS]);
	if (sum != count)
		bench_fail("execmem_kind");
}

static void walk_list(size_t count)
{
	uintptr_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)looks[i % LOOKS];
		const struct node *node = list;

		while (at < node->start || at >= node->end)
			node = node->next;
		sum += node->start;
	}
	sink = sum;
}

static void make_list(void)
{
	for (size_t i = 0; i < LIST; i++) {
		struct node *node = bench_must(aligned_alloc(64, sizeof(*node)));

		*node = (struct node){.next = list, .start = starts[i], .end = starts[i] + UNIT};
		list = node;
	}
}

/* The growth of a look-up's cost from one region to `regions`; each against one region, measured in turn. */
static double growth(bench_side *look, size_t regions)
{
	double ratio[BENCH_ROUNDS];

	for (int i = 0; i < BENCH_ROUNDS; i++) {
		double one, all;

		choose_looks(1);
		one = bench_time(look, LOOKS * 4);
		choose_looks(regions);
		(void)bench_time(look, LOOKS);
		all = bench_time(look, LOOKS * 4);
		ratio[i] = all / one;
	}
	return bench_median(ratio, BENCH_ROUNDS);
}

static void measure_lookup(void)
{
	size_t made = 0;
	struct bench_pair pair;

	many = create(0);
	starts = bench_must(malloc(REGIONS * sizeof(*starts)));
	for (; made < LIST; made++)
		starts[made] = reserve(many, UNIT, false).rx.at;
	make_list();
	choose_looks(LIST);
	pair = bench_compare(look_up, 20000, NULL, walk_list, 500, NULL);
	bench_report("list of 256 ranges / execmem_lookup", pair, ">=", 100);
	pair = bench_compare(look_up_by_call, 20000, NULL, walk_list, 500, NULL);
	bench_report("list of 256 ranges / execmem_lookup, called", pair, ">=", 0);
	pair = bench_compare(look_up_kind, 20000, NULL, walk_list, 500, NULL);
	bench_report("list of 256 ranges / execmem_kind", pair, ">=", 100);
	for (; made < REGIONS; made++)
		starts[made] = reserve(many, UNIT, false).rx.at;
	for (size_t regions = 10; regions <= REGIONS; regions *= 10) {
		char name[64];

		snprintf(name, sizeof(name), "execmem_lookup, %zu regions / 1", regions);
		bench_report_ratio(name, growth(look_up, regions), "<=", 2);
		snprintf(name, sizeof(name), "execmem_kind, %zu regions / 1", regions);
		bench_report_ratio(name, growth(look_up_kind, regions), "<=", 2);
	}
}

/* ---- Bookkeeping ---- */

static long anonymous_bytes(void)
{
	char line[256];
	long kib = -1;
	FILE *status = bench_must(fopen("/proc/self/status", "r"));

	while (fgets(line, sizeof(line), status))
		(void)sscanf(line, "RssAnon: %ld", &kib);
	fclose(status);
	return kib * 1024;
}

static void measure_books(const char *name, size_t regions, size_t bytes)
{
	long before = anonymous_bytes();
	struct execmem_allocator *allocator = create(3);

	for (size_t i = 0; i < regions; i++)
		(void)reserve(allocator, bytes, true);
	bench_report_ratio(name, 100.0 * (double)(anonymous_bytes() - before) / (double)(regions * bytes), "<", 1);
}

/* ---- Threads ---- */

static struct execmem_region of_thread[2];

static void write_in_region(void *argument, size_t count)
{
	const struct execmem_region *region = argument;

	for (size_t i = 0; i < count; i++)
		write_at(cached, region, i % 64 * 64);
}

/* Work that nothing is shared by: what two processors of this machine give at this moment. */
static void count_alone(void *argument, size_t count)
{
	uint64_t state = (uintptr_t)argument;

	for (size_t i = 0; i < count * 20; i++)
		state = state * 6364136223846793005u + 1442695040888963407u;
	sink = state;
}

/* Whether there are two processors to spare. */
static bool measure_threads(void)
{
	double ratio[BENCH_ROUNDS], alone[BENCH_ROUNDS], free;
	void *both[2] = {&of_thread[0], &of_thread[1]};

	for (int i = 0; i < 2; i++) {
		of_thread[i] = reserve(cached, UNIT, true);
		write_in_region(&of_thread[i], 64);
	}
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		double one = bench_threads(write_in_region, both, 1, 50000);

		ratio[i] = 2 * one / bench_threads(write_in_region, both, 2, 50000);
		one = bench_threads(count_alone, both, 1, 100000);
		alone[i] = 2 * one / bench_threads(count_alone, both, 2, 100000);
	}
	free = bench_median(alone, BENCH_ROUNDS);
	bench_report_ratio("two threads / one thread, at work that shares nothing", free, ">=", 0);
	bench_report_ratio("two threads in two regions / one thread, writes a second",
			   bench_median(ratio, BENCH_ROUNDS), ">=", free < TWO_PROCESSORS ? 0 : 1.7);
	if (free < TWO_PROCESSORS)
		printf("two threads are not judged: this machine has no two processors to spare at the moment\n");
	return free >= TWO_PROCESSORS;
}

int main(void)
{
	struct bench_pair pair;

	page = bench_must(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	file = memfd_create("bench", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, WINDOW))
		bench_fail("memfd_create");
	cached = create(3);
	uncached = create(0);
	hit = reserve(cached, UNIT, true);
	fresh = reserve(cached, UNIT, true);
	miss = reserve(uncached, UNIT, true);
	fresh_at = fresh.bytes;
	empty_fresh(1);
	write_again(64);

	bench_header();
	pair = bench_compare(write_fresh, 500, empty_fresh, protect_pair, 100, NULL);
	bench_report("mprotect pair with a write / cached write of new code", pair, ">=", 120);
	empty_fresh(1000);
	bench_report_count("  instructions of a cached write of new code", bench_instructions(write_fresh));
	pair = bench_compare(write_again, 500, NULL, protect_pair, 100, NULL);
	bench_report("mprotect pair with a write / cached write over old code", pair, ">=", 0);
	bench_report_count("  instructions of a cached write over old code", bench_instructions(write_again));
	pair = bench_compare(map_bare, 200, NULL, write_missed, 200, NULL);
	bench_report("a write that misses / bare map, touch, unmap", pair, "<=", 1.1);
	measure_lookup();
	measure_books("% bookkeeping of 64 MiB committed in one region", 1, (size_t)64 << 20);
	measure_books("% bookkeeping of 64 MiB committed in 1024 regions", 1024, UNIT);
	measure_books("% bookkeeping of 256 MiB committed in 64 regions", 64, (size_t)4 << 20);
	bench_heaps(measure_threads());
	bench_stubs();
	return bench_missed() ? 1 : 0;
}
