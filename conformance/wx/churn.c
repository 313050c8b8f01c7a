/*
 * What was taken and given back often enough is where it began.
 */
#include "../alloc/alloc.h"
#include "../alloc/maps.h"
#include "../alloc/table.h"
#include "../text.h"

#define LIVE       8
#define STEPS      100000
/* Where each system call goes through an emulator, and at page sizes that are simulated: the same, in fewer steps. */
#define STEPS_FEW  1000
#define FILES_MOST 64
#define F_GETFD    1
#define FD_CLOEXEC 1

static int64_t blocks_of(void)
{
	int64_t bytes = 0;

	for (int fd = 3; fd < FILES_MOST; fd++) {
		const int64_t blocks = TABLE_CALL(FCNTL, fd, F_GETFD) >= 0 ? table_file_blocks(fd) : -1;

		bytes += blocks > 0 ? blocks : 0;
	}
	return bytes;
}

/* Steps of one region each: reserved, committed, written and closed, or released; then the next is chosen. */
static bool churn(struct subject_allocator *allocator, unsigned long steps, uint64_t *live_blocks)
{
	struct subject_region live[LIVE] = {{0, 0, {0, 0}}};
	uint64_t random = check_seed * UINT64_C(0x9e3779b97f4a7c15) | 1;

	/* It ends with live regions, whose blocks are seen. */
	*live_blocks = 0;
	while (steps >= 5) {
		const uint64_t r = alloc_random(&random);
		struct subject_region *region = &live[r % LIVE];
		const size_t units = 1 + ((r >> 8) & 3);
		struct subject_view view;

		if (region->bytes) {
			if (!ALLOC_OK(ALLOC(release)(region)))
				return false;
			region->bytes = 0;
			steps--;
			continue;
		}
		if (!ALLOC_OK(ALLOC(reserve)(allocator, units * ALLOC_UNIT, region)) ||
		    !ALLOC_OK(ALLOC(commit)(region, 0, check_page * (1 + (r >> 16 & 1) * (units - 1)))) ||
		    !ALLOC_OK(ALLOC(open)(allocator, region->rx, 1, 0, &view)))
			return false;
		view.rw[0] = 1;
		if (!ALLOC_OK(ALLOC(close)(&view)))
			return false;
		steps -= 4;
	}
	*live_blocks = (uint64_t)blocks_of();
	for (unsigned i = 0; i < LIVE; i++)
		if (live[i].bytes && !ALLOC_OK(ALLOC(release)(&live[i])))
			return false;
	return true;
}

static bool is_emulated(void)
{
	/* An emulator answers any advice; the kernel refuses what it does not know. */
	return table_real.wipe_on_fork(NULL, (void *)(uintptr_t)check_os_page, check_os_page) == -TABLE_ENOSYS;
}

/* Address space of the allocator's bookkeeping, which may grow by what it needs to know of addresses it was given. */
static uint64_t bookkeeping(struct subject_allocator *allocator)
{
	struct subject_stats stats = {.metadata_bytes = 0};

	if (check_claimed("stats"))
		(void)ALLOC_OK(ALLOC(stats)(allocator, &stats));
	return stats.metadata_bytes;
}

#define BOOKKEEPING_MOST 65536

CHECK(wx_churn, "WX-032", "regions taken, written and given back over and over end where they began")
{
	const struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_refusals refusals;
	const bool few = is_emulated() || check_page != check_os_page;
	const uint64_t blocks = (uint64_t)blocks_of();
	uint64_t mapped, live_blocks, known, grown;
	unsigned lines;

	if (!alloc_claims("allocator"))
		return;
	/* Over its own way to the system: what comes back is measured, not modelled. */
	maps_begin();
	MUST_OK(ALLOC(create)(&config, &allocator, &refusals));
	MUST(churn(allocator, STEPS_FEW / 2, &live_blocks)); /* what is kept for ever is there now */
	known = bookkeeping(allocator);
	mapped = maps_others();
	lines = maps_count;
	MUST(churn(allocator, few ? STEPS_FEW : STEPS, &live_blocks));
	grown = bookkeeping(allocator) - known;
	check_note_number("bookkeeping_grown", grown);
	MUST(CHECK_TRUE(grown <= BOOKKEEPING_MOST, "bookkeeping grows by what it must know of new addresses at most"));
	MUST(CHECK_EQUAL(mapped + grown, maps_others(), "as many bytes are mapped as before"));
	MUST(CHECK_TRUE(maps_count <= lines + grown / check_os_page, "there are as many mappings as before"));
	MUST(CHECK_TRUE(live_blocks > blocks, "blocks of memory files are counted"));
	MUST(CHECK_EQUAL(blocks, (uint64_t)blocks_of(), "no block of a memory file is left"));
	MUST_OK(ALLOC(destroy)(allocator));
	MUST(CHECK_EQUAL(0, maps_others(), "nothing is mapped once the allocator is gone"));
}

