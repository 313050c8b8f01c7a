/*
 * Live blocks of each page, kept current by the owner. Nothing here asks the system.
 */
#include <execmem/release.h>

#define WORD_BITS (8 * sizeof(uintptr_t))

static unsigned counter_shift(const struct execmem_release_layout *layout)
{
	return (unsigned)__builtin_ctz(execmem_release_counter_bits(execmem_release_most(layout)));
}

size_t execmem_release_pages_bytes(const struct execmem_release_layout *layout)
{
	size_t pages = execmem_release_page_count(layout);

	return execmem_release_counter_bytes(pages, counter_shift(layout)) + execmem_release_counter_bytes(pages, 0);
}

int execmem_release_pages_init(struct execmem_release_pages *pages, const struct execmem_release_layout *layout,
			       void *memory)
{
	size_t bytes;

	if (!execmem_release_layout_is_right(layout))
		return EXECMEM_ERROR_ARGUMENT;
	*pages = (struct execmem_release_pages){.layout = *layout};
	pages->page_count = execmem_release_page_count(layout);
	pages->page_shift = (unsigned)__builtin_ctzl(layout->page_bytes);
	pages->live.words = memory;
	pages->live.shift = counter_shift(layout);
	bytes = execmem_release_counter_bytes(pages->page_count, pages->live.shift);
	pages->pending = pages->live.words + bytes / sizeof(uintptr_t);
	execmem_release_whole(layout, &pages->low, &pages->high);
	return 0;
}

static uintptr_t bit(size_t page)
{
	return (uintptr_t)1 << (page % WORD_BITS);
}

/* The pages of a block: [*from, *to]. */
static inline void span(const struct execmem_release_pages *pages, size_t block, size_t *from, size_t *to)
{
	size_t start = pages->layout.first + block * pages->layout.block_bytes;

	*from = start >> pages->page_shift;
	*to = (start + pages->layout.block_bytes - 1) >> pages->page_shift;
}

void execmem_release_take(struct execmem_release_pages *pages, size_t block)
{
	size_t page, last;

	for (span(pages, block, &page, &last); page <= last; page++) {
		uintptr_t *word = &pages->pending[page / WORD_BITS];

		execmem_release_counter_add(&pages->live, page, 1);
		if (*word & bit(page)) {
			*word &= ~bit(page);
			pages->pending_count--;
		}
	}
}

void execmem_release_give(struct execmem_release_pages *pages, size_t block)
{
	size_t page, last;

	for (span(pages, block, &page, &last); page <= last; page++) {
		execmem_release_counter_add(&pages->live, page, (uintptr_t)-1);
		if (execmem_release_counter_get(&pages->live, page) == 0 && page >= pages->low && page < pages->high) {
			pages->pending[page / WORD_BITS] |= bit(page);
			pages->pending_count++;
		}
	}
}
