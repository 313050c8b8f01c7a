/*
 * Family PG: the page size is asked for, and everything is a multiple of it.
 */
#include "../alloc/alloc.h"
#include "../alloc/maps.h"

CHECK(pg_asked, "PG-001",
      "the page size is asked for when an allocator is made, and what the answer is, is what is used")
{
	struct subject_allocator *allocator;
	struct subject_region region;

	if (!alloc_claims("allocator os-table"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator);
	MUST(CHECK_TRUE(watch.asked > 0, "the page size is asked for"));
	MUST_OK(ALLOC(reserve)(allocator, 4 * ALLOC_UNIT, &region));
	/* Whole pages of that size are committed one by one; less than one is refused, without a call of the system. */
	for (size_t at = 0; at < 2 * ALLOC_UNIT; at += watch.page)
		MUST_OK(ALLOC(commit)(&region, at, watch.page));
	MUST(CHECK_EQUAL((uint64_t)(2 * ALLOC_UNIT), space_executable(), "what is committed is mapped, page by page"));
	if (watch.page > 4096) {
		const unsigned long recorded = watch.recorded;

		MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(commit)(&region, 2 * ALLOC_UNIT, watch.page / 2)));
		MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(commit)(&region, 2 * ALLOC_UNIT + 4096, watch.page)));
		MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(decommit)(&region, watch.page / 2, watch.page)));
		MUST(CHECK_EQUAL(space_executable(), (uint64_t)(2 * ALLOC_UNIT), "nothing is committed or given back"));
		MUST(CHECK_EQUAL(recorded, watch.recorded, "and nothing is asked of the system"));
	}
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}

CHECK(pg_multiples, "PG-002",
      "every address, length and file offset given to the system is a multiple of the page size")
{
	struct subject_config config = alloc_config();

	if (!alloc_claims("allocator os-table"))
		return;
	for (int emulation = SUBJECT_EMULATION_PROBE; emulation <= SUBJECT_EMULATION_ON; emulation++) {
		config.emulation = (enum subject_emulation)emulation;
		config.window_bytes = emulation ? watch.page : ALLOC_UNIT;
		if (!alloc_walk(&config, NULL, NULL) || watch.broken[WATCH_MULTIPLE].count) {
			(void)WATCH_KEPT(WATCH_MULTIPLE, "every argument is a multiple of the page size");
			return;
		}
	}
	MUST(WATCH_KEPT(WATCH_MULTIPLE, "every argument is a multiple of the page size"));
}

/* Bytes of a page that says which it is. */
static bool holds(uintptr_t rx, unsigned char value, const char *what)
{
	for (size_t i = 0; i < watch.page; i += 512)
		if (((const unsigned char *)rx)[i] != value) {
			check_note_number("at", rx + i);
			return CHECK_EQUAL(value, ((const unsigned char *)rx)[i], what);
		}
	return CHECK_TRUE(true, what);
}

static bool fill(struct subject_allocator *allocator, uintptr_t rx, unsigned char value)
{
	struct subject_view view;

	if (!ALLOC_OK(ALLOC(open)(allocator, rx, watch.page, 0, &view)))
		return false;
	for (size_t i = 0; i < watch.page; i++)
		view.rw[i] = value;
	return ALLOC_OK(ALLOC(close)(&view));
}

