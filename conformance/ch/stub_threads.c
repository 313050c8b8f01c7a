/*
 * A stub that several threads free at once, while stubs that stay run.
 */
#include "stub.h"

#define FREERS  2u
#define SHARED  150u /* stubs that each of them frees */
#define RUNNING 6u

struct freer {
	struct execmem_port_thread thread;
	struct subject_stub_cache cache;
	bool cached;        /* frees into it */
	int errors[SHARED]; /* what each free answered */
};

static struct stub it;
static struct subject_stub stubs[SHARED];
static struct freer freers[FREERS];
static uint32_t waiting, running; /* threads that have not begun, and not ended */

static void work(void *argument)
{
	struct freer *self = argument;

	__atomic_sub_fetch(&waiting, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE))
		;
	for (unsigned i = 0; i < SHARED; i++)
		self->errors[i] =
			self->cached ? STUB(cache_free)(&self->cache, stubs[i].rx) : STUB(free)(it.heap, stubs[i].rx);
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
}

/* Of the frees of each stub one worked, and the others say that it was freed. */
static bool freed_once(void)
{
	for (unsigned i = 0; i < SHARED; i++) {
		unsigned worked = 0;

		check_note_number("slot_at", stubs[i].rx);
		for (unsigned k = 0; k < FREERS; k++) {
			worked += freers[k].errors[i] == 0;
			if (freers[k].errors[i] && !ALLOC_IS(SUBJECT_ERROR_FREED, freers[k].errors[i]))
				return false;
		}
		if (!CHECK_EQUAL(1, worked, "of the threads that free a stub one has freed it"))
			return false;
	}
	return true;
}

/* Turn by turn none, the first, the second or both of the threads free into a cache. */
static bool start(unsigned turn)
{
	waiting = running = FREERS;
	for (unsigned i = 0; i < FREERS; i++) {
		freers[i].cached = turn >> i & 1 && check_claimed("stub-cache");
		if (freers[i].cached && !ALLOC_OK(STUB(cache_create)(it.heap, STUB_WIDE, &freers[i].cache)))
			return false;
	}
	for (unsigned i = 0; i < FREERS; i++) {
		freers[i].thread.run = work;
		freers[i].thread.argument = &freers[i];
		if (execmem_port_thread_start(&freers[i].thread))
			check_broken("the system refuses a thread", 0);
	}
	return true;
}

CHECK(ch_stub_threads, "CH-116",
      "of threads that free a stub at once one has freed it, and stubs that stay run meanwhile")
{
	struct subject_stub kept[RUNNING];
	struct subject_stub_figures figures;
	bool right = true;

	if (!alloc_claims(STUB_CLAIMS))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	for (unsigned i = 0; i < RUNNING; i++)
		MUST(stub_take(&it, STUB_SMALL + i % STUB_KINDS, &kept[i], 1));
	for (unsigned turn = 0; turn < 1u << FREERS; turn++) {
		check_note_number("turn", turn);
		MUST(stub_take(&it, STUB_WIDE, stubs, SHARED) && start(turn));
		do {
			for (unsigned i = 0; i < RUNNING && right; i++)
				right = alloc_run(kept[i].rx) == stub_value(STUB_SMALL + i % STUB_KINDS);
		} while (right && __atomic_load_n(&running, __ATOMIC_ACQUIRE));
		for (unsigned i = 0; i < FREERS; i++)
			execmem_port_thread_join(&freers[i].thread);
		MUST(CHECK_TRUE(right, "stubs that stay answer as before") && freed_once());
		MUST(stub_figures(&it, &figures) &&
		     CHECK_EQUAL(RUNNING, figures.live, "what stays lives, and nothing else"));
		for (unsigned i = 0; i < FREERS; i++)
			if (freers[i].cached)
				MUST_OK(STUB(cache_destroy)(&freers[i].cache));
	}
	for (unsigned i = 0; i < RUNNING; i++)
		MUST_OK(STUB(free)(it.heap, kept[i].rx));
	(void)stub_end(&it);
}
