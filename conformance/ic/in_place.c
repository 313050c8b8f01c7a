/*
 * What an emulator needs is done in place, and only where it is needed.
 */
#include "../alloc/alloc.h"
#include "observe.h"
#include "os.h"

#define REWRITES 40

static struct subject_allocator *allocator;
static struct subject_region region;

/* ---- A thread that runs in the page ---- */

static struct {
	volatile int32_t calls, asleep, stop, wrong;
} runner;

static void run_in_page(void *argument)
{
	const uintptr_t rx = (uintptr_t)argument;

	while (!__atomic_load_n(&runner.stop, __ATOMIC_ACQUIRE)) {
		if (alloc_run(rx) != 7)
			__atomic_store_n(&runner.wrong, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&runner.calls, runner.calls + 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&runner.asleep, __ATOMIC_SEQ_CST))
			os_wake(&runner.calls);
	}
}

/* Sleeps until the thread has made a call more. */
static void wait_for_call(void)
{
	const int32_t before = __atomic_load_n(&runner.calls, __ATOMIC_SEQ_CST);

	__atomic_store_n(&runner.asleep, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&runner.calls, __ATOMIC_SEQ_CST) == before)
		os_wait(&runner.calls, before);
	__atomic_store_n(&runner.asleep, 0, __ATOMIC_SEQ_CST);
}

/* ---- What publishing asks of the system ---- */

static struct {
	unsigned remaps, others;
	uintptr_t first, end; /* of the pages mapped anew */
	bool same;            /* as they were mapped before */
} asked;

static int see(const struct watch_call *call)
{
	const struct space_extent *before = space_at(call->address);

	if (call->kind != WATCH_MAP_FIXED && call->kind != WATCH_MAP && call->kind != WATCH_UNMAP &&
	    call->kind != WATCH_PROTECT)
		return 0;
	if (call->kind != WATCH_MAP_FIXED) {
		asked.others++;
		return 0;
	}
	if (!asked.remaps++ || call->address < asked.first)
		asked.first = call->address;
	if (call->address + call->bytes > asked.end)
		asked.end = (uintptr_t)(call->address + call->bytes);
	asked.same = asked.same && before && before->file == call->file && before->protection == call->protection &&
		     before->offset + (call->address - before->start) == call->offset;
	return 0;
}

static void see_from_now(void)
{
	__builtin_memset(&asked, 0, sizeof(asked));
	asked.same = true;
	watch.refuse = see;
}

/* Rewrites a function through a view that is open for long; asserts that the publishing was in place. */
static bool publishes_in_place(const struct subject_view *view, unsigned value)
{
	const size_t bytes = execmem_port_probe_code(value, view->rw), mask = check_page - 1;

	see_from_now();
	if (!ALLOC_OK(ALLOC(publish)(view, 0, bytes, 0)))
		return false;
	watch.refuse = NULL;
	return CHECK_EQUAL(0, asked.others, "nothing is unmapped, and no protection changes") &&
	       CHECK_TRUE(asked.same, "pages are mapped anew as they were: same file, place in it, and protection") &&
	       (!asked.remaps ||
		(CHECK_EQUAL(view->rx & ~mask, asked.first, "the pages published, from the first on") &&
		 CHECK_EQUAL((view->rx + bytes + mask) & ~mask, asked.end, "to the last")));
}

CHECK(ic_in_place, "IC-008",
      "mapping rewritten code anew is one step, in place: a thread that runs in the page does not notice")
{
	struct execmem_port_thread thread = {.run = run_in_page};
	struct subject_config config = alloc_config();
	struct subject_view view;
	bool right = true;

	if (!alloc_claims("allocator os-table emulation"))
		return;
	config.emulation = SUBJECT_EMULATION_ON;
	allocator = alloc_make(&config);
	MUST(allocator && alloc_region(allocator, ALLOC_UNIT, &region) && alloc_put(allocator, region.rx, 7) &&
	     alloc_put(allocator, region.rx + 128, 1));
	MUST(alloc_runs(region.rx + 128, 1, "published code runs"));
	MUST_OK(ALLOC(open)(allocator, region.rx + 128, EXECMEM_PORT_PROBE_BYTES, 0, &view));
	/* What is asked, before anybody could be disturbed. */
	MUST(publishes_in_place(&view, 2) && alloc_runs(region.rx + 128, 2, "rewritten code runs"));

	runner.calls = runner.asleep = runner.stop = runner.wrong = 0;
	thread.argument = (void *)region.rx;
	if (execmem_port_thread_start(&thread))
		check_broken("the system refuses a thread", 0);
	for (unsigned i = 0; i < REWRITES && right; i++) {
		wait_for_call();
		right = publishes_in_place(&view, i) && alloc_runs(region.rx + 128, i, "rewritten code runs");
	}
	__atomic_store_n(&runner.stop, 1, __ATOMIC_RELEASE);
	execmem_port_thread_join(&thread);
	MUST(right && CHECK_EQUAL(0, runner.wrong, "the thread runs what it ran before"));
	MUST_OK(ALLOC(close)(&view));
	MUST_OK(ALLOC(release)(&region));
	MUST(alloc_end(allocator));
}

