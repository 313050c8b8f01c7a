/*
 * Every publish path synchronises what was written: exactly that, where it runs, once, in time, or says that it failed.
 */
#include "observe.h"

#define EIO        5
#define LINE       ((size_t)64) /* a size of cache lines, for ranges that begin and end within one */
#define BYTES_MOST (2 * ALLOC_UNIT)

/* ---- Configurations: both backends, both answers to the probe ---- */

static bool pick(unsigned number, struct subject_config *config)
{
	*config = alloc_config();
	config->rw_cache = number % 2 ? 3 : 0;
	config->emulation = number < 2 ? SUBJECT_EMULATION_OFF : SUBJECT_EMULATION_ON;
	if (number == 2)
		config->backends[0] = SUBJECT_BACKEND_TOGGLE;
	return number != 2 || check_claimed("backends");
}
#define PICKS 4

static struct subject_allocator *allocator;
static struct subject_region region;

static bool begin(const struct subject_config *config)
{
	allocator = alloc_make(config);
	watch.toggling = config->backends[0] == SUBJECT_BACKEND_TOGGLE;
	watch.alone = true;
	check_note("backend", watch.toggling ? "protection toggling" : "double mapping");
	return allocator && alloc_region(allocator, 4 * ALLOC_UNIT, &region);
}

static bool end(void)
{
	watch.refuse = NULL;
	return ALLOC_OK(ALLOC(release)(&region)) && alloc_end(allocator);
}

/* ---- Exactly ---- */

/* Where in the region a view is, and what of it is published. */
struct place {
	size_t offset, bytes, from, count;
};

static bool publishes(const struct place *place, unsigned flags)
{
	const struct observe_range range = {region.rx + place->offset + place->from, place->count};
	struct subject_view view;

	check_note_number("view_offset", place->offset);
	check_note_number("published_from", place->from);
	observe_begin();
	if (!ALLOC_OK(ALLOC(open)(allocator, region.rx + place->offset, place->bytes, flags, &view)) ||
	    !CHECK_EQUAL(0, observe.count, "opening a view synchronises nothing"))
		return false;
	__builtin_memset(view.rw + place->from, (int)place->count, place->count);
	if (!ALLOC_OK(ALLOC(publish)(&view, place->from, place->count, 0)) || !observe_exactly(&range, 1) ||
	    !CHECK_EQUAL(0, observe.serializes, "threads are serialised where that is asked for alone"))
		return false;
	observe_begin();
	return ALLOC_OK(ALLOC(close)(&view)) &&
	       CHECK_EQUAL(0, observe.count, "closing a view synchronises nothing again");
}

static bool publishes_places(size_t page)
{
	const struct place places[] = {
		{0, 1, 0, 1},                             /* the smallest */
		{3, LINE, 0, LINE},                       /* a line's length over two lines */
		{LINE, 3 * LINE, LINE, LINE},             /* one line */
		{LINE, 3 * LINE, LINE - 1, LINE + 2},     /* and a byte of its neighbours */
		{2 * LINE + 5, 7, 2, 3},                  /* inside one */
		{page - 1, 2, 0, 2},                      /* across a page */
		{page - LINE - 1, 4 * LINE, 1, 2 * LINE}, /* aligned across a page */
		{page, page, 0, page},                    /* a page */
		{ALLOC_UNIT - 1, 2, 0, 2},                /* across a window */
		{ALLOC_UNIT - 1, 2, 1, 1},                /* the first byte of one, through a view that begins before */
		{ALLOC_UNIT - 100, ALLOC_UNIT + 200, 7, ALLOC_UNIT + 100}, /* a window and more */
		{3 * ALLOC_UNIT, ALLOC_UNIT, ALLOC_UNIT - 1, 1},           /* the last byte of the region */
	};

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!publishes(&places[i], i % 3 ? 0 : SUBJECT_OPEN_SINGLE_USE))
			return false;
	return true;
}

/* As one: apart, touching, overlapping, one in another, the same twice; out of order. */
static bool publishes_many(void)
{
	static const struct {
		struct subject_range ranges[4];
		struct observe_range are[3]; /* to be synchronised; addresses from the view's */
	} cases[] = {
		{{{5, 1}}, {{5, 1}}},
		{{{0, 4}, {100, 3}, {200, 200}}, {{0, 4}, {100, 3}, {200, 200}}},
		{{{0, 64}, {64, 64}, {128, 1}}, {{0, 129}}},
		{{{10, 20}, {20, 20}}, {{10, 30}}},
		{{{10, 50}, {20, 5}, {40, 1}}, {{10, 50}}},
		{{{7, 9}, {7, 9}}, {{7, 9}}},
		{{{200, 1}, {100, 70}, {0, 3}}, {{0, 3}, {100, 70}, {200, 1}}},
	};
	struct subject_view view;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct subject_range *ranges = cases[i].ranges;
		struct observe_range are[3];
		unsigned count = 0, expected = 0;

		check_note_number("case", i);
		observe_begin();
		if (!ALLOC_OK(ALLOC(open)(allocator, region.rx + 4000, 500, 0, &view)))
			return false;
		for (; ranges[count].bytes; count++)
			__builtin_memset(view.rw + ranges[count].offset, 1, ranges[count].bytes);
		for (; expected < 3 && cases[i].are[expected].bytes; expected++)
			are[expected] = (struct observe_range){view.rx + cases[i].are[expected].address,
							       cases[i].are[expected].bytes};
		if (!ALLOC_OK(ALLOC(publish_many)(&view, ranges, count, 0)) || !observe_exactly(are, expected) ||
		    !ALLOC_OK(ALLOC(close)(&view)))
			return false;
	}
	return true;
}

