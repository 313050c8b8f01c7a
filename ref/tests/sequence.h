/*
 * Random sequences of steps for a model: made from a seed or from the bytes of a fuzzer, and cut down to the steps that
 * a failure needs.
 */
#ifndef EXECMEM_TEST_SEQUENCE_H
#define EXECMEM_TEST_SEQUENCE_H

#include "test.h"

#define SEQUENCE_MOST 500

/* A step is told by its own numbers alone, so that any may be left out. */
struct sequence_step {
	uint64_t a, b, c;
};

struct sequence {
	uint64_t seed; /* of what is chosen once, before the first step */
	size_t count;
	struct sequence_step step[SEQUENCE_MOST];
};

/* From a seed: `count` steps. */
void sequence_make(struct sequence *sequence, uint64_t seed, size_t count);
/* From bytes: 8 of them the seed, 12 a step, then random ones that depend on them, until there are `count` steps. */
void sequence_read(struct sequence *sequence, const unsigned char *bytes, size_t byte_count, size_t count);

/* Calls of the library that steps made, without those that compare. */
extern unsigned long sequence_calls;
/* After one of so many steps everything is compared: 1, or more for a fuzzer, which cannot wait. */
extern unsigned sequence_interval;
/* Whether it is, after this one. */
bool sequence_compares(const struct sequence_step *step);

/* Whether steps are to be printed while they are played. */
extern bool sequence_verbose;
/* Prints a step, where they are. */
void sequence_say(const struct sequence_step *step);

/* What plays one, from nothing to nothing. It fails as tests do. */
typedef void sequence_play(const struct sequence *sequence);

/*
 * The main function of a test. Arguments of the program: number of sequences, seed of the first; else the two that are
 * given. Each is played in a process of its own. One that fails is cut down before it is printed; exit status 1.
 */
int sequence_main(int argc, char **argv, uint64_t sequences, uint64_t first, size_t count, sequence_play *play);

#endif
