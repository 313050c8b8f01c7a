/*
 * What blocks are: apart, writable, run; and what they cost the system.
 */
#include "../alloc/maps.h"
#include "blocks.h"

#define STEPS      160
#define LOOK_EVERY 8
#define FUNCTIONS  24
#define ROUNDS     30
#define SETTLED    4 /* rounds after which nothing more is to be kept */

static unsigned looked;

/* ---- W^X ---- */

static bool no_line_is_both(void)
{
	if (looked++ % LOOK_EVERY)
		return true;
	maps_read();
	for (unsigned i = 0; i < maps_count; i++) {
		const struct maps_line *line = maps_at(i);

		if ((line->protection & (SUBJECT_WRITE | SUBJECT_EXECUTE)) == (SUBJECT_WRITE | SUBJECT_EXECUTE)) {
			check_note_number("address", line->start);
			check_note_number("bytes", line->end - line->start);
			check_note("name", line->name);
			return CHECK_TRUE(false, "nothing in /proc/self/maps is writable and executable");
		}
	}
	return CHECK_TRUE(true, "nothing in /proc/self/maps is writable and executable");
}

CHECK(ja_never_both, "JA-001", "nothing is writable and executable at once while blocks come and go")
{
	struct subject_blocks *blocks;

	if (!alloc_claims("blocks"))
		return;
	looked = 0;
	blocks = blocks_make();
	MUST(blocks);
	MUST(blocks_walk(blocks, STEPS, no_line_is_both));
	MUST(WATCH_KEPT(WATCH_BOTH, "no call asks for memory that is writable and executable"));
	(void)blocks_end(blocks);
}

/* ---- Blocks ---- */

CHECK(ja_apart, "JA-002", "blocks are as large as was asked for, lie apart, and hold what was written")
{
	struct subject_blocks *blocks;

	if (!alloc_claims("blocks"))
		return;
	blocks = blocks_make();
	MUST(blocks);
	MUST(blocks_walk_judged(blocks, 4 * STEPS));
	(void)blocks_end(blocks);
}

CHECK(ja_runs, "JA-003", "what is written to a block runs there, at its beginning and at its end")
{
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	struct subject_block made[FUNCTIONS];
	struct subject_blocks *blocks;
	size_t ends[FUNCTIONS];

	if (!alloc_claims("blocks"))
		return;
	blocks = blocks_make();
	MUST(blocks);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		const size_t bytes = 3 * EXECMEM_PORT_PROBE_BYTES + i * i * 11;
		const size_t count = execmem_port_probe_code(100 + i, code);

		ends[i] = (bytes - EXECMEM_PORT_PROBE_BYTES) & ~(size_t)7;
		MUST(blocks_put(blocks, bytes, i, &made[i]));
		MUST_OK(BLOCKS(write)(blocks, &made[i], ends[i], code, count));
	}
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		MUST(alloc_runs(made[i].rx, i, "the function at the beginning runs"));
		MUST(alloc_runs(made[i].rx + ends[i], 100 + i, "the function at the end runs"));
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		MUST_OK(BLOCKS(release)(blocks, &made[i]));
	(void)blocks_end(blocks);
}

CHECK(ja_made, "JA-004", "code of the allocator's own making does what it was made for, while other such code lives")
{
	struct subject_block made[FUNCTIONS];
	struct subject_blocks *blocks;

	if (!alloc_claims("blocks blocks-make"))
		return;
	blocks = blocks_make();
	MUST(blocks);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		MUST_OK(BLOCKS(make)(blocks, i * 5, &made[i]));
	for (unsigned i = 0; i < FUNCTIONS; i += 2)
		MUST_OK(BLOCKS(release)(blocks, &made[i]));
	for (unsigned i = 1; i < FUNCTIONS; i += 2)
		MUST(alloc_runs(made[i].rx, i * 5, "what was made runs"));
	for (unsigned i = 1; i < FUNCTIONS; i += 2)
		MUST_OK(BLOCKS(release)(blocks, &made[i]));
	(void)blocks_end(blocks);
}

