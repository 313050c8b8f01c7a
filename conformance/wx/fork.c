/*
 * After a fork, parent and child cannot change each other's code; a child that has not said so is refused everything.
 */
#include "../alloc/alloc.h"
#include "../alloc/maps.h"
#include "../os.h"

/* Shared by parent and child, so that they can take turns: word 0 counts them. */
static volatile int32_t *turns;

static void turn_wait(int32_t number)
{
	int32_t now;

	while ((now = __atomic_load_n(turns, __ATOMIC_ACQUIRE)) < number)
		os_wait(turns, now);
}

static void turn_end(int32_t number)
{
	__atomic_store_n(turns, number, __ATOMIC_RELEASE);
	os_wake(turns);
}

/* A page that a fork shares; the suite's own, so made before watching begins. */
static bool share_turns(void)
{
	if (!turns)
		turns = (volatile int32_t *)os_share(check_page);
	*turns = 0;
	return true;
}

static struct subject_allocator *allocator;
static struct subject_region region;
static struct subject_view view;

/* Beside these: a second region, longer than is copied at once and in pieces of the file, and views of other kinds. */
#define FAR_UNITS 40u
#define HALF_UNIT (ALLOC_UNIT / 2)
static struct subject_region far;
static struct subject_view single, across;

static bool far_begin(void)
{
	/* In an order that makes neighbours lie apart in a file. */
	if (!ALLOC_OK(ALLOC(reserve)(allocator, FAR_UNITS * ALLOC_UNIT, &far)) ||
	    !ALLOC_OK(ALLOC(commit)(&far, 3 * ALLOC_UNIT, (FAR_UNITS - 3) * ALLOC_UNIT)) ||
	    !ALLOC_OK(ALLOC(commit)(&far, 2 * ALLOC_UNIT, ALLOC_UNIT)) ||
	    !ALLOC_OK(ALLOC(commit)(&far, ALLOC_UNIT, ALLOC_UNIT)) || !ALLOC_OK(ALLOC(commit)(&far, 0, ALLOC_UNIT)))
		return false;
	for (unsigned i = 3; i < FAR_UNITS; i++)
		if (!alloc_put(allocator, far.rx + i * ALLOC_UNIT, 10 + i))
			return false;
	if (!ALLOC_OK(ALLOC(open)(allocator, far.rx + HALF_UNIT, ALLOC_UNIT, 0, &across)) ||
	    !ALLOC_OK(ALLOC(open)(allocator, far.rx + 2 * ALLOC_UNIT, 8, SUBJECT_OPEN_SINGLE_USE, &single)))
		return false;
	across.rw[0] = across.rw[ALLOC_UNIT - 1] = single.rw[0] = 1;
	return true;
}

/* Is the code of the second region as it was at the fork? */
static bool far_runs(void)
{
	for (unsigned i = 3; i < FAR_UNITS; i++)
		if (alloc_run(far.rx + i * ALLOC_UNIT) != 10 + i)
			return false;
	return true;
}

/* What its views show, and what runs there, is all of one side. */
static bool far_is(unsigned char value)
{
	return across.rw[0] == value && across.rw[ALLOC_UNIT - 1] == value && single.rw[0] == value &&
	       *(const volatile unsigned char *)across.rx == value &&
	       *(const volatile unsigned char *)(across.rx + (ALLOC_UNIT - 1)) == value &&
	       *(const volatile unsigned char *)single.rx == value;
}

static void far_write(unsigned char value)
{
	across.rw[0] = across.rw[ALLOC_UNIT - 1] = single.rw[0] = value;
}

