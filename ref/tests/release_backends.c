/*
 * How pages go: ranges of private memory together, or one by one where the system does not take them so; counters in
 * the buffer as long as their bytes fit it, in memory of their own otherwise; nothing at all where there is none.
 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <execmem/release.h>

#define PAGE   ((size_t)4096)
#define RANGES ((size_t)3000)

static struct execmem_os os;
static struct execmem_releaser releaser;
static unsigned char *memory;

static size_t resident(size_t pages)
{
	static unsigned char seen[3 * RANGES];
	size_t count = 0;

	EXPECT(mincore(memory, pages * PAGE, seen) == 0);
	for (size_t i = 0; i < pages; i++)
		count += seen[i] & 1;
	return count;
}

/* Every second page is free: as many ranges as can be. */
static void checkerboard(struct execmem_release_pages *pages)
{
	const struct execmem_release_layout layout = {PAGE, PAGE / 2, 0, 4 * RANGES, 2 * RANGES * PAGE};
	static void *books;

	free(books);
	books = calloc(1, execmem_release_pages_bytes(&layout));
	OK(execmem_release_pages_init(pages, &layout, books));
	memset(memory, 1, 2 * RANGES * PAGE);
	for (size_t block = 0; block < layout.blocks; block++)
		execmem_release_take(pages, block);
	for (size_t block = 0; block < layout.blocks; block++) {
		if (block & 2)
			execmem_release_give(pages, block);
	}
	EXPECT_EQUAL(RANGES, pages->pending_count);
	EXPECT_EQUAL(2 * RANGES, resident(2 * RANGES));
}

/* Whether this system takes many ranges together: where not, the library has to find that out by itself. */
static bool takes_many(void)
{
	struct execmem_os real = execmem_os_linux(PAGE);
	struct execmem_span spans[2] = {{memory, PAGE}, {memory + 2 * PAGE, PAGE}};
	size_t done;

	return real.discard_many(real.context, spans, 2, &done) == 0;
}

static void check_batches(void)
{
	static const int refusals[] = {ENOSYS, EPERM, EINVAL};
	const struct execmem_release_area area = {memory, EXECMEM_NO_FILE, 0};
	const struct execmem_release_stats *stats = &releaser.stats;
	struct execmem_release_pages pages;

	execmem_releaser_init(&releaser, &os);
	if (takes_many()) {
		checkerboard(&pages);
		OK(execmem_release_exact(&releaser, &pages, &area));
		EXPECT_EQUAL(RANGES, resident(2 * RANGES));
		EXPECT_EQUAL(RANGES, stats->ranges);
		EXPECT_EQUAL(RANGES, stats->pages);
		EXPECT_EQUAL(RANGES * PAGE, stats->bytes);
		EXPECT_EQUAL(3, stats->calls);
		EXPECT_EQUAL(3, stats->batched);
		EXPECT_EQUAL(0, stats->fallbacks);
	}
	for (size_t i = 0; i < 3; i++) {
		execmem_releaser_init(&releaser, &os);
		watch.fail_name = "discard_many";
		watch.fail_with = refusals[i];
		checkerboard(&pages);
		OK(execmem_release_exact(&releaser, &pages, &area));
		EXPECT_EQUAL(RANGES, resident(2 * RANGES));
		EXPECT_EQUAL(RANGES + 1, stats->calls);
		EXPECT_EQUAL(0, stats->batched);
		EXPECT_EQUAL(RANGES, stats->fallbacks);
		EXPECT_EQUAL(RANGES, stats->ranges);
		/* Not offered together again. */
		checkerboard(&pages);
		OK(execmem_release_exact(&releaser, &pages, &area));
		EXPECT_EQUAL(2 * RANGES + 1, stats->calls);
		watch.fail_name = NULL;
	}
	/* What cannot be told from a passing refusal is offered again. */
	execmem_releaser_init(&releaser, &os);
	watch.fail_name = "discard_many";
	watch.fail_with = ENOMEM;
	checkerboard(&pages);
	OK(execmem_release_exact(&releaser, &pages, &area));
	EXPECT_EQUAL(RANGES + 3, stats->calls);
	watch.fail_name = NULL;
	/* Nothing to do costs no call. */
	OK(execmem_release_exact(&releaser, &pages, &area));
	EXPECT_EQUAL(RANGES + 3, stats->calls);
	EXPECT_EQUAL(2, stats->attempts);
}

