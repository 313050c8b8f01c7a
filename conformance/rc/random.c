/*
 * Random sequences, and the reduction of one that fails. See play.h.
 */
#include <port.h>

#include "../alloc/alloc.h"
#include "call.h"
#include "model.h"
#include "os.h"
#include "play.h"

#define CAPACITY_MOST 16
#define TRIALS_MOST   300 /* some seconds of an emulator, which is slow to fork */
#define NOTE_BYTES    240
#define STEP_BYTES    6 /* of text, the space included */
#define REPLAY        "EXECMEM_CTS_REPLAY="

/* The sequence under way, for a signal that ends it. */
static struct {
	struct sequence sequence;
	unsigned look;
	struct play_outcome *outcome; /* shared with trials */
	bool trial;                   /* in a process of its own */
} now;

/* ---- Trials: in a process of their own, so that a subject may break ---- */

#define ENDED_DIFFERENT 1
#define ENDED_BROKEN    2

/* Plays it, and says whether it still fails. The outcome is in now.outcome. */
static bool fails(const struct sequence *sequence)
{
	const long child = os_fork();

	if (!child) {
		now.trial = true;
		watch_begin();
		watch.alone = true;
		play(sequence, now.look, now.outcome);
		execmem_port_exit(now.outcome->differs ? ENDED_DIFFERENT : 0);
	}
	return os_ended(child) != 0;
}

static unsigned trials;

/* Keeps the sequence without `piece` steps from `at` on, with a cache smaller by `less`, if that still fails. */
static bool shorten(struct sequence *sequence, unsigned at, unsigned piece, unsigned less)
{
	static struct sequence trial;

	if (trials == TRIALS_MOST || less > sequence->capacity || at + piece > sequence->count)
		return false;
	trials++;
	trial = *sequence;
	trial.capacity -= less;
	trial.count -= piece;
	__builtin_memmove(&trial.steps[at], &trial.steps[at + piece], (trial.count - at) * sizeof(trial.steps[0]));
	if (!fails(&trial))
		return false;
	*sequence = trial;
	return true;
}

/* Takes steps out as long as it still fails: large pieces first. */
static void reduce(struct sequence *sequence)
{
	unsigned before;

	do {
		before = sequence->count;
		for (unsigned piece = (sequence->count + 1) / 2; piece; piece /= 2)
			for (unsigned at = 0; at < sequence->count;)
				at += shorten(sequence, at, piece, 0) ? 0 : piece;
	} while (sequence->count < before);
}

/* A smaller cache, which mostly needs a view less. */
static bool lower(struct sequence *sequence)
{
	for (unsigned piece = 0; piece <= 2; piece++)
		for (unsigned at = 0; at < sequence->count; at++)
			if (shorten(sequence, at, piece, 1))
				return true;
			else if (!piece)
				break;
	return false;
}

/* Views inside a window, where the shape does not matter. */
static void simplify(struct sequence *sequence)
{
	static struct sequence trial;

	for (unsigned i = 0; i < sequence->count; i++) {
		trial = *sequence;
		trial.steps[i].shape = 0;
		if (sequence->steps[i].shape && fails(&trial))
			*sequence = trial;
	}
}

static void note_sequence(const struct sequence *sequence, unsigned made)
{
	const unsigned in_note = NOTE_BYTES / STEP_BYTES;
	char room[256], key[] = "steps_1";
	struct text text = TEXT(room);

	text_add(&text, "a sequence of ");
	text_add_decimal(&text, made);
	text_add(&text, " steps, reduced to ");
	text_add_decimal(&text, sequence->count);
	check_note("sequence", room);
	text = TEXT(room);
	sequence_add_setting(&text, sequence);
	check_note("setting", room);
	for (unsigned i = 0; i < sequence->count; i += in_note) {
		text = TEXT(room);
		sequence_add_steps(&text, sequence, i, i + in_note);
		check_note(key, room);
		key[sizeof(key) - 2]++;
	}
	check_note_number("failing_step", now.outcome->step);
	check_note("replay", REPLAY "'SETTING STEPS' in the environment plays these alone: conformance/rc/sequence.h");
}

/* Reduces what failed, and notes it. */
static void explain(void)
{
	const struct play_outcome first = *now.outcome;
	const unsigned made = now.sequence.count;

	if (first.step + 1 < now.sequence.count)
		now.sequence.count = first.step + 1;
	/* What only breaks where much went before cannot be reduced: a fresh process may not show it. */
	if (fails(&now.sequence)) {
		trials = 0;
		reduce(&now.sequence);
		while (lower(&now.sequence))
			;
		reduce(&now.sequence);
		simplify(&now.sequence);
		(void)fails(&now.sequence);
	} else {
		*now.outcome = first;
		check_note("not_reduced", "it does not fail in a process of its own");
	}
	note_sequence(&now.sequence, made);
}

static void on_signal(int signal, void *address, void *context)
{
	if (now.trial)
		execmem_port_exit(ENDED_BROKEN);
	explain();
	check_crash(signal, execmem_port_context_pc(context), (uintptr_t)address);
}

/* ---- The search ---- */

static bool play_one(void)
{
	const struct play_outcome *outcome = now.outcome;

	watch.alone = true;
	play(&now.sequence, now.look, now.outcome);
	if (!outcome->differs)
		return CHECK_TRUE(true, "a sequence is as the model's");
	explain();
	return outcome->differs ? CHECK_EQUAL(outcome->expected, outcome->actual, outcome->what)
				: CHECK_TRUE(false, "the sequence ends without a signal");
}

/* Window sizes take turns: all of them are met whatever the page size is, with several cache sizes. */
static size_t window_of(unsigned number)
{
	static const size_t sizes[] = {65536, 65536, 131072, 16384};
	const size_t size = sizes[number % (sizeof(sizes) / sizeof(sizes[0]))];

	return size < watch.page ? watch.page : size;
}

static void play_all(void)
{
	const uint64_t seed = call_mix(check_seed, now.look);
	unsigned number = 0;

	for (unsigned round = 0; round < check_rounds; round++)
		for (now.sequence.capacity = 0; now.sequence.capacity <= CAPACITY_MOST; now.sequence.capacity++) {
			/* Most move to front. Neither 3 nor 4 divides 17: every size meets all in time. */
			now.sequence.keep_order = number % 3 == 2;
			now.sequence.window = window_of(number);
			sequence_make(&now.sequence, call_mix(seed, number));
			check_note_number("sequence_number", number++);
			if (!play_one())
				return;
		}
}

/* The sequence that the environment names: 1, 0 where it names none, or -1. */
static int replayed(void)
{
	for (char *const *entry = check_environment; entry && *entry; entry++) {
		const char *at = *entry, *expected = REPLAY;

		while (*expected && *at == *expected) {
			at++;
			expected++;
		}
		if (!*expected)
			return sequence_read(&now.sequence, at) ? 1 : -1;
	}
	return 0;
}

void play_random(unsigned look)
{
	static const int signals[] = {OS_SIGSEGV, OS_SIGBUS, OS_SIGILL, OS_SIGTRAP, OS_SIGFPE};
	int given;

	if (!alloc_claims("allocator os-table rw-cache"))
		return;
	now.look = look;
	now.outcome = os_share(sizeof(*now.outcome));
	given = replayed();
	watch_begin();
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)execmem_port_handle(signals[i], on_signal);
	if (given > 0)
		(void)play_one();
	else if (CHECK_EQUAL(0, (uint64_t)-given, "the environment's " REPLAY " is a sequence"))
		play_all();
	call_install();
	os_unmap(now.outcome, sizeof(*now.outcome));
}
