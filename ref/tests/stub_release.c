/*
 * What a stub heap gives back: every page of records that no live stub touches and that was used, and no other, as
 * mincore says; live stubs keep their records and answer, slots are used again.
 */
#define _GNU_SOURCE
#include "stubs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <execmem/release.h>

#define MOST 20000

static struct execmem_allocator *allocator;
static struct execmem_stub_heap *heap;
static struct execmem_stub stub[MOST];
static bool live[MOST];
static uintptr_t page_of[MOST * 2]; /* pages of records that were used, each once, and whether they are owed */
static bool owed[MOST * 2];
static size_t page_count;

static void use(uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)4095;

	for (size_t i = page_count; i--;) {
		if (page_of[i] == page) {
			owed[i] = true;
			return;
		}
	}
	page_of[page_count] = page;
	owed[page_count++] = true;
}

static bool resident(uintptr_t page)
{
	unsigned char seen;

	EXPECT_EQUAL(0, mincore((void *)page, 4096, &seen));
	return seen & 1;
}

/* Pages that no live record touches, used since they went: they are to go, and *ranges of them lie side by side. */
static size_t expected(unsigned kind, size_t count, size_t record_bytes)
{
	static bool touched[MOST * 2];
	size_t pages = 0;

	(void)kind;
	memset(touched, 0, sizeof(touched));
	for (size_t i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)stub[i].record, low = at & ~(uintptr_t)4095;
		uintptr_t high = (at + record_bytes - 1) & ~(uintptr_t)4095;

		for (size_t k = 0; live[i] && k < page_count; k++)
			touched[k] |= page_of[k] == low || page_of[k] == high;
	}
	for (size_t k = 0; k < page_count; k++) {
		bool goes = owed[k] && !touched[k];

		EXPECT(!goes || resident(page_of[k]));
		pages += goes;
		owed[k] &= !goes;
	}
	return pages;
}

static void take(unsigned kind, size_t i, size_t record_bytes)
{
	OK(execmem_stub_allocate(heap, kind, &stub[i]));
	stub_aim(kind, &stub[i], i);
	live[i] = true;
	use((uintptr_t)stub[i].record);
	use((uintptr_t)stub[i].record + record_bytes - 1);
	for (size_t at = 0; at < record_bytes; at++) { /* all of it has memory */
		volatile unsigned char *byte = (unsigned char *)stub[i].record + at;

		*byte = *byte;
	}
}

static void release(unsigned kind, size_t count, size_t record_bytes)
{
	struct execmem_code_released released;
	size_t pages = expected(kind, count, record_bytes), gone = 0;

	OK(execmem_stub_release(heap, &released));
	EXPECT_EQUAL(pages, released.pages);
	EXPECT_EQUAL(pages * 4096, released.bytes);
	for (size_t k = 0; k < page_count; k++) {
		gone += !resident(page_of[k]);
		EXPECT_EQUAL(owed[k], resident(page_of[k]));
	}
	EXPECT(gone >= pages);
	OK(execmem_stub_release(heap, &released));
	EXPECT_EQUAL(0, released.pages);
	for (size_t i = 0; i < count; i++) {
		if (live[i])
			EXPECT_EQUAL(stub_answer(kind, &stub[i], i), stub_call(kind, &stub[i]));
	}
}

static void run(unsigned kind, size_t stub_page, uint64_t seed)
{
	size_t record_bytes = stub_kinds(stub_page)[kind - 1].record_bytes, count = 1500;
	uint64_t random = seed;

	test_seed = seed;
	heap = stub_heap(allocator, stub_page, 0);
	page_count = 0;
	memset(live, 0, sizeof(live));
	for (size_t i = 0; i < count; i++)
		take(kind, i, record_bytes);
	release(kind, count, record_bytes);
	for (int round = 0; round < 6; round++) {
		/* A stretch of them, and some of the others; then some again. */
		size_t from = next_random(&random) % count, length = next_random(&random) % count;

		for (size_t i = 0; i < count; i++) {
			if (live[i] && ((i >= from && i < from + length) || next_random(&random) % 16 == 0)) {
				OK(execmem_stub_free(heap, stub[i].rx));
				live[i] = false;
			}
		}
		release(kind, count, record_bytes);
		for (size_t i = 0; i < count; i++) {
			if (!live[i] && next_random(&random) % 3 == 0)
				take(kind, i, record_bytes);
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (live[i])
			OK(execmem_stub_free(heap, stub[i].rx));
		live[i] = false;
	}
	/* Refused, they stay to be given back. */
	watch.fail_name = "discard_many";
	watch.fail_with = EIO;
	watch.fail_from = watch.calls + 2;
	if (page_count > 3)
		EXPECT_EQUAL(-EIO, execmem_stub_release(heap, NULL));
	watch.fail_name = NULL;
	watch.fail_from = 0;
	release(kind, count, record_bytes);
	for (size_t k = 0; k < page_count; k++)
		EXPECT(!resident(page_of[k]));
	OK(execmem_stub_heap_destroy(heap));
}

int main(void)
{
	struct execmem_release_stats stats;

	allocator = make(NULL);
	for (unsigned kind = STUB_PRECODE; kind <= STUB_CLOSURE; kind++) {
		run(kind, 4096, 5 + kind);
		run(kind, 16384, 50 + kind);
	}
	heap = stub_heap(allocator, 16384, 0);
	OK(execmem_stub_release_stats(heap, &stats));
	EXPECT_EQUAL(0, stats.attempts);
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_release(NULL, NULL));
	OK(execmem_stub_heap_destroy(heap));
	OK(execmem_destroy(allocator));
	return 0;
}
