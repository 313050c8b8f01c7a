/*
 * Which blocks touch which page, and counters packed into words. Nothing here asks the system.
 */
#include <execmem/release.h>

#define WORD_BITS  (8 * sizeof(uintptr_t))
#define PAGE_MIN   ((size_t)16)
#define PAGE_MOST  ((size_t)1 << 20)
#define BLOCK_MOST ((size_t)1 << 30)

bool execmem_release_layout_is_right(const struct execmem_release_layout *layout)
{
	size_t page = layout->page_bytes, block = layout->block_bytes;

	return page >= PAGE_MIN && page <= PAGE_MOST && (page & (page - 1)) == 0 && block >= 1 && block <= BLOCK_MOST &&
	       layout->end <= SIZE_MAX - page && layout->first <= layout->end &&
	       layout->blocks <= (layout->end - layout->first) / block;
}

size_t execmem_release_page_count(const struct execmem_release_layout *layout)
{
	return (layout->end + layout->page_bytes - 1) / layout->page_bytes;
}

size_t execmem_release_touching(const struct execmem_release_layout *layout, size_t page, size_t *block)
{
	size_t start = page * layout->page_bytes, end = start + layout->page_bytes;
	size_t behind = layout->first + layout->blocks * layout->block_bytes, lowest;

	start = start > layout->first ? start : layout->first;
	end = end < behind ? end : behind;
	if (start >= end)
		return 0;
	lowest = (start - layout->first) / layout->block_bytes;
	*block = lowest;
	return (end - 1 - layout->first) / layout->block_bytes - lowest + 1;
}

size_t execmem_release_touched(const struct execmem_release_layout *layout, size_t block, size_t *page)
{
	size_t start = layout->first + block * layout->block_bytes, lowest = start / layout->page_bytes;

	*page = lowest;
	return (start + layout->block_bytes - 1) / layout->page_bytes - lowest + 1;
}

void execmem_release_whole(const struct execmem_release_layout *layout, size_t *low, size_t *high)
{
	*low = (layout->first + layout->page_bytes - 1) / layout->page_bytes;
	*high = layout->end / layout->page_bytes;
	if (*high < *low)
		*high = *low;
}

size_t execmem_release_most(const struct execmem_release_layout *layout)
{
	size_t page = layout->page_bytes, block = layout->block_bytes;
	/* The greatest common divisor of both. A page begins at any multiple of it into a block, shifted as `first`. */
	size_t common = block & -block, shifted, into;

	common = common < page ? common : page;
	shifted = layout->first & (common - 1);
	into = block - common + (shifted ? common - shifted : 0);
	return (into + page - 1) / block + 1;
}

/* ---- Counters ---- */

unsigned execmem_release_counter_bits(size_t most)
{
	unsigned bits = 1;

	while (most >> (bits - 1) >> 1)
		bits *= 2;
	return bits;
}

size_t execmem_release_counter_bytes(size_t pages, unsigned shift)
{
	size_t per_word = WORD_BITS >> shift;

	return (pages + per_word - 1) / per_word * sizeof(uintptr_t);
}

/* ---- Runs ---- */

/* The first page from `page` on whose bit differs from those of `flip`, or `pages`. */
static size_t next_bit(const uintptr_t *bits, size_t pages, size_t page, uintptr_t flip)
{
	while (page < pages) {
		uintptr_t here = (bits[page / WORD_BITS] ^ flip) >> (page % WORD_BITS);

		if (here) {
			page += (size_t)__builtin_ctzl(here);
			return page < pages ? page : pages;
		}
		page = (page / WORD_BITS + 1) * WORD_BITS;
	}
	return pages;
}

size_t execmem_release_next_run(const uintptr_t *bits, size_t pages, size_t *page)
{
	size_t start = next_bit(bits, pages, *page, 0);

	if (start == pages)
		return 0;
	*page = start;
	return next_bit(bits, pages, start, UINTPTR_MAX) - start;
}
