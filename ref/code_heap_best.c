/*
 * The free blocks of a region by size, then address: sizes below the bits of a word each have a hierarchy of bits by
 * group, larger ones are in a tree (code_heap_trie.c).
 */
#include "code_heap.h"

#define W       EXECMEM_CODE_WORD_BITS
#define W_SHIFT EXECMEM_CODE_WORD_SHIFT
#define WORDS   4u /* of a group */

_Static_assert(WORDS << EXECMEM_CODE_WORD_SHIFT == 1u << EXECMEM_CODE_GROUP_SHIFT, "words of a group");

static uintptr_t *class_word(const struct execmem_code_classes *classes, unsigned level, size_t i, size_t count)
{
	return &classes->level[level][(i & ~(size_t)(W - 1)) + count];
}

/* Free blocks that begin in a word of the map, with some block's beginning `count` segments behind: hardly ever is
 * another one between the two. */
static inline uintptr_t candidates(const uintptr_t *blocks, const uintptr_t *used, size_t count)
{
	return *blocks & ~*used & (*blocks >> count | blocks[1] << (W - count));
}

/* The same of a group's words. Written out: it is most of what a search is. */
static inline void candidates_in(const struct execmem_code_region *region, size_t first, size_t count,
				 uintptr_t here[WORDS])
{
	const uintptr_t *blocks = &region->blocks.level[0][first >> W_SHIFT], *used = &region->used[first >> W_SHIFT];

	here[0] = candidates(blocks, used, count);
	here[1] = candidates(blocks + 1, used + 1, count);
	here[2] = candidates(blocks + 2, used + 2, count);
	here[3] = candidates(blocks + 3, used + 3, count);
}

/* The lowest free block of `count` segments, fewer than a word has bits, that begins in the group, at `from` or behind.
 */
static inline size_t find_in_group(const struct execmem_code_region *region, size_t group, size_t from, size_t count)
{
	size_t first = group << EXECMEM_CODE_GROUP_SHIFT;
	const uintptr_t *blocks = &region->blocks.level[0][first >> W_SHIFT], *used = &region->used[first >> W_SHIFT];

	for (unsigned word = 0; word < WORDS; word++) {
		uintptr_t here = candidates(blocks + word, used + word, count);

		for (; here; here &= here - 1) {
			size_t i = first + (word << W_SHIFT) + execmem_code_lowest(here);

			if (i >= from && execmem_code_segments(region, i) == count)
				return i;
		}
	}
	return EXECMEM_CODE_NONE;
}

/* Whether the group of block `own` has another free block of the size, outside `but`. */
static inline bool has_other(const struct execmem_code_region *region, size_t own, size_t count,
			     struct execmem_code_change but)
{
	size_t first = own >> EXECMEM_CODE_GROUP_SHIFT << EXECMEM_CODE_GROUP_SHIFT;
	uintptr_t here[WORDS];

	candidates_in(region, first, count, here);
	here[own >> W_SHIFT & (WORDS - 1)] &= ~((uintptr_t)1 << (own % W));
	if (!(here[0] | here[1] | here[2] | here[3]))
		return false;
	for (unsigned word = 0; word < WORDS; word++) {
		for (; here[word]; here[word] &= here[word] - 1) {
			size_t i = first + (word << W_SHIFT) + execmem_code_lowest(here[word]);

			if ((i < but.low || i >= but.high) && execmem_code_segments(region, i) == count)
				return true;
		}
	}
	return false;
}

/* The lowest group of all that has a free block of the size. There is one. */
static size_t lowest_group(const struct execmem_code_classes *classes, size_t count)
{
	size_t group = 0;

	for (unsigned level = classes->levels; level--;)
		group = (group << W_SHIFT) + execmem_code_lowest(*class_word(classes, level, group << W_SHIFT, count));
	return group;
}

/* The lowest from `group` on, or EXECMEM_CODE_NONE. */
static size_t next_group(const struct execmem_code_classes *classes, size_t group, size_t count, size_t *steps)
{
	size_t i = group;

	for (unsigned level = 0; level < classes->levels; level++) {
		uintptr_t here = *class_word(classes, level, i, count) >> (i % W);

		++*steps;
		if (here) {
			i += execmem_code_lowest(here);
			while (level--) {
				i <<= W_SHIFT;
				i += execmem_code_lowest(*class_word(classes, level, i, count));
				++*steps;
			}
			return i;
		}
		i = (i >> W_SHIFT) + 1;
	}
	return EXECMEM_CODE_NONE;
}