static unsigned char bytes[ALLOC_UNIT + 64];

static bool writes(size_t page)
{
	const struct observe_range ranges[] = {{9, 1}, {page - 3, 7}, {ALLOC_UNIT - 9, ALLOC_UNIT + 11}};

	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct observe_range range = {region.rx + ranges[i].address, ranges[i].bytes};

		observe_begin();
		if (!ALLOC_OK(ALLOC(write)(allocator, range.address, bytes, range.bytes, 0)) ||
		    !observe_exactly(&range, 1))
			return false;
	}
	return true;
}

CHECK(ic_exact, "IC-001",
      "each way to publish synchronises exactly the bytes written, at their executable address, once")
{
	struct subject_config config;

	if (!alloc_claims("allocator os-table"))
		return;
	for (unsigned i = 0; i < PICKS; i++) {
		if (!pick(i, &config))
			continue;
		MUST(begin(&config));
		/* Twice: written for the first time, and rewritten. */
		MUST(publishes_places(check_page) && publishes_places(check_page));
		MUST(!check_claimed("publish-many") || (publishes_many() && writes(check_page) && writes(check_page)));
		MUST(end());
	}
}

/* ---- In time ---- */

/* At creation, code is run to find out what the system shows: never before it was synchronised. */
static bool probes_in_order(void)
{
	const struct watch_call *sync = NULL;

	for (unsigned long i = 0; i < watch.recorded; i++) {
		const struct watch_call *call = watch_call_at(i);

		if (call->kind == WATCH_SYNC_CODE) {
			sync = call;
		} else if (call->kind == WATCH_PROBE_RUN) {
			if (!CHECK_TRUE(sync && sync->address <= call->address &&
						call->address < sync->address + sync->bytes,
					"code of a probe is synchronised before each time that it runs"))
				return false;
			sync = NULL;
		}
	}
	return true;
}

CHECK(ic_order, "IC-002",
      "bytes are in place when they are synchronised, before they run and before their view is closed")
{
	struct subject_config config;
	struct subject_view view;

	if (!alloc_claims("allocator os-table"))
		return;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 + 1);
	for (unsigned i = 0; i < PICKS; i++) {
		if (!pick(i, &config))
			continue;
		config.rw_cache = 0; /* closing a view unmaps it */
		if (config.emulation == SUBJECT_EMULATION_OFF)
			config.emulation = SUBJECT_EMULATION_PROBE;
		MUST(begin(&config) && probes_in_order());
		for (unsigned path = 0; path < (check_claimed("publish-many") ? 3 : 1); path++) {
			const struct subject_range range = {0, 1000};
			const uintptr_t rx = region.rx + path * ALLOC_UNIT + 4000;

			check_note("path", path == 0 ? "publish" : path == 1 ? "publish_many" : "write");
			observe_begin();
			observe.expected = bytes;
			observe.at = rx;
			observe.bytes = 1000;
			if (path == 2) {
				MUST_OK(ALLOC(write)(allocator, rx, bytes, 1000, 0));
			} else {
				MUST_OK(ALLOC(open)(allocator, rx, 1000, 0, &view));
				__builtin_memcpy(view.rw, bytes, 1000);
				MUST_OK(path ? ALLOC(publish_many)(&view, &range, 1, 0)
					     : ALLOC(publish)(&view, 0, 1000, 0));
			}
			MUST(CHECK_TRUE(observe.count, "what is published is synchronised"));
			MUST(CHECK_EQUAL(0, observe.early, "the bytes are in place when they are synchronised"));
			MUST(CHECK_TRUE(watch.toggling || observe.syncs[0].views,
					"they are synchronised before their view is closed"));
			if (path != 2)
				MUST_OK(ALLOC(close)(&view));
		}
		MUST(end());
	}
}

