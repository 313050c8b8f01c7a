#define _GNU_SOURCE
#include "sequence.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool sequence_verbose;
unsigned long sequence_calls;
unsigned sequence_interval = 1;

bool sequence_compares(const struct sequence_step *step)
{
	return (step->a >> 40) % sequence_interval == 0;
}

void sequence_say(const struct sequence_step *step)
{
	if (sequence_verbose)
		fprintf(stderr, "\t{0x%llx, 0x%llx, 0x%llx}\n", (unsigned long long)step->a,
			(unsigned long long)step->b, (unsigned long long)step->c);
}

static struct sequence_step random_step(uint64_t *state)
{
	struct sequence_step step;

	step.a = next_random(state);
	step.b = next_random(state);
	step.c = next_random(state);
	return step;
}

void sequence_make(struct sequence *sequence, uint64_t seed, size_t count)
{
	uint64_t state = seed * 0xd1342543de82ef95u + 7;

	sequence->seed = seed;
	for (sequence->count = 0; sequence->count < count; sequence->count++)
		sequence->step[sequence->count] = random_step(&state);
}

void sequence_read(struct sequence *sequence, const unsigned char *bytes, size_t byte_count, size_t count)
{
	uint64_t state = 0x9e3779b97f4a7c15u;
	size_t at = sizeof(sequence->seed);

	sequence->seed = 0;
	memcpy(&sequence->seed, bytes, byte_count < at ? byte_count : at);
	for (size_t i = 0; i < byte_count; i++)
		state = (state ^ bytes[i]) * 0x100000001b3u;
	state |= !state;
	for (sequence->count = 0; sequence->count < count; sequence->count++) {
		struct sequence_step *step = &sequence->step[sequence->count];
		uint32_t words[3];

		*step = random_step(&state);
		if (at + sizeof(words) > byte_count)
			continue;
		/* The lower halves, which choose what is done and to what. */
		memcpy(words, bytes + at, sizeof(words));
		at += sizeof(words);
		step->a = (step->a & ~(uint64_t)UINT32_MAX) | words[0];
		step->b = (step->b & ~(uint64_t)UINT32_MAX) | words[1];
		step->c = (step->c & ~(uint64_t)UINT32_MAX) | words[2];
	}
}

/* In a process of its own: whether it goes well. */
static bool passes(const struct sequence *sequence, sequence_play *play, bool quiet)
{
	int status;
	pid_t child = fork();

	EXPECT(child >= 0);
	if (child == 0) {
		if (quiet && !freopen("/dev/null", "w", stderr))
			_exit(1);
		sequence_verbose = !quiet;
		watch_place_alike();
		play(sequence);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child);
	return status == 0;
}

/* Leaves out ever smaller runs of steps, as long as it fails without them. */
static void cut(struct sequence *sequence, sequence_play *play)
{
	static struct sequence less;

	for (size_t length = sequence->count / 2; length; length /= 2) {
		for (size_t from = 0; from < sequence->count;) {
			size_t to = from + length < sequence->count ? from + length : sequence->count;

			less = *sequence;
			memmove(&less.step[from], &less.step[to], (less.count - to) * sizeof(less.step[0]));
			less.count -= to - from;
			if (passes(&less, play, true))
				from = to;
			else
				*sequence = less;
		}
	}
}

int sequence_main(int argc, char **argv, uint64_t sequences, uint64_t first, size_t count, sequence_play *play)
{
	static struct sequence sequence;

	sequences = argc > 1 ? strtoull(argv[1], NULL, 0) : sequences;
	first = argc > 2 ? strtoull(argv[2], NULL, 0) : first;
	for (uint64_t seed = first; seed < first + sequences; seed++) {
		sequence_make(&sequence, seed, count);
		if (passes(&sequence, play, true))
			continue;
		cut(&sequence, play);
		test_seed = seed;
		fprintf(stderr, "seed %llu fails; the steps that it needs:\n", (unsigned long long)seed);
		(void)passes(&sequence, play, false);
		return 1;
	}
	return 0;
}