/* ---- What is left ---- */

CHECK(ja_gives_back, "JA-005", "nothing is left of an allocator that is gone, live blocks included")
{
	struct subject_blocks *blocks;
	struct subject_block block;

	if (!alloc_claims("blocks blocks-destroy blocks-os-table"))
		return;
	blocks = blocks_make();
	MUST(blocks);
	MUST(blocks_walk(blocks, STEPS, NULL));
	for (unsigned i = 0; i < 5; i++)
		MUST_OK(BLOCKS(allocate)(blocks, 100 + i * 30000, &block));
	MUST_OK(BLOCKS(destroy)(blocks));
	MUST(CHECK_EQUAL(0, space.count, "nothing is mapped once the allocator is gone"));
	MUST(CHECK_EQUAL(0, space_open_files(), "no file is open once the allocator is gone"));
	(void)maps_agree("destroy");
}

/* Bytes that can be accessed: address space that is merely reserved costs nothing. */
static uint64_t taken(void)
{
	uint64_t bytes = 0;

	if (!check_claimed("blocks-os-table"))
		return maps_others();
	for (unsigned i = 0; i < space.count; i++)
		if (space.extents[i].protection)
			bytes += space.extents[i].end - space.extents[i].start;
	return bytes;
}

CHECK(ja_bounded, "JA-006", "blocks taken and given back over and over take no more memory than at first")
{
	struct subject_block made[BLOCKS_LIVE];
	struct subject_blocks *blocks;
	uint64_t settled = 0;

	if (!alloc_claims("blocks"))
		return;
	blocks = blocks_make();
	MUST(blocks);
	for (unsigned round = 0; round < ROUNDS; round++) {
		check_note_number("round", round);
		for (unsigned i = 0; i < BLOCKS_LIVE; i++)
			MUST_OK(BLOCKS(allocate)(blocks, 64 + i * i * 17, &made[i]));
		for (unsigned i = 0; i < BLOCKS_LIVE; i++)
			MUST_OK(BLOCKS(release)(blocks, &made[i]));
		if (round == SETTLED)
			settled = taken();
	}
	MUST(CHECK_EQUAL(settled, taken(), "as many bytes are mapped as after the first rounds"));
	(void)blocks_end(blocks);
}

/* ---- Calls ---- */

#define OVER_THE_TABLE "blocks blocks-os-table"

static void walk_and(enum watch_rule rule, const char *what)
{
	struct subject_blocks *blocks;

	if (!alloc_claims(OVER_THE_TABLE))
		return;
	blocks = blocks_make();
	MUST(blocks);
	MUST(blocks_walk(blocks, STEPS, NULL));
	MUST(CHECK_TRUE(watch.of_kind[WATCH_MAP] + watch.of_kind[WATCH_MAP_FIXED] != 0, "mappings were made"));
	MUST(blocks_end(blocks));
	(void)watch_kept(rule, what, __FILE__, __LINE__);
}

CHECK(ja_multiples, "JA-007", "what is given to the system are multiples of the page size")
{
	walk_and(WATCH_MULTIPLE, "addresses and offsets are multiples of the page size");
}

CHECK(ja_owned, "JA-008", "only what the allocator has mapped or made is changed or given back")
{
	walk_and(WATCH_FOREIGN, "ranges and files are the allocator's own");
}

CHECK(ja_within, "JA-009", "nothing is mapped beyond the end of a file")
{
	walk_and(WATCH_BEYOND, "what is mapped lies within its file");
}

static bool agrees(void)
{
	return looked++ % LOOK_EVERY != 0 || maps_agree("step");
}

CHECK(ja_extents, "JA-010", "what the allocator has asked for is what /proc/self/maps shows")
{
	struct subject_blocks *blocks;

	if (!alloc_claims(OVER_THE_TABLE))
		return;
	looked = 0;
	blocks = blocks_make();
	MUST(blocks);
	MUST(blocks_walk(blocks, STEPS, agrees));
	(void)blocks_end(blocks);
}
