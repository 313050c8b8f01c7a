/*
 * What a region is known by, and that each has memory of its own.
 */
#include "../alloc/alloc.h"

/* ---- Looking up ---- */

#define REGIONS  4u
#define KIND(i_) ((i_) * 7u) /* more than three bits */

static struct subject_allocator *allocator;
static struct subject_region regions[REGIONS];
static char owners[REGIONS];

static bool leads_to(uintptr_t at, unsigned i)
{
	struct subject_found found = {0, 0, NULL, ~0u};

	check_note_number("address", at);
	check_note_number("region", i);
	return ALLOC_OK(ALLOC(lookup)(allocator, (const void *)at, &found)) &&
	       CHECK_EQUAL(regions[i].rx, found.start, "an address leads to the start of its region") &&
	       CHECK_EQUAL(regions[i].bytes, found.bytes, "and to its size") &&
	       CHECK_EQUAL((uintptr_t)&owners[i], (uintptr_t)found.owner, "and to its owner") &&
	       CHECK_EQUAL((uint64_t)KIND(i), found.kind, "and to its kind");
}

static bool leads_nowhere(uintptr_t at)
{
	struct subject_found found = {8, 16, NULL, 24};

	check_note_number("address", at);
	return ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, ALLOC(lookup)(allocator, (const void *)at, &found)) &&
	       CHECK_TRUE(found.start == 8 && found.bytes == 16 && !found.owner && found.kind == 24,
			  "the output of a refused call is untouched");
}

/* Does another region than `i` hold the address? Where the system puts them is its own business. */
static bool another_at(uintptr_t at, unsigned i)
{
	for (unsigned k = 0; k < REGIONS; k++)
		if (k != i && regions[k].bytes && at - regions[k].rx < regions[k].bytes)
			return true;
	return false;
}

static bool reserve(unsigned i)
{
	return ALLOC_OK(ALLOC(reserve_kind)(allocator, (1 + i) * 3 * ALLOC_UNIT - 1, KIND(i), &owners[i], &regions[i]));
}

static bool all_found(void)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		const uintptr_t first = regions[i].rx, last = first + (regions[i].bytes - 1);

		if (!regions[i].bytes)
			continue;
		for (uintptr_t at = first; at - first < regions[i].bytes; at += ALLOC_UNIT)
			if (!leads_to(at, i) || !leads_to(at + (ALLOC_UNIT - 1), i))
				return false;
		if ((!another_at(first - 1, i) && !leads_nowhere(first - 1)) ||
		    (!another_at(last + 1, i) && !leads_nowhere(last + 1)))
			return false;
	}
	return true;
}

CHECK(wx_lookup, "WX-051",
      "every address of a region leads to it, its owner and its kind, while it is there and no longer")
{
	if (!alloc_claims("allocator os-table lookup"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator);
	for (unsigned i = 0; i < REGIONS; i++)
		MUST(reserve(i));
	MUST(all_found() && leads_nowhere(0) && leads_nowhere(UINTPTR_MAX) && leads_nowhere((uintptr_t)&owners[0]));
	for (unsigned i = 0; i < REGIONS; i += 2) {
		const struct subject_region gone = regions[i];

		MUST_OK(ALLOC(release)(&regions[i]));
		regions[i].bytes = 0;
		MUST(leads_nowhere(gone.rx) && leads_nowhere(gone.rx + (gone.bytes - 1)) && all_found());
	}
	/* Addresses and records that were another's before. */
	for (unsigned i = 0; i < REGIONS; i += 2)
		MUST(reserve(i));
	MUST(all_found());
	for (unsigned i = 0; i < REGIONS; i++)
		MUST_OK(ALLOC(release)(&regions[i]));
	(void)alloc_end(allocator);
}

/* ---- Memory of its own ---- */

#define LARGE 600u /* units: a file longer than any table of its places is at first */
#define HOLE  60u  /* a few units that are given back, before a stretch that is taken */
#define NEXT  128u /* and as many behind it: each stretch is a word of a bitmap */
#define HOLES 4u
#define SMALL 24u
#define TINY  6u /* more than a hole, and less than both */

static struct subject_region large[2], small, tiny;

static bool stamp(uintptr_t rx, unsigned count, uint32_t value)
{
	for (unsigned i = 0; i < count; i++) {
		struct subject_view view;

		if (!ALLOC_OK(ALLOC(open)(allocator, rx + i * ALLOC_UNIT, sizeof(value), 0, &view)))
			return false;
		__builtin_memcpy(view.rw, &(uint32_t){value + i}, sizeof(uint32_t));
		if (!ALLOC_OK(ALLOC(close)(&view)))
			return false;
	}
	return true;
}

static bool stamped(uintptr_t rx, unsigned from, unsigned count, uint32_t value)
{
	for (unsigned i = from; i < count; i++)
		if (*(const volatile uint32_t *)(rx + i * ALLOC_UNIT) != value + i) {
			check_note_number("unit", i);
			return CHECK_EQUAL(value + i, *(const volatile uint32_t *)(rx + i * ALLOC_UNIT),
					   "no two places of regions share memory");
		}
	return CHECK_TRUE(true, "no two places of regions share memory");
}

CHECK(wx_own_memory, "WX-052", "many regions, and pieces given back and taken again, share no memory")
{
	if (!alloc_claims("allocator os-table"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator);
	for (unsigned i = 0; i < 2; i++)
		MUST(alloc_region(allocator, LARGE * ALLOC_UNIT, &large[i]) &&
		     stamp(large[i].rx, LARGE, (i + 1) * 100000));
	MUST_OK(ALLOC(decommit)(&large[0], HOLE * ALLOC_UNIT, HOLES * ALLOC_UNIT));
	MUST_OK(ALLOC(decommit)(&large[0], NEXT * ALLOC_UNIT, HOLES * ALLOC_UNIT));
	MUST(alloc_region(allocator, TINY * ALLOC_UNIT, &tiny) && stamp(tiny.rx, TINY, 400000));
	MUST(alloc_region(allocator, SMALL * ALLOC_UNIT, &small) && stamp(small.rx, SMALL, 300000));
	MUST(stamped(large[0].rx, 0, HOLE, 100000) && stamped(large[0].rx, HOLE + HOLES, NEXT, 100000) &&
	     stamped(large[0].rx, NEXT + HOLES, LARGE, 100000) && stamped(large[1].rx, 0, LARGE, 200000) &&
	     stamped(small.rx, 0, SMALL, 300000) && stamped(tiny.rx, 0, TINY, 400000));
	MUST_OK(ALLOC(release)(&tiny));
	MUST_OK(ALLOC(release)(&small));
	for (unsigned i = 0; i < 2; i++)
		MUST_OK(ALLOC(release)(&large[i]));
	(void)alloc_end(allocator);
}
