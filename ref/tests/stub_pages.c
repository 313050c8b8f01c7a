/*
 * Every byte of every kind of page is classified as a naive walk says, every stub of a page runs and reads its own
 * record, and code is never writable: on stub pages of 4 to 64 KiB, OS pages of 4 to 64 KiB, shared and written pages.
 */
#define _GNU_SOURCE
#include "stubs.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct execmem_stub_kind *kind_of(unsigned kind, size_t stub_page)
{
	static struct execmem_stub_kind patched;

	patched = stub_patched();
	return kind == STUB_PATCHED ? &patched : &stub_kinds(stub_page)[kind - 1];
}

/* All slots of one page pair are live, and nothing else of the heap's kind is. */
static void classify(struct execmem_allocator *allocator, const struct execmem_stub_kind *kind, uintptr_t code,
		     size_t stub_page)
{
	uint32_t pitch = kind->template.pitch, slots = (uint32_t)(stub_page / pitch);
	size_t code_bytes = (size_t)(kind->template.code_end - kind->template.code);

	for (size_t i = 0; i < 2 * stub_page; i++) {
		bool record = i >= stub_page;
		size_t at = record ? i - stub_page : i;
		uint32_t slot = (uint32_t)(at / pitch);
		struct execmem_stub_found found = {.slot = 77};
		int error = execmem_stub_find(allocator, (void *)(code + i), &found);

		EXPECT_EQUAL((int)kind->kind, execmem_kind(allocator, (void *)(code + i)));
		if (slot >= slots || at % pitch >= (record ? kind->record_bytes : code_bytes)) {
			EXPECT_EQUAL(EXECMEM_ERROR_PADDING, error);
			EXPECT_EQUAL(77, found.slot);
			continue;
		}
		OK(error);
		EXPECT_EQUAL(slot, found.slot);
		EXPECT_EQUAL(kind->kind, found.kind);
		EXPECT_EQUAL(record, found.in_record);
		EXPECT(found.live);
		EXPECT_EQUAL(code + (uintptr_t)slot * pitch, found.stub.rx.at);
		EXPECT_EQUAL(code + stub_page + (uintptr_t)slot * pitch, (uintptr_t)found.stub.record);
	}
}

static void fill_pages(struct execmem_allocator *allocator, struct execmem_stub_heap *heap, unsigned kind,
		       size_t stub_page)
{
	const struct execmem_stub_kind *k = kind_of(kind, stub_page);
	size_t slots = stub_page / k->template.pitch, count = 3 * slots;
	struct execmem_stub *stubs = calloc(count, sizeof(*stubs));

	OK(execmem_stub_allocate_many(heap, kind, stubs, count));
	for (size_t i = 0; i < count; i++) {
		EXPECT_EQUAL(stubs[i].rx.at + stub_page, (uintptr_t)stubs[i].record);
		EXPECT_EQUAL(i % slots * k->template.pitch, (stubs[i].rx.at - stubs[0].rx.at) % (2 * stub_page));
		for (unsigned b = 0; b < k->record_bytes; b++)
			EXPECT_EQUAL(0, ((unsigned char *)stubs[i].record)[b]);
		stub_aim(kind, &stubs[i], 1000 * kind + i);
		OK(execmem_stub_publish(heap, stubs[i].rx, NULL));
	}
	for (size_t i = 0; i < count; i++)
		EXPECT_EQUAL(stub_answer(kind, &stubs[i], 1000 * kind + i), stub_call(kind, &stubs[i]));
	for (size_t i = 0; i < count; i += slots)
		classify(allocator, k, stubs[i].rx.at, stub_page);
	/* Behind the last page that was made there is nothing yet. */
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND,
		     execmem_stub_find(allocator, (void *)(stubs[2 * slots].rx.at + 2 * stub_page),
				       &(struct execmem_stub_found){.slot = 0}));
	free(stubs);
}

/* Blocks of the sealed files that are open: what all shared code takes. */
static unsigned long sealed_bytes(void)
{
	unsigned long bytes = 0;

	for (int file = 3; file < 100; file++) {
		struct stat status;
		int seals = fcntl(file, F_GET_SEALS);

		if (seals == -1 || !(seals & F_SEAL_WRITE) || fstat(file, &status))
			continue;
		EXPECT_EQUAL(F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL, seals);
		bytes += (unsigned long)status.st_blocks * 512;
	}
	return bytes;
}