CHECK(pg_owned, "PG-003",
      "only pages that an allocator owns are touched: its neighbours and its other pages stay as they are")
{
	struct subject_allocator *allocator;
	struct subject_region region;
	size_t pages;

	if (!alloc_claims("allocator os-table"))
		return;
	MUST(alloc_walk(NULL, NULL, NULL));
	MUST(WATCH_KEPT(WATCH_FOREIGN, "no range is touched that the allocator has not mapped"));
	MUST(WATCH_KEPT(WATCH_BEYOND, "no file is used beyond its end"));
	allocator = alloc_make(NULL);
	MUST(allocator && alloc_region(allocator, 2 * ALLOC_UNIT, &region));
	pages = 2 * ALLOC_UNIT / watch.page;
	for (size_t i = 0; i < pages; i++)
		MUST(fill(allocator, region.rx + i * watch.page, (unsigned char)(i + 1)));
	/* Each page alone goes and comes back; all others keep their bytes. */
	for (size_t gone = 0; gone < pages; gone += 1 + pages / 5) {
		MUST_OK(ALLOC(decommit)(&region, gone * watch.page, watch.page));
		MUST(CHECK_EQUAL(2 * ALLOC_UNIT - watch.page, space_executable(), "exactly one page goes"));
		for (size_t i = 0; i < pages; i++)
			if (i != gone)
				MUST(holds(region.rx + i * watch.page, (unsigned char)(i + 1),
					   "the other pages keep their bytes"));
		MUST_OK(ALLOC(commit)(&region, gone * watch.page, watch.page));
		MUST(holds(region.rx + gone * watch.page, 0, "a page that comes back is zero"));
		MUST(fill(allocator, region.rx + gone * watch.page, (unsigned char)(gone + 1)));
	}
	MUST_OK(ALLOC(release)(&region));
	MUST(WATCH_KEPT(WATCH_FOREIGN, "no range is touched that the allocator has not mapped"));
	(void)alloc_end(allocator);
}

