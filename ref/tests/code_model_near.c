/*
 * The policy that prefers windows; what is mapped now is looked up in the library's own list.
 */
#include "code_model.h"

static uintptr_t most(uintptr_t a, uintptr_t b)
{
	return a > b ? a : b;
}

static uintptr_t least(uintptr_t a, uintptr_t b)
{
	return a < b ? a : b;
}

/* The smallest part in [low, high) of a region. */
static bool choose_part(size_t index, size_t need, size_t align, uintptr_t low, uintptr_t high,
			struct code_model_choice *choice)
{
	const struct code_model_region *r = &code_model.region[index];
	uintptr_t at = r->start;
	size_t smallest = SIZE_MAX;

	for (size_t b = 0; b < r->blocks; at += r->block[b].count * code_model.segment, b++) {
		uintptr_t start = most(at, low), end = least(at + r->block[b].count * code_model.segment, high), found;

		if (r->block[b].code)
			continue;
		if (start != at && start - at < code_model.config.minimum * code_model.segment)
			start = at + code_model.config.minimum * code_model.segment;
		if (end < start || end - start < need || end - start >= smallest)
			continue;
		found = code_model_place(at, r->block[b].count * code_model.segment, need, align, low, high - 1);
		if (!found)
			continue;
		*choice = (struct code_model_choice){index, b, found};
		smallest = end - start;
	}
	return smallest != SIZE_MAX;
}

/* The same in what is allowed near a target: whole segments. */
static bool choose_allowed(size_t index, size_t need, size_t align, const struct execmem_near *near, uintptr_t low,
			   uintptr_t high, struct code_model_choice *choice)
{
	uintptr_t start = code_model.region[index].start,
		  end = start + code_model.region[index].segments * code_model.segment;

	if (near) {
		uintptr_t from = near->target > near->reach ? near->target - near->reach : 0;
		uintptr_t to = near->reach > UINTPTR_MAX - near->target ? UINTPTR_MAX : near->target + near->reach;

		if (from >= end || to < start)
			return false;
		if (from > start)
			low = most(low, start + code_model_up(from - start, code_model.segment));
		if (to < end - 1)
			high = least(high, start + (to - start + 1) / code_model.segment * code_model.segment);
	}
	high = least(high, end);
	return low < high && choose_part(index, need, align, low, high, choice);
}

static bool choose_mapped(size_t need, size_t align, const struct execmem_near *near, struct code_model_choice *choice)
{
	for (const struct execmem_mapping *mapping = code_model.allocator->cache.newest; mapping;
	     mapping = mapping->older) {
		for (size_t i = 0; i < code_model.regions; i++) {
			uintptr_t low = code_model.region[i].start + mapping->offset;

			if (mapping->region->start == code_model.region[i].start &&
			    choose_allowed(i, need, align, near, low, low + mapping->bytes, choice))
				return true;
		}
	}
	for (size_t i = 0; i < code_model.regions && code_model.chosen; i++) {
		if (code_model.chosen - code_model.region[i].start <
			    code_model.region[i].segments * code_model.segment &&
		    choose_allowed(i, need, align, near, code_model.chosen, code_model.chosen + code_model.window_bytes,
				   choice))
			return true;
	}
	return false;
}

static size_t free_in(const struct code_model_region *r, uintptr_t low, uintptr_t high)
{
	uintptr_t at = r->start;
	size_t sum = 0;

	for (size_t b = 0; b < r->blocks; at += r->block[b].count * code_model.segment, b++) {
		uintptr_t from = most(at, low), to = least(at + r->block[b].count * code_model.segment, high);

		sum += !r->block[b].code && from < to ? to - from : 0;
	}
	return sum;
}

static bool choose_emptiest(size_t need, struct code_model_choice *choice)
{
	size_t best = code_model.config.near_percent * (code_model.window_bytes / code_model.segment);

	best = best ? code_model_up(best, 100) / 100 * code_model.segment - 1 : 0;
	for (size_t i = 0; i < code_model.regions; i++) {
		const struct code_model_region *r = &code_model.region[i];
		uintptr_t end = r->start + r->segments * code_model.segment,
			  top = r->start + r->top * code_model.segment;

		for (uintptr_t low = r->start; low < top; low += code_model.window_bytes) {
			uintptr_t high = least(low + code_model.window_bytes, end);
			struct code_model_choice in;

			if (free_in(r, low, high) > best && choose_part(i, need, code_model.segment, low, high, &in)) {
				best = free_in(r, low, high);
				*choice = in;
				code_model.chosen = low;
			}
		}
	}
	return choice->at != 0;
}

static bool choose_end(size_t need, size_t align, const struct execmem_near *near, struct code_model_choice *choice)
{
	for (size_t i = 0; i < code_model.regions; i++) {
		const struct code_model_region *r = &code_model.region[i];
		uintptr_t start = r->start + r->segments * code_model.segment -
				  r->block[r->blocks - 1].count * code_model.segment;
		uintptr_t window = start - (start - r->start) % code_model.window_bytes;

		if (r->block[r->blocks - 1].code)
			continue;
		for (; window < r->start + r->segments * code_model.segment; window += code_model.window_bytes) {
			if (choose_allowed(i, need, align, near, most(window, start), window + code_model.window_bytes,
					   choice) &&
			    choice->block == r->blocks - 1) {
				code_model.chosen = window;
				return true;
			}
		}
	}
	return false;
}

bool code_model_choose_near(size_t need, size_t align, const struct execmem_near *near, bool all,
			    struct code_model_choice *choice)
{
	choice->at = 0;
	if (code_model.config.policy == EXECMEM_CODE_NEAR && need <= code_model.window_bytes) {
		if (choose_mapped(need, align, near, choice))
			return true;
		if (align == code_model.segment && !near && choose_emptiest(need, choice))
			return true;
		if (choose_end(need, align, near, choice))
			return true;
	}
	return code_model_choose(need, align, near, all, choice);
}