CHECK(ic_serialize, "IC-003",
      "threads are serialised where that is asked for, once, after everything is synchronised; or it is said")
{
	const struct subject_range ranges[] = {{0, 4}, {100, 4}};
	const int expected = observe_serializes() ? 0 : SUBJECT_ERROR_UNSUPPORTED;
	struct subject_config config = alloc_config();
	struct subject_view view;

	if (!alloc_claims("allocator os-table"))
		return;
	config.emulation = SUBJECT_EMULATION_OFF;
	MUST(begin(&config));
	MUST_OK(ALLOC(open)(allocator, region.rx, 200, 0, &view));
	for (unsigned path = 0; path < (check_claimed("publish-many") ? 3 : 1); path++) {
		check_note("path", path == 0 ? "publish" : path == 1 ? "publish_many" : "write");
		observe_begin();
		if (path == 0)
			MUST(ALLOC_IS(expected, ALLOC(publish)(&view, 0, 8, SUBJECT_PUBLISH_SERIALIZE)));
		else if (path == 1)
			MUST(ALLOC_IS(expected, ALLOC(publish_many)(&view, ranges, 2, SUBJECT_PUBLISH_SERIALIZE)));
		else
			MUST(ALLOC_IS(expected, ALLOC(write)(allocator, view.rx, bytes, 8, SUBJECT_PUBLISH_SERIALIZE)));
		MUST(CHECK_EQUAL(1, observe.serializes, "threads are serialised once"));
		MUST(CHECK_TRUE(observe.count && observe.serialized_after == observe.count,
				"after everything is synchronised"));
	}
	MUST_OK(ALLOC(close)(&view));
	MUST(end());
}

/* ---- Or it is said ---- */

/* The refused call was the sync, and the view is as it was: published again, it is synchronised again. */
static bool said(struct subject_view *view)
{
	const struct observe_range range = {view->rx + 10, 20};
	struct subject_refusal refusal = {0};

	if (check_claimed("refusals")) {
		ALLOC(last_refusal)(allocator, &refusal);
		if (!CHECK_EQUAL(EIO, (uint64_t)refusal.error, "the errno of the refusal is kept"))
			return false;
	}
	observe_begin();
	return ALLOC_OK(ALLOC(publish)(view, 10, 20, 0)) && observe_exactly(&range, 1);
}

static bool refuse_sync(unsigned number)
{
	observe_begin();
	observe.refuse_at = number;
	observe.refuse_with = EIO;
	return true;
}

CHECK(ic_refused, "IC-004",
      "where synchronising is refused, publishing says so, whichever way; and works when it is not any more")
{
	const struct subject_range ranges[] = {{0, 4}, {100, 4}, {150, 4}};
	struct subject_config config = alloc_config();
	struct subject_refusals refusals;
	struct subject_stats before = {0}, after = {0};
	struct subject_view view;

	if (!alloc_claims("allocator os-table"))
		return;
	config.rw_cache = 0;
	config.emulation = SUBJECT_EMULATION_OFF;
	MUST(begin(&config));
	MUST_OK(ALLOC(open)(allocator, region.rx, 200, 0, &view));
	if (check_claimed("stats"))
		MUST_OK(ALLOC(stats)(allocator, &before));
	MUST(refuse_sync(1) && ALLOC_IS(SUBJECT_ERROR_SYNC, ALLOC(publish)(&view, 10, 20, 0)));
	if (check_claimed("stats")) {
		MUST_OK(ALLOC(stats)(allocator, &after));
		MUST(CHECK_EQUAL(before.publishes, after.publishes, "what failed is not counted as published"));
	}
	MUST(said(&view));
	for (unsigned k = 1; k <= 3 && check_claimed("publish-many"); k++) {
		check_note_number("refused_sync", k);
		MUST(refuse_sync(k) && ALLOC_IS(SUBJECT_ERROR_SYNC, ALLOC(publish_many)(&view, ranges, 3, 0)) &&
		     said(&view));
	}
	MUST_OK(ALLOC(close)(&view));
	if (check_claimed("publish-many")) {
		MUST(refuse_sync(1) && ALLOC_IS(SUBJECT_ERROR_SYNC, ALLOC(write)(allocator, region.rx, bytes, 100, 0)));
		MUST(CHECK_EQUAL(0, space_views(), "nothing stays open behind it"));
		observe_begin();
		MUST_OK(ALLOC(write)(allocator, region.rx, bytes, 100, 0));
	}
	MUST(end());

	/* At creation, where code is run to find out what the system shows. */
	config.emulation = SUBJECT_EMULATION_PROBE;
	watch_begin();
	(void)refuse_sync(1);
	allocator = NULL;
	if (ALLOC(create_over)(&watch_os, &config, &allocator, &refusals)) {
		MUST(CHECK_EQUAL(0, space.count, "nothing is left of an allocator that is refused"));
	} else {
		MUST(CHECK_EQUAL(0, observe.count, "an allocator that could not synchronise its probe is not made"));
		watch.refuse = NULL;
		MUST(alloc_end(allocator));
	}
}
