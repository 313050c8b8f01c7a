/*
 * Stubs of 24 bytes on stub pages of 16 KiB, filled: by the stub heap, and by writing each page of code through a view
 * of its own. Memory is that of a million; in each round of time there are fewer.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <execmem/region.h>
#include <execmem/rwcache.h>
#include <execmem/stub_heap.h>

#define STUBS     1000000
#define TIMED     50000
#define STUB_PAGE ((size_t)16384)
#define PITCH     24
#define SLOTS     (STUB_PAGE / PITCH)
#define PAGES     ((STUBS + SLOTS - 1) / SLOTS)
#define BATCH     256

/* Bytes to be copied; nobody runs them here. */
static const unsigned char code[17] = {0xf3, 0x0f, 0x1e, 0xfa};
static const struct execmem_stub_kind kind = {
	.template = {code, code + sizeof(code), PITCH, NULL, 0}, .record_bytes = PITCH, .kind = 1};

static struct execmem_allocator *allocator;
static struct execmem_stub_heap *heap;
static struct execmem_region region;

static void fill(void *at, uintptr_t value)
{
	uintptr_t *record = at;

	record[0] = value;
	record[1] = value + 1;
	record[2] = value + 2;
}

/* ---- The stub heap ---- */

static void clear_heap(size_t count)
{
	struct execmem_stub_config config = {.kinds = &kind, .kind_count = 1, .stub_page = STUB_PAGE};

	(void)count;
	if (heap)
		bench_ok(execmem_stub_heap_destroy(heap), "execmem_stub_heap_destroy");
	bench_ok(execmem_stub_heap_create(allocator, &config, &heap), "execmem_stub_heap_create");
}

static void fill_heap(size_t count)
{
	struct execmem_stub stubs[BATCH];

	for (size_t done = 0; done < count; done += BATCH) {
		size_t now = count - done < BATCH ? count - done : BATCH;

		if (execmem_stub_allocate_many(heap, 1, stubs, now))
			bench_fail("execmem_stub_allocate_many");
		for (size_t i = 0; i < now; i++)
			fill(stubs[i].record, done + i);
	}
}

static void fill_one_by_one(size_t count)
{
	struct execmem_stub_cache cache;
	struct execmem_stub stub;

	bench_ok(execmem_stub_cache_create(heap, 1, &cache), "execmem_stub_cache_create");
	for (size_t i = 0; i < count; i++) {
		if (execmem_stub_cache_allocate(&cache, &stub))
			bench_fail("execmem_stub_cache_allocate");
		fill(stub.record, i);
	}
	bench_ok(execmem_stub_cache_destroy(&cache), "execmem_stub_cache_destroy");
}

/* ---- Each page through a view; nothing is kept of which slots are taken ---- */

static void clear_pages(size_t count)
{
	(void)count;
	if (region.bytes)
		bench_ok(execmem_release(&region), "execmem_release");
	bench_ok(execmem_reserve(allocator, 2 * STUB_PAGE * PAGES, NULL, 1, NULL, &region), "execmem_reserve");
}

static void fill_pages(size_t count)
{
	for (size_t done = 0, at = 0; done < count; at += 2 * STUB_PAGE) {
		unsigned char *data = (unsigned char *)region.rx.at + at + STUB_PAGE;
		struct execmem_view view;

		if (execmem_commit(&region, at, STUB_PAGE) ||
		    execmem_map_rw(allocator, (execmem_rx){region.rx.at + at}, STUB_PAGE, EXECMEM_MAP_SINGLE_USE,
				   &view) ||
		    execmem_stub_page_fill(&kind.template, view.rw, view.rx, STUB_PAGE) ||
		    execmem_publish(&view, 0, STUB_PAGE, 0) || execmem_unmap_rw(&view) ||
		    mmap(data, STUB_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
			    data)
			bench_fail("a page through a view");
		for (size_t i = 0; i < SLOTS && done < count; i++, done++)
			fill(data + i * PITCH, done);
	}
}

/* ---- Memory ---- */

/* The process's share of memory, files included, in bytes. */
static long memory(void)
{
	char line[256];
	long kib = -1;
	FILE *rollup = bench_must(fopen("/proc/self/smaps_rollup", "r"));

	while (fgets(line, sizeof(line), rollup))
		(void)sscanf(line, "Pss: %ld", &kib);
	fclose(rollup);
	return kib * 1024;
}

/* Memory of a file counts where it is mapped and was touched: so all code is read. */
static void read_code(uintptr_t first, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 4096)
		if (at / STUB_PAGE % 2 == 0)
			(void)*(volatile unsigned char *)(first + at);
}

static double heap_bytes(void)
{
	struct execmem_stub stub;
	long before, now;

	clear_heap(0);
	before = memory();
	for (size_t done = 0; done < STUBS; done++) {
		if (execmem_stub_allocate(heap, 1, &stub))
			bench_fail("execmem_stub_allocate");
		fill(stub.record, done);
		if (done % SLOTS == 0)
			read_code(stub.rx.at, STUB_PAGE);
	}
	now = memory();
	return (double)(now - before) / STUBS;
}

static double page_bytes(void)
{
	long before;

	clear_pages(0);
	before = memory();
	fill_pages(STUBS);
	read_code(region.rx.at, 2 * STUB_PAGE * PAGES);
	return (double)(memory() - before) / STUBS;
}

void bench_stubs(void)
{
	struct execmem_config config = execmem_config_default(execmem_os_linux((size_t)sysconf(_SC_PAGESIZE)));
	struct bench_pair pair;
	double of_heap, of_pages;

	bench_ok(execmem_create(&config, &allocator, NULL), "execmem_create");
	of_heap = heap_bytes();
	of_pages = page_bytes();
	printf("bytes of memory a stub: %.2f by the stub heap, %.2f by a view a page\n", of_heap, of_pages);
	bench_report_ratio("memory a stub, stub heap / a view a page", of_heap / of_pages, "<=", 0.52);
	pair = bench_compare(fill_heap, TIMED, clear_heap, fill_pages, TIMED, clear_pages);
	bench_report("a stub by a view a page / by the stub heap, many at once", pair, ">=", 2.5);
	pair = bench_compare(fill_one_by_one, TIMED, clear_heap, fill_pages, TIMED, clear_pages);
	bench_report("a stub by a view a page / through a cache, one by one", pair, ">=", 0);
	bench_ok(execmem_release(&region), "execmem_release");
	bench_ok(execmem_stub_heap_destroy(heap), "execmem_stub_heap_destroy");
	bench_ok(execmem_destroy(allocator), "execmem_destroy");
}
