/*
 * The naive model of page release: policies `exact` and `scudo` on real memory, private and in a file, against a list
 * of which blocks are live. Used with random numbers (release_model.c) and with the bytes of a fuzzer
 * (ref/fuzz/release.c).
 */
#ifndef EXECMEM_TEST_RELEASE_NAIVE_H
#define EXECMEM_TEST_RELEASE_NAIVE_H

#include "test.h"

#include <execmem/release.h>

#define RELEASE_STEPS 24

enum release_step_kind { TAKE, GIVE, EXACT, SCUDO, REFUSE, RELEASE_KINDS };

struct release_step {
	enum release_step_kind kind;
	unsigned a, b; /* blocks [a, a + b), or whether forced, or which call is refused */
};

struct release_sequence {
	uint64_t seed;
	struct execmem_release_layout layout;
	bool file;
	size_t count;
	struct release_step step[RELEASE_STEPS];
};

/* Where one failed. */
struct release_failure {
	int line; /* of release_naive.c; 0: nowhere */
	const char *what;
	size_t step;
};

/* From a seed; then, where there are bytes, the steps are what they say, 6 bytes each. */
void release_make(struct release_sequence *sequence, uint64_t seed, const unsigned char *bytes, size_t byte_count);
/* Plays it; *released grows by the bytes that went. */
struct release_failure release_play(const struct release_sequence *sequence, uint64_t *released);

#endif
