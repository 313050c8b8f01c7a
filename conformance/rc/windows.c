/*
 * What a writable mapping covers: whole windows where it is kept, the pages alone where it is of single use.
 */
#include "../alloc/alloc.h"

/* The mapping around an address: where it starts and how long it is. */
struct extent {
	uintptr_t start;
	size_t bytes;
};

static struct extent mapping_at(const unsigned char *rw)
{
	const struct space_extent *at = space_at((uintptr_t)rw), *next;
	struct extent found;

	if (!at || !(at->protection & SUBJECT_WRITE))
		return (struct extent){0, 0};
	for (next = space_at(at->start - 1); next && next->mapping == at->mapping; next = space_at(at->start - 1))
		at = next;
	found.start = at->start;
	for (next = space_at(at->end); next && next->mapping == at->mapping; next = space_at(at->end))
		at = next;
	found.bytes = at->end - found.start;
	return found;
}

/* Asserts that a view of [offset, offset + bytes) is of a mapping over [from, to) of the region. */
static bool covers(struct subject_allocator *allocator, const struct subject_region *region, size_t offset,
		   size_t bytes, unsigned flags, size_t from, size_t to)
{
	struct subject_view view;
	struct extent extent;

	check_note_number("offset", offset);
	check_note_number("view_bytes", bytes);
	if (!ALLOC_OK(ALLOC(open)(allocator, region->rx + offset, bytes, flags, &view)))
		return false;
	extent = mapping_at(view.rw);
	view.rw[0] = 1;
	view.rw[bytes - 1] = 2;
	return CHECK_EQUAL(region->rx + offset, view.rx, "a view says where it runs") &&
	       CHECK_EQUAL(bytes, view.bytes, "and how long it is") &&
	       CHECK_EQUAL(offset - from, (uintptr_t)view.rw - extent.start,
			   "the mapping begins where its window does") &&
	       CHECK_EQUAL(to - from, extent.bytes, "the mapping ends where its window does") &&
	       CHECK_EQUAL(2, *(const volatile unsigned char *)(view.rx + bytes - 1), "the last byte arrives") &&
	       ALLOC_OK(ALLOC(close)(&view));
}

/* `given`: what is configured; `window`: what it means. */
static bool windows(size_t given, size_t window)
{
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_region region;
	const size_t all = window > ALLOC_UNIT ? 3 * window + ALLOC_UNIT : 3 * ALLOC_UNIT;
	bool right;

	check_note_number("window", window);
	config.window_bytes = given;
	config.emulation = SUBJECT_EMULATION_OFF;
	config.rw_cache = 0; /* every view is of a mapping of its own */
	allocator = alloc_make(&config);
	right = allocator && alloc_region(allocator, all, &region);
	if (!right)
		return false;
	right = covers(allocator, &region, 100, 8, 0, 0, window) &&
		covers(allocator, &region, window - 1, 1, 0, 0, window) &&
		covers(allocator, &region, window, 1, 0, window, 2 * window) &&
		covers(allocator, &region, window, window, 0, window, 2 * window) &&
		covers(allocator, &region, window - 1, 2, 0, 0, 2 * window) &&
		covers(allocator, &region, window - 1, window + 2, 0, 0, 3 * window) &&
		covers(allocator, &region, 0, region.bytes, 0, 0, region.bytes);
	/* The last one is cut where the region ends. */
	if (right && window > ALLOC_UNIT)
		right = covers(allocator, &region, 3 * window + 1, 1, 0, 3 * window, region.bytes);
	return right && ALLOC_OK(ALLOC(release)(&region)) && alloc_end(allocator);
}

CHECK(rc_windows, "RC-005", "a writable mapping covers whole windows of the region, 64 KiB unless configured")
{
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator = NULL;
	struct subject_refusals refusals;

	if (!alloc_claims("allocator os-table rw-cache"))
		return;
	MUST(windows(0, ALLOC_UNIT));
	for (size_t window = check_page; window <= 16 * ALLOC_UNIT; window *= 4)
		MUST(windows(window, window));
	config.window_bytes = check_page / 2;
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(create_over)(&watch_os, &config, &allocator, &refusals)));
	config.window_bytes = 3 * ALLOC_UNIT;
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(create_over)(&watch_os, &config, &allocator, &refusals)));
}

CHECK(rc_single_use, "RC-004",
      "a single-use view has a mapping of its own, of its pages alone, and leaves the cache as it is")
{
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_region region;
	struct subject_view kept, single, again, other;
	const size_t page = check_page;
	unsigned long before;

	if (!alloc_claims("allocator os-table rw-cache"))
		return;
	config.emulation = SUBJECT_EMULATION_OFF;
	config.rw_cache = 1;
	allocator = alloc_make(&config);
	watch.alone = true;
	MUST(allocator && alloc_region(allocator, 4 * ALLOC_UNIT, &region));

	/* Window 0 is kept. */
	MUST_OK(ALLOC(open)(allocator, region.rx, 1, 0, &kept));
	MUST_OK(ALLOC(close)(&kept));
	MUST(CHECK_EQUAL(1, space_views(), "one mapping is kept"));

	/* It serves no single-use view, which goes when it is closed, and evicts nothing. */
	MUST(covers(allocator, &region, 7, 9, SUBJECT_OPEN_SINGLE_USE, 0, page));
	MUST(covers(allocator, &region, ALLOC_UNIT - 1, 2, SUBJECT_OPEN_SINGLE_USE, ALLOC_UNIT - page,
		    ALLOC_UNIT + page));
	MUST(covers(allocator, &region, 2 * ALLOC_UNIT + page, page, SUBJECT_OPEN_SINGLE_USE, 2 * ALLOC_UNIT + page,
		    2 * ALLOC_UNIT + 2 * page));
	MUST(CHECK_EQUAL(1, space_views(), "no mapping of single use is kept"));
	before = watch.of_kind[WATCH_MAP];
	MUST_OK(ALLOC(open)(allocator, region.rx + 3, 5, 0, &kept));
	MUST_OK(ALLOC(close)(&kept));
	MUST(CHECK_EQUAL(before, watch.of_kind[WATCH_MAP], "what was kept before still is"));

	/* While it is open, it serves no other view. */
	MUST_OK(ALLOC(open)(allocator, region.rx + 3 * ALLOC_UNIT, page, SUBJECT_OPEN_SINGLE_USE, &single));
	MUST_OK(ALLOC(open)(allocator, region.rx + 3 * ALLOC_UNIT, page, SUBJECT_OPEN_SINGLE_USE, &again));
	MUST_OK(ALLOC(open)(allocator, region.rx + 3 * ALLOC_UNIT, page, 0, &other));
	MUST(CHECK_TRUE(mapping_at(single.rw).start != mapping_at(again.rw).start &&
				mapping_at(single.rw).start != mapping_at(other.rw).start &&
				mapping_at(again.rw).start != mapping_at(other.rw).start,
			"three mappings for two single-use views and another one"));
	MUST_OK(ALLOC(close)(&single));
	again.rw[0] = 9;
	MUST(CHECK_EQUAL(9, other.rw[0], "they show the same bytes"));
	MUST_OK(ALLOC(close)(&again));
	MUST_OK(ALLOC(close)(&other));
	MUST(CHECK_EQUAL(1, space_views(), "one mapping is kept"));
	MUST_OK(ALLOC(release)(&region));
	MUST(alloc_end(allocator));
}
