/*
 * The free blocks of a region by address: the largest that begins in each group, and a tree of maxima above.
 */
#include "code_heap.h"

#define W_SHIFT EXECMEM_CODE_WORD_SHIFT
#define FANOUT  ((size_t)1 << EXECMEM_CODE_FANOUT_SHIFT)

/* The first word behind the group that a segment lies in. */
static size_t group_end(size_t i)
{
	return ((i >> EXECMEM_CODE_GROUP_SHIFT) + 1) << (EXECMEM_CODE_GROUP_SHIFT - W_SHIFT);
}

/* Free blocks that begin in a word of the map. */
static uintptr_t free_in(const struct execmem_code_region *region, size_t word)
{
	return region->blocks.level[0][word] & ~region->used[word];
}

/* The lowest free block from `from` on, in its group, that has *count segments; *count becomes what it has. */
static size_t find_in_group(const struct execmem_code_region *region, size_t from, size_t *count, size_t *steps)
{
	uintptr_t mask = ~(uintptr_t)0 << (from % EXECMEM_CODE_WORD_BITS);

	for (size_t word = from >> W_SHIFT; word < group_end(from); word++, mask = ~(uintptr_t)0) {
		++*steps;
		for (uintptr_t here = free_in(region, word) & mask; here; here &= here - 1) {
			size_t i = (word << W_SHIFT) + execmem_code_lowest(here);
			size_t has = execmem_code_segments(region, i);

			++*steps;
			if (has >= *count) {
				*count = has;
				return i;
			}
		}
	}
	return EXECMEM_CODE_NONE;
}

/* The segments of the largest free block in the group of a segment, outside `but`. */
static size_t largest_other(const struct execmem_code_region *region, size_t segment, struct execmem_code_change but)
{
	size_t largest = 0, word = (segment >> EXECMEM_CODE_GROUP_SHIFT) << (EXECMEM_CODE_GROUP_SHIFT - W_SHIFT);

	for (; word < group_end(segment); word++) {
		for (uintptr_t here = free_in(region, word); here; here &= here - 1) {
			size_t i = (word << W_SHIFT) + execmem_code_lowest(here);
			size_t has = i >= but.low && i < but.high ? 0 : execmem_code_segments(region, i);

			largest = has > largest ? has : largest;
		}
	}
	return largest;
}

void execmem_code_maxima_set(struct execmem_code_maxima *maxima, size_t leaf, uint32_t value)
{
	size_t i = leaf;

	for (unsigned level = 0; level < maxima->levels && maxima->level[level][i] != value; level++) {
		const uint32_t *child;

		maxima->level[level][i] = value;
		i >>= EXECMEM_CODE_FANOUT_SHIFT;
		child = &maxima->level[level][i << EXECMEM_CODE_FANOUT_SHIFT];
		/* What lies behind the last of a level is zero. */
		value = 0;
		for (size_t k = 0; k < FANOUT; k++)
			value = child[k] > value ? child[k] : value;
	}
}

void execmem_code_first_insert(struct execmem_code_region *region, size_t i, size_t count)
{
	size_t group = i >> EXECMEM_CODE_GROUP_SHIFT;

	if (count > region->maxima.level[0][group])
		execmem_code_maxima_set(&region->maxima, group, (uint32_t)count);
}

void execmem_code_first_remove(struct execmem_code_region *region, size_t i, size_t count,
			       struct execmem_code_change change)
{
	size_t group = i >> EXECMEM_CODE_GROUP_SHIFT;

	if (count == region->maxima.level[0][group])
		execmem_code_maxima_set(&region->maxima, group, (uint32_t)largest_other(region, i, change));
}

/* The lowest group from `group` on with a free block of `count` segments. */
static size_t next_group(const struct execmem_code_maxima *maxima, size_t group, size_t count, size_t *steps)
{
	size_t i = group;

	for (unsigned level = 0; level < maxima->levels && i < maxima->count[level];) {
		++*steps;
		if (maxima->level[level][i] >= count) {
			while (level--) {
				i <<= EXECMEM_CODE_FANOUT_SHIFT;
				for (; maxima->level[level][i] < count; i++)
					++*steps;
			}
			return i;
		}
		i++;
		if (i % FANOUT == 0) {
			i >>= EXECMEM_CODE_FANOUT_SHIFT;
			level++;
		}
	}
	return EXECMEM_CODE_NONE;
}

bool execmem_code_first_next(const struct execmem_code_region *region, size_t *i, size_t *count, size_t *steps)
{
	size_t group = *i >> EXECMEM_CODE_GROUP_SHIFT, found;

	if (*i >= region->segments)
		return false;
	if (region->maxima.level[0][group] >= *count) {
		found = find_in_group(region, *i, count, steps);
		if (found != EXECMEM_CODE_NONE) {
			*i = found;
			return true;
		}
	}
	group = next_group(&region->maxima, group + 1, *count, steps);
	if (group == EXECMEM_CODE_NONE)
		return false;
	*i = find_in_group(region, group << EXECMEM_CODE_GROUP_SHIFT, count, steps);
	return true;
}
