/*
 * Limits of the system: asked or met, told by an error of their own, and nothing lost.
 */
#include "../alloc/alloc.h"
#include "../alloc/table.h"
#include "../text.h"

static bool same(struct space_state before, const char *what)
{
	const struct space_state after = space_state();

	return check_true(before.digest == after.digest && before.files == after.files && after.views <= before.views,
			  what, __FILE__, __LINE__);
}

static bool refusal_is(struct subject_allocator *allocator, const char *call, int error)
{
	struct subject_refusal refusal;

	if (!check_claimed("refusals"))
		return true;
	ALLOC(last_refusal)(allocator, &refusal);
	check_note("named_call", refusal.call);
	check_note_number("named_errno", (uint64_t)refusal.error);
	return CHECK_TRUE(text_equal(refusal.call, call) && refusal.error == error,
			  "the refused call and its errno can be asked for");
}

/* ---- The length of files ---- */

CHECK(wx_file_size, "WX-020", "the file-size limit is asked before a file grows: an error of its own, no signal")
{
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_region region;
	struct space_state before;

	if (!alloc_claims("allocator os-table"))
		return;
	config.grow_bytes = 4 * ALLOC_UNIT;
	watch_begin();
	watch.file_limit = 10 * ALLOC_UNIT + 1;
	allocator = alloc_create(&config);
	MUST(allocator);
	MUST_OK(ALLOC(reserve)(allocator, 64 * ALLOC_UNIT, &region));
	before = space_state();
	MUST(ALLOC_IS(SUBJECT_ERROR_FILE_SIZE, ALLOC(commit)(&region, 0, 11 * ALLOC_UNIT)));
	MUST(same(before, "a commit that fails changes nothing"));
	/* All that the limit allows, whatever the step. */
	MUST_OK(ALLOC(commit)(&region, 0, 9 * ALLOC_UNIT));
	MUST_OK(ALLOC(commit)(&region, 9 * ALLOC_UNIT, ALLOC_UNIT));
	before = space_state();
	MUST(ALLOC_IS(SUBJECT_ERROR_FILE_SIZE, ALLOC(commit)(&region, 10 * ALLOC_UNIT, ALLOC_UNIT)));
	MUST(same(before, "a commit that fails changes nothing"));
	/* What is given back can be had again, in pieces if need be. */
	MUST_OK(ALLOC(decommit)(&region, 3 * ALLOC_UNIT, ALLOC_UNIT));
	MUST_OK(ALLOC(decommit)(&region, 5 * ALLOC_UNIT, ALLOC_UNIT));
	MUST_OK(ALLOC(commit)(&region, 20 * ALLOC_UNIT, 2 * ALLOC_UNIT));
	MUST(alloc_put(allocator, region.rx + 21 * ALLOC_UNIT - 8, 9));
	MUST(alloc_runs(region.rx + 21 * ALLOC_UNIT - 8, 9, "code that lies across two pieces of the file runs"));
	MUST(WATCH_KEPT(WATCH_BEYOND, "no file grows beyond its limit"));
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}

#define RLIMIT_FSIZE 1

static int live_under_rlimit(void)
{
	const struct subject_config config = alloc_config();
	uint64_t limit[2] = {8 * ALLOC_UNIT + 1, SUBJECT_UNLIMITED};
	struct subject_allocator *allocator;
	struct subject_refusals refusals;
	struct subject_region region;

	ALLOC_STEP(TABLE_CALL(PRLIMIT64, 0, RLIMIT_FSIZE, limit) == 0);
	ALLOC_STEP(ALLOC(create)(&config, &allocator, &refusals) == 0);
	ALLOC_STEP(ALLOC(reserve)(allocator, 64 * ALLOC_UNIT, &region) == 0);
	ALLOC_STEP(ALLOC(commit)(&region, 0, 9 * ALLOC_UNIT) == SUBJECT_ERROR_FILE_SIZE);
	ALLOC_STEP(ALLOC(commit)(&region, 0, 8 * ALLOC_UNIT) == 0);
	ALLOC_STEP(ALLOC(commit)(&region, 8 * ALLOC_UNIT, ALLOC_UNIT) == SUBJECT_ERROR_FILE_SIZE);
	ALLOC_STEP(alloc_put(allocator, region.rx, 7) && alloc_run(region.rx) == 7);
	ALLOC_STEP(ALLOC(release)(&region) == 0 && ALLOC(destroy)(allocator) == 0);
	return 0;
}

