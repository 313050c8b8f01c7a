/*
 * Calls from several threads at once: nothing is lost, nothing is counted twice, and who races for a region gets one
 * answer or the other.
 */
#include "../alloc/alloc.h"
#include "os.h"

#define WORKERS      2
#define UNITS        6 /* windows of the region that they share: more than are cached */
#define STEPS        5000
#define STEPS_NATIVE 40000
#define OWN_EVERY    64 /* steps between two regions of a worker's own */
#define RACES        200
#define PLACE        ((size_t)64) /* bytes of a unit that are one worker's */

struct worker {
	struct execmem_port_thread thread;
	unsigned long opens, commits, reserves; /* that worked; as many were closed, published and released */
	int error;                              /* the first that was not expected */
	const char *call;
	unsigned number;
	unsigned char last[UNITS]; /* what it wrote to each unit */
};

static struct {
	struct subject_allocator *allocator;
	struct subject_region region;
	unsigned long steps;
	uint64_t seed;
	volatile int32_t ready; /* workers that have begun: none goes on before all are there */
} shared;

/* Sleeps until a word that others raise, and wake, has reached the value. */
static void reach(volatile int32_t *word, int32_t value)
{
	for (;;) {
		const int32_t now = __atomic_load_n(word, __ATOMIC_SEQ_CST);

		if (now >= value)
			return;
		os_wait(word, now);
	}
}

static bool went(struct worker *self, int error, const char *call)
{
	if (error && !self->error) {
		self->error = error;
		self->call = call;
	}
	return !error;
}

/* Writes one byte of the worker's own in a unit of the shared region. */
static bool write_one(struct worker *self, unsigned unit, unsigned char value)
{
	const uintptr_t rx = shared.region.rx + unit * ALLOC_UNIT + self->number * PLACE;
	struct subject_view view;

	if (!went(self, ALLOC(open)(shared.allocator, rx, 1, 0, &view), "open"))
		return false;
	self->opens++;
	view.rw[0] = value;
	self->last[unit] = value;
	return went(self, ALLOC(publish)(&view, 0, 1, 0), "publish") && went(self, ALLOC(close)(&view), "close");
}

/* Takes a region of the worker's own, writes to it, and gives it back. */
static bool take_one(struct worker *self)
{
	struct subject_region own;

	if (!went(self, ALLOC(reserve)(shared.allocator, ALLOC_UNIT, &own), "reserve"))
		return false;
	self->reserves++;
	if (!went(self, ALLOC(commit)(&own, 0, check_page), "commit"))
		return false;
	self->commits++;
	return went(self, ALLOC(release)(&own), "release");
}

static void work(void *argument)
{
	struct worker *self = argument;
	uint64_t random = (shared.seed + self->number) * UINT64_C(0x9e3779b97f4a7c15) | 1;

	if (__atomic_add_fetch(&shared.ready, 1, __ATOMIC_SEQ_CST) == WORKERS)
		for (unsigned i = 0; i < WORKERS; i++)
			os_wake(&shared.ready);
	reach(&shared.ready, WORKERS);
	for (unsigned long i = 0; i < shared.steps && !self->error; i++) {
		const uint64_t r = alloc_random(&random);

		/* Most make no system call, which would keep the threads apart. */
		if (!write_one(self, r % 16 ? 0 : (unsigned)((r >> 8) % UNITS), (unsigned char)(r >> 32)))
			return;
		if (i % OWN_EVERY == 0 && !take_one(self))
			return;
	}
}

static bool figures_are(const struct worker *workers)
{
	struct subject_stats stats;
	struct subject_cache cache;
	uint64_t opens = 0, commits = 1, reserves = 1; /* the region that they share */

	for (unsigned i = 0; i < WORKERS; i++) {
		opens += workers[i].opens;
		commits += workers[i].commits;
		reserves += workers[i].reserves;
	}
	if (check_claimed("rw-cache")) {
		if (!ALLOC_OK(ALLOC(cache)(shared.allocator, &cache)) ||
		    !CHECK_EQUAL(opens, cache.hits + cache.misses, "every view is a hit or a miss") ||
		    !CHECK_EQUAL(cache.maps, cache.unmaps + space_views(), "mappings made and not unmapped are there"))
			return false;
	}
	if (!check_claimed("stats"))
		return true;
	return ALLOC_OK(ALLOC(stats)(shared.allocator, &stats)) && CHECK_EQUAL(opens, stats.publishes, "publishes") &&
	       CHECK_EQUAL(commits, stats.commits, "commits") && CHECK_EQUAL(reserves, stats.reserves, "reserves") &&
	       CHECK_EQUAL(reserves - 1, stats.releases, "releases") &&
	       CHECK_EQUAL(0, stats.views_open, "no view is open") &&
	       CHECK_EQUAL(space_views(), stats.views_mapped, "writable mappings are those of the model");
}

