/*
 * The code heap's map of blocks, and what it remembers of live ones.
 */
#include "code_heap.h"

#define W       EXECMEM_CODE_WORD_BITS
#define W_SHIFT EXECMEM_CODE_WORD_SHIFT

/* ---- Bits ---- */

/* Down from word `i` of a level to a bit of level 0. */
static size_t descend(const struct execmem_code_bits *bits, unsigned level, size_t i, bool lowest)
{
	while (level--) {
		uintptr_t here = execmem_code_load(&bits->level[level][i]);

		/* Another thread's change may have emptied it, where no live block is asked for. */
		if (!here)
			return EXECMEM_CODE_NONE;
		i = (i << W_SHIFT) + (lowest ? execmem_code_lowest(here) : execmem_code_highest(here));
	}
	return i;
}

size_t execmem_code_next_word(const struct execmem_code_bits *bits, size_t word)
{
	size_t i = word;

	for (unsigned level = 1; level < bits->levels; level++) {
		uintptr_t here;

		i++; /* one word more than there are has room at each level, and is zero */
		here = execmem_code_load(&bits->level[level][i >> W_SHIFT]) >> (i % W);
		if (here)
			return descend(bits, level, i + execmem_code_lowest(here), true);
		i >>= W_SHIFT;
	}
	return EXECMEM_CODE_NONE;
}

size_t execmem_code_previous_word(const struct execmem_code_bits *bits, size_t word)
{
	size_t i = word;

	for (unsigned level = 1; level < bits->levels; level++) {
		uintptr_t here = 0;

		if (i % W)
			here = execmem_code_load(&bits->level[level][i >> W_SHIFT]) << (W - i % W);
		if (here)
			return descend(bits, level, i - (W - execmem_code_highest(here)), false);
		i >>= W_SHIFT;
	}
	return EXECMEM_CODE_NONE;
}

void execmem_code_bits_set_above(struct execmem_code_bits *bits, size_t word)
{
	size_t i = word;

	for (unsigned level = 1; level < bits->levels; level++, i >>= W_SHIFT) {
		uintptr_t *here = &bits->level[level][i >> W_SHIFT], old = *here;

		execmem_code_store(here, old | (uintptr_t)1 << (i % W));
		if (old)
			return;
	}
}

void execmem_code_bits_clear_above(struct execmem_code_bits *bits, size_t word)
{
	size_t i = word;

	for (unsigned level = 1; level < bits->levels; level++, i >>= W_SHIFT) {
		uintptr_t *here = &bits->level[level][i >> W_SHIFT], new = *here & ~((uintptr_t)1 << (i % W));

		execmem_code_store(here, new);
		if (new)
			return;
	}
}

/* ---- What is remembered of a live block ---- */

/* The bits of `used` from `i` on become `value`. */
static void put_bits(uintptr_t *used, size_t i, unsigned bits, uintptr_t value)
{
	uintptr_t *word = &used[i >> W_SHIFT], mask = ((uintptr_t)1 << bits) - 1;
	unsigned shift = (unsigned)(i % W);

	execmem_code_store(word, (*word & ~(mask << shift)) | value << shift);
	if (shift + bits > W)
		execmem_code_store(word + 1, (word[1] & ~(mask >> (W - shift))) | value >> (W - shift));
}

void execmem_code_remember(struct execmem_code_region *region, size_t i, size_t count, size_t unused, unsigned kind)
{
	const struct execmem_code_heap *heap = region->heap;

	if (execmem_code_fits_inline(heap, count)) {
		/* The mark and the count as one: they mostly share a word. */
		put_bits(region->used, i, heap->unused_bits + 1, unused << 1 | 1);
	} else {
		execmem_code_side_put(&region->unused, i, (uint32_t)unused);
		execmem_code_change(region->used, i, true);
	}
	if (kind != heap->config.kind)
		execmem_code_side_put(&region->kinds, i, kind + 1);
	execmem_code_change(region->used, i + count - 1, true);
}

unsigned execmem_code_kind_at(const struct execmem_code_region *region, size_t i)
{
	uint32_t kind = execmem_code_side_get(&region->kinds, i);

	return kind ? kind - 1 : region->heap->config.kind;
}

/* ---- Finding ---- */

/* The region of a code heap, or null. */
static inline const struct execmem_code_region *region_of(const struct execmem_allocator *allocator, uintptr_t at)
{
	const struct execmem_region_face *face = execmem_rangemap_face(&allocator->map, at);

	return face ? __atomic_load_n(&face->code, __ATOMIC_ACQUIRE) : NULL;
}

/* The first segment of the live block, or EXECMEM_CODE_NONE. */
static size_t live_block(const struct execmem_code_region *region, uintptr_t at)
{
	size_t i = (at - region->start) >> region->heap->shift;

	/* The face may lead to another region by now. */
	if (i >= region->segments)
		return EXECMEM_CODE_NONE;
	i = execmem_code_previous(&region->blocks, i);
	return i != EXECMEM_CODE_NONE && execmem_code_test(region->used, i) ? i : EXECMEM_CODE_NONE;
}

int execmem_code_find(struct execmem_allocator *allocator, const void *address, struct execmem_code *code)
{
	uintptr_t at = (uintptr_t)address;
	const struct execmem_code_region *region = region_of(allocator, at);
	size_t i, end;
	unsigned shift;

	if (!region)
		return EXECMEM_ERROR_NOT_FOUND;
	i = live_block(region, at);
	if (i == EXECMEM_CODE_NONE)
		return EXECMEM_ERROR_NOT_FOUND;
	end = execmem_code_next(&region->blocks, i + 1);
	if (end == EXECMEM_CODE_NONE)
		return EXECMEM_ERROR_NOT_FOUND;
	shift = region->heap->shift;
	code->rx.at = region->start + (i << shift);
	code->bytes = (end - i) << shift;
	code->code_bytes = code->bytes - execmem_code_unused(region, i, end - i);
	code->kind = execmem_code_kind_at(region, i);
	return 0;
}

int execmem_code_kind(struct execmem_allocator *allocator, const void *address)
{
	uintptr_t at = (uintptr_t)address;
	const struct execmem_code_region *region = region_of(allocator, at);
	size_t i;

	if (!region)
		return execmem_rangemap_kind(&allocator->map, at);
	i = live_block(region, at);
	return i == EXECMEM_CODE_NONE ? -1 : (int)execmem_code_kind_at(region, i);
}
