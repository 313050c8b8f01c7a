/* A region near a target lies wholly within reach, on either side, up to the last gap of the window; else none is made.
 */
#define _GNU_SOURCE
#include "test.h"

#include <sys/mman.h>

#define UNIT  ((uintptr_t)EXECMEM_UNIT_BYTES)
#define REACH (16 * UNIT)

/* A stretch of address space of which all is taken but what a test frees. */
static uintptr_t take(size_t bytes)
{
	void *at = mmap(NULL, bytes + UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	EXPECT(at != MAP_FAILED);
	return ((uintptr_t)at + UNIT - 1) & ~(UNIT - 1);
}

static void reserve_gap(struct execmem_allocator *allocator, uintptr_t target, uintptr_t gap, size_t bytes, bool found)
{
	struct execmem_near near = {target, REACH};
	struct execmem_region region;
	unsigned long before;

	EXPECT_EQUAL(0, munmap((void *)gap, bytes));
	before = count_mappings();
	if (found) {
		OK(execmem_reserve(allocator, bytes, &near, 0, NULL, &region));
		EXPECT_EQUAL(gap, region.rx.at);
		OK(execmem_release(&region));
	} else {
		EXPECT_EQUAL(EXECMEM_ERROR_UNREACHABLE, execmem_reserve(allocator, bytes, &near, 0, NULL, &region));
	}
	EXPECT_EQUAL(before, count_mappings());
	EXPECT(mmap((void *)gap, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
	       (void *)gap);
}

int main(void)
{
	struct execmem_allocator *allocator = make(NULL);
	uintptr_t start = take(64 * UNIT), target = start + 32 * UNIT;
	struct execmem_near near = {target, UNIT - 1};
	struct execmem_region region;

	/* Something of each kind first, so that tables exist. */
	OK(execmem_reserve(allocator, 1, NULL, 0, NULL, &region));
	OK(execmem_release(&region));
	/* The last places of the window, and the first outside it. A byte `REACH` away is within reach. */
	reserve_gap(allocator, target, target - REACH, UNIT, true);
	reserve_gap(allocator, target, target - REACH - UNIT, UNIT, false);
	reserve_gap(allocator, target, target + REACH - UNIT, UNIT, true);
	reserve_gap(allocator, target, target + REACH, UNIT, false);
	reserve_gap(allocator, target, target + REACH - 3 * UNIT, 3 * UNIT, true);
	reserve_gap(allocator, target, target, 4 * UNIT, true);
	reserve_gap(allocator, target, target - 2 * UNIT, 4 * UNIT, true);
	/* A target inside a unit moves the window. */
	reserve_gap(allocator, target + 100, target + REACH, UNIT, false);
	reserve_gap(allocator, target + UNIT - 1, target + REACH, UNIT, true);
	reserve_gap(allocator, target + 1, target - REACH, UNIT, false);
	/* No room for anything, windows at the ends of the address space. */
	EXPECT_EQUAL(EXECMEM_ERROR_UNREACHABLE, execmem_reserve(allocator, 4 * UNIT, &near, 0, NULL, &region));
	near = (struct execmem_near){0, UNIT};
	EXPECT_EQUAL(EXECMEM_ERROR_UNREACHABLE, execmem_reserve(allocator, UNIT, &near, 0, NULL, &region));
	near = (struct execmem_near){UINTPTR_MAX, 8 * UNIT};
	EXPECT_EQUAL(EXECMEM_ERROR_UNREACHABLE, execmem_reserve(allocator, UNIT, &near, 0, NULL, &region));
	/* Everywhere is within reach. */
	near = (struct execmem_near){target, UINTPTR_MAX};
	OK(execmem_reserve(allocator, UNIT, &near, 0, NULL, &region));
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
	return 0;
}
