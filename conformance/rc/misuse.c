/*
 * What is asked for wrongly is refused with its own error, and changes nothing.
 */
#include "../alloc/alloc.h"

/* Everything that must be as it was: mappings, counters, calls to the system that change something. */
struct before {
	struct space_state state;
	struct subject_cache cache;
	unsigned long calls;
};

static struct before note(struct subject_allocator *allocator)
{
	struct before now = {.state = space_state()};

	if (check_claimed("rw-cache"))
		(void)ALLOC_OK(ALLOC(cache)(allocator, &now.cache));
	for (unsigned kind = 0; kind <= WATCH_FILE_CLOSE; kind++)
		now.calls += watch.of_kind[kind];
	now.calls += watch.of_kind[WATCH_SYNC_CODE] + watch.of_kind[WATCH_SERIALIZE];
	return now;
}

static bool as_before(struct subject_allocator *allocator, const struct before *before)
{
	const struct before now = note(allocator);

	return CHECK_EQUAL(before->calls, now.calls, "nothing is asked of the system for what is refused") &&
	       CHECK_EQUAL(before->state.digest, now.state.digest, "what is mapped is as before") &&
	       CHECK_EQUAL(before->state.views, now.state.views, "writable mappings are as before") &&
	       CHECK_EQUAL(before->cache.hits, now.cache.hits, "hits are as before") &&
	       CHECK_EQUAL(before->cache.misses, now.cache.misses, "misses are as before") &&
	       CHECK_EQUAL(before->cache.bypasses, now.cache.bypasses, "single-use views are as before") &&
	       CHECK_EQUAL(before->cache.maps, now.cache.maps, "mappings made are as before") &&
	       CHECK_EQUAL(before->cache.unmaps, now.cache.unmaps, "mappings unmapped are as before");
}

