/*
 * Playing a sequence on the subject and on the model, side by side.
 */
#ifndef RC_PLAY_H
#define RC_PLAY_H

#include "sequence.h"

/* What is compared after each step, besides that every operation works. */
#define PLAY_CONTENTS 1u /* which writable mappings are alive, where they begin and end, which one serves a view */
#define PLAY_COUNTERS 2u /* all but `steps` */
#define PLAY_STEPS    4u
#define PLAY_BYTES    8u /* RW byte i of a view that was opened is RX byte i */

struct play_outcome {
	bool differs;
	unsigned step;    /* the first that differs */
	const char *what; /* static */
	uint64_t expected, actual;
};

/*
 * Makes an allocator over the watched table, plays, and ends it. Nothing is asserted. A subject that breaks may end
 * the program; outcome->step is what it was at.
 */
void play(const struct sequence *sequence, unsigned look, struct play_outcome *outcome);

/*
 * Plays sequences at random: check_rounds of each cache size from 0 to 16, with either order and several window sizes
 * in turn. Asserts that none differs. One that does, or that a signal ends, is reduced first: the shortest found, with
 * how to play it again, is noted.
 * Where the environment names a sequence, EXECMEM_CTS_REPLAY, that one alone is played, as it is.
 */
void play_random(unsigned look);

#endif
