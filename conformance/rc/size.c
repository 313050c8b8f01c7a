/*
 * How many mappings are kept, whatever their order: by configuration and by environment; and those in use.
 */
#include "../alloc/alloc.h"
#include "text.h"

#define MOST    16u
#define WINDOWS (MOST + 4)

/* Opens and closes a view in a window. */
static bool touch(struct subject_allocator *allocator, const struct subject_region *region, unsigned window)
{
	struct subject_view view;

	if (!ALLOC_OK(ALLOC(open)(allocator, region->rx + window * ALLOC_UNIT + 5, 9, 0, &view)))
		return false;
	view.rw[0] = view.rw[8] = (unsigned char)window;
	return ALLOC_OK(ALLOC(close)(&view));
}

/* Calls that map a file writable, or unmap, so far. */
static unsigned long map_calls(void)
{
	return watch.of_kind[WATCH_MAP] + watch.of_kind[WATCH_UNMAP];
}

/* Asserts that exactly `expected` mappings of those used are kept. */
static bool keeps(struct subject_allocator *allocator, const struct subject_region *region, unsigned expected)
{
	const unsigned windows = expected + 2;
	unsigned long before;

	check_note_number("cache_size", expected);
	for (unsigned window = 0; window < windows; window++) {
		const unsigned kept = window + 1 < expected ? window + 1 : expected;

		if (!touch(allocator, region, window) ||
		    !CHECK_EQUAL(kept, space_views(), "no more mappings are kept than the cache holds, and no fewer"))
			return false;
	}
	/* The last ones are there, in whatever order they are asked for. */
	before = map_calls();
	for (unsigned i = 0; i < expected; i++)
		if (!touch(allocator, region, windows - expected + (i * 5 + 1) % expected))
			return false;
	for (unsigned i = 0; i < expected; i++)
		if (!touch(allocator, region, windows - expected + i))
			return false;
	return CHECK_EQUAL(before, map_calls(), "views of windows that are kept make and unmap nothing") &&
	       CHECK_EQUAL(expected, space_views(), "they are all kept");
}

static bool keeps_configured(const struct subject_config *config, unsigned expected)
{
	struct subject_allocator *allocator = NULL;
	struct subject_refusals refusals;
	struct subject_region region;

	return ALLOC_OK(ALLOC(create_over)(&watch_os, config, &allocator, &refusals)) &&
	       alloc_region(allocator, (expected + 2) * ALLOC_UNIT, &region) && keeps(allocator, &region, expected) &&
	       ALLOC_OK(ALLOC(release)(&region)) && CHECK_EQUAL(0, space_views(), "none outlives its region") &&
	       ALLOC_OK(ALLOC(destroy)(allocator));
}

static struct subject_config still(void)
{
	struct subject_config config = alloc_config();

	config.emulation = SUBJECT_EMULATION_OFF; /* nothing is run here */
	return config;
}

CHECK(rc_size, "RC-001",
      "a cache of each size from 0 to 16 keeps as many mappings as it says, and serves views by them")
{
	struct subject_config config = still();
	struct subject_allocator *allocator = NULL;
	struct subject_refusals refusals;

	if (!alloc_claims("allocator os-table rw-cache"))
		return;
	watch_begin();
	for (config.rw_cache = 0; config.rw_cache <= MOST; config.rw_cache++)
		MUST(keeps_configured(&config, config.rw_cache));
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, ALLOC(create_over)(&watch_os, &config, &allocator, &refusals)));
	config.rw_cache = SUBJECT_RW_CACHE_OWN;
	MUST(keeps_configured(&config, 3));
}

/* ---- In use ---- */