/* Records of three pages of each kind, and their code where it is not shared. */
static size_t used_bytes(size_t stub_page, bool written)
{
	size_t used = 0;

	for (unsigned i = 0; i < STUB_KINDS; i++) {
		const struct execmem_stub_kind *kind = &stub_kinds(stub_page)[i];
		size_t code = written ? (size_t)(kind->template.code_end - kind->template.code) : 0;

		used += 3 * (stub_page / kind->template.pitch) * (kind->record_bytes + code);
	}
	return used;
}

static void toggle(struct execmem_config *config)
{
	config->backends[0] = EXECMEM_BACKEND_TOGGLE;
}

static void run(size_t os_page, size_t stub_page, bool toggling)
{
	struct execmem_allocator *allocator;
	struct execmem_stub_heap *heap;
	struct execmem_stub_figures figures;
	unsigned long writable;

	watch.page_bytes = os_page;
	allocator = make(toggling ? toggle : NULL);
	heap = stub_heap(allocator, stub_page, 0);
	writable = (unsigned long)watch.writable;
	for (unsigned kind = STUB_PRECODE; kind <= STUB_CLOSURE; kind++)
		fill_pages(allocator, heap, kind, stub_page);
	figures = stub_figures(heap);
	EXPECT_EQUAL(12, figures.pages);
	EXPECT_EQUAL(4, figures.regions);
	EXPECT_EQUAL(12 * stub_page, figures.code_bytes);
	EXPECT_EQUAL(figures.slots, figures.live);
	EXPECT_EQUAL(0, figures.cached);
	/* Full pages lie side by side: what is computed for their size is what there is. */
	if (stub_page == 4096)
		EXPECT_EQUAL(figures.wasted_bytes, figures.wasted_4k);
	if (stub_page == 16384)
		EXPECT_EQUAL(figures.wasted_bytes, figures.wasted_16k);
	EXPECT_EQUAL(figures.code_memory + figures.data_memory - used_bytes(stub_page, toggling), figures.wasted_bytes);
	if (toggling) {
		EXPECT_EQUAL(12, figures.code_views);
		EXPECT_EQUAL(12 * stub_page, figures.code_memory);
	} else {
		/* One page a kind, sealed; no view of it was ever opened. */
		EXPECT_EQUAL(0, figures.code_views);
		EXPECT_EQUAL(writable, watch.writable);
		EXPECT_EQUAL(4 * stub_page, figures.code_memory);
		EXPECT_EQUAL(4 * stub_page, sealed_bytes());
	}
	fill_pages(allocator, heap, STUB_PATCHED, stub_page);
	EXPECT_EQUAL(toggling ? 15 : 3, stub_figures(heap).code_views);
	OK(execmem_stub_heap_destroy(heap));
	OK(execmem_destroy(allocator));
	EXPECT_EQUAL(0, watch.files);
}

static void choose(void)
{
	static const size_t all[] = {65536, 4096, 16384}, small[] = {4096}, large[] = {65536};
	size_t size = 1;

	OK(execmem_stub_page_choose(4096, all, 3, &size));
	EXPECT_EQUAL(16384, size);
	OK(execmem_stub_page_choose(16384, all, 3, &size));
	EXPECT_EQUAL(16384, size);
	OK(execmem_stub_page_choose(65536, all, 3, &size));
	EXPECT_EQUAL(65536, size);
	OK(execmem_stub_page_choose(4096, small, 1, &size));
	EXPECT_EQUAL(4096, size);
	OK(execmem_stub_page_choose(4096, large, 1, &size));
	EXPECT_EQUAL(65536, size);
	EXPECT_EQUAL(EXECMEM_ERROR_STUB_PAGE_REACH, execmem_stub_page_choose(16384, small, 1, &size));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_page_choose(5000, small, 1, &size));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_page_choose(4096, small, 0, &size));
	EXPECT_EQUAL(65536, size);
}

int main(void)
{
	static const size_t pages[] = {4096, 16384, 65536};

	choose();
	for (unsigned os = 0; os < 3; os++)
		for (unsigned stub = os; stub < 3; stub++)
			run(pages[os], pages[stub], false);
	run(4096, 16384, true);
	run(16384, 65536, true);
	return 0;
}
