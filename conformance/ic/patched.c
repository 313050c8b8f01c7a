/*
 * Code patched while another thread calls it.
 *
 * What is claimed: a call returns what was written at some moment from the last publishing that the caller learned of
 * (a store with release semantics, read with acquire semantics) to the last writing that was begun when it ended; never
 * anything else, and never something older. One word of the code changes, by one aligned store. Where the system can
 * serialise threads, each publishing asks for that; elsewhere a caller may still see what it fetched before, and only
 * the order of what it sees is judged.
 */
#include "../alloc/alloc.h"
#include "observe.h"
#include "os.h"

#define PATCHES 60 /* less than 256: each is a value of its own */
#define WORD    sizeof(uint32_t)
#define CALLS   200000 /* in which the last one must be seen */

static struct {
	uintptr_t rx;
	bool serialized;
	volatile int32_t calls, asleep, stop;
	volatile uint32_t begun, published, last;
	volatile uint32_t wrong, known, called, ended; /* the first call that was wrong, and what was known around it */
} shared;

static void call_in_loop(void *argument)
{
	uint32_t newest = 0;

	(void)argument;
	while (!__atomic_load_n(&shared.stop, __ATOMIC_ACQUIRE)) {
		const uint32_t known = __atomic_load_n(&shared.published, __ATOMIC_ACQUIRE);
		const uint32_t called = alloc_run(shared.rx);
		const uint32_t ended = __atomic_load_n(&shared.begun, __ATOMIC_SEQ_CST);
		const uint32_t oldest = shared.serialized ? known : newest;

		if ((called < oldest || called > ended) && !shared.wrong) {
			shared.known = oldest;
			shared.called = called;
			shared.ended = ended;
			__atomic_store_n(&shared.wrong, 1, __ATOMIC_RELEASE);
		}
		newest = called;
		__atomic_store_n(&shared.last, called, __ATOMIC_RELAXED);
		__atomic_store_n(&shared.calls, shared.calls + 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&shared.asleep, __ATOMIC_SEQ_CST))
			os_wake(&shared.calls);
	}
}

/* Sleeps until two calls more have ended: one of them began after this did. */
static void wait_for_call(void)
{
	const int32_t first = __atomic_load_n(&shared.calls, __ATOMIC_SEQ_CST);

	__atomic_store_n(&shared.asleep, 1, __ATOMIC_SEQ_CST);
	for (int32_t now = first; now - first < 2; now = __atomic_load_n(&shared.calls, __ATOMIC_SEQ_CST))
		os_wait(&shared.calls, now);
	__atomic_store_n(&shared.asleep, 0, __ATOMIC_SEQ_CST);
}

/* Writes the word that differs, by one store, and publishes it alone. */
static bool patch(const struct subject_view *view, size_t word, unsigned value)
{
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	uint32_t bits;

	(void)execmem_port_probe_code(value, code);
	__builtin_memcpy(&bits, code + word, WORD);
	__atomic_store_n(&shared.begun, value, __ATOMIC_SEQ_CST);
	__atomic_store_n((uint32_t *)((uintptr_t)view->rw + word), bits, __ATOMIC_RELEASE);
	if (!ALLOC_OK(ALLOC(publish)(view, word, WORD, shared.serialized ? SUBJECT_PUBLISH_SERIALIZE : 0)))
		return false;
	__atomic_store_n(&shared.published, value, __ATOMIC_RELEASE);
	return true;
}

/* The one word in which functions of different values differ, or WORD where there is more than one. */
static size_t word_that_differs(size_t *at)
{
	unsigned char none[EXECMEM_PORT_PROBE_BYTES], all[EXECMEM_PORT_PROBE_BYTES];
	const size_t bytes = execmem_port_probe_code(0, none);
	size_t words = 0;

	(void)execmem_port_probe_code(255, all);
	for (size_t i = 0; i + WORD <= bytes; i += WORD) {
		uint32_t a, b;

		__builtin_memcpy(&a, none + i, WORD);
		__builtin_memcpy(&b, all + i, WORD);
		if (a != b) {
			*at = i;
			words++;
		}
	}
	return words;
}

static bool race(const struct subject_view *view, size_t word)
{
	struct execmem_port_thread thread = {.run = call_in_loop};
	bool right = true;

	if (execmem_port_thread_start(&thread))
		check_broken("the system refuses a thread", 0);
	for (unsigned value = 1; value <= PATCHES && right && !shared.wrong; value++) {
		wait_for_call();
		right = patch(view, word, value);
	}
	for (unsigned i = 0; i < CALLS && right && !shared.wrong && shared.last != PATCHES; i++)
		wait_for_call();
	__atomic_store_n(&shared.stop, 1, __ATOMIC_RELEASE);
	execmem_port_thread_join(&thread);
	return right;
}

CHECK(ic_patched, "IC-010",
      "a thread that calls code while it is patched runs the old or the new, and the new once it knows of it")
{
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_region region;
	struct subject_view view;
	size_t word = 0;

	if (!alloc_claims("allocator os-table"))
		return;
	if (observe_stale() && !check_claimed("emulation")) {
		check_emulator("it goes on running code that was rewritten through another mapping: probed now");
		return;
	}
	if (word_that_differs(&word) != 1)
		check_broken("functions of two values differ in more than a word", (long)word);
	__builtin_memset(&shared, 0, sizeof(shared));
	shared.serialized = observe_serializes();
	config.emulation = observe_stale() ? SUBJECT_EMULATION_ON : SUBJECT_EMULATION_OFF;
	allocator = alloc_make(&config);
	MUST(allocator && alloc_region(allocator, ALLOC_UNIT, &region) && alloc_put(allocator, region.rx + 64, 0));
	shared.rx = region.rx + 64;
	MUST_OK(ALLOC(open)(allocator, shared.rx, EXECMEM_PORT_PROBE_BYTES, 0, &view));
	MUST(race(&view, word));
	check_note_number("published", shared.known);
	check_note_number("begun", shared.ended);
	check_note_number("returned", shared.called);
	MUST(CHECK_EQUAL(0, shared.wrong, "a call returns what was written between the two"));
	MUST(CHECK_EQUAL(PATCHES, shared.last, "the last patch is seen"));
	MUST_OK(ALLOC(close)(&view));
	MUST_OK(ALLOC(release)(&region));
	MUST(alloc_end(allocator));
}
