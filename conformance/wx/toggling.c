/*
 * One mapping whose protection changes: never both at once either.
 */
#include "../alloc/alloc.h"

static void allow(void)
{
	watch.toggling = true;
}

static unsigned protection_at(uintptr_t rx)
{
	const struct space_extent *extent = space_at(rx);

	return extent ? extent->protection & (SUBJECT_WRITE | SUBJECT_EXECUTE) : 0;
}

static struct subject_config toggling(void)
{
	struct subject_config config = alloc_config();

	config.backends[0] = SUBJECT_BACKEND_TOGGLE;
	return config;
}

CHECK(wx_toggle_never_both, "WX-015", "a page that is toggled is writable while a view is open, executable otherwise")
{
	const struct subject_config config = toggling();
	struct subject_allocator *allocator;
	struct subject_region region;
	struct subject_view view, other;

	if (!alloc_claims("allocator os-table backends"))
		return;
	MUST(alloc_walk(&config, allow, NULL));
	MUST(CHECK_TRUE(watch.of_kind[WATCH_PROTECT], "protections are changed"));
	MUST(WATCH_KEPT(WATCH_BOTH, "no mapping is writable and executable"));

	watch_begin();
	allow();
	allocator = alloc_create(&config);
	MUST(allocator && alloc_region(allocator, 2 * ALLOC_UNIT, &region));
	MUST(alloc_put(allocator, region.rx, 3) && alloc_runs(region.rx, 3, "what was written runs"));
	MUST(CHECK_EQUAL(SUBJECT_EXECUTE, protection_at(region.rx), "executable, and not writable, before"));
	MUST_OK(ALLOC(open)(allocator, region.rx + 10, 20, 0, &view));
	MUST(CHECK_EQUAL(SUBJECT_WRITE, protection_at(region.rx),
			 "writable, and not executable, while a view is open"));
	MUST_OK(ALLOC(open)(allocator, region.rx + 40, 20, 0, &other));
	MUST_OK(ALLOC(close)(&other));
	MUST(CHECK_EQUAL(SUBJECT_WRITE, protection_at(region.rx),
			 "a view stays writable when another of its page closes"));
	/* Closing one of two that lie across each other would make executable what the other writes. */
	MUST(ALLOC_IS(SUBJECT_ERROR_BUSY, ALLOC(open)(allocator, region.rx, 2 * watch.page, 0, &other)));
	MUST(CHECK_EQUAL(SUBJECT_WRITE, protection_at(region.rx), "an open view stays writable"));
	MUST_OK(ALLOC(publish)(&view, 0, 20, 0));
	MUST_OK(ALLOC(close)(&view));
	MUST(CHECK_EQUAL(SUBJECT_EXECUTE, protection_at(region.rx), "executable, and not writable, after"));
	/* Each page that a view touches, and none beside. */
	MUST_OK(ALLOC(open)(allocator, region.rx + ALLOC_UNIT - 1, 2, 0, &view));
	MUST(CHECK_EQUAL(SUBJECT_WRITE, protection_at(region.rx + ALLOC_UNIT - 1),
			 "the view's first page is writable") &&
	     CHECK_EQUAL(SUBJECT_WRITE, protection_at(region.rx + ALLOC_UNIT), "its last page is writable"));
	if (watch.page < ALLOC_UNIT)
		MUST(CHECK_EQUAL(SUBJECT_EXECUTE, protection_at(region.rx + ALLOC_UNIT - 1 - watch.page),
				 "the page before a view stays executable"));
	MUST_OK(ALLOC(close)(&view));
	for (size_t at = 0; at < region.bytes; at += watch.page)
		MUST(CHECK_EQUAL(SUBJECT_EXECUTE, protection_at(region.rx + at),
				 "every page is executable, and not writable, when no view is open"));
	MUST(WATCH_KEPT(WATCH_BOTH, "no mapping is writable and executable"));
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}
