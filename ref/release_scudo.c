/*
 * The decisions of D82031, and counting free blocks by page.
 */
#include <execmem/release.h>

#include "linux_errno.h"
#include "release.h"

/* ---- Decisions ---- */

static bool is_small(size_t page_bytes, size_t block_bytes)
{
	return block_bytes < page_bytes / 16;
}

unsigned execmem_release_share(size_t page_bytes, size_t block_bytes)
{
	/* Of a small block: less than 256 parts of a page's 4096. */
	return is_small(page_bytes, block_bytes) ? 99 - (unsigned)(block_bytes * 4096 / page_bytes / 16) : 0;
}

enum execmem_release_verdict execmem_release_decide(const struct execmem_release_class *size_class, bool forced,
						    int32_t interval_ms, uint64_t now_ns)
{
	uint64_t live = size_class->popped_bytes - size_class->pushed_bytes, all = size_class->allocated_bytes;
	uint64_t free = live < all ? all - live : 0, pushed = size_class->pushed_bytes - size_class->pushed_at_last;

	if (free < size_class->page_bytes)
		return EXECMEM_RELEASE_FEW_FREE;
	if (pushed < size_class->page_bytes)
		return EXECMEM_RELEASE_FEW_NEW;
	if (is_small(size_class->page_bytes, size_class->block_bytes)) {
		if (!forced && pushed < all / 16)
			return EXECMEM_RELEASE_FEW_PUSHED;
		/* free * 100 / all < share, without a division of 64 bits. */
		if (free * 100 < all * execmem_release_share(size_class->page_bytes, size_class->block_bytes))
			return EXECMEM_RELEASE_DENSE;
	}
	if (forced)
		return EXECMEM_RELEASE_GO;
	if (interval_ms < 0)
		return EXECMEM_RELEASE_NEVER;
	return size_class->last_ns + (uint64_t)interval_ms * 1000000 > now_ns ? EXECMEM_RELEASE_EARLY
									      : EXECMEM_RELEASE_GO;
}

void execmem_release_tried(struct execmem_release_class *size_class, uint64_t ranges, uint64_t now_ns)
{
	if (ranges)
		size_class->pushed_at_last = size_class->pushed_bytes;
	size_class->last_ns = now_ns;
}

/* ---- Counting ---- */

/* Zero counters of a layout, in the releaser's buffer or, with *mapped bytes, in memory of their own. */
static int get_counters(struct execmem_releaser *releaser, const struct execmem_release_layout *layout,
			struct execmem_release_counters *counters, size_t *mapped)
{
	const struct execmem_os *os = releaser->os;
	size_t bytes, mask = os->page_size(os->context) - 1;
	void *memory;
	int error;

	counters->shift = (unsigned)__builtin_ctz(execmem_release_counter_bits(execmem_release_most(layout)));
	bytes = execmem_release_counter_bytes(execmem_release_page_count(layout), counters->shift);
	if (bytes <= sizeof(releaser->words)) {
		counters->words = releaser->words;
		for (size_t i = 0; i < bytes / sizeof(uintptr_t); i++)
			releaser->words[i] = 0;
		*mapped = 0;
		return 0;
	}
	bytes = (bytes + mask) & ~mask;
	error = os->map(os->context, NULL, bytes, EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0, &memory);
	if (error)
		return error;
	counters->words = memory;
	*mapped = bytes;
	return 0;
}

static void count_free(struct execmem_release_counters *counters, const struct execmem_release_layout *layout,
		       const struct execmem_release_batch *list)
{
	unsigned shift = (unsigned)__builtin_ctzl(layout->page_bytes);

	for (; list; list = list->next) {
		for (uint32_t i = 0; i < list->count; i++) {
			size_t start = layout->first + list->block[i] * layout->block_bytes, page = start >> shift;
			size_t last = (start + layout->block_bytes - 1) >> shift;

			for (; page <= last; page++)
				execmem_release_counter_add(counters, page, 1);
		}
	}
}

/* How many blocks touch the pages one after the other, without a division a page. */
struct touching {
	const struct execmem_release_layout *layout;
	size_t full, rest;      /* whole blocks in a page, and what is left of it */
	size_t into;            /* how far into a block the page begins */
	size_t page, low, high; /* between low and high, every byte of a page belongs to a block */
};

static struct touching touching_from(const struct execmem_release_layout *layout, size_t page)
{
	size_t block = layout->block_bytes, behind = layout->first + layout->blocks * block;
	struct touching at = {.layout = layout, .full = layout->page_bytes / block, .rest = layout->page_bytes % block};

	at.page = page;
	at.low = page; /* never below the first whole page */
	at.high = behind / layout->page_bytes;
	at.into = (page * layout->page_bytes - layout->first) % block;
	return at;
}

static size_t touching_next(struct touching *at)
{
	size_t block = at->layout->block_bytes, reach = at->into + at->rest, page = at->page++, lowest;

	at->into = reach < block ? reach : reach - block;
	if (page >= at->high)
		return execmem_release_touching(at->layout, page, &lowest);
	return at->full + (reach > 0) + (reach > block);
}

static int release_counted(struct execmem_releaser *releaser, const struct execmem_release_layout *layout,
			   const struct execmem_release_area *area, const struct execmem_release_counters *counters)
{
	size_t low, high, run = 0, done;
	struct touching touching;
	int error = 0;

	execmem_release_whole(layout, &low, &high);
	touching = touching_from(layout, low);
	for (size_t page = low; page < high && !error; page++) {
		size_t blocks = touching_next(&touching);

		/* A page that no block touches was never used. */
		if (blocks && execmem_release_counter_get(counters, page) == blocks) {
			run++;
			continue;
		}
		if (run)
			error = execmem_release_run(releaser, layout, area, page - run, run, &done);
		run = 0;
	}
	if (run && !error)
		error = execmem_release_run(releaser, layout, area, high - run, run, &done);
	return error ? error : execmem_release_flush(releaser, &done);
}

int execmem_release_scudo(struct execmem_releaser *releaser, const struct execmem_release_layout *layout,
			  const struct execmem_release_area *area, const struct execmem_release_batch *free_list,
			  struct execmem_release_class *size_class, bool forced, int32_t interval_ms, uint64_t now_ns,
			  enum execmem_release_verdict *verdict)
{
	const struct execmem_os *os = releaser->os;
	struct execmem_release_counters counters;
	uint64_t ranges = releaser->stats.ranges;
	size_t mapped;
	int error;

	if (!execmem_release_layout_is_right(layout))
		return EXECMEM_ERROR_ARGUMENT;
	releaser->stats.attempts++;
	*verdict = execmem_release_decide(size_class, forced, interval_ms, now_ns);
	if (*verdict != EXECMEM_RELEASE_GO) {
		releaser->stats.skipped++;
		return 0;
	}
	error = get_counters(releaser, layout, &counters, &mapped);
	if (error) {
		releaser->stats.uncounted++;
		return error;
	}
	count_free(&counters, layout, free_list);
	error = release_counted(releaser, layout, area, &counters);
	/* Refused, it is address space lost, and nothing else can be done about it. */
	if (mapped && os->unmap(os->context, counters.words, mapped))
		(void)os->unmap(os->context, counters.words, mapped);
	execmem_release_tried(size_class, releaser->stats.ranges - ranges, now_ns);
	return error;
}