/* The child of a fork that was prepared: moves, sees what was there at the fork, and writes code of its own. */
static int child_apart(void)
{
	struct subject_region other;

	ALLOC_STEP(ALLOC(write)(allocator, region.rx, "x", 1, 0) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(fork_parent)(allocator) == SUBJECT_ERROR_FORKED);
	turn_wait(1); /* the parent has rewritten everything before this child has moved */
	ALLOC_STEP(ALLOC(fork_child)(allocator) == 0);
	ALLOC_STEP(alloc_run(region.rx) == 1 && alloc_run(region.rx + ALLOC_UNIT) == 1);
	ALLOC_STEP(maps_agree("fork_child"));
	ALLOC_STEP(view.rw[0] == 1);
	ALLOC_STEP(far_runs());
	ALLOC_STEP(far_is(1));
	far_write(3);
	ALLOC_STEP(far_is(3));
	view.rw[0] = 3;
	ALLOC_STEP(ALLOC(publish)(&view, 0, 1, 0) == 0 && ALLOC(close)(&view) == 0);
	ALLOC_STEP(*(const unsigned char *)view.rx == 3);
	ALLOC_STEP(alloc_put(allocator, region.rx, 4) && alloc_run(region.rx) == 4);
	ALLOC_STEP(alloc_region(allocator, ALLOC_UNIT, &other) && alloc_put(allocator, other.rx, 5));
	ALLOC_STEP(alloc_run(other.rx) == 5);
	ALLOC_STEP(alloc_put(allocator, far.rx + (FAR_UNITS - 1) * ALLOC_UNIT, 4));
	turn_end(2);
	turn_wait(3);
	ALLOC_STEP(alloc_run(region.rx) == 4 && alloc_run(region.rx + ALLOC_UNIT) == 1);
	ALLOC_STEP(far_is(3) && alloc_run(far.rx + (FAR_UNITS - 1) * ALLOC_UNIT) == 4);
	ALLOC_STEP(watch.broken[WATCH_BOTH].count == 0 && watch.broken[WATCH_FRESH].count == 0);
	ALLOC_STEP(ALLOC(close)(&across) == 0 && ALLOC(close)(&single) == 0);
	ALLOC_STEP(ALLOC(release)(&region) == 0 && ALLOC(release)(&other) == 0 && ALLOC(release)(&far) == 0);
	ALLOC_STEP(ALLOC(destroy)(allocator) == 0 && space.count == 0 && space_open_files() == 0);
	return 0;
}

static void apart(enum subject_backend backend)
{
	struct subject_config config = alloc_config();
	long child;

	config.backends[0] = backend;
	if (backend == SUBJECT_BACKEND_TOGGLE && !check_claimed("backends"))
		return;
	MUST(share_turns());
	watch_begin();
	watch.toggling = backend == SUBJECT_BACKEND_TOGGLE;
	allocator = alloc_create(&config);
	MUST(allocator && alloc_region(allocator, 4 * ALLOC_UNIT, &region));
	MUST_OK(ALLOC(decommit)(&region, 2 * ALLOC_UNIT, ALLOC_UNIT)); /* a hole */
	MUST(alloc_put(allocator, region.rx, 1) && alloc_put(allocator, region.rx + ALLOC_UNIT, 1));
	MUST_OK(ALLOC(open)(allocator, region.rx + 3 * ALLOC_UNIT, 100, 0, &view));
	view.rw[0] = 1;
	MUST(far_begin());
	MUST_OK(ALLOC(fork_prepare)(allocator));
	child = os_fork();
	if (!child)
		execmem_port_exit(child_apart());
	MUST_OK(ALLOC(fork_parent)(allocator));
	MUST(alloc_put(allocator, region.rx, 2) && alloc_put(allocator, region.rx + ALLOC_UNIT, 2));
	for (unsigned i = 3; i < FAR_UNITS; i++)
		MUST(alloc_put(allocator, far.rx + i * ALLOC_UNIT, 2));
	far_write(2);
	view.rw[0] = 2;
	turn_end(1);
	turn_wait(2);
	MUST(CHECK_TRUE(far_is(2), "a second region, views of single use and views across pieces are the parent's") &&
	     alloc_runs(far.rx + (FAR_UNITS - 1) * ALLOC_UNIT, 2, "code of a second region is not the child's"));
	MUST(alloc_runs(region.rx, 2, "the parent's code is not the child's") &&
	     CHECK_EQUAL(2, view.rw[0], "nor its view"));
	MUST(alloc_put(allocator, region.rx, 6));
	turn_end(3);
	MUST(alloc_ended(os_ended(child), "the child's code is not the parent's"));
	MUST_OK(ALLOC(close)(&view));
	MUST_OK(ALLOC(close)(&across));
	MUST_OK(ALLOC(close)(&single));
	MUST(alloc_runs(region.rx, 6, "the parent goes on"));
	MUST_OK(ALLOC(release)(&region));
	MUST_OK(ALLOC(release)(&far));
	MUST(WATCH_KEPT(WATCH_BOTH, "no mapping is writable and executable"));
	(void)alloc_end(allocator);
}

CHECK(wx_fork_apart, "WX-040", "after a fork neither side sees what the other writes, open views included")
{
	if (!alloc_claims("allocator os-table fork publish-many"))
		return;
	apart(SUBJECT_BACKEND_DOUBLE);
	apart(SUBJECT_BACKEND_TOGGLE);
}

