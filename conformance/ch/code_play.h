/*
 * Random sequences of operations on a code heap, played on it and on the model of code_model.h.
 */
#ifndef CH_CODE_PLAY_H
#define CH_CODE_PLAY_H

#include "code_model.h"
#include "text.h"

/* What is compared. The model follows the heap's own choice where that is allowed. */
enum code_look {
	CODE_LOOK_BLOCKS,  /* places are allowed, blocks are the model's, errors are right */
	CODE_LOOK_FIRST,   /* policy first chooses as it must */
	CODE_LOOK_BEST,    /* policy best */
	CODE_LOOK_FIND,    /* the block of any address */
	CODE_LOOK_KIND,    /* the kind of any address */
	CODE_LOOK_FIGURES, /* figures and histogram */
	CODE_LOOK_REACH,   /* blocks within reach of a target */
	CODE_LOOK_COUNT
};

#define CODE_STEPS 120

struct code_step {
	uint64_t a, b, c;
	bool out; /* left out */
};

struct code_sequence {
	enum code_look look;
	struct subject_code_config config;
	struct code_step steps[CODE_STEPS];
};

/* Where the two part. */
struct code_outcome {
	bool differs, unsupported;
	unsigned step;
	uint64_t expected, actual;
	const char *what; /* static */
};

/* Of this look; the same for the same seed. */
void code_sequence_make(struct code_sequence *sequence, enum code_look look, unsigned number, uint64_t seed);
/* "a200 f3 s1": steps from `from` on that are not left out, until the text is full; the next one. */
unsigned code_sequence_text(struct text *text, const struct code_sequence *sequence, unsigned from);

/* watch_begin() was called. Where it ends well nothing is left. */
void code_play(const struct code_sequence *sequence, struct code_outcome *outcome);

#endif