#define REFUSED(error_, call_)                                                                                         \
	do {                                                                                                           \
		const struct before before_ = note(allocator);                                                         \
		MUST(ALLOC_IS(SUBJECT_ERROR_##error_, call_));                                                         \
		MUST(as_before(allocator, &before_));                                                                  \
	} while (0)

static struct subject_allocator *allocator;
static struct subject_region region, released;

/* As a refused call must leave it. */
static const struct subject_view untouched = {(unsigned char *)8, 16, 24, {32, 40}};

static bool is_untouched(const struct subject_view *view)
{
	return CHECK_TRUE(view->rw == untouched.rw && view->rx == untouched.rx && view->bytes == untouched.bytes,
			  "the output of a refused call is untouched");
}

static void opening(void)
{
	struct subject_view view = untouched;

	REFUSED(ARGUMENT, ALLOC(open)(allocator, region.rx, 0, 0, &view));
	REFUSED(ARGUMENT, ALLOC(open)(allocator, region.rx + 8, SIZE_MAX, 0, &view));
	REFUSED(ARGUMENT, ALLOC(open)(allocator, region.rx + 8, SIZE_MAX - region.rx, 0, &view));
	REFUSED(ARGUMENT, ALLOC(open)(allocator, region.rx, 8, 0x80000000u, &view));
	REFUSED(NOT_FOUND, ALLOC(open)(allocator, 64, 8, 0, &view));
	REFUSED(NOT_FOUND, ALLOC(open)(allocator, released.rx, 8, 0, &view));
	REFUSED(OUTSIDE, ALLOC(open)(allocator, region.rx, region.bytes + 1, 0, &view));
	REFUSED(OUTSIDE, ALLOC(open)(allocator, region.rx + region.bytes - 1, 2, SUBJECT_OPEN_SINGLE_USE, &view));
	/* Window 1 is committed but for its last page, window 2 not at all. */
	REFUSED(NOT_COMMITTED, ALLOC(open)(allocator, region.rx + 2 * ALLOC_UNIT, 8, 0, &view));
	REFUSED(NOT_COMMITTED, ALLOC(open)(allocator, region.rx + 2 * ALLOC_UNIT - check_page - 1, 2, 0, &view));
	REFUSED(NOT_COMMITTED, ALLOC(open)(allocator, region.rx + 2 * ALLOC_UNIT - 1, 1, 0, &view));
	(void)is_untouched(&view);
}

static void publishing(struct subject_view *view)
{
	const size_t bytes = view->bytes;

	REFUSED(ARGUMENT, ALLOC(publish)(view, 0, 0, 0));
	REFUSED(ARGUMENT, ALLOC(publish)(view, 0, 8, 0x80000000u));
	REFUSED(OUTSIDE, ALLOC(publish)(view, 0, bytes + 1, 0));
	REFUSED(OUTSIDE, ALLOC(publish)(view, bytes, 1, 0));
	REFUSED(OUTSIDE, ALLOC(publish)(view, bytes - 1, 2, 0));
	REFUSED(OUTSIDE, ALLOC(publish)(view, bytes + 1, 1, 0));
	REFUSED(OUTSIDE, ALLOC(publish)(view, 8, SIZE_MAX - 7, 0));
	REFUSED(OUTSIDE, ALLOC(publish)(view, SIZE_MAX, 2, 0));
}

static void publishing_many(struct subject_view *view)
{
	const struct subject_range empty[] = {{0, 4}, {4, 0}}, beyond[] = {{0, 4}, {view->bytes - 1, 2}};
	const unsigned char code[8] = {0};

	if (!check_claimed("publish-many"))
		return;
	REFUSED(ARGUMENT, ALLOC(publish_many)(view, empty, 0, 0));
	/* All are looked at before the first is published. */
	REFUSED(ARGUMENT, ALLOC(publish_many)(view, empty, 2, 0));
	REFUSED(OUTSIDE, ALLOC(publish_many)(view, beyond, 2, 0));
	REFUSED(ARGUMENT, ALLOC(write)(allocator, region.rx, code, 0, 0));
	REFUSED(ARGUMENT, ALLOC(write)(allocator, region.rx, NULL, 8, 0));
	REFUSED(NOT_COMMITTED, ALLOC(write)(allocator, region.rx + 2 * ALLOC_UNIT, code, 8, 0));
}

static void closing(struct subject_view *view)
{
	const struct subject_range all[] = {{0, 8}};
	struct subject_view copy = *view, other;

	MUST_OK(ALLOC(close)(view));
	REFUSED(NOT_OPEN, ALLOC(close)(view));
	REFUSED(NOT_OPEN, ALLOC(close)(&copy));
	REFUSED(NOT_OPEN, ALLOC(publish)(&copy, 0, 8, 0));
	if (check_claimed("publish-many"))
		REFUSED(NOT_OPEN, ALLOC(publish_many)(&copy, all, 1, 0));
	/* Whatever its memory is used for now. */
	MUST_OK(ALLOC(open)(allocator, region.rx + 100, 8, 0, &other));
	REFUSED(NOT_OPEN, ALLOC(close)(&copy));
	REFUSED(NOT_OPEN, ALLOC(publish)(&copy, 0, 8, 0));
	other.rw[0] = 5;
	MUST_OK(ALLOC(publish)(&other, 0, 8, 0));
	MUST_OK(ALLOC(close)(&other));
	REFUSED(NOT_OPEN, ALLOC(close)(&copy));
}

CHECK(rc_misuse, "RC-009", "closed views, ranges outside, sizes of zero or that wrap are refused, and change nothing")
{
	struct subject_config config = alloc_config();
	struct subject_view view;

	if (!alloc_claims("allocator os-table"))
		return;
	config.emulation = SUBJECT_EMULATION_OFF;
	allocator = alloc_make(&config);
	watch.alone = true;
	MUST(allocator != NULL);
	MUST_OK(ALLOC(reserve)(allocator, 3 * ALLOC_UNIT, &region));
	MUST_OK(ALLOC(commit)(&region, 0, ALLOC_UNIT));
	if (check_page < ALLOC_UNIT)
		MUST_OK(ALLOC(commit)(&region, ALLOC_UNIT, ALLOC_UNIT - check_page));
	MUST(alloc_region(allocator, ALLOC_UNIT, &released));
	MUST_OK(ALLOC(release)(&released));
	MUST_OK(ALLOC(open)(allocator, region.rx + 64, 64, 0, &view));
	opening();
	publishing(&view);
	publishing_many(&view);
	closing(&view);
	MUST_OK(ALLOC(release)(&region));
	REFUSED(RELEASED, ALLOC(release)(&region));
	REFUSED(NOT_FOUND, ALLOC(open)(allocator, region.rx + 64, 64, 0, &view));
	MUST(alloc_end(allocator));
}