CHECK(pg_odd, "PG-004", "odd sizes and addresses are served where they make sense, and refused where they do not")
{
	struct subject_allocator *allocator;
	struct subject_region region, small, half, gone;
	struct subject_view view;
	struct space_state before;

	if (!alloc_claims("allocator os-table"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator && alloc_region(allocator, 2 * ALLOC_UNIT, &region));
	MUST_OK(ALLOC(reserve)(allocator, 1, &small));
	MUST(CHECK_TRUE(small.bytes >= watch.page && small.bytes % watch.page == 0 && small.rx % watch.page == 0,
			"a region is whole pages"));
	/* Views begin and end anywhere, across pages as well. */
	for (size_t at = 1; at < 2 * ALLOC_UNIT - 40; at += 4099 + watch.page / 3) {
		MUST_OK(ALLOC(open)(allocator, region.rx + at, 37, 0, &view));
		MUST(CHECK_EQUAL(region.rx + at, view.rx, "a view is of the address that was asked for"));
		view.rw[0] = view.rw[36] = 0x5a;
		MUST(CHECK_EQUAL(0x5a, *(const unsigned char *)(region.rx + at), "its first byte is that one"));
		MUST(CHECK_EQUAL(0x5a, *(const unsigned char *)(region.rx + at + 36), "its last byte as well"));
		MUST_OK(ALLOC(close)(&view));
	}
	MUST_OK(ALLOC(reserve)(allocator, 3 * ALLOC_UNIT, &half));
	MUST_OK(ALLOC(commit)(&half, ALLOC_UNIT, ALLOC_UNIT));
	before = space_state();
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(reserve)(allocator, 0, &small)));
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(reserve)(allocator, SIZE_MAX, &small)));
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(commit)(&small, 0, 0)));
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(commit)(&small, 1, watch.page)));
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(commit)(&small, 0, watch.page - 1)));
	MUST(ALLOC_IS(SUBJECT_ERROR_OUTSIDE, ALLOC(commit)(&small, small.bytes, watch.page)));
	MUST(ALLOC_IS(SUBJECT_ERROR_OUTSIDE, ALLOC(commit)(&small, watch.page, ~(watch.page - 1))));
	MUST(ALLOC_IS(SUBJECT_ERROR_COMMITTED, ALLOC(commit)(&region, ALLOC_UNIT, watch.page)));
	MUST(ALLOC_IS(SUBJECT_ERROR_NOT_COMMITTED, ALLOC(decommit)(&small, 0, watch.page)));
	/* Half of it is, whichever half. */
	MUST(ALLOC_IS(SUBJECT_ERROR_COMMITTED, ALLOC(commit)(&half, 0, 3 * ALLOC_UNIT)));
	MUST(ALLOC_IS(SUBJECT_ERROR_COMMITTED, ALLOC(commit)(&half, 0, ALLOC_UNIT + watch.page)));
	MUST(ALLOC_IS(SUBJECT_ERROR_NOT_COMMITTED, ALLOC(decommit)(&half, ALLOC_UNIT, 2 * ALLOC_UNIT)));
	MUST(ALLOC_IS(SUBJECT_ERROR_NOT_COMMITTED, ALLOC(decommit)(&half, 0, 2 * ALLOC_UNIT)));
	MUST(ALLOC_IS(SUBJECT_ERROR_BUSY, ALLOC(destroy)(allocator)));
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(open)(allocator, region.rx, 0, 0, &view)));
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(open)(allocator, region.rx + 1, SIZE_MAX, 0, &view)));
	MUST(ALLOC_IS(SUBJECT_ERROR_OUTSIDE, ALLOC(open)(allocator, region.rx + region.bytes - 8, 9, 0, &view)));
	MUST(ALLOC_IS(SUBJECT_ERROR_NOT_COMMITTED, ALLOC(open)(allocator, small.rx, 1, 0, &view)));
	MUST(ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, ALLOC(open)(allocator, (uintptr_t)&before, 1, 0, &view)));
	MUST(CHECK_EQUAL(before.digest, space_state().digest, "what is refused changes nothing"));
	MUST_OK(ALLOC(open)(allocator, region.rx + region.bytes - 8, 8, 0, &view));
	MUST(ALLOC_IS(SUBJECT_ERROR_OUTSIDE, ALLOC(publish)(&view, 1, 8, 0)));
	MUST(ALLOC_IS(SUBJECT_ERROR_OUTSIDE, ALLOC(publish)(&view, SIZE_MAX, 2, 0)));
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(publish)(&view, 0, 0, 0)));
	MUST_OK(ALLOC(close)(&view));
	MUST(ALLOC_IS(SUBJECT_ERROR_NOT_OPEN, ALLOC(close)(&view)));
	MUST_OK(ALLOC(release)(&small));
	MUST(ALLOC_IS(SUBJECT_ERROR_RELEASED, ALLOC(release)(&small)));
	/* Nor once its bookkeeping is another region's. */
	gone = half;
	MUST_OK(ALLOC(release)(&half));
	MUST_OK(ALLOC(reserve)(allocator, 2 * ALLOC_UNIT, &half));
	MUST_OK(ALLOC(commit)(&half, 0, watch.page));
	before = space_state();
	MUST(ALLOC_IS(SUBJECT_ERROR_RELEASED, ALLOC(commit)(&gone, ALLOC_UNIT, watch.page)));
	MUST(ALLOC_IS(SUBJECT_ERROR_RELEASED, ALLOC(decommit)(&gone, 0, watch.page)));
	MUST(ALLOC_IS(SUBJECT_ERROR_RELEASED, ALLOC(release)(&gone)));
	MUST(CHECK_EQUAL(before.digest, space_state().digest, "what is refused changes nothing"));
	MUST_OK(ALLOC(release)(&half));
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}

CHECK(pg_unknown, "PG-005", "a page size that an allocator cannot serve is refused by an error of its own")
{
	static const size_t sizes[] = {0, 1, 2048, 4097, 12288, 131072};
	const struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_refusals refusals;

	if (!alloc_claims("allocator os-table"))
		return;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		watch_begin();
		watch.page = sizes[i];
		check_note_number("answered", sizes[i]);
		MUST(ALLOC_IS(SUBJECT_ERROR_UNSUPPORTED,
			      ALLOC(create_over)(&watch_os, &config, &allocator, &refusals)));
		MUST(CHECK_EQUAL(0, watch.calls, "nothing is asked of the system before"));
	}
	watch.page = check_page;
}
