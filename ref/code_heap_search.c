/*
 * Where a code heap's policy puts a block.
 */
#include "code_heap.h"

bool execmem_code_range_of(const struct execmem_code_region *region, const struct execmem_near *near,
			   struct execmem_code_range *range)
{
	unsigned shift = region->heap->shift;
	uintptr_t start = region->start, last = start + ((region->segments << shift) - 1), low, high;

	*range = (struct execmem_code_range){0, region->segments};
	if (!near)
		return true;
	low = near->target > near->reach ? near->target - near->reach : 0;
	high = near->reach > UINTPTR_MAX - near->target ? UINTPTR_MAX : near->target + near->reach;
	if (low > last || high < start)
		return false;
	if (low > start)
		range->low = (low - start + (((uintptr_t)1 << shift) - 1)) >> shift;
	if (high < last)
		range->high = (high - start + 1) >> shift;
	return range->low < range->high;
}

size_t execmem_code_place_in(const struct execmem_code_region *region, const struct execmem_code_wish *wish,
			     const struct execmem_code_range *range, size_t i, size_t count)
{
	size_t minimum = region->heap->config.minimum, base = region->start >> region->heap->shift;
	size_t at = i > range->low ? i : range->low, end = i + count < range->high ? i + count : range->high;

	if (at != i && at - i < minimum)
		at = i + minimum;
	at = ((base + at + wish->align - 1) & ~(wish->align - 1)) - base;
	if (at != i && at - i < minimum)
		at = ((base + i + minimum + wish->align - 1) & ~(wish->align - 1)) - base;
	return at <= end && wish->count <= end - at ? at : EXECMEM_CODE_NONE;
}

static bool search_first(struct execmem_code_region *region, const struct execmem_code_wish *wish,
			 const struct execmem_code_range *range, struct execmem_code_place *place, size_t *steps)
{
	size_t wanted = wish->count, tries = 0;
	/* A block that begins below the range may reach into it. */
	size_t i = range->low ? execmem_code_previous(&region->blocks, range->low) : 0;

	for (;; i++) {
		size_t count = wanted, at;

		if (!execmem_code_first_next(region, &i, &count, steps) || i >= range->high)
			return false;
		at = execmem_code_place_in(region, wish, range, i, count);
		if (at != EXECMEM_CODE_NONE) {
			*place = (struct execmem_code_place){region, i, count, at, false};
			return true;
		}
		if (++tries == EXECMEM_CODE_TRIES && !wish->all)
			wanted = execmem_code_sure(region->heap, wish);
	}
}

/* As search_first; a place already found, in a region below, stays unless this one's block is smaller. */
static bool search_best(struct execmem_code_region *region, const struct execmem_code_wish *wish,
			const struct execmem_code_range *range, struct execmem_code_place *place, size_t *steps)
{
	size_t low = range->low ? execmem_code_previous(&region->blocks, range->low) : 0;
	size_t i = low, count = wish->count, sure = execmem_code_sure(region->heap, wish), tries = 0;

	for (;;) {
		size_t at;

		if (!execmem_code_best_next(region, &i, &count, steps) || (place->region && count >= place->free_count))
			return false;
		if (i < low) {
			i = low;
			continue;
		}
		if (i >= range->high) {
			i = low;
			count++;
			continue;
		}
		at = execmem_code_place_in(region, wish, range, i, count);
		if (at != EXECMEM_CODE_NONE) {
			*place = (struct execmem_code_place){region, i, count, at, false};
			return true;
		}
		i++;
		if (++tries >= EXECMEM_CODE_TRIES && !wish->all && count < sure) {
			i = low;
			count = sure;
		}
	}
}

/* As search_anywhere for policies of size, among sizes below the bits of a word: which size a region has is one word.
 */
static bool search_small(struct execmem_code_heap *heap, size_t wanted, struct execmem_code_place *place, size_t *steps)
{
	struct execmem_code_region *chosen = NULL;
	size_t count = EXECMEM_CODE_WORD_BITS;

	for (struct execmem_code_region *region = heap->regions; region && count != wanted; region = region->next) {
		uintptr_t sizes = region->classes.sizes >> wanted;

		++*steps;
		if (sizes && wanted + execmem_code_lowest(sizes) < count) {
			count = wanted + execmem_code_lowest(sizes);
			chosen = region;
		}
	}
	if (!chosen)
		return false;
	place->region = chosen;
	place->free_count = count;
	place->at = place->free = execmem_code_best_lowest(chosen, count, &place->alone, steps);
	return true;
}

/* The common case: any address will do, and any segment. */
static bool search_anywhere(struct execmem_code_heap *heap, size_t wanted, struct execmem_code_place *place,
			    size_t *steps)
{
	const bool first = heap->config.policy == EXECMEM_CODE_FIRST;

	if (heap->config.policy == EXECMEM_CODE_NEAR && wanted < EXECMEM_CODE_WORD_BITS &&
	    search_small(heap, wanted, place, steps))
		return true;
	for (struct execmem_code_region *region = heap->regions; region; region = region->next) {
		size_t i = 0, count = wanted;

		if (!(first ? execmem_code_first_next(region, &i, &count, steps)
			    : execmem_code_best_next(region, &i, &count, steps)))
			continue;
		if (!place->region || count < place->free_count)
			*place = (struct execmem_code_place){region, i, count, i, false};
		if (first)
			break;
	}
	return place->region != NULL;
}

static bool search_within(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
			  struct execmem_code_place *place, size_t *steps)
{
	for (struct execmem_code_region *region = heap->regions; region; region = region->next) {
		struct execmem_code_range range;

		if (!execmem_code_range_of(region, wish->near, &range))
			continue;
		if (heap->config.policy != EXECMEM_CODE_FIRST)
			(void)search_best(region, wish, &range, place, steps);
		else if (search_first(region, wish, &range, place, steps))
			break;
	}
	return place->region != NULL;
}

/* Apart, so that the common case does not save the registers that this needs. */
static __attribute__((noinline)) bool search_all(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
						 struct execmem_code_place *place, size_t *steps)
{
	if (heap->config.policy == EXECMEM_CODE_NEAR && execmem_code_near_search(heap, wish, place, steps))
		return true;
	if (wish->align == 1 && !wish->near)
		return search_anywhere(heap, wish->count, place, steps);
	return search_within(heap, wish, place, steps);
}

bool execmem_code_search(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
			 struct execmem_code_place *place)
{
	size_t steps = 0;
	bool found;

	place->region = NULL;
	place->alone = false;
	found = heap->config.policy == EXECMEM_CODE_BEST && wish->align == 1 && !wish->near &&
		wish->count < EXECMEM_CODE_WORD_BITS && search_small(heap, wish->count, place, &steps);
	if (!found)
		found = search_all(heap, wish, place, &steps);
	heap->searches++;
	heap->steps += steps;
	if (steps > heap->most_steps)
		heap->most_steps = steps;
	return found;
}