CHECK(wx_close_on_exec, "WX-033", "what an allocator opens is closed on exec, and closed at the end")
{
	const struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_refusals refusals;
	bool before[FILES_MOST];
	unsigned opened = 0;

	if (!alloc_claims("allocator"))
		return;
	for (int fd = 0; fd < FILES_MOST; fd++)
		before[fd] = TABLE_CALL(FCNTL, fd, F_GETFD) >= 0;
	MUST_OK(ALLOC(create)(&config, &allocator, &refusals));
	for (int fd = 0; fd < FILES_MOST; fd++) {
		const long flags = TABLE_CALL(FCNTL, fd, F_GETFD);

		if (before[fd] || flags < 0)
			continue;
		opened++;
		check_note_number("descriptor", (uint64_t)fd);
		MUST(CHECK_EQUAL(FD_CLOEXEC, (uint64_t)flags & FD_CLOEXEC, "a descriptor is closed on exec"));
	}
	MUST(CHECK_TRUE(opened > 0, "double mapping opens a memory file"));
	MUST_OK(ALLOC(destroy)(allocator));
	for (int fd = 0; fd < FILES_MOST; fd++)
		MUST(CHECK_EQUAL(before[fd], TABLE_CALL(FCNTL, fd, F_GETFD) >= 0, "every descriptor is as it was"));
}

CHECK(wx_names, "WX-034",
      "what an allocator maps has a name of its own: in /proc/self/maps, and for the system to keep")
{
	struct subject_allocator *allocator;
	struct subject_region region;
	unsigned named = 0;

	if (!alloc_claims("allocator os-table"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator && alloc_region(allocator, 2 * ALLOC_UNIT, &region));
	for (unsigned long i = 0; i < watch.recorded; i++) {
		const struct watch_call *call = watch_call_at(i);

		named += call->kind == WATCH_NAME && call->address == region.rx && call->bytes == region.bytes;
	}
	MUST(CHECK_EQUAL(1, named, "a region's address space is named, all of it"));
	maps_read();
	MUST(CHECK_TRUE(maps_of(region.rx) != NULL, "the region is mapped"));
	check_note("name", maps_of(region.rx)->name);
	/* "/memfd:NAME (deleted)" */
	MUST(CHECK_TRUE(text_length(maps_of(region.rx)->name) > sizeof("/memfd: (deleted)") - 1, "code has a name"));
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}

CHECK(wx_zero, "WX-035", "a page that is committed reads as zero, whatever was there before")
{
	struct subject_allocator *allocator;
	struct subject_region region;

	if (!alloc_claims("allocator os-table"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator);
	MUST_OK(ALLOC(reserve)(allocator, 2 * ALLOC_UNIT, &region));
	/* A whole unit, and a page of a unit that stays. */
	MUST_OK(ALLOC(commit)(&region, 0, ALLOC_UNIT + watch.page));
	for (unsigned turn = 0; turn < 2; turn++) {
		MUST(alloc_put(allocator, region.rx, 1) && alloc_put(allocator, region.rx + ALLOC_UNIT - 256, 1));
		MUST_OK(ALLOC(decommit)(&region, 0, turn ? watch.page : ALLOC_UNIT));
		MUST_OK(ALLOC(commit)(&region, 0, turn ? watch.page : ALLOC_UNIT));
		for (size_t i = 0; i < watch.page; i++)
			if (((const unsigned char *)region.rx)[i])
				MUST(CHECK_EQUAL(0, ((const unsigned char *)region.rx)[i], "old bytes are gone"));
		MUST(CHECK_EQUAL(0, *(const unsigned char *)region.rx, "old bytes are gone"));
	}
	MUST_OK(ALLOC(release)(&region));
	/* Another region, that gets the same place in the file. */
	MUST(alloc_region(allocator, 2 * ALLOC_UNIT, &region));
	for (size_t i = 0; i < 2 * ALLOC_UNIT; i += 8)
		if (*(const uint64_t *)(region.rx + i))
			MUST(CHECK_EQUAL(0, *(const uint64_t *)(region.rx + i), "old bytes are gone"));
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}