static bool all_start(struct worker *workers, void (*run)(void *argument))
{
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].thread = (struct execmem_port_thread){.run = run, .argument = &workers[i]};
		workers[i].number = i;
		if (execmem_port_thread_start(&workers[i].thread))
			check_broken("the system refuses a thread", 0);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		execmem_port_thread_join(&workers[i].thread);
	for (unsigned i = 0; i < WORKERS; i++) {
		check_note("call", workers[i].call ? workers[i].call : "-");
		if (!ALLOC_OK(workers[i].error))
			return false;
	}
	return true;
}

CHECK(wx_threads, "WX-060", "calls of two threads at once: every one works, is counted once, and leaves what it should")
{
	struct worker workers[WORKERS] = {{.error = 0}};

	if (!alloc_claims("allocator os-table"))
		return;
	shared.allocator = alloc_make(NULL);
	MUST(shared.allocator && alloc_region(shared.allocator, UNITS * ALLOC_UNIT, &shared.region));
	shared.steps = check_rounds > 1 ? STEPS_NATIVE : STEPS;
	shared.seed = check_seed;
	shared.ready = 0;
	MUST(all_start(workers, work));
	for (unsigned i = 0; i < WORKERS; i++) {
		for (unsigned unit = 0; unit < UNITS; unit++) {
			const unsigned char *rx = (const unsigned char *)shared.region.rx + unit * ALLOC_UNIT;

			check_note_number("unit", unit);
			MUST(CHECK_EQUAL(workers[i].last[unit], rx[i * PLACE], "the byte that a thread wrote last"));
		}
	}
	MUST(figures_are(workers));
	MUST(WATCH_KEPT(WATCH_BOTH, "nothing is writable and executable"));
	MUST(WATCH_KEPT(WATCH_FOREIGN, "nothing is touched that the allocator did not map"));
	MUST_OK(ALLOC(release)(&shared.region));
	MUST(alloc_end(shared.allocator));
}

/* ---- Opening and releasing, at once ---- */

static struct {
	volatile int32_t round;    /* the race that may be run; RACES + 1: none any more */
	volatile int32_t answered; /* threads that have their answer in this round */
	int opened, released;
	struct subject_view view;
} race;

static void answer(void)
{
	(void)__atomic_add_fetch(&race.answered, 1, __ATOMIC_SEQ_CST);
	os_wake(&race.answered);
}

static void release_each(void *argument)
{
	(void)argument;
	for (int32_t round = 1;; round++) {
		reach(&race.round, round);
		if (__atomic_load_n(&race.round, __ATOMIC_SEQ_CST) > RACES)
			return;
		race.released = ALLOC(release)(&shared.region);
		answer();
	}
}

CHECK(wx_threads_release, "WX-061", "a region that is released while a view of it is opened: one of the two is refused")
{
	struct execmem_port_thread thread = {.run = release_each};
	bool right = true;

	if (!alloc_claims("allocator os-table"))
		return;
	shared.allocator = alloc_make(NULL);
	MUST(shared.allocator);
	race.round = race.answered = 0;
	if (execmem_port_thread_start(&thread))
		check_broken("the system refuses a thread", 0);
	for (int32_t round = 1; round <= RACES && right; round++) {
		right = alloc_region(shared.allocator, ALLOC_UNIT, &shared.region);
		if (!right)
			break;
		__atomic_store_n(&race.answered, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&race.round, round, __ATOMIC_SEQ_CST);
		os_wake(&race.round);
		race.opened = ALLOC(open)(shared.allocator, shared.region.rx, 1, 0, &race.view);
		reach(&race.answered, 1);
		check_note_number("round", (uint64_t)round);
		if (!race.opened) {
			race.view.rw[0] = (unsigned char)round;
			right = ALLOC_IS(SUBJECT_ERROR_BUSY, race.released) && ALLOC_OK(ALLOC(close)(&race.view)) &&
				CHECK_EQUAL((unsigned char)round, *(const unsigned char *)shared.region.rx,
					    "what is written through the view is the region's") &&
				ALLOC_OK(ALLOC(release)(&shared.region));
		} else {
			right = ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, race.opened) && ALLOC_OK(race.released);
		}
	}
	__atomic_store_n(&race.round, RACES + 1, __ATOMIC_SEQ_CST);
	os_wake(&race.round);
	execmem_port_thread_join(&thread);
	MUST(right);
	MUST(WATCH_KEPT(WATCH_FOREIGN, "nothing is touched that the allocator did not map"));
	MUST(alloc_end(shared.allocator));
}