CHECK(rc_pinned, "RC-003", "a mapping in use stays, however many others are needed, and is kept or goes when closed")
{
	static const unsigned sizes[] = {0, 3, 16};
	struct subject_config config = still();
	struct subject_allocator *allocator;
	struct subject_region region;
	struct subject_view views[WINDOWS];

	if (!alloc_claims("allocator os-table rw-cache"))
		return;
	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		config.rw_cache = sizes[s];
		check_note_number("cache_size", sizes[s]);
		allocator = alloc_make(&config);
		watch.alone = true;
		MUST(allocator && alloc_region(allocator, WINDOWS * ALLOC_UNIT, &region));
		/* All but the last stay open, while that one comes and goes. */
		for (unsigned i = 0; i + 1 < WINDOWS; i++) {
			MUST_OK(ALLOC(open)(allocator, region.rx + i * ALLOC_UNIT + 17, 3, 0, &views[i]));
			MUST(touch(allocator, &region, WINDOWS - 1));
		}
		for (unsigned i = 0; i + 1 < WINDOWS; i++) {
			const struct space_extent *extent = space_at((uintptr_t)views[i].rw);

			check_note_number("window", i);
			MUST(CHECK_TRUE(extent && extent->protection & SUBJECT_WRITE,
					"the mapping of an open view is there"));
			views[i].rw[2] = (unsigned char)(i + 1);
			MUST(CHECK_EQUAL(i + 1, *(const volatile unsigned char *)(views[i].rx + 2),
					 "what is written through it arrives"));
		}
		/* Two views of one mapping: it stays until the second one is closed. */
		MUST_OK(ALLOC(open)(allocator, region.rx + 40000, 3, 0, &views[WINDOWS - 1]));
		for (unsigned i = 0; i + 1 < WINDOWS; i++)
			MUST_OK(ALLOC(close)(&views[i]));
		for (unsigned i = 1; i < WINDOWS; i++)
			MUST(touch(allocator, &region, i));
		MUST(CHECK_TRUE(space_at((uintptr_t)views[WINDOWS - 1].rw) != NULL,
				"a mapping with one view left stays"));
		views[WINDOWS - 1].rw[0] = 77;
		MUST(CHECK_EQUAL(77, *(const volatile unsigned char *)views[WINDOWS - 1].rx, "and can be written"));
		MUST_OK(ALLOC(close)(&views[WINDOWS - 1]));
		MUST(CHECK_EQUAL(sizes[s], space_views(), "as many are kept as the cache holds"));
		MUST_OK(ALLOC(release)(&region));
		MUST(alloc_end(allocator));
	}
}

/* ---- By environment ---- */

static bool creates(char *value, unsigned configured, int expected)
{
	char room[64], other[] = SUBJECT_RW_CACHE_VARIABLE "_OTHER=5", first[] = "HOME=/";
	struct text entry = TEXT(room);
	char *const environment[] = {first, other, value ? room : NULL, NULL};
	struct subject_config config = still();
	struct subject_allocator *allocator = NULL;
	struct subject_refusals refusals;
	const struct space_state before = space_state();

	text_add(&entry, SUBJECT_RW_CACHE_VARIABLE "=");
	text_add(&entry, value ? value : "");
	check_note("environment", value ? room : "without the variable");
	config.environment = environment;
	config.rw_cache = configured;
	watch.text[0] = '\0';
	if (expected >= 0)
		return keeps_configured(&config, (unsigned)expected);
	return ALLOC_IS(expected, ALLOC(create_over)(&watch_os, &config, &allocator, &refusals)) &&
	       CHECK_EQUAL(before.digest, space_state().digest, "nothing is left of an allocator that is refused") &&
	       (expected != SUBJECT_ERROR_ENVIRONMENT ||
		CHECK_TRUE(watch.text[0] != '\0', "a message says what is wrong with the variable"));
}

CHECK(rc_environment, "RC-010", "the environment sets the number of kept mappings; what is no such number is refused")
{
	static char good[][4] = {"0", "1", "16", "07"};
	static const int expected[] = {0, 1, 16, 7};
	static char bad[][8] = {"", "17", "-1", "3x", " 3", "3 ", "0x3", "999999", "+3"};

	if (!alloc_claims("allocator os-table rw-cache"))
		return;
	watch_begin();
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		MUST(creates(good[i], 3, expected[i]));
	MUST(creates(NULL, 2, 2));
	/* It replaces a configured number that would be refused. */
	MUST(creates(good[1], MOST + 1, 1));
	MUST(creates(NULL, MOST + 1, SUBJECT_ERROR_ARGUMENT));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		MUST(creates(bad[i], 3, SUBJECT_ERROR_ENVIRONMENT));
}
