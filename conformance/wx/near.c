/*
 * Regions near a target. A stretch of address space is taken, all but one gap, so that there is one right answer.
 */
#include "../alloc/alloc.h"
#include "../os.h"

#define REACH   (16 * ALLOC_UNIT)
#define STRETCH (64 * ALLOC_UNIT)

static struct subject_allocator *allocator;
static bool good;

/*
 * A wish that the system itself refused since call number `from`: its negative errno, or 0. qemu-user refuses some
 * addresses that it is asked for (-ENOMEM); an allocator may say so, where it found no place.
 */
static int refused_since(unsigned long from)
{
	for (unsigned long i = from; i < watch.recorded; i++)
		if (watch_call_at(i)->kind == WATCH_MAP && watch_call_at(i)->result < 0)
			return watch_call_at(i)->result;
	return 0;
}

/* Asserts that no place was found. */
static bool is_unreachable(int error, unsigned long from)
{
	return ALLOC_IS(error && error == refused_since(from) ? error : SUBJECT_ERROR_UNREACHABLE, error);
}

static void gap_at(uintptr_t target, uintptr_t gap, size_t bytes, bool within)
{
	const unsigned long from = watch.recorded;
	struct subject_region region;
	struct space_state before;
	int error;

	if (!good)
		return;
	os_unmap((void *)gap, bytes);
	before = space_state();
	check_note_number("target", target);
	check_note_number("reach", (uint64_t)REACH);
	check_note_number("gap", gap);
	check_note_number("gap_bytes", bytes);
	error = ALLOC(reserve_near)(allocator, bytes, target, REACH, &region);
	if (within)
		good = ALLOC_OK(error) && CHECK_EQUAL(gap, region.rx, "the one gap of the window is found") &&
		       ALLOC_OK(ALLOC(release)(&region));
	else
		good = is_unreachable(error, from);
	good = good && CHECK_EQUAL(before.digest, space_state().digest, "what was tried is unmapped again");
	if (good)
		(void)os_reserve((void *)gap, bytes);
}

/* Of a gap of two units the allocator takes one; the other, right beside its own region, is found as well. */
static void gap_beside_own(uintptr_t target, uintptr_t gap)
{
	struct subject_region first, second;

	if (!good)
		return;
	os_unmap((void *)gap, 2 * ALLOC_UNIT);
	check_note_number("target", target);
	check_note_number("gap", gap);
	good = ALLOC_OK(ALLOC(reserve_near)(allocator, ALLOC_UNIT, target, REACH, &first)) &&
	       ALLOC_OK(ALLOC(reserve_near)(allocator, ALLOC_UNIT, target, REACH, &second)) &&
	       CHECK_EQUAL(gap + gap + ALLOC_UNIT, first.rx + second.rx, "both places of the gap are found") &&
	       ALLOC_OK(ALLOC(release)(&first)) && ALLOC_OK(ALLOC(release)(&second));
	if (good)
		(void)os_reserve((void *)gap, 2 * ALLOC_UNIT);
}

/* Every place that the system was asked for is counted. */
static bool tries_counted(uintptr_t target)
{
	const unsigned long asked = watch.of_kind[WATCH_MAP], from = watch.recorded;
	struct subject_stats before, after;

	if (!check_claimed("stats"))
		return true;
	if (!ALLOC_OK(ALLOC(stats)(allocator, &before)))
		return false;
	gap_at(target, target + 3 * ALLOC_UNIT, ALLOC_UNIT, true);
	/* A system that refuses an address may be asked again, in another way. */
	return good && ALLOC_OK(ALLOC(stats)(allocator, &after)) &&
	       CHECK_TRUE(after.probes > before.probes, "places tried are counted") &&
	       (refused_since(from) || CHECK_EQUAL(watch.of_kind[WATCH_MAP] - asked, after.probes - before.probes,
						   "places that the system was asked for are counted"));
}

CHECK(wx_near, "WX-050", "the one gap of a window is found wherever it lies, and none beyond it")
{
	uintptr_t start, target;
	struct subject_region region;
	unsigned char *taken;
	unsigned long from;
	int error;

	if (!alloc_claims("allocator os-table near"))
		return;
	taken = os_reserve(NULL, STRETCH + ALLOC_UNIT);
	start = ((uintptr_t)taken + ALLOC_UNIT - 1) & ~(ALLOC_UNIT - 1);
	target = start + STRETCH / 2;
	allocator = alloc_make(NULL);
	MUST(allocator);
	MUST_OK(ALLOC(reserve)(allocator, 1, &region)); /* so that its tables are there */
	MUST_OK(ALLOC(release)(&region));
	good = true;
	/* The last places of the window, and the first outside it. A byte that is REACH away is within reach. */
	gap_at(target, target - REACH, ALLOC_UNIT, true);
	gap_at(target, target - REACH - ALLOC_UNIT, ALLOC_UNIT, false);
	gap_at(target, target + REACH - ALLOC_UNIT, ALLOC_UNIT, true);
	gap_at(target, target + REACH, ALLOC_UNIT, false);
	gap_at(target, target + REACH - 3 * ALLOC_UNIT, 3 * ALLOC_UNIT, true);
	gap_at(target, target - 2 * ALLOC_UNIT, 4 * ALLOC_UNIT, true);
	/* A target inside a unit moves the window. */
	gap_at(target + 100, target + REACH, ALLOC_UNIT, false);
	gap_at(target + ALLOC_UNIT - 1, target + REACH, ALLOC_UNIT, true);
	gap_at(target + 1, target - REACH, ALLOC_UNIT, false);
	gap_beside_own(target, target);
	gap_beside_own(target, target + 4 * ALLOC_UNIT);
	gap_beside_own(target, target - 2 * ALLOC_UNIT);
	gap_beside_own(target, target - 6 * ALLOC_UNIT);
	MUST(good && tries_counted(target));
	/* At the ends of the address space nothing is computed round the corner. */
	from = watch.recorded;
	MUST(is_unreachable(ALLOC(reserve_near)(allocator, ALLOC_UNIT, 0, ALLOC_UNIT, &region), from));
	from = watch.recorded;
	/* Where a program is 32 bits wide, there may be room up there. */
	error = ALLOC(reserve_near)(allocator, ALLOC_UNIT, UINTPTR_MAX, 8 * ALLOC_UNIT, &region);
	if (!error) {
		MUST(CHECK_TRUE(region.rx >= UINTPTR_MAX - 8 * ALLOC_UNIT && region.rx + (region.bytes - 1) > region.rx,
				"a region at the end of the address space lies within the window"));
		MUST_OK(ALLOC(release)(&region));
	} else {
		MUST(is_unreachable(error, from));
	}
	MUST(CHECK_EQUAL(0, space_executable(), "nothing is committed"));
	MUST_OK(ALLOC(destroy)(allocator));
	os_unmap(taken, STRETCH + ALLOC_UNIT);
	MUST(CHECK_EQUAL(0, space.count, "nothing is mapped once the allocator is gone"));
}
