/*
 * A walk through every operation. See alloc.h.
 */
#include "alloc.h"

static void (*then)(const char *operation);

static bool done(const char *operation, bool works)
{
	if (works && then)
		then(operation);
	return works;
}
#define STEP(name_, call_) done(name_, ALLOC_OK(call_))

struct walk {
	struct subject_allocator *allocator;
	struct subject_region a, b, near;
	struct subject_view view, second;
};

static bool reserve(struct walk *w)
{
	if (!STEP("reserve", ALLOC(reserve)(w->allocator, 5 * ALLOC_UNIT, &w->a)) ||
	    !STEP("reserve", ALLOC(reserve)(w->allocator, 3 * ALLOC_UNIT - 1, &w->b)))
		return false;
	if (!check_claimed("near"))
		return STEP("reserve", ALLOC(reserve)(w->allocator, ALLOC_UNIT, &w->near));
	return STEP("reserve_near",
		    ALLOC(reserve_near)(w->allocator, ALLOC_UNIT, w->a.rx, 1024 * ALLOC_UNIT, &w->near));
}

static bool commit(struct walk *w)
{
	const size_t page = watch.page, most = ALLOC_UNIT + page < w->b.bytes ? ALLOC_UNIT + page : ALLOC_UNIT;

	/* In an order that makes neighbours in a region lie apart in a file. */
	return STEP("commit", ALLOC(commit)(&w->a, 0, ALLOC_UNIT)) && STEP("commit", ALLOC(commit)(&w->b, 0, most)) &&
	       STEP("commit", ALLOC(commit)(&w->a, ALLOC_UNIT, 3 * ALLOC_UNIT)) &&
	       STEP("commit", ALLOC(commit)(&w->near, ALLOC_UNIT - page, page));
}

static bool write(struct walk *w)
{
	for (unsigned i = 0; i < 4; i++)
		if (!done("write", alloc_put(w->allocator, w->a.rx + i * ALLOC_UNIT + 256, i + 1)))
			return false;
	for (unsigned i = 0; i < 4; i++)
		if (!alloc_runs(w->a.rx + i * ALLOC_UNIT + 256, i + 1, "what was written runs"))
			return false;
	/* Across two places of the file; and of single use. */
	if (!STEP("open", ALLOC(open)(w->allocator, w->a.rx + ALLOC_UNIT - 20, ALLOC_UNIT, 0, &w->view)) ||
	    !STEP("open", ALLOC(open)(w->allocator, w->b.rx + 3, 8, SUBJECT_OPEN_SINGLE_USE, &w->second)))
		return false;
	w->view.rw[0] = w->second.rw[0] = 1;
	return STEP("publish", ALLOC(publish)(&w->view, 0, 1, 0)) &&
	       STEP("publish", ALLOC(publish)(&w->second, 0, 8, 0));
}

static bool claimed(struct walk *w)
{
	const struct subject_range ranges[] = {{0, 4}, {4, 4}, {100, 1}};
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	const size_t bytes = execmem_port_probe_code(9, code);
	struct subject_stats stats;

	if (check_claimed("publish-many") &&
	    (!STEP("publish_many", ALLOC(publish_many)(&w->view, ranges, 3, 0)) ||
	     !STEP("write", ALLOC(write)(w->allocator, w->a.rx + 3 * ALLOC_UNIT + 512, code, bytes, 0)) ||
	     !alloc_runs(w->a.rx + 3 * ALLOC_UNIT + 512, 9, "what was written in one runs")))
		return false;
	if (check_claimed("stats") &&
	    (!STEP("stats", ALLOC(stats)(w->allocator, &stats)) || !STEP("dump", ALLOC(dump)(w->allocator))))
		return false;
	return !check_claimed("fork") || (STEP("fork_prepare", ALLOC(fork_prepare)(w->allocator)) &&
					  STEP("fork_parent", ALLOC(fork_parent)(w->allocator)));
}

static bool give_back(struct walk *w)
{
	const size_t page = watch.page;

	if (!STEP("close", ALLOC(close)(&w->view)) || !STEP("close", ALLOC(close)(&w->second)) ||
	    !STEP("decommit", ALLOC(decommit)(&w->a, ALLOC_UNIT, 2 * ALLOC_UNIT)) ||
	    !STEP("decommit", ALLOC(decommit)(&w->b, 0, page)) || !STEP("commit", ALLOC(commit)(&w->b, 0, page)) ||
	    !STEP("commit", ALLOC(commit)(&w->a, 2 * ALLOC_UNIT, ALLOC_UNIT)) ||
	    !done("write", alloc_put(w->allocator, w->a.rx + 2 * ALLOC_UNIT, 7)))
		return false;
	return STEP("release", ALLOC(release)(&w->b)) && STEP("release", ALLOC(release)(&w->a)) &&
	       STEP("release", ALLOC(release)(&w->near));
}

bool alloc_walk(const struct subject_config *config, void (*before)(void), void (*after)(const char *operation))
{
	struct walk w = {.allocator = NULL};

	watch_begin();
	if (before)
		before();
	w.allocator = alloc_create(config);
	then = after;
	return done("create", w.allocator != NULL) && reserve(&w) && commit(&w) && write(&w) && claimed(&w) &&
	       give_back(&w) && done("destroy", alloc_end(w.allocator));
}