CHECK(wx_file_size_real, "WX-020", "RLIMIT_FSIZE is met as an error of its own: no SIGXFSZ")
{
	if (alloc_claims("allocator"))
		(void)alloc_apart(live_under_rlimit, "the limit is met as an error, and what it allows works");
}

/* ---- The number of mappings, address space, room ---- */

CHECK(wx_mapping_count, "WX-021", "the limit on mappings is met as an error of its own, and all can be given back")
{
	struct subject_allocator *allocator;
	struct subject_region region;
	struct space_state before;
	size_t count = 0;
	int error;

	if (!alloc_claims("allocator os-table"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator);
	MUST_OK(ALLOC(reserve)(allocator, 256 * watch.page, &region));
	watch.mapping_limit = space.count + 40;
	/* Every other page: two mappings each. */
	do {
		before = space_state();
		error = ALLOC(commit)(&region, count * 2 * watch.page, watch.page);
	} while (!error && ++count < 128);
	MUST(ALLOC_IS(SUBJECT_ERROR_MAPPING_COUNT, error));
	MUST(same(before, "a commit that fails changes nothing") && refusal_is(allocator, "map_fixed", TABLE_ENOMEM));
	MUST(CHECK_TRUE(count >= 16, "commits work up to the limit"));
	MUST_OK(ALLOC(release)(&region));
	MUST_OK(ALLOC(reserve)(allocator, 256 * watch.page, &region));
	MUST_OK(ALLOC(commit)(&region, 0, watch.page));
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}

CHECK(wx_address_space, "WX-022", "the limit on address space is met as an error of its own")
{
	struct subject_allocator *allocator;
	struct subject_region region, other;
	struct space_state before;

	if (!alloc_claims("allocator os-table"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator && alloc_region(allocator, ALLOC_UNIT, &region));
	watch.address_limit = SUBJECT_UNLIMITED >> 1;
	before = space_state();
	for (unsigned i = 0; i < space.count; i++)
		watch.address_limit = (i ? watch.address_limit : 0) + space.extents[i].end - space.extents[i].start;
	watch.address_limit += (uint64_t)(16 * ALLOC_UNIT);
	MUST(ALLOC_IS(SUBJECT_ERROR_ADDRESS_SPACE, ALLOC(reserve)(allocator, 32 * ALLOC_UNIT, &other)));
	MUST(same(before, "a reservation that fails changes nothing") && refusal_is(allocator, "map", TABLE_ENOMEM));
	MUST_OK(ALLOC(reserve)(allocator, 8 * ALLOC_UNIT, &other));
	MUST_OK(ALLOC(release)(&other));
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}

static enum watch_kind full_kind;

static int refuse_full(const struct watch_call *call)
{
	return call->kind == full_kind ? -TABLE_ENOSPC : 0;
}

CHECK(wx_no_space, "WX-023", "where the system has no room left, the errno is the answer, and the next call works")
{
	static const enum watch_kind kinds[] = {WATCH_FILE_GROW, WATCH_MAP_FIXED};
	struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_region region;
	struct space_state before;

	if (!alloc_claims("allocator os-table"))
		return;
	config.grow_bytes = ALLOC_UNIT;
	allocator = alloc_make(&config);
	MUST(allocator);
	MUST_OK(ALLOC(reserve)(allocator, 8 * ALLOC_UNIT, &region));
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		full_kind = kinds[i];
		watch.refuse = refuse_full;
		before = space_state();
		MUST(ALLOC_IS(-TABLE_ENOSPC, ALLOC(commit)(&region, (size_t)i * 4 * ALLOC_UNIT, 4 * ALLOC_UNIT)));
		watch.refuse = NULL;
		MUST(same(before, "a commit that fails changes nothing"));
		MUST(refusal_is(allocator, watch_name[full_kind], TABLE_ENOSPC));
		MUST_OK(ALLOC(commit)(&region, (size_t)i * 4 * ALLOC_UNIT, 4 * ALLOC_UNIT));
	}
	MUST_OK(ALLOC(release)(&region));
	(void)alloc_end(allocator);
}