size_t execmem_code_best_lowest(const struct execmem_code_region *region, size_t count, bool *alone, size_t *steps)
{
	size_t first = lowest_group(&region->classes, count) << EXECMEM_CODE_GROUP_SHIFT;
	uintptr_t here[WORDS];

	*steps += region->classes.levels + WORDS;
	candidates_in(region, first, count, here);
	for (unsigned word = 0; word < WORDS; word++) {
		while (here[word]) {
			size_t i = first + (word << W_SHIFT) + execmem_code_lowest(here[word]);

			here[word] &= here[word] - 1;
			if (execmem_code_segments(region, i) != count)
				continue;
			*alone = !(here[0] | here[1] | here[2] | here[3]);
			return i;
		}
	}
	return EXECMEM_CODE_NONE;
}

/* The lowest free block from `from` on that has exactly `count` segments, of which there are some. */
static size_t next_of_size(const struct execmem_code_region *region, size_t from, size_t count, size_t *steps)
{
	size_t group = from >> EXECMEM_CODE_GROUP_SHIFT, i;
	bool alone;

	if (!from)
		return execmem_code_best_lowest(region, count, &alone, steps);
	*steps += WORDS;
	i = find_in_group(region, group, from, count);
	if (i != EXECMEM_CODE_NONE)
		return i;
	group = next_group(&region->classes, group + 1, count, steps);
	if (group == EXECMEM_CODE_NONE)
		return EXECMEM_CODE_NONE;
	*steps += WORDS;
	return find_in_group(region, group, 0, count);
}

bool execmem_code_best_next(const struct execmem_code_region *region, size_t *i, size_t *count, size_t *steps)
{
	while (*count < W) {
		uintptr_t sizes = region->classes.sizes >> *count;
		size_t found;

		if (!sizes) {
			*count = W;
			*i = 0;
			break;
		}
		if (!(sizes & 1)) {
			*count += execmem_code_lowest(sizes);
			*i = 0;
		}
		found = next_of_size(region, *i, *count, steps);
		if (found != EXECMEM_CODE_NONE) {
			*i = found;
			return true;
		}
		++*count;
		*i = 0;
	}
	return execmem_code_trie_next(region, i, count, steps);
}

void execmem_code_best_insert(struct execmem_code_region *region, size_t i, size_t count)
{
	struct execmem_code_classes *classes = &region->classes;
	size_t group = i >> EXECMEM_CODE_GROUP_SHIFT;

	if (count >= W) {
		execmem_code_trie_insert(region, i, count);
		return;
	}
	for (unsigned level = 0; level < classes->levels; level++, group >>= W_SHIFT) {
		uintptr_t *word = class_word(classes, level, group, count), old = *word;

		*word = old | (uintptr_t)1 << (group % W);
		if (old)
			return;
	}
	classes->sizes |= (uintptr_t)1 << count;
}

void execmem_code_best_remove(struct execmem_code_region *region, size_t i, size_t count,
			      struct execmem_code_change change)
{
	if (count >= W)
		execmem_code_trie_remove(region, i, count);
	else if (!has_other(region, i, count, change))
		execmem_code_best_remove_alone(region, i, count);
}

void execmem_code_best_remove_alone(struct execmem_code_region *region, size_t i, size_t count)
{
	struct execmem_code_classes *classes = &region->classes;
	size_t group = i >> EXECMEM_CODE_GROUP_SHIFT;

	for (unsigned level = 0; level < classes->levels; level++, group >>= W_SHIFT) {
		uintptr_t *word = class_word(classes, level, group, count);

		*word &= ~((uintptr_t)1 << (group % W));
		if (*word)
			return;
	}
	classes->sizes &= ~((uintptr_t)1 << count);
}

size_t execmem_code_best_largest(const struct execmem_code_region *region)
{
	uintptr_t sizes = region->classes.sizes;
	size_t large = execmem_code_trie_largest(region);

	return large ? large : sizes ? execmem_code_highest(sizes) : 0;
}
