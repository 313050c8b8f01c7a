#include "code_model.h"

#include <string.h>

struct code_model code_model;

size_t code_model_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* The lowest place in a free block at `start`, with `low` to `high` allowed, or 0. All are addresses. */
uintptr_t code_model_place(uintptr_t start, size_t bytes, size_t need, size_t align, uintptr_t low, uintptr_t high)
{
	for (uintptr_t at = start; at + need <= start + bytes; at += code_model.segment) {
		if (at % align || (at != start && at - start < code_model.config.minimum * code_model.segment))
			continue;
		if (at >= low && at + (need - 1) <= high)
			return at;
	}
	return 0;
}

/* Whether free block a comes before b in one region. */
static bool comes_before(const struct code_model_region *r, size_t a, size_t b)
{
	if (code_model.config.policy != EXECMEM_CODE_FIRST && r->block[a].count != r->block[b].count)
		return r->block[a].count < r->block[b].count;
	return a < b;
}

static bool choose_in(size_t index, size_t need, size_t align, uintptr_t low, uintptr_t high, bool all,
		      struct code_model_choice *choice)
{
	struct code_model_region *r = &code_model.region[index];
	size_t sure = align > code_model.segment
			      ? need + code_model.config.minimum * code_model.segment + align - code_model.segment
			      : need,
	       tries = 0;
	bool *gone = calloc(r->blocks, sizeof(bool)), found = false;

	for (;;) {
		size_t best = SIZE_MAX;
		uintptr_t at = r->start, start = 0;

		for (size_t b = 0; b < r->blocks; at += r->block[b].count * code_model.segment, b++) {
			size_t bytes = r->block[b].count * code_model.segment;

			/* Blocks that the window touches, but for those that begin in its last, incomplete segment. */
			if (r->block[b].code || gone[b] || at + (bytes - 1) < low || at > high ||
			    high - at < code_model.segment - 1 || bytes < need)
				continue;
			if (low > at && code_model_up(low, code_model.segment) >= at + bytes)
				continue;
			if (tries >= EXECMEM_CODE_TRIES && !all && bytes < sure)
				continue;
			if (best == SIZE_MAX || comes_before(r, b, best)) {
				best = b;
				start = at;
			}
		}
		if (best == SIZE_MAX)
			break;
		gone[best] = true;
		*choice = (struct code_model_choice){
			index, best,
			code_model_place(start, r->block[best].count * code_model.segment, need, align, low, high)};
		if (choice->at) {
			found = true;
			break;
		}
		tries++;
	}
	free(gone);
	return found;
}

bool code_model_choose(size_t need, size_t align, const struct execmem_near *near, bool all,
		       struct code_model_choice *choice)
{
	uintptr_t low = 0, high = UINTPTR_MAX;
	bool found = false;

	if (near) {
		low = near->target > near->reach ? near->target - near->reach : 0;
		high = near->reach > UINTPTR_MAX - near->target ? UINTPTR_MAX : near->target + near->reach;
	}
	for (size_t i = 0; i < code_model.regions; i++) {
		struct code_model_choice in;

		if (!choose_in(i, need, align, low, high, all, &in))
			continue;
		if (!found || (code_model.config.policy != EXECMEM_CODE_FIRST &&
			       code_model.region[i].block[in.block].count <
				       code_model.region[choice->region].block[choice->block].count))
			*choice = in;
		found = true;
	}
	return found;
}

/* ---- Blocks ---- */

void code_model_insert(struct code_model_region *r, size_t at, struct code_model_block block)
{
	EXPECT(r->blocks < CODE_MODEL_BLOCKS);
	memmove(&r->block[at + 1], &r->block[at], (r->blocks - at) * sizeof(block));
	r->block[at] = block;
	r->blocks++;
}

void code_model_merge(struct code_model_region *r, size_t b)
{
	if (b + 1 >= r->blocks || r->block[b].code || r->block[b + 1].code)
		return;
	r->block[b].count += r->block[b + 1].count;
	r->blocks--;
	memmove(&r->block[b + 1], &r->block[b + 2], (r->blocks - b - 1) * sizeof(struct code_model_block));
}

void code_model_give(struct code_model_region *r, size_t b)
{
	r->block[b].code = 0;
	r->block[b].kind = 0;
	code_model_merge(r, b);
	if (b)
		code_model_merge(r, b - 1);
}

uintptr_t code_model_address(const struct code_model_region *r, size_t b)
{
	uintptr_t at = r->start;

	for (size_t i = 0; i < b; i++)
		at += r->block[i].count * code_model.segment;
	return at;
}

size_t code_model_count(size_t bytes)
{
	size_t count = code_model_up(bytes, code_model.segment) / code_model.segment;

	return count < code_model.config.minimum ? code_model.config.minimum : count;
}
