/*
 * A region's views are gone before the region.
 */
#include "../alloc/alloc.h"

#define WINDOWS 6u

/* When the pages of the region go: how many writable mappings were alive then. */
static struct {
	uintptr_t rx;
	size_t bytes;
	unsigned times, views;
} gone;

static int look(const struct watch_call *call)
{
	const bool ends =
		call->kind == WATCH_UNMAP || (call->kind == WATCH_MAP_FIXED && call->protection == SUBJECT_NONE);

	if (ends && call->address < gone.rx + gone.bytes && gone.rx < call->address + call->bytes) {
		gone.times++;
		gone.views += space_views();
	}
	return 0;
}

static bool watch_end_of(const struct subject_region *region, size_t offset, size_t bytes)
{
	gone.rx = region->rx + offset;
	gone.bytes = bytes;
	gone.times = gone.views = 0;
	watch.refuse = look;
	return true;
}

static bool fill(struct subject_allocator *allocator, const struct subject_region *region)
{
	for (unsigned i = 0; i < WINDOWS; i++)
		if (!alloc_put(allocator, region->rx + i * ALLOC_UNIT, i))
			return false;
	return CHECK_EQUAL(WINDOWS, space_views(), "each window has a mapping that is kept");
}

/* Asserts that an end which is refused for `error` has changed nothing. */
static bool unchanged(const struct space_state *before)
{
	const struct space_state now = space_state();

	return CHECK_EQUAL(0, gone.times, "no page goes while a view is open") &&
	       CHECK_EQUAL(before->digest, now.digest, "what is mapped is as before");
}

CHECK(rc_release, "RC-008",
      "before a region or its pages go, their writable mappings are gone; not while a view is open")
{
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_region region, other;
	struct subject_view view, later;
	struct space_state before;

	if (!alloc_claims("allocator os-table"))
		return;
	config.rw_cache = 16;
	config.emulation = SUBJECT_EMULATION_OFF;
	allocator = alloc_make(&config);
	watch.alone = true;
	MUST(allocator && alloc_region(allocator, WINDOWS * ALLOC_UNIT, &region) &&
	     alloc_region(allocator, ALLOC_UNIT, &other) && fill(allocator, &region));

	/* In use: neither the region nor its pages. */
	MUST_OK(ALLOC(open)(allocator, region.rx + 2 * ALLOC_UNIT, 10, 0, &view));
	before = space_state();
	(void)watch_end_of(&region, 0, region.bytes);
	MUST(ALLOC_IS(SUBJECT_ERROR_BUSY, ALLOC(release)(&region)) && unchanged(&before));
	MUST(ALLOC_IS(SUBJECT_ERROR_BUSY, ALLOC(decommit)(&region, 2 * ALLOC_UNIT, ALLOC_UNIT)) && unchanged(&before));
	/* Whichever of several views it is. */
	MUST_OK(ALLOC(open)(allocator, region.rx + 4 * ALLOC_UNIT, 10, 0, &later));
	MUST(ALLOC_IS(SUBJECT_ERROR_BUSY, ALLOC(decommit)(&region, 2 * ALLOC_UNIT, check_page)) && unchanged(&before));
	MUST(ALLOC_IS(SUBJECT_ERROR_BUSY, ALLOC(decommit)(&region, 4 * ALLOC_UNIT, check_page)) && unchanged(&before));
	MUST_OK(ALLOC(close)(&later));
	view.rw[0] = 3;
	MUST(CHECK_EQUAL(3, *(const volatile unsigned char *)view.rx, "the view still works"));
	MUST_OK(ALLOC(close)(&view));

	/* Pages. */
	(void)watch_end_of(&region, ALLOC_UNIT, 2 * ALLOC_UNIT);
	gone.views = 0;
	MUST_OK(ALLOC(decommit)(&region, ALLOC_UNIT, 2 * ALLOC_UNIT));
	MUST(CHECK_TRUE(gone.times, "the pages go"));
	MUST(CHECK_EQUAL((uint64_t)gone.times * (WINDOWS - 2), gone.views,
			 "the mappings of pages are gone before them"));

	/* The region; another one keeps its own. */
	MUST(alloc_put(allocator, other.rx, 1));
	(void)watch_end_of(&region, 0, region.bytes);
	MUST_OK(ALLOC(release)(&region));
	MUST(CHECK_TRUE(gone.times, "the region goes"));
	MUST(CHECK_EQUAL(gone.times, gone.views,
			 "the mappings of a region are gone before it, those of another are not"));
	watch.refuse = NULL;
	MUST(CHECK_EQUAL(1, space_views(), "the other region's mapping is kept"));
	MUST_OK(ALLOC(release)(&other));
	MUST(CHECK_EQUAL(0, space_views(), "until that is released"));
	MUST(alloc_end(allocator));
}
