/*
 * Placement by windows: a block goes where a writable mapping is already, so that writing it needs no other.
 *
 * A part is what of a free block lies in one window, or in one mapping; windows are the allocator's, counted from the
 * region's start. Free segments are counted by window, up to the last window that was ever used. A window's largest
 * part is only known to be no larger than a bound, which a search that failed there makes exact, and which is the
 * number of free segments again after the next free.
 */
#include "code_heap.h"

#define W_SHIFT EXECMEM_CODE_WORD_SHIFT

struct window {
	struct execmem_code_region *region;
	struct execmem_code_range range;
};

static size_t window_segments(const struct execmem_code_region *region)
{
	return region->heap->allocator->window_bytes >> region->heap->shift;
}

static struct execmem_code_range window_range(const struct execmem_code_region *region, size_t window)
{
	size_t count = window_segments(region), low = window * count;

	return (struct execmem_code_range){low, low + count < region->segments ? low + count : region->segments};
}

void execmem_code_near_changed(struct execmem_code_region *region, size_t i, size_t count, bool taken)
{
	struct execmem_code_maxima *windows = &region->windows;
	size_t each = window_segments(region);

	for (; region->counted < i + count; region->counted += each) {
		size_t window = region->counted / each;
		struct execmem_code_range range = window_range(region, window);

		region->bounds[window] = (uint32_t)(range.high - range.low);
		execmem_code_maxima_set(windows, window, region->bounds[window]);
	}
	for (size_t at = i, end = i + count, next; at < end; at = next) {
		size_t window = at / each, free = windows->level[0][window];

		next = (window + 1) * each < end ? (window + 1) * each : end;
		free = taken ? free - (next - at) : free + (next - at);
		execmem_code_maxima_set(windows, window, (uint32_t)free);
		if (!taken || free < region->bounds[window])
			region->bounds[window] = (uint32_t)free;
	}
	/* A free block that began here begins earlier now: what had to stay before its part in another window need not.
	 */
	for (size_t at = i + count, end = at + region->heap->config.minimum; !taken && at < end && at < region->counted;
	     at = (at / each + 1) * each)
		region->bounds[at / each] = windows->level[0][at / each];
}

/* The next free block from `i` on that begins below `high`, or EXECMEM_CODE_NONE. */
static size_t next_free(const struct execmem_code_region *region, size_t i, size_t high, size_t *steps)
{
	uintptr_t mask = ~(uintptr_t)0 << (i % EXECMEM_CODE_WORD_BITS);

	for (size_t word = i >> W_SHIFT; word << W_SHIFT < high; word++, mask = ~(uintptr_t)0) {
		uintptr_t here = region->blocks.level[0][word] & ~region->used[word] & mask;

		++*steps;
		if (here) {
			i = (word << W_SHIFT) + execmem_code_lowest(here);
			return i < high ? i : EXECMEM_CODE_NONE;
		}
	}
	return EXECMEM_CODE_NONE;
}

/* The smallest part of a window that the wish fits into, of equals the lowest. *largest becomes that of all parts. */
static bool search_window(const struct execmem_code_wish *wish, const struct window *window,
			  struct execmem_code_place *place, size_t *largest, size_t *steps)
{
	struct execmem_code_region *region = window->region;
	const struct execmem_code_range *range = &window->range;
	size_t smallest = SIZE_MAX, minimum = region->heap->config.minimum;
	size_t i = next_free(region, execmem_code_previous(&region->blocks, range->low), range->high, steps);

	*largest = 0;
	while (i != EXECMEM_CODE_NONE) {
		size_t count = execmem_code_segments(region, i), end = i + count, low = i, part, at;

		/* What is left before a part is no free block that is too small. */
		if (low < range->low)
			low = range->low - i < minimum ? i + minimum : range->low;
		end = end < range->high ? end : range->high;
		part = end > low ? end - low : 0;
		*largest = part > *largest ? part : *largest;
		if (part >= wish->count && part < smallest) {
			at = execmem_code_place_in(region, wish, range, i, count);
			if (at != EXECMEM_CODE_NONE) {
				*place = (struct execmem_code_place){region, i, count, at, false};
				smallest = part;
			}
		}
		i = i + count < range->high ? next_free(region, i + count, range->high, steps) : EXECMEM_CODE_NONE;
	}
	return smallest != SIZE_MAX;
}

/* Cuts a range to where a wish may lie. False where nothing is left. */
static bool allow(const struct execmem_code_wish *wish, struct window *window)
{
	struct execmem_code_range allowed;

	if (!wish->near)
		return true;
	if (!execmem_code_range_of(window->region, wish->near, &allowed))
		return false;
	if (window->range.low < allowed.low)
		window->range.low = allowed.low;
	if (window->range.high > allowed.high)
		window->range.high = allowed.high;
	return window->range.low < window->range.high;
}

