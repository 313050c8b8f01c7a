/*
 * Published code runs as written: for the first time, rewritten, and rewritten where an emulator goes on running what
 * it translated before.
 */
#include "../alloc/alloc.h"
#include "observe.h"

#define REWRITES 12

static struct subject_allocator *allocator;
static struct subject_region region;

static bool begin(enum subject_emulation emulation)
{
	struct subject_config config = alloc_config();

	config.emulation = emulation;
	allocator = alloc_make(&config);
	watch.alone = true;
	return allocator && alloc_region(allocator, 3 * ALLOC_UNIT, &region);
}

static bool end(void)
{
	return ALLOC_OK(ALLOC(release)(&region)) && alloc_end(allocator);
}

/* Places of functions: in a line, across lines, pages and windows, at the ends of the region. All multiples of 4. */
#define PLACES 8
static size_t place(unsigned number)
{
	const size_t places[PLACES] = {0,
				       60,
				       128,
				       check_page - 4,
				       check_page + 124,
				       2 * ALLOC_UNIT - 4,
				       2 * ALLOC_UNIT + 64,
				       3 * ALLOC_UNIT - EXECMEM_PORT_PROBE_BYTES};

	return places[number];
}

static unsigned value(unsigned round, unsigned number)
{
	return round * PLACES + number + 1;
}

/* Writes a function by one way or the other. */
static bool put(unsigned number, unsigned round)
{
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	const uintptr_t rx = region.rx + place(number);

	if (!check_claimed("publish-many") || round % 2)
		return alloc_put(allocator, rx, value(round, number));
	return ALLOC_OK(ALLOC(write)(allocator, rx, code, execmem_port_probe_code(value(round, number), code), 0));
}

static bool all_run(unsigned round, const char *what)
{
	check_note_number("round", round);
	for (unsigned i = 0; i < PLACES; i++)
		if (!alloc_runs(region.rx + place(i), value(round, i), what))
			return false;
	return true;
}

static bool put_all(unsigned round)
{
	for (unsigned i = 0; i < PLACES; i++)
		if (!put(i, round))
			return false;
	return true;
}

/* Each function rewritten after all have run; those beside it stay as they are meanwhile. */
static bool rewritten(unsigned rounds)
{
	for (unsigned round = 1; round <= rounds; round++) {
		for (unsigned i = 0; i < PLACES; i++) {
			const unsigned next = (i + 1) % PLACES;

			check_note_number("round", round);
			if (!put(i, round) ||
			    !alloc_runs(region.rx + place(i), value(round, i), "rewritten code runs") ||
			    !alloc_runs(region.rx + place(next), value(next ? round - 1 : round, next),
					"code beside it runs as before"))
				return false;
		}
		if (!all_run(round, "rewritten code runs"))
			return false;
	}
	return true;
}

CHECK(ic_fresh, "IC-005", "code that is published where none was executed before runs as written")
{
	if (!alloc_claims("allocator os-table"))
		return;
	MUST(begin(SUBJECT_EMULATION_OFF) && put_all(0) && all_run(0, "published code runs"));
	/* Committed anew, at the same address. */
	MUST_OK(ALLOC(decommit)(&region, 0, region.bytes));
	MUST_OK(ALLOC(commit)(&region, 0, region.bytes));
	MUST(put_all(1) && all_run(1, "code published in pages that are committed anew runs"));
	MUST(end());
}

CHECK(ic_plain, "IC-006", "code that was executed, rewritten and plainly published, runs as rewritten")
{
	if (!alloc_claims("allocator os-table"))
		return;
	if (observe_stale()) {
		check_emulator("it goes on running code that was rewritten through another mapping: probed now");
		return;
	}
	MUST(begin(SUBJECT_EMULATION_OFF) && put_all(0) && all_run(0, "published code runs") && rewritten(REWRITES));
	MUST(end());
}

/* ---- With what emulators need ---- */

/* One byte of a function, published alone. */
static bool partly(void)
{
	unsigned char old[EXECMEM_PORT_PROBE_BYTES], new[EXECMEM_PORT_PROBE_BYTES];
	const size_t bytes = execmem_port_probe_code(8, old);
	const uintptr_t rx = region.rx + place(3) + 256;
	struct subject_view view;

	(void)execmem_port_probe_code(9, new);
	if (!alloc_put(allocator, rx, 8) || !alloc_runs(rx, 8, "published code runs") ||
	    !ALLOC_OK(ALLOC(open)(allocator, rx, bytes, 0, &view)))
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (old[i] != new[i]) {
			view.rw[i] = new[i];
			if (!ALLOC_OK(ALLOC(publish)(&view, i, 1, 0)))
				return false;
		}
	return ALLOC_OK(ALLOC(close)(&view)) && alloc_runs(rx, 9, "code of which one byte was rewritten runs");
}

CHECK(ic_emulated, "IC-007",
      "with what emulators need, code that was executed and rewritten runs as rewritten, anywhere")
{
	if (!alloc_claims("allocator os-table emulation"))
		return;
	/* Turned on; found out at creation; and turned on late, when code was executed already. */
	for (unsigned way = 0; way < 3; way++) {
		static const enum subject_emulation ways[] = {SUBJECT_EMULATION_ON, SUBJECT_EMULATION_PROBE,
							      SUBJECT_EMULATION_OFF};

		check_note("emulation", way == 0 ? "on" : way == 1 ? "probed" : "on late");
		MUST(begin(ways[way]));
		if (way == 1)
			MUST(CHECK_EQUAL(observe_stale(), ALLOC(emulation)(allocator),
					 "the allocator finds out what the suite's own probe says"));
		MUST(put_all(0) && all_run(0, "published code runs"));
		if (way == 2)
			ALLOC(set_emulation)(allocator, true);
		MUST(rewritten(2) && partly());
		MUST(end());
	}
}
