/*
 * How pages go: in which calls, what happens when they are refused, and where counters have no memory.
 */
#include "../alloc/table.h"
#include "model.h"

static size_t ranges; /* that are free in a checkerboard */

static struct {
	struct rl_memory memory;
	struct subject_class *class_;
	struct subject_release_layout layout;
	uint64_t pages, bytes; /* given back so far */
} c;

/* A class of half-page blocks, each second page of which is free, all of them with memory. */
static bool checkerboard_of(const struct subject_os *os, size_t count, bool file)
{
	const size_t page = check_page;
	struct subject_release_place place;

	watch_begin();
	ranges = count;
	check_note_number("ranges", ranges);
	c.layout = (struct subject_release_layout){page, page / 2, 0, 4 * ranges, 2 * ranges * page};
	c.pages = c.bytes = 0;
	if (!rl_map(&c.memory, c.layout.end, file))
		return false;
	place = (struct subject_release_place){c.memory.at, c.memory.file, 0};
	if (!ALLOC_OK(subject.release->class_create(os, &c.layout, &place, &c.class_)))
		return false;
	__builtin_memset(c.memory.at, 9, c.memory.bytes);
	for (size_t block = 0; block < c.layout.blocks; block++)
		subject.release->class_take(c.class_, block);
	for (size_t block = 0; block < c.layout.blocks; block++)
		if (block & 2)
			subject.release->class_give(c.class_, block);
	return true;
}

static bool checkerboard(bool file)
{
	return checkerboard_of(&watch_os, 20, file);
}

static int release(void)
{
	const struct subject_release_request exact = {SUBJECT_RELEASE_EXACT, false, 0, 0};
	struct subject_released released;
	const int error = subject.release->class_release(c.class_, &exact, &released);

	c.pages += released.pages;
	c.bytes += released.bytes;
	return error;
}

/* So many of the free pages are gone, and the counters say it. */
static bool gone(uint64_t pages)
{
	return CHECK_EQUAL((UINT64_C(2) * ranges - pages) * check_page, rl_held(&c.memory),
			   "what went is what the system has not any more") &&
	       CHECK_EQUAL(pages, c.pages, "the count of pages is what went") &&
	       CHECK_EQUAL(pages * check_page, c.bytes, "the count of bytes is what went");
}

static bool done(void)
{
	for (size_t at = 0; at < c.memory.bytes; at += check_page / 2)
		if (!CHECK_EQUAL(at / check_page & 1 ? 0 : 9, c.memory.at[at], "only what is free reads as zero"))
			return false;
	watch_allow();
	watch.refuse = NULL;
	return ALLOC_OK(subject.release->class_destroy(c.class_)) && rl_unmap(&c.memory);
}

static int refusal;

static int refuse_many(const struct watch_call *call)
{
	return call->kind == WATCH_DISCARD_MANY ? refusal : 0;
}

/* As a system that stops in the middle: process_madvise(2) answers how far it came. */
static int discard_some(void *context, const struct subject_span *spans, size_t count, size_t *done)
{
	return watch_os.discard_many(context, spans, count / 2, done);
}

CHECK(rl_calls, "RL-005", "few calls where many ranges go together, one a range where the system does not take them so")
{
	/* No such call; not allowed, before Linux 6.13; no such advice. */
	static const int refusals[] = {-TABLE_ENOSYS, -TABLE_EPERM, -TABLE_EINVAL};
	struct subject_os os = watch_os;
	unsigned long before;

	if (!alloc_claims("release-class"))
		return;
	MUST(checkerboard(false));
	before = watch.calls;
	MUST_OK(release());
	MUST(gone(ranges) && CHECK_TRUE(watch.calls - before < ranges / 2, "ranges go together"));
	before = watch.calls;
	MUST_OK(release());
	MUST(CHECK_EQUAL(before, watch.calls, "a release that finds nothing asks the system for nothing") && done());

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		MUST(checkerboard(false));
		refusal = refusals[i];
		watch.refuse = refuse_many;
		before = watch.of_kind[WATCH_DISCARD];
		MUST_OK(release());
		MUST(gone(ranges));
		MUST(CHECK_EQUAL(ranges, watch.of_kind[WATCH_DISCARD] - before, "each range goes by itself") && done());
	}

	os.discard_many = discard_some;
	MUST(checkerboard_of(&os, 20, false));
	MUST_OK(release());
	MUST(gone(ranges) && done());

	/* More than a kernel takes at once (UIO_MAXIOV). */
	if (check_rounds > 1 && check_page == 4096) {
		MUST(checkerboard_of(&watch_os, 1100, false));
		before = watch.calls;
		MUST_OK(release());
		MUST(gone(ranges) && CHECK_TRUE(watch.calls - before < ranges / 2, "very many ranges go together"));
		MUST(done());
	}

	MUST(checkerboard(true));
	before = watch.of_kind[WATCH_FILE_PUNCH];
	MUST_OK(release());
	MUST(gone(ranges));
	MUST(CHECK_EQUAL(ranges, watch.of_kind[WATCH_FILE_PUNCH] - before, "each range is a hole") && done());
}

static unsigned after; /* so many discards or punches are taken, and no more */

static int refuse_later(const struct watch_call *call)
{
	if (call->kind == WATCH_DISCARD_MANY)
		return -TABLE_ENOSYS;
	if (call->kind != WATCH_DISCARD && call->kind != WATCH_FILE_PUNCH)
		return 0;
	return after-- == 0 ? -TABLE_ENOSPC : 0;
}