/* A child that has said nothing. */
static int child_refused(void)
{
	const struct subject_range range = {0, 1};
	const unsigned char byte = 0;
	struct subject_region other;
	struct subject_view more;
	struct subject_stats stats;

	ALLOC_STEP(ALLOC(reserve)(allocator, 1, &other) == SUBJECT_ERROR_FORKED);
	if (check_claimed("near"))
		ALLOC_STEP(ALLOC(reserve_near)(allocator, 1, region.rx, SIZE_MAX, &other) == SUBJECT_ERROR_FORKED);
	if (check_claimed("lookup"))
		ALLOC_STEP(ALLOC(reserve_kind)(allocator, 1, 1, NULL, &other) == SUBJECT_ERROR_FORKED);
	if (check_claimed("publish-many")) {
		ALLOC_STEP(ALLOC(publish_many)(&view, &range, 1, 0) == SUBJECT_ERROR_FORKED);
		ALLOC_STEP(ALLOC(write)(allocator, region.rx, &byte, 1, 0) == SUBJECT_ERROR_FORKED);
	}
	if (check_claimed("stats")) {
		ALLOC_STEP(ALLOC(stats)(allocator, &stats) == SUBJECT_ERROR_FORKED);
		ALLOC_STEP(ALLOC(dump)(allocator) == SUBJECT_ERROR_FORKED);
	}
	ALLOC_STEP(ALLOC(commit)(&region, ALLOC_UNIT, ALLOC_UNIT) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(decommit)(&region, 0, ALLOC_UNIT) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(open)(allocator, region.rx, 1, 0, &more) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(publish)(&view, 0, 1, 0) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(close)(&view) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(release)(&region) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(destroy)(allocator) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(fork_prepare)(allocator) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(fork_child)(allocator) == SUBJECT_ERROR_STATE);
	ALLOC_STEP(alloc_run(region.rx) == 7); /* what was there may be run */
	ALLOC_STEP(watch.of_kind[WATCH_MAP] == 0 && watch.of_kind[WATCH_MAP_FIXED] == 0 &&
		   watch.of_kind[WATCH_UNMAP] == 0 && watch.of_kind[WATCH_FILE_PUNCH] == 0);
	return 0;
}

static int no_wipe(const struct watch_call *call)
{
	return call->kind == WATCH_WIPE_ON_FORK ? -38 : 0; /* ENOSYS */
}

/* Did the allocator get memory that a fork wipes? */
static bool wipes(void)
{
	for (unsigned long i = 0; i < watch.recorded; i++)
		if (watch_call_at(i)->kind == WATCH_WIPE_ON_FORK && watch_call_at(i)->result == 0)
			return true;
	return false;
}

CHECK(wx_fork_refused, "WX-041",
      "in a child that has not said that it is one every operation is refused by an error of its own")
{
	struct space_state before;
	long child;

	if (!alloc_claims("allocator os-table fork"))
		return;
	/* However it is found out: by asking for the process, or by memory that a fork wipes, where there is such. */
	for (unsigned wiped = 0; wiped < 2; wiped++) {
		watch_begin();
		watch.refuse = wiped ? NULL : no_wipe;
		allocator = alloc_create(NULL);
		MUST(allocator && alloc_region(allocator, ALLOC_UNIT, &region) && alloc_put(allocator, region.rx, 7));
		if (wiped && !wipes()) {
			MUST_OK(ALLOC(release)(&region));
			MUST(alloc_end(allocator));
			return;
		}
		MUST_OK(ALLOC(open)(allocator, region.rx, 100, 0, &view));
		MUST(ALLOC_IS(SUBJECT_ERROR_STATE, ALLOC(fork_parent)(allocator)));
		MUST(ALLOC_IS(SUBJECT_ERROR_STATE, ALLOC(fork_child)(allocator)));
		before = space_state();
		for (unsigned i = 0; i < WATCH_KIND_COUNT; i++)
			watch.of_kind[i] = 0;
		child = os_fork();
		if (!child)
			execmem_port_exit(child_refused());
		MUST(alloc_ended(os_ended(child), "every operation of the child is refused, and maps nothing"));
		MUST(CHECK_EQUAL(before.digest, space_state().digest, "the parent keeps what it had"));
		MUST_OK(ALLOC(close)(&view));
		MUST_OK(ALLOC(release)(&region));
		MUST(alloc_end(allocator));
	}
}