/* The second range is refused, in whichever way: it and those behind it stay. */
static void check_refused(void)
{
	const struct execmem_release_area area = {memory, EXECMEM_NO_FILE, 0};
	struct execmem_release_pages pages;

	execmem_releaser_init(&releaser, &os);
	releaser.one_by_one = true;
	checkerboard(&pages);
	watch.fail_with = ENXIO;
	watch.fail_at = watch.calls + 2;
	EXPECT_EQUAL(-ENXIO, execmem_release_exact(&releaser, &pages, &area));
	EXPECT_EQUAL(RANGES - 1, pages.pending_count);
	EXPECT_EQUAL(2 * RANGES - 1, resident(2 * RANGES));
	EXPECT_EQUAL(1, releaser.stats.ranges);
	EXPECT_EQUAL(1023, releaser.stats.refused);
	watch.fail_at = 0;
	OK(execmem_release_exact(&releaser, &pages, &area));
	EXPECT_EQUAL(0, pages.pending_count);
	EXPECT_EQUAL(RANGES, resident(2 * RANGES));
	EXPECT_EQUAL(RANGES, releaser.stats.ranges);
}

/* Counters of `pages` pages of one byte each, all free but page 1. */
static int release_counted(size_t pages, enum execmem_release_verdict *verdict)
{
	const struct execmem_release_layout layout = {PAGE, 32, 0, pages * 128, pages * PAGE};
	const struct execmem_release_area area = {memory, EXECMEM_NO_FILE, 0};
	struct execmem_release_class size_class = {PAGE, 32, pages * PAGE, pages * PAGE - 32, pages * PAGE, 0, 0};
	static struct execmem_release_batch batches[9000 * 128 / EXECMEM_RELEASE_BATCH + 2];
	struct execmem_release_batch *list = NULL;
	size_t used = 0;
	int error;

	for (size_t block = 0; block < layout.blocks; block++) {
		if (block == 200)
			continue;
		if (!list || list->count == EXECMEM_RELEASE_BATCH) {
			EXPECT(used < sizeof(batches) / sizeof(batches[0]));
			batches[used] = (struct execmem_release_batch){.next = list};
			list = &batches[used++];
		}
		list->block[list->count++] = (uint32_t)block;
	}
	memset(memory, 1, pages * PAGE);
	error = execmem_release_scudo(&releaser, &layout, &area, list, &size_class, true, 0, 0, verdict);
	EXPECT_EQUAL(error ? 0 : pages * PAGE - 32, size_class.pushed_at_last);
	return error;
}

static void check_buffer(void)
{
	const size_t fit = sizeof(releaser.words);
	enum execmem_release_verdict verdict = EXECMEM_RELEASE_NEVER;
	unsigned long calls;
	long mapped;

	execmem_releaser_init(&releaser, &os);
	releaser.one_by_one = true;
	memset(releaser.words, 0xa5, sizeof(releaser.words));
	calls = watch.calls;
	OK(release_counted(fit, &verdict));
	EXPECT_EQUAL(EXECMEM_RELEASE_GO, verdict);
	EXPECT_EQUAL(calls + 2, watch.calls); /* two ranges, and no memory mapped */
	EXPECT_EQUAL(fit - 1, releaser.stats.pages);
	EXPECT_EQUAL(1, resident(fit));
	/* A page more: as bytes they do not fit any more. */
	mapped = watch.mapped;
	calls = watch.calls;
	OK(release_counted(fit + 1, &verdict));
	EXPECT_EQUAL(calls + 4, watch.calls);
	EXPECT_EQUAL(mapped, watch.mapped);
	EXPECT_EQUAL(1, resident(fit + 1));
	EXPECT_EQUAL(2 * fit - 1, releaser.stats.pages);
	/* No memory for them: nothing goes, and it is said. */
	watch.fail_name = "map";
	watch.fail_with = ENOMEM;
	EXPECT_EQUAL(-ENOMEM, release_counted(fit + 1, &verdict));
	watch.fail_name = NULL;
	EXPECT_EQUAL(1, releaser.stats.uncounted);
	EXPECT_EQUAL(fit + 1, resident(fit + 1));
	EXPECT_EQUAL(2 * fit - 1, releaser.stats.pages);
	EXPECT_EQUAL(3, releaser.stats.attempts);
}

/* A batch that was emptied and not cleared would name blocks twice: their page's count is not that of its blocks. */
static void check_batch(void)
{
	struct execmem_release_batch batch = {.count = 3};

	execmem_release_batch_clear(&batch);
	EXPECT_EQUAL(0, batch.count);
}

int main(void)
{
	os = watch_os();
	memory = mmap(NULL, 9000 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(memory != MAP_FAILED);
	(void)madvise(memory, 9000 * PAGE, MADV_NOHUGEPAGE);
	check_batches();
	check_refused();
	check_buffer();
	check_batch();
	return 0;
}