CHECK(rl_refused, "RL-005", "what the system refuses is said, is not counted, and goes the next time")
{
	if (!alloc_claims("release-class"))
		return;
	for (unsigned file = 0; file < 2; file++) {
		static const unsigned taken[] = {0, 1, 19};

		for (unsigned i = 0; i < 3; i++) {
			MUST(checkerboard(file));
			after = taken[i];
			watch.refuse = refuse_later;
			check_note_number("ranges_taken", taken[i]);
			check_note("memory", file ? "file" : "private");
			MUST(ALLOC_IS(-TABLE_ENOSPC, release()));
			MUST(gone(taken[i]));
			watch.refuse = NULL;
			MUST_OK(release());
			MUST(gone(ranges) && done());
		}
	}
}

/* ---- Counters ---- */

#define PER ((size_t)512) /* blocks of a page: counters of 16 bits */

static bool refused_map;

/*
 * Pages whose counters fit no small buffer, and whose bytes times 100 no 32 bits. Not more: an emulator keeps a
 * description of each page that ever was, and copies them all for each fork.
 */
static size_t many_pages(void)
{
	const size_t pages = ((size_t)48 << 20) / check_page;

	return pages > 4500 ? pages : 4500;
}

static int refuse_map(const struct watch_call *call)
{
	refused_map |= call->kind == WATCH_MAP;
	return call->kind == WATCH_MAP ? -TABLE_ENOMEM : 0;
}

/* All of the first pages were used; of page 1 a block is live, and all of the last page. */
static bool many(void)
{
	const size_t page = check_page, pages = many_pages();
	struct subject_release_place place;

	watch_begin();
	c.layout = (struct subject_release_layout){page, page / PER, 0, pages * PER, pages * page};
	if (!rl_map(&c.memory, c.layout.end, false))
		return false;
	place = (struct subject_release_place){c.memory.at, c.memory.file, 0};
	if (!ALLOC_OK(subject.release->class_create(&watch_os, &c.layout, &place, &c.class_)))
		return false;
	for (size_t block = 0; block < 8 * PER; block++)
		subject.release->class_take(c.class_, block);
	for (size_t block = (pages - 1) * PER; block < pages * PER; block++)
		subject.release->class_take(c.class_, block);
	__builtin_memset(c.memory.at, 9, 8 * page);
	__builtin_memset(c.memory.at + (pages - 1) * page, 9, page);
	for (size_t block = 0; block < 8 * PER; block++)
		if (block != PER + 8)
			subject.release->class_give(c.class_, block);
	return true;
}

CHECK(rl_counters, "RL-006", "counters that do not fit a small buffer, with memory for them and without")
{
	const struct subject_release_request forced = {SUBJECT_RELEASE_SCUDO, true, 0, 0};
	const size_t pages = many_pages();
	struct subject_released released;
	int error;

	if (!alloc_claims("release-class"))
		return;
	MUST(many());
	watch.refuse = refuse_map;
	refused_map = false;
	error = subject.release->class_release(c.class_, &forced, &released);
	watch.refuse = NULL;
	if (refused_map) {
		MUST(ALLOC_IS(-TABLE_ENOMEM, error));
		MUST(CHECK_EQUAL(0, released.pages, "nothing goes") &&
		     CHECK_EQUAL(9, c.memory.at[0], "and what is free is as it was"));
	}
	/* Twice: what counting leaves behind would show in the second. */
	for (unsigned i = 0; i < 2; i++) {
		for (size_t block = 0; block < PER && i; block++)
			subject.release->class_take(c.class_, block);
		for (size_t block = 0; block < PER && i; block++)
			subject.release->class_give(c.class_, block);
		MUST_OK(subject.release->class_release(c.class_, &forced, &released));
		MUST(CHECK_EQUAL(0, released.verdict, "a release is decided") &&
		     CHECK_EQUAL(pages - 2, released.pages, "every page goes but two") &&
		     CHECK_EQUAL(9, c.memory.at[check_page], "the page of a live block stays") &&
		     CHECK_EQUAL(9, c.memory.at[(pages - 1) * check_page], "a page of live blocks stays") &&
		     CHECK_EQUAL(0, c.memory.at[0], "a free page is gone"));
	}
	MUST_OK(subject.release->class_destroy(c.class_));
	MUST(rl_unmap(&c.memory) && CHECK_EQUAL(0, space.count, "nothing stays mapped"));
}

/* ---- The interval of policy scudo ---- */

#define SECOND ((uint64_t)1000000000)

/* Half of page 0 was used again and freed, and the other half. What is decided at so many tenths of a second? */
static bool decided(uint64_t tenths, uint64_t verdict)
{
	const struct subject_release_request every = {SUBJECT_RELEASE_SCUDO, false, 1000, tenths * SECOND / 10};
	struct subject_released released;

	check_note_number("tenths_of_a_second", tenths);
	for (size_t block = 2; block < 4; block++) {
		subject.release->class_take(c.class_, block);
		c.memory.at[block * check_page / 2] = 9;
		subject.release->class_give(c.class_, block);
	}
	return ALLOC_OK(subject.release->class_release(c.class_, &every, &released)) &&
	       CHECK_EQUAL(verdict, released.verdict, "the interval counts from the last release") &&
	       CHECK_EQUAL(verdict ? 9 : 0, c.memory.at[check_page], "and what is decided is done");
}

CHECK(rl_interval, "RL-010", "of a class, an interval counts from the last release that was decided for")
{
	if (!alloc_claims("release-class") || !alloc_claims("release-decisions"))
		return;
	MUST(checkerboard(false));
	MUST(decided(50, SUBJECT_RELEASE_GO));
	MUST(decided(55, SUBJECT_RELEASE_EARLY));
	MUST(decided(59, SUBJECT_RELEASE_EARLY));
	MUST(decided(60, SUBJECT_RELEASE_GO));
	MUST(decided(69, SUBJECT_RELEASE_EARLY));
	MUST(decided(71, SUBJECT_RELEASE_GO) && done());
}
