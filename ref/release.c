/*
 * How the system takes pages back, and policy `exact`.
 */
#include "release.h"

#include "linux_errno.h"

#define WORD_BITS (8 * sizeof(uintptr_t))

void execmem_releaser_init(struct execmem_releaser *releaser, const struct execmem_os *os)
{
	releaser->os = os;
	releaser->one_by_one = false;
	releaser->stats = (struct execmem_release_stats){0};
	releaser->count = 0;
}

/* A range went. */
static void went(struct execmem_releaser *releaser, uint64_t bytes)
{
	const struct execmem_os *os = releaser->os;

	releaser->stats.ranges++;
	releaser->stats.bytes += bytes;
	releaser->stats.pages += bytes >> __builtin_ctzl(os->page_size(os->context));
}

/* Offers the system all spans at once. How many went. */
static size_t discard_together(struct execmem_releaser *releaser)
{
	const struct execmem_os *os = releaser->os;
	size_t done = 0;
	int error = os->discard_many(os->context, releaser->spans, releaser->count, &done);

	releaser->stats.calls++;
	releaser->stats.batched += error == 0;
	/* Not on this system: a kernel before 5.10, or before 6.13, which refuses discarding; an emulator. */
	if (error == -ENOSYS || error == -EPERM || error == -EINVAL)
		releaser->one_by_one = true;
	return done;
}

int execmem_release_flush(struct execmem_releaser *releaser, size_t *done)
{
	const struct execmem_os *os = releaser->os;
	size_t count = releaser->count, gone = 0;
	int error = 0;

	if (count > 1 && !releaser->one_by_one)
		gone = discard_together(releaser);
	for (size_t i = 0; i < count; i++) {
		const struct execmem_span *span = &releaser->spans[i];

		if (i >= gone) {
			error = os->discard(os->context, span->address, span->bytes);
			releaser->stats.calls++;
			if (error)
				break;
			gone++;
			releaser->stats.fallbacks += count > 1;
		}
		went(releaser, span->bytes);
	}
	releaser->stats.refused += count - gone;
	releaser->count = 0;
	*done = gone;
	return error;
}

int execmem_release_private(struct execmem_releaser *releaser, void *address, size_t bytes, size_t *done)
{
	*done = 0;
	releaser->spans[releaser->count++] = (struct execmem_span){address, bytes};
	return releaser->count < EXECMEM_RELEASE_SPANS ? 0 : execmem_release_flush(releaser, done);
}

int execmem_release_file(struct execmem_releaser *releaser, int file, uint64_t offset, uint64_t bytes)
{
	const struct execmem_os *os = releaser->os;
	int error = os->file_punch(os->context, file, offset, bytes);

	releaser->stats.calls++;
	if (error)
		releaser->stats.refused++;
	else
		went(releaser, bytes);
	return error;
}

int execmem_release_run(struct execmem_releaser *releaser, const struct execmem_release_layout *layout,
			const struct execmem_release_area *area, size_t page, size_t count, size_t *done)
{
	size_t offset = page * layout->page_bytes, bytes = count * layout->page_bytes;
	int error;

	if (area->file == EXECMEM_NO_FILE)
		return execmem_release_private(releaser, area->address + offset, bytes, done);
	error = execmem_release_file(releaser, area->file, area->offset + offset, bytes);
	*done = error == 0;
	return error;
}

/* ---- Exact ---- */

/* The first `runs` runs that are pending, from page *from on, are not any more. */
static void settle(struct execmem_release_pages *pages, size_t *from, size_t runs)
{
	while (runs--) {
		size_t count = execmem_release_next_run(pages->pending, pages->page_count, from);

		pages->pending_count -= count;
		for (; count; count--, (*from)++)
			pages->pending[*from / WORD_BITS] &= ~((uintptr_t)1 << (*from % WORD_BITS));
	}
}

int execmem_release_exact(struct execmem_releaser *releaser, struct execmem_release_pages *pages,
			  const struct execmem_release_area *area)
{
	size_t page = 0, settled = 0, count, done;
	int error = 0;

	releaser->stats.attempts++;
	if (pages->pending_count == 0)
		return 0;
	while (!error && (count = execmem_release_next_run(pages->pending, pages->page_count, &page)) != 0) {
		error = execmem_release_run(releaser, &pages->layout, area, page, count, &done);
		settle(pages, &settled, done);
		page += count;
	}
	if (!error) {
		error = execmem_release_flush(releaser, &done);
		settle(pages, &settled, done);
	}
	return error;
}
