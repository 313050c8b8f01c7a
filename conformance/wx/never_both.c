/*
 * W^X at every call, and executable pages that were never writable where they are.
 */
#include "../alloc/alloc.h"
#include "../alloc/table.h"

CHECK(wx_never_both, "WX-001", "no mapping is writable and executable, after any call of any operation")
{
	struct subject_config config = alloc_config();

	if (!alloc_claims("allocator os-table"))
		return;
	for (unsigned cached = 0; cached < 4; cached += 3) {
		config.rw_cache = cached;
		MUST(alloc_walk(&config, NULL, NULL));
		MUST(CHECK_TRUE(watch.of_kind[WATCH_MAP] && watch.of_kind[WATCH_MAP_FIXED], "mappings were made"));
		MUST(WATCH_KEPT(WATCH_BOTH, "no mapping is writable and executable"));
	}
}

CHECK(wx_fresh, "WX-002", "a page becomes executable by being mapped, and never was writable in that mapping")
{
	struct subject_config config = alloc_config();

	if (!alloc_claims("allocator os-table"))
		return;
	/* With and without what emulators need. */
	for (int emulation = SUBJECT_EMULATION_PROBE; emulation <= SUBJECT_EMULATION_ON; emulation++) {
		config.emulation = (enum subject_emulation)emulation;
		MUST(alloc_walk(&config, NULL, NULL));
		MUST(WATCH_KEPT(WATCH_FRESH, "no page is made executable where it lies"));
	}
}

static void deny(void)
{
	watch.deny_write_execute = true;
}

CHECK(wx_deny_write_execute, "WX-003", "everything works where the system makes nothing executable that was not")
{
	struct subject_config config = alloc_config();

	if (!alloc_claims("allocator os-table"))
		return;
	MUST(alloc_walk(&config, deny, NULL));
	config.emulation = SUBJECT_EMULATION_ON;
	(void)alloc_walk(&config, deny, NULL);
}

/* ---- The real thing: prctl(2), PR_SET_MDWE ---- */

#define PR_SET_MDWE           65
#define PR_GET_MDWE           66
#define PR_MDWE_REFUSE_EXEC   1
#define PROTECTION_EVERYTHING 7
#define MAP_PRIVATE_ANONYMOUS 0x22

/* Is it honoured? Some emulators say yes and do nothing. */
static bool mdwe_on(void)
{
	return TABLE_CALL(PRCTL, PR_SET_MDWE, PR_MDWE_REFUSE_EXEC) == 0 &&
	       execmem_port_is_error(
		       execmem_port_map(NULL, check_os_page, PROTECTION_EVERYTHING, MAP_PRIVATE_ANONYMOUS, -1, 0));
}

/* Writes, rewrites, gives back and takes again, over the subject's own way to the system. */
static int live_under_mdwe(void)
{
	const struct subject_config config = alloc_config();
	struct subject_allocator *allocator;
	struct subject_refusals refusals;
	struct subject_region region;

	if (!mdwe_on())
		return ALLOC_APART_NOT;
	ALLOC_STEP(ALLOC(create)(&config, &allocator, &refusals) == 0);
	ALLOC_STEP(ALLOC(reserve)(allocator, 2 * ALLOC_UNIT, &region) == 0);
	for (unsigned turn = 0; turn < 2; turn++) {
		ALLOC_STEP(ALLOC(commit)(&region, 0, ALLOC_UNIT) == 0);
		ALLOC_STEP(alloc_put(allocator, region.rx, 7) && alloc_run(region.rx) == 7);
		ALLOC_STEP(alloc_put(allocator, region.rx + 1024, 8) && alloc_run(region.rx + 1024) == 8);
		ALLOC_STEP(ALLOC(decommit)(&region, 0, ALLOC_UNIT) == 0);
	}
	ALLOC_STEP(ALLOC(release)(&region) == 0 && ALLOC(destroy)(allocator) == 0);
	return 0;
}

CHECK(wx_mdwe, "WX-004", "everything works under PR_SET_MDWE")
{
	if (!alloc_claims("allocator"))
		return;
	if (TABLE_CALL(PRCTL, PR_GET_MDWE) < 0 ||
	    !alloc_apart(live_under_mdwe, "regions are committed, written, run and given back under PR_SET_MDWE"))
		check_emulator("this system has no PR_SET_MDWE, or does not honour it");
}