/* What is mapped of the heap's regions, most recent first, as far as whole windows go. */
static unsigned mapped_windows(struct execmem_code_heap *heap, struct window *windows)
{
	struct execmem_allocator *allocator = heap->allocator;
	struct execmem_cache *cache = &allocator->cache;
	unsigned count = 0;

	execmem_lock(&allocator->os, &cache->lock);
	for (const struct execmem_mapping *mapping = cache->newest; mapping; mapping = mapping->older) {
		struct execmem_code_region *region = __atomic_load_n(&mapping->region->face->code, __ATOMIC_ACQUIRE);
		size_t high;

		if (!region || region->heap != heap)
			continue;
		high = (mapping->offset + mapping->bytes) >> heap->shift;
		windows[count].region = region;
		windows[count].range.low = mapping->offset >> heap->shift;
		windows[count].range.high = high < region->segments ? high : region->segments;
		count++;
	}
	execmem_unlock(&allocator->os, &cache->lock);
	return count;
}

static bool search_mapped(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
			  struct execmem_code_place *place, size_t *steps)
{
	struct window windows[EXECMEM_RW_CACHE_MAX + 1];
	unsigned count = mapped_windows(heap, windows);
	size_t largest;

	/* What was chosen last will be mapped as soon as it is written. */
	if (heap->near_region)
		windows[count++] =
			(struct window){heap->near_region, window_range(heap->near_region, heap->near_window)};
	for (unsigned i = 0; i < count; i++) {
		if (allow(wish, &windows[i]) && search_window(wish, &windows[i], place, &largest, steps))
			return true;
	}
	return false;
}

/* The window with the most free segments, more than *free, of those that a part of the wanted size may be in. */
static void look_below(const struct execmem_code_region *region, unsigned level, size_t node, size_t wanted,
		       size_t *free, size_t *window, size_t *steps)
{
	const struct execmem_code_maxima *windows = &region->windows;
	size_t end = node + ((size_t)1 << EXECMEM_CODE_FANOUT_SHIFT);

	if (end > windows->count[level])
		end = windows->count[level];
	for (; node < end; node++) {
		++*steps;
		if (windows->level[level][node] <= *free)
			continue;
		if (level) {
			look_below(region, level - 1, node << EXECMEM_CODE_FANOUT_SHIFT, wanted, free, window, steps);
		} else if (region->bounds[node] >= wanted) {
			*free = windows->level[0][node];
			*window = node;
		}
	}
}

static bool search_emptiest(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
			    struct execmem_code_place *place, size_t *steps)
{
	/* At least so many free segments are more than one fewer. */
	size_t least = ((heap->allocator->window_bytes >> heap->shift) * heap->config.near_percent + 99) / 100;

	for (;;) {
		struct execmem_code_region *best = NULL;
		struct window window;
		size_t free = least ? least - 1 : 0, index = 0, largest;

		for (struct execmem_code_region *region = heap->regions; region; region = region->next) {
			size_t before = free;

			look_below(region, region->windows.levels - 1, 0, wish->count, &free, &index, steps);
			if (free > before)
				best = region;
		}
		if (!best)
			return false;
		window = (struct window){best, window_range(best, index)};
		if (search_window(wish, &window, place, &largest, steps)) {
			heap->near_region = best;
			heap->near_window = index;
			return true;
		}
		best->bounds[index] = (uint32_t)largest;
	}
}

/* The end of a region, as far as it is free, where the block does not lie across windows. */
static bool search_end(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
		       struct execmem_code_place *place, size_t *steps)
{
	for (struct execmem_code_region *region = heap->regions; region; region = region->next) {
		size_t i = execmem_code_previous(&region->blocks, region->segments - 1), count = region->segments - i;
		struct execmem_code_range allowed;
		size_t window, tries = 3 + wish->align / window_segments(region);

		if (execmem_code_test(region->used, i) || !execmem_code_range_of(region, wish->near, &allowed))
			continue;
		/* What is left of the first window; or the next one, or, for the sake of an alignment or of a remainder
		 * that is large enough, the one after that. */
		window = (i > allowed.low ? i : allowed.low) / window_segments(region);
		for (; tries && window * window_segments(region) < region->segments; window++, tries--) {
			struct window in = {region, window_range(region, window)};
			size_t at;

			++*steps;
			if (!allow(wish, &in))
				break;
			at = execmem_code_place_in(region, wish, &in.range, i, count);
			if (at == EXECMEM_CODE_NONE)
				continue;
			*place = (struct execmem_code_place){region, i, count, at, false};
			heap->near_region = region;
			heap->near_window = window;
			return true;
		}
	}
	return false;
}

bool execmem_code_near_search(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
			      struct execmem_code_place *place, size_t *steps)
{
	if (wish->count > heap->allocator->window_bytes >> heap->shift)
		return false;
	if (search_mapped(heap, wish, place, steps))
		return true;
	/* With an alignment or within reach, a part may be large enough and yet not fit: bounds would be of no use. */
	if (wish->align == 1 && !wish->near && search_emptiest(heap, wish, place, steps))
		return true;
	if (search_end(heap, wish, place, steps))
		return true;
	place->region = NULL;
	return false;
}
