#include "code_model.h"

void code_model_make(struct code_model *model, size_t segment, unsigned minimum)
{
	__builtin_memset(model, 0, sizeof(*model));
	model->segment = segment;
	model->minimum = segment * minimum;
}

/* ---- The list ---- */

static void insert(struct code_model *model, uint32_t at, struct code_model_block block)
{
	if (model->count == CODE_MODEL_BLOCKS)
		check_broken("the model of a code heap is full", 0);
	__builtin_memmove(&model->blocks[at + 1], &model->blocks[at], (model->count - at) * sizeof(block));
	model->blocks[at] = block;
	model->count++;
}

static void merge(struct code_model *model, uint32_t with_next)
{
	struct code_model_block *here = &model->blocks[with_next], *next = here + 1;

	if (with_next + 1 >= model->count || here->code || next->code || here->region != next->region)
		return;
	here->bytes += next->bytes;
	model->count--;
	__builtin_memmove(next, next + 1, (model->count - with_next - 1) * sizeof(*next));
}

void code_model_region(struct code_model *model, uintptr_t start, size_t bytes)
{
	uint32_t at = 0;

	if (model->region_count == CODE_MODEL_REGIONS)
		check_broken("the model of a code heap has no room for another region", 0);
	while (at < model->count && model->blocks[at].at < start)
		at++;
	insert(model, at, (struct code_model_block){start, bytes, 0, 0, model->region_count});
	model->regions[model->region_count++] = (struct code_model_region){start, bytes, 0};
	model->reserved += bytes;
}

/* ---- Places ---- */

size_t code_model_bytes(const struct code_model *model, size_t code)
{
	const size_t bytes = (code + model->segment - 1) / model->segment * model->segment;

	return bytes < model->minimum ? model->minimum : bytes;
}

static bool allowed(const struct code_model *model, const struct code_model_block *block,
		    const struct code_model_wish *wish, uintptr_t at)
{
	return !block->code && at >= block->at && at - block->at <= block->bytes - wish->bytes &&
	       !((at - block->at) % model->segment) && !(at % wish->align) &&
	       (at == block->at || at - block->at >= model->minimum) && at >= wish->low &&
	       at + (wish->bytes - 1) <= wish->high;
}

/* The lowest place in a free block, or 0. */
static uintptr_t lowest(const struct code_model *model, const struct code_model_block *block,
			const struct code_model_wish *wish)
{
	if (block->code || block->bytes < wish->bytes)
		return 0;
	for (size_t offset = 0; offset <= block->bytes - wish->bytes; offset += model->segment)
		if (allowed(model, block, wish, block->at + offset))
			return block->at + offset;
	return 0;
}

uint32_t code_model_choose(const struct code_model *model, bool first, const struct code_model_wish *wish,
			   uintptr_t *at)
{
	uint32_t chosen = CODE_MODEL_NONE;

	for (uint32_t i = 0; i < model->count; i++) {
		const uintptr_t place = lowest(model, &model->blocks[i], wish);

		if (!place ||
		    (chosen != CODE_MODEL_NONE && (first || model->blocks[i].bytes >= model->blocks[chosen].bytes)))
			continue;
		chosen = i;
		*at = place;
	}
	return chosen;
}

uint32_t code_model_allowed(const struct code_model *model, const struct code_model_wish *wish, uintptr_t at)
{
	const uint32_t block = code_model_find(model, at);

	return block != CODE_MODEL_NONE && model->blocks[block].bytes >= wish->bytes &&
			       allowed(model, &model->blocks[block], wish, at)
		       ? block
		       : CODE_MODEL_NONE;
}

/* ---- Changes ---- */

size_t code_model_take(struct code_model *model, uint32_t block, uintptr_t at, size_t code, unsigned kind)
{
	const struct code_model_block whole = model->blocks[block];
	struct code_model_region *region = &model->regions[whole.region];
	const size_t before = at - whole.at;
	size_t bytes = code_model_bytes(model, code), behind = whole.bytes - before - bytes;

	if (behind < model->minimum) {
		bytes += behind;
		behind = 0;
	}
	if (before) {
		model->blocks[block].bytes = before;
		insert(model, ++block, whole);
	}
	model->blocks[block] = (struct code_model_block){at, bytes, code, kind, whole.region};
	if (behind)
		insert(model, block + 1, (struct code_model_block){at + bytes, behind, 0, 0, whole.region});
	if (at + bytes - region->start > region->top)
		region->top = at + bytes - region->start;
	model->used += bytes;
	if (model->used > model->largest_used)
		model->largest_used = model->used;
	model->allocations++;
	return bytes;
}

size_t code_model_cut(struct code_model *model, uint32_t block, size_t code)
{
	struct code_model_block *here = &model->blocks[block];
	const bool free_next = block + 1 < model->count && !here[1].code && here[1].region == here->region;
	const size_t bytes = code_model_bytes(model, code), rest = here->bytes - bytes;

	here->code = code;
	if (!rest || (rest < model->minimum && !free_next))
		return here->bytes;
	here->bytes = bytes;
	model->used -= rest;
	insert(model, block + 1, (struct code_model_block){here->at + bytes, rest, 0, 0, here->region});
	merge(model, block + 1);
	return bytes;
}

void code_model_give(struct code_model *model, uint32_t block)
{
	model->used -= model->blocks[block].bytes;
	model->blocks[block].code = 0;
	model->blocks[block].kind = 0;
	model->frees++;
	merge(model, block);
	if (block)
		merge(model, block - 1);
}

/* ---- Questions ---- */

uint32_t code_model_live(const struct code_model *model, uint64_t nth)
{
	const uint64_t live = model->allocations - model->frees;

	if (!live)
		return CODE_MODEL_NONE;
	nth %= live;
	for (uint32_t i = 0;; i++)
		if (model->blocks[i].code && !nth--)
			return i;
}

uint32_t code_model_find(const struct code_model *model, uintptr_t address)
{
	for (uint32_t i = 0; i < model->count; i++)
		if (address - model->blocks[i].at < model->blocks[i].bytes)
			return i;
	return CODE_MODEL_NONE;
}

struct subject_code_figures code_model_figures(const struct code_model *model)
{
	struct subject_code_figures figures = {
		.used_bytes = model->used,
		.largest_used_bytes = model->largest_used,
		.reserved_bytes = model->reserved,
		.regions = model->region_count,
		.allocations = model->allocations,
		.frees = model->frees,
		.live_blocks = (size_t)(model->allocations - model->frees),
	};

	for (uint32_t i = 0; i < model->count; i++) {
		const struct code_model_block *block = &model->blocks[i];
		const struct code_model_region *region = &model->regions[block->region];
		const size_t below = region->start + region->top - block->at; /* of the footprint */

		if (block->code) {
			figures.unused_bytes += block->bytes - block->code;
			continue;
		}
		if (block->bytes > figures.largest_free)
			figures.largest_free = block->bytes;
		if (block->at >= region->start + region->top)
			continue;
		figures.free_blocks++;
		figures.free_bytes += block->bytes < below ? block->bytes : below;
	}
	for (unsigned i = 0; i < model->region_count; i++)
		figures.footprint_bytes += model->regions[i].top;
	figures.segment_map_bytes = figures.footprint_bytes / model->segment;
	figures.wasted_bytes = figures.free_bytes + figures.unused_bytes + figures.segment_map_bytes;
	if (model->largest_used)
		figures.overhead_per_myriad =
			((uint64_t)figures.wasted_bytes * 10000 + model->largest_used / 2) / model->largest_used;
	return figures;
}
