/*
 * A heap of code that several threads use at once, while code of it runs.
 */
#include "call.h"
#include "code_heap.h"

#define WORKERS      2u
#define HELD         12u /* blocks of a worker, at most */
#define STEPS        600u
#define STEPS_NATIVE 30000u
#define RUNNING      6u

struct worker {
	struct execmem_port_thread thread;
	struct subject_code held[HELD];
	uint64_t random;
	unsigned long allocated, freed;
	const char *wrong; /* the first thing that was */
	int error;
};

static struct code_pair pair;
static unsigned steps;
static uint32_t running; /* workers that have not ended */

static void is(struct worker *self, bool right, int error, const char *what)
{
	if (right || self->wrong)
		return;
	self->wrong = what;
	self->error = error;
}

/* Any of its addresses leads to a block of the worker's. */
static void look(struct worker *self, const struct subject_code *held)
{
	struct subject_code found = {0};
	int error;

	if (!check_claimed("code-find"))
		return;
	error = CODE(find)(pair.allocator, held->rx + held->bytes - 1, &found);
	is(self, !error && found.rx == held->rx && found.bytes == held->bytes && found.code_bytes == held->code_bytes,
	   error, "a block is found while others come and go");
	is(self, CODE(kind)(pair.allocator, held->rx + held->code_bytes / 2) == (int)held->kind, 0,
	   "a block keeps its kind while others come and go");
}

static void step(struct worker *self)
{
	const uint64_t r = alloc_random(&self->random);
	struct subject_code *held = &self->held[(r >> 8) % HELD];
	const struct subject_code_request request = {r >> 40 & 1 ? 256 : 0, (unsigned)(r >> 16) % 63};
	int error;

	if (held->rx) {
		look(self, held);
		error = CODE(free)(pair.heap, held->rx);
		is(self, !error, error, "a live block can be freed");
		self->freed++;
		held->rx = 0;
		return;
	}
	error = CODE(allocate)(pair.heap, 1 + (r >> 24) % 4000, &request, held);
	is(self, !error, error, "there is room");
	if (error) {
		held->rx = 0;
		return;
	}
	self->allocated++;
	look(self, held);
}

static void work(void *argument)
{
	struct worker *self = argument;

	for (unsigned i = 0; i < steps && !self->wrong; i++)
		step(self);
	for (unsigned i = 0; i < HELD && !self->wrong; i++)
		if (self->held[i].rx) {
			const int error = CODE(free)(pair.heap, self->held[i].rx);

			is(self, !error, error, "a live block can be freed");
			self->freed++;
		}
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
}

/* The heap as it is when all have ended: what runs lives, and nothing else. */
static bool is_whole(const struct worker *workers)
{
	struct subject_code_figures now;
	unsigned long allocated = RUNNING, freed = 0;

	for (unsigned i = 0; i < WORKERS; i++) {
		allocated += workers[i].allocated;
		freed += workers[i].freed;
		if (!workers[i].wrong)
			continue;
		check_note("error_actual", alloc_error_name(workers[i].error));
		return CHECK_TRUE(false, workers[i].wrong);
	}
	if (!check_claimed("code-figures"))
		return true;
	return ALLOC_OK(CODE(figures)(pair.heap, &now)) &&
	       CHECK_EQUAL(RUNNING, now.live_blocks, "what runs lives, and nothing else") &&
	       CHECK_EQUAL(allocated, now.allocations, "no allocation is lost") &&
	       CHECK_EQUAL(freed, now.frees, "no free is lost");
}

CHECK(ch_code_threads, "CH-014", "threads allocate, free and find at once, and code that stays runs all the time")
{
	static struct worker workers[WORKERS];
	const struct subject_code_config config = code_config();
	struct subject_code code[RUNNING];
	bool right = true;

	if (!alloc_claims("allocator os-table code-heap"))
		return;
	MUST(code_make(&config, &pair));
	for (unsigned i = 0; i < RUNNING; i++) {
		MUST_OK(CODE(allocate)(pair.heap, 700, NULL, &code[i]));
		MUST(alloc_put(pair.allocator, code[i].rx, i));
	}
	steps = check_rounds > 1 ? STEPS_NATIVE : STEPS;
	__builtin_memset(workers, 0, sizeof(workers));
	running = WORKERS;
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].random = call_mix(check_seed, i) | 1;
		workers[i].thread.run = work;
		workers[i].thread.argument = &workers[i];
		if (execmem_port_thread_start(&workers[i].thread))
			check_broken("the system refuses a thread", 0);
	}
	while (right && __atomic_load_n(&running, __ATOMIC_ACQUIRE))
		for (unsigned i = 0; i < RUNNING && right; i++)
			right = alloc_run(code[i].rx) == i;
	for (unsigned i = 0; i < WORKERS; i++)
		execmem_port_thread_join(&workers[i].thread);
	MUST(CHECK_TRUE(right, "code that stays answers as before") && is_whole(workers));
	MUST(WATCH_KEPT(WATCH_BOTH, "no mapping is writable and executable"));
	for (unsigned i = 0; i < RUNNING; i++)
		MUST_OK(CODE(free)(pair.heap, code[i].rx));
	MUST(code_end(&pair));
}