CHECK(ic_in_pieces, "IC-008", "code that lies across two pieces of the memory file is mapped anew from both")
{
	struct subject_config config = alloc_config();
	struct subject_view view;
	uintptr_t across;

	if (!alloc_claims("allocator os-table emulation"))
		return;
	config.emulation = SUBJECT_EMULATION_ON;
	allocator = alloc_make(&config);
	MUST(allocator);
	/* The second half first: where a file is handed out from its beginning, the halves lie the other way round. */
	MUST_OK(ALLOC(reserve)(allocator, 2 * ALLOC_UNIT, &region));
	MUST_OK(ALLOC(commit)(&region, ALLOC_UNIT, ALLOC_UNIT));
	MUST_OK(ALLOC(commit)(&region, 0, ALLOC_UNIT));
	across = region.rx + ALLOC_UNIT - 4;
	MUST_OK(ALLOC(open)(allocator, across, EXECMEM_PORT_PROBE_BYTES, 0, &view));
	for (unsigned value = 1; value <= 3; value++) {
		MUST(publishes_in_place(&view, value));
		MUST(alloc_runs(across, value, "rewritten code runs on both sides"));
	}
	MUST_OK(ALLOC(close)(&view));
	MUST_OK(ALLOC(release)(&region));
	MUST(alloc_end(allocator));
}

/* ---- Only where it is needed ---- */

/* A system that answers the allocator's probe as it is told to, whatever it would show. */
static struct {
	bool stale;
	unsigned last; /* the value of the code written last */
	unsigned first;
} told;

static int told_code(void *context, unsigned value, unsigned char *code, size_t *bytes)
{
	const int error = watch_os.probe_code(context, value, code, bytes);

	told.last = value;
	return error;
}

static unsigned told_run(void *context, const void *code)
{
	(void)watch_os.probe_run(context, code);
	if (!told.first)
		told.first = told.last;
	return told.stale ? told.first : told.last;
}

/* Publishes over what was published before; asserts whether anything is mapped anew. */
static bool maps_anew(bool expected, const char *what)
{
	see_from_now();
	if (!alloc_put(allocator, region.rx, 3))
		return false;
	watch.refuse = NULL;
	return CHECK_EQUAL(expected, asked.remaps != 0, what);
}

static bool answers(bool stale)
{
	const struct subject_config config = alloc_config();
	struct subject_os os = watch_os;
	struct subject_refusals refusals;

	check_note("told", stale ? "rewritten code is stale" : "rewritten code is seen");
	os.probe_code = told_code;
	os.probe_run = told_run;
	told.stale = stale;
	told.first = 0;
	watch_begin();
	return ALLOC_OK(ALLOC(create_over)(&os, &config, &allocator, &refusals)) &&
	       CHECK_TRUE(told.first != 0, "the allocator asks, by running code") &&
	       CHECK_EQUAL(stale, ALLOC(emulation)(allocator), "it says what it found out") &&
	       alloc_region(allocator, 2 * ALLOC_UNIT, &region) && alloc_put(allocator, region.rx, 2) &&
	       maps_anew(stale, "pages are mapped anew where the probe says that it is needed, and only there");
}

CHECK(ic_needed, "IC-009",
      "pages are mapped anew only where the probe says that it is needed, and only over published code")
{
	if (!alloc_claims("allocator os-table emulation"))
		return;
	MUST(answers(false));
	/* By hand. */
	ALLOC(set_emulation)(allocator, true);
	MUST(CHECK_EQUAL(true, ALLOC(emulation)(allocator), "what is turned on is on"));
	MUST(maps_anew(true, "pages are mapped anew where that is turned on"));
	MUST_OK(ALLOC(release)(&region));
	MUST(alloc_end(allocator));

	MUST(answers(true));
	/* Appended code costs nothing: a page where nothing was published. */
	see_from_now();
	MUST(alloc_put(allocator, region.rx + ALLOC_UNIT, 1));
	MUST(CHECK_EQUAL(0, asked.remaps, "nothing is mapped anew where nothing was published before"));
	watch.refuse = NULL;
	/* Nor do pages that are committed again, with what was published there gone. */
	MUST_OK(ALLOC(decommit)(&region, 0, check_page));
	MUST_OK(ALLOC(commit)(&region, 0, check_page));
	MUST(maps_anew(false, "nothing is mapped anew where pages were committed since"));
	MUST(maps_anew(true, "they are once something was published there"));
	ALLOC(set_emulation)(allocator, false);
	MUST(maps_anew(false, "pages are not mapped anew where that is turned off"));
	MUST_OK(ALLOC(release)(&region));
	MUST(alloc_end(allocator));
}
