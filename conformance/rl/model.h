/*
 * A region of blocks and the memory below it, as the suite knows them: which blocks are live, what the memory holds,
 * which pages are to go. Beside it, the subject's class.
 */
#ifndef RL_MODEL_H
#define RL_MODEL_H

#include "../alloc/alloc.h"
#include "subject_release.h"

#define RL_PAGES_MOST  14
#define RL_BLOCKS_MOST 8192
#define RL_STEPS_MOST  32

enum rl_kind { RL_TAKE, RL_GIVE, RL_EXACT, RL_SCUDO };

struct rl_step {
	enum rl_kind kind;
	unsigned from, count; /* blocks [from, from + count); or whether forced */
};

struct rl_sequence {
	struct subject_release_layout layout;
	bool file; /* else private memory */
	unsigned count;
	struct rl_step steps[RL_STEPS_MOST];
};

/* Plays a sequence on a class and on the model, and asserts after each release all that must hold. *at is the step. */
bool rl_play(const struct rl_sequence *sequence, unsigned *at);
/* Leaves out every step without which it fails as well; plays what is left, and reports it. */
void rl_shrink(struct rl_sequence *sequence);

/* Memory for a region, whose pages the suite has written: two pages more than the layout needs. */
struct rl_memory {
	unsigned char *at;
	size_t bytes;
	int file; /* or SUBJECT_NO_FILE */
};
bool rl_map(struct rl_memory *memory, size_t bytes, bool file);
bool rl_unmap(const struct rl_memory *memory);
/* Bytes of memory that it holds now. */
uint64_t rl_held(const struct rl_memory *memory);

#endif
