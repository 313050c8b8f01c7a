/* Committed pages are zero, run, and go back to the system with their blocks; wrong ranges change nothing. */
#include "test.h"

#define PAGE 4096
#define UNIT EXECMEM_UNIT_BYTES

static int call(execmem_rx code)
{
	return ((int (*)(void))code.at)();
}

int main(void)
{
	static const unsigned char seven[] = {0xb8, 7, 0, 0, 0, 0xc3}, eight[] = {0xb8, 8, 0, 0, 0, 0xc3};
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region region;
	struct execmem_found found;
	int owner;

	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_reserve(allocator, 0, NULL, 0, NULL, &region));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_reserve(allocator, SIZE_MAX, NULL, 0, NULL, &region));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_reserve(allocator, 1, NULL, EXECMEM_KIND_MAX + 1, NULL, &region));
	OK(execmem_reserve(allocator, 3 * UNIT + 1, NULL, 5, &owner, &region));
	EXPECT_EQUAL(4 * UNIT, region.bytes);
	EXPECT_EQUAL(0, region.rx.at % UNIT);

	OK(execmem_lookup(allocator, (void *)(region.rx.at + region.bytes - 1), &found));
	EXPECT(found.start.at == region.rx.at && found.bytes == region.bytes && found.owner == &owner);
	EXPECT_EQUAL(5, found.kind);
	EXPECT_EQUAL(5, execmem_kind(allocator, (void *)region.rx.at));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_lookup(allocator, &owner, &found));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_lookup(allocator, (void *)UINTPTR_MAX, &found));

	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_commit(&region, 0, 0));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_commit(&region, 1, PAGE));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_commit(&region, 0, PAGE - 1));
	EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, execmem_commit(&region, region.bytes, PAGE));
	EXPECT_EQUAL(EXECMEM_ERROR_OUTSIDE, execmem_commit(&region, PAGE, SIZE_MAX - PAGE + 1));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_COMMITTED, execmem_decommit(&region, 0, PAGE));

	OK(execmem_commit(&region, UNIT - PAGE, 2 * PAGE));
	EXPECT_EQUAL(EXECMEM_ERROR_COMMITTED, execmem_commit(&region, 0, UNIT));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_COMMITTED, execmem_decommit(&region, 0, UNIT));
	OK(execmem_write(allocator, (execmem_rx){region.rx.at + UNIT - 3}, seven, sizeof(seven), 0));
	EXPECT_EQUAL(7, call((execmem_rx){region.rx.at + UNIT - 3}));
	OK(execmem_write(allocator, (execmem_rx){region.rx.at + UNIT - 3}, eight, sizeof(eight), 0));
	EXPECT_EQUAL(8, call((execmem_rx){region.rx.at + UNIT - 3}));
	EXPECT_EQUAL(2 * PAGE, file_blocks());

	/* One page of a unit that stays, then the rest. */
	OK(execmem_commit(&region, UNIT + PAGE, PAGE));
	OK(execmem_decommit(&region, UNIT, PAGE));
	EXPECT_EQUAL(PAGE, file_blocks());
	OK(execmem_commit(&region, UNIT, PAGE));
	EXPECT_EQUAL(0, *(const unsigned char *)(region.rx.at + UNIT));
	OK(execmem_decommit(&region, UNIT - PAGE, 3 * PAGE));
	EXPECT_EQUAL(0, file_blocks());
	EXPECT_EQUAL(0, stats_of(allocator).committed_bytes);

	OK(execmem_commit(&region, 0, region.bytes));
	for (size_t i = 0; i < region.bytes; i++)
		EXPECT(((const unsigned char *)region.rx.at)[i] == 0);
	EXPECT_EQUAL(region.bytes, stats_of(allocator).committed_bytes);
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_destroy(allocator));
	OK(execmem_release(&region));
	EXPECT_EQUAL(EXECMEM_ERROR_RELEASED, execmem_release(&region));
	EXPECT_EQUAL(EXECMEM_ERROR_RELEASED, execmem_commit(&region, 0, PAGE));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_lookup(allocator, (void *)region.rx.at, &found));
	EXPECT_EQUAL(-1, execmem_kind(allocator, (void *)region.rx.at));
	EXPECT_EQUAL(0, file_blocks());
	EXPECT_EQUAL(0, stats_of(allocator).file_used_bytes);
	OK(execmem_destroy(allocator));
	return 0;
}
