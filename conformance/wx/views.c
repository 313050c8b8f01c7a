/*
 * How long a writable view lives.
 */
#include "../alloc/alloc.h"
#include "../alloc/table.h"

#define WINDOWS 6

static bool alive(unsigned expected, const char *what)
{
	return check_equal(expected, space_views(), what, __FILE__, __LINE__);
}

/* At most what is open and what the cache may keep. */
static bool few(unsigned open, unsigned cached)
{
	check_note_number("open", open);
	check_note_number("cache", cached);
	check_note_number("alive", space_views());
	return CHECK_TRUE(space_views() <= open + cached, "writable views alive: those that are open, and the cache's");
}

/* Opens one window after the other, then closes them, in two orders; the cache holds `cached`. */
static bool open_and_close(unsigned cached, bool backwards)
{
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_view views[WINDOWS];
	struct subject_region region;

	config.rw_cache = cached;
	allocator = alloc_make(&config);
	if (!allocator || !alloc_region(allocator, WINDOWS * ALLOC_UNIT, &region))
		return false;
	for (unsigned i = 0; i < WINDOWS; i++)
		if (!ALLOC_OK(ALLOC(open)(allocator, region.rx + i * ALLOC_UNIT, 16, 0, &views[i])) ||
		    !few(i + 1, cached) || !CHECK_TRUE(space_views() > i, "an open view is mapped"))
			return false;
	for (unsigned i = 0; i < WINDOWS; i++)
		if (!ALLOC_OK(ALLOC(close)(&views[backwards ? WINDOWS - 1 - i : i])) || !few(WINDOWS - 1 - i, cached))
			return false;
	/* More than one view of a window, closed in either order. */
	if (!ALLOC_OK(ALLOC(open)(allocator, region.rx, 16, 0, &views[0])) ||
	    !ALLOC_OK(ALLOC(open)(allocator, region.rx + 100, 16, 0, &views[1])) || !few(1, cached) ||
	    !ALLOC_OK(ALLOC(close)(&views[backwards])))
		return false;
	views[!backwards].rw[0] = 1; /* still there */
	if (!ALLOC_OK(ALLOC(close)(&views[!backwards])) || !few(0, cached))
		return false;
	return ALLOC_OK(ALLOC(release)(&region)) && alive(0, "no view of a region outlives it") && alloc_end(allocator);
}

CHECK(wx_views_close, "WX-005", "a view is unmapped when it is closed, unless the cache keeps it")
{
	if (!alloc_claims("allocator os-table"))
		return;
	for (unsigned cached = 0; cached < 4; cached++) {
		if (cached && !check_claimed("rw-cache"))
			break;
		MUST(open_and_close(cached, false));
		MUST(open_and_close(cached, true));
	}
}

CHECK(wx_views_single_use, "WX-005", "a view of single use is unmapped when it is closed, whatever the cache holds")
{
	struct subject_allocator *allocator;
	struct subject_view view;
	struct subject_region region;

	if (!alloc_claims("allocator os-table rw-cache"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator && alloc_region(allocator, ALLOC_UNIT, &region));
	for (unsigned i = 0; i < 3; i++) {
		MUST_OK(ALLOC(open)(allocator, region.rx + (size_t)i * 5000, 8, SUBJECT_OPEN_SINGLE_USE, &view));
		MUST(alive(1, "a view of single use has a mapping of its own"));
		MUST_OK(ALLOC(close)(&view));
		MUST(alive(0, "and takes it along"));
	}
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}

/* ---- Errors ---- */

static enum watch_kind refused_kind;

static int refuse_kind(const struct watch_call *call)
{
	return call->kind == refused_kind ? -TABLE_ENOMEM : 0;
}

CHECK(wx_views_error, "WX-006", "an operation that fails half way leaves no writable view behind")
{
	static const enum watch_kind kinds[] = {WATCH_SYNC_CODE, WATCH_MAP, WATCH_MAP_FIXED};
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_region a, b;
	struct subject_view view;

	if (!alloc_claims("allocator os-table publish-many"))
		return;
	config.rw_cache = 0;
	config.emulation = SUBJECT_EMULATION_ON;
	allocator = alloc_make(&config);
	MUST(allocator && alloc_region(allocator, ALLOC_UNIT, &a) && alloc_region(allocator, ALLOC_UNIT, &b));
	MUST(alloc_put(allocator, a.rx, 1)); /* published once: again, it is mapped anew for an emulator */
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const unsigned long injected = watch.injected;
		int error;

		refused_kind = kinds[i];
		watch.refuse = refuse_kind;
		check_note("refused", watch_name[refused_kind]);
		error = ALLOC(write)(allocator, a.rx, "abcd", 4, 0);
		watch.refuse = NULL;
		MUST(CHECK_TRUE(watch.injected > injected, "the operation meets the refusal"));
		MUST(CHECK_TRUE(error < 0, "and says so"));
		MUST(alive(0, "no view is left"));
		MUST_OK(ALLOC(open)(allocator, a.rx, 4, 0, &view));
		MUST_OK(ALLOC(close)(&view));
	}
	MUST_OK(ALLOC(release)(&a));
	MUST_OK(ALLOC(release)(&b));
	(void)alloc_end(allocator);
}

