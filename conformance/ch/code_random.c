/*
 * The code heap against the model of code_model.h, on random sequences: one look a check. A sequence that fails is
 * reduced, in processes of their own, before it is shown.
 */
#include <port.h>

#include "call.h"
#include "code_play.h"
#include "os.h"

#define SEQUENCES 6 /* a round */
#define ENDED     1

static struct {
	struct code_sequence sequence;
	struct code_outcome *outcome; /* shared with trials */
	bool trial;                   /* in a process of its own */
} now;

/* Plays it in a process of its own: does it still fail? */
static bool fails(void)
{
	const long child = os_fork();

	if (!child) {
		now.trial = true;
		watch_begin();
		watch.alone = true;
		code_play(&now.sequence, now.outcome);
		execmem_port_exit(now.outcome->differs ? ENDED : 0);
	}
	return os_ended(child) != 0;
}

/* Leaves ever smaller pieces out, as long as it fails without them. */
static void reduce(void)
{
	bool before[CODE_STEPS];

	for (unsigned piece = CODE_STEPS / 2; piece; piece /= 2)
		for (unsigned from = 0; from < CODE_STEPS; from += piece) {
			bool changes = false;

			for (unsigned i = from; i < from + piece && i < CODE_STEPS; i++) {
				before[i] = now.sequence.steps[i].out;
				changes |= !before[i];
				now.sequence.steps[i].out = true;
			}
			if (!changes || fails())
				continue;
			for (unsigned i = from; i < from + piece && i < CODE_STEPS; i++)
				now.sequence.steps[i].out = before[i];
		}
}

static void explain(void)
{
	const struct code_outcome first = *now.outcome;
	const struct subject_code_config *config = &now.sequence.config;
	char room[256], key[] = "steps_1";

	for (unsigned i = first.step + 1; i < CODE_STEPS; i++)
		now.sequence.steps[i].out = true;
	if (fails()) {
		reduce();
		(void)fails();
	} else {
		*now.outcome = first;
		check_note("not_reduced", "it does not fail in a process of its own");
	}
	check_note_number("segment", config->segment_bytes);
	check_note_number("minimum", config->minimum);
	check_note_number("policy", config->policy);
	check_note_number("failing_step", now.outcome->step);
	for (unsigned at = 0; at < CODE_STEPS && key[sizeof(key) - 2] <= '9'; key[sizeof(key) - 2]++) {
		struct text text = TEXT(room);

		at = code_sequence_text(&text, &now.sequence, at);
		check_note(key, room);
	}
}

static void on_signal(int signal, void *address, void *context)
{
	if (now.trial)
		execmem_port_exit(ENDED);
	explain();
	check_crash(signal, execmem_port_context_pc(context), (uintptr_t)address);
}

static bool play_one(void)
{
	watch.alone = true;
	code_play(&now.sequence, now.outcome);
	if (!now.outcome->differs)
		return CHECK_TRUE(true, "a sequence is as the model's");
	explain();
	return now.outcome->differs ? CHECK_EQUAL(now.outcome->expected, now.outcome->actual, now.outcome->what)
				    : CHECK_TRUE(false, "a sequence ends without a signal");
}

static void play_random(enum code_look look, const char *claims)
{
	static const int signals[] = {OS_SIGSEGV, OS_SIGBUS, OS_SIGILL, OS_SIGTRAP, OS_SIGFPE};
	bool supported = false;

	if (!alloc_claims("allocator os-table lookup code-heap") || !alloc_claims(claims))
		return;
	now.outcome = os_share(sizeof(*now.outcome));
	watch_begin();
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)execmem_port_handle(signals[i], on_signal);
	for (unsigned number = 0; number < SEQUENCES * check_rounds; number++) {
		code_sequence_make(&now.sequence, look, number, call_mix(check_seed, number * CODE_LOOK_COUNT + look));
		check_note_number("sequence_number", number);
		if (!play_one())
			break;
		supported |= !now.outcome->unsupported;
	}
	if (!supported && !now.outcome->differs)
		check_not_claimed("the subject has no such policy");
	call_install();
	os_unmap(now.outcome, sizeof(*now.outcome));
}

CHECK(ch_code_blocks, "CH-001", "on random sequences, blocks tile the regions, merge, and are what the model has")
{
	play_random(CODE_LOOK_BLOCKS, "");
}

CHECK(ch_code_first, "CH-002", "on random sequences, policy first takes the lowest address that fits")
{
	play_random(CODE_LOOK_FIRST, "");
}

CHECK(ch_code_best, "CH-003", "on random sequences, policy best takes the smallest block, of equals the lowest")
{
	play_random(CODE_LOOK_BEST, "");
}

CHECK(ch_code_find, "CH-004", "on random sequences, the block of any address is found")
{
	play_random(CODE_LOOK_FIND, "code-find");
}

CHECK(ch_code_kind, "CH-005", "on random sequences, any address has the kind of its block")
{
	play_random(CODE_LOOK_KIND, "code-find");
}

CHECK(ch_code_figures, "CH-007", "on random sequences, figures are what a count of the blocks gives")
{
	play_random(CODE_LOOK_FIGURES, "code-figures");
}

CHECK(ch_code_reach, "CH-008", "on random sequences, every byte of a block lies within reach of its target")
{
	play_random(CODE_LOOK_REACH, "code-near");
}
