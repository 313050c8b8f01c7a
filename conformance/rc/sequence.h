/*
 * Sequences of operations on the cache of writable mappings: made at random from a seed, written as a text, read back
 * from one.
 *
 * "3m65536 oA071 sB120 cA x04 r1": three cached mappings, move to front ("k": keep order), windows of 65536 bytes; then
 *   oA071  opens view A over region 0, window 7, in shape 1 of sequence_range()
 *   sB120  the same of single use
 *   cA     closes view A
 *   x04    decommits windows 4 and 5 of region 0, and commits them again, the second one first
 *   r1     releases regions 1 and 2, and reserves them again, the second one first
 * What cannot be done at the time (a view that is open already, or not; views open over what would go) is passed over,
 * so that a sequence stays one when steps are taken out.
 */
#ifndef RC_SEQUENCE_H
#define RC_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

#define SEQUENCE_STEPS_MOST 128
#define SEQUENCE_VIEWS      20 /* more than a cache holds */
#define SEQUENCE_WINDOWS    9
#define SEQUENCE_SHAPES     6

struct sequence_step {
	char kind;
	uint8_t view, region, window, shape;
};

struct sequence {
	unsigned capacity;
	bool keep_order;
	size_t window;
	unsigned count;
	struct sequence_step steps[SEQUENCE_STEPS_MOST];
};

/* Of this setting; the same for the same seed. */
void sequence_make(struct sequence *sequence, uint64_t seed);

/* What a view of a step covers in a region of `bytes` bytes. */
struct sequence_range {
	size_t offset, bytes;
};
struct sequence_range sequence_range(const struct sequence *sequence, const struct sequence_step *step, size_t page,
				     size_t bytes);

/* Setting, and steps [from, to). */
void sequence_add_setting(struct text *text, const struct sequence *sequence);
void sequence_add_steps(struct text *text, const struct sequence *sequence, unsigned from, unsigned to);
/* False where it is none. */
bool sequence_read(struct sequence *sequence, const char *text);

#endif