/* ---- Books ---- */

static int no_punch(const struct watch_call *call)
{
	return call->kind == WATCH_FILE_PUNCH || call->kind == WATCH_DISCARD ? -TABLE_EAGAIN : 0;
}

/* What the system will not take back is told, offered again, and then no longer told. */
static bool defers(struct subject_allocator *allocator)
{
	struct subject_region region;
	struct subject_stats stats;
	bool good;

	if (!alloc_region(allocator, ALLOC_UNIT, &region))
		return false;
	watch.refuse = no_punch;
	good = ALLOC_OK(ALLOC(release)(&region));
	watch.refuse = NULL;
	if (!good || !ALLOC_OK(ALLOC(stats)(allocator, &stats)) ||
	    !CHECK_EQUAL(ALLOC_UNIT, stats.deferred_bytes, "bytes that the system would not take back so far"))
		return false;
	return alloc_region(allocator, ALLOC_UNIT, &region) && ALLOC_OK(ALLOC(stats)(allocator, &stats)) &&
	       CHECK_EQUAL(0, stats.deferred_bytes, "they are offered again") && ALLOC_OK(ALLOC(release)(&region));
}

CHECK(wx_views_counted, "WX-031", "the allocator's own figures are those of the model")
{
	struct subject_allocator *allocator;
	struct subject_region regions[3];
	struct subject_view views[2];
	struct subject_stats stats;
	uint64_t reserved = 0;

	if (!alloc_claims("allocator os-table stats"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator);
	for (unsigned i = 0; i < 3; i++) {
		MUST(alloc_region(allocator, (i + 1) * ALLOC_UNIT, &regions[i]));
		reserved += regions[i].bytes;
	}
	MUST_OK(ALLOC(open)(allocator, regions[0].rx, 8, 0, &views[0]));
	MUST_OK(ALLOC(open)(allocator, regions[2].rx + 2 * ALLOC_UNIT, 8, 0, &views[1]));
	MUST_OK(ALLOC(close)(&views[1]));
	MUST_OK(ALLOC(decommit)(&regions[1], 0, watch.page));
	MUST_OK(ALLOC(publish)(&views[0], 0, 8, 0));
	for (unsigned i = 0; i < 3; i++) {
		MUST_OK(ALLOC(stats)(allocator, &stats));
		MUST(CHECK_EQUAL(3, stats.commits, "commits since creation"));
		MUST(CHECK_EQUAL(1, stats.decommits, "decommits since creation"));
		MUST(CHECK_EQUAL(1, stats.publishes, "publishes since creation"));
		MUST(CHECK_EQUAL(3 - i, stats.regions, "regions"));
		MUST(CHECK_EQUAL(reserved, stats.reserved_bytes, "reserved bytes"));
		MUST(CHECK_EQUAL(space_executable(), stats.committed_bytes,
				 "committed bytes are those mapped executable"));
		MUST(CHECK_EQUAL(space_views(), stats.views_mapped, "writable mappings are those of the model"));
		MUST(CHECK_EQUAL(i ? 0 : 1, stats.views_open, "views open"));
		MUST(CHECK_EQUAL(space.files[0].bytes, stats.file_bytes, "the length of the memory file"));
		if (!i)
			MUST_OK(ALLOC(close)(&views[0]));
		reserved -= regions[i].bytes;
		MUST_OK(ALLOC(release)(&regions[i]));
	}
	MUST_OK(ALLOC(stats)(allocator, &stats));
	MUST(CHECK_EQUAL(0, stats.committed_bytes | stats.views_mapped | stats.reserved_bytes | stats.file_used_bytes,
			 "all of it is given back"));
	MUST(CHECK_EQUAL(3, stats.reserves, "reserves since creation"));
	MUST(CHECK_EQUAL(3, stats.releases, "releases since creation"));
	MUST(CHECK_EQUAL(3, stats.commits, "commits of regions that are gone"));
	MUST(CHECK_EQUAL(1, stats.publishes, "publishes of regions that are gone"));
	MUST(defers(allocator));
	(void)alloc_end(allocator);
}
