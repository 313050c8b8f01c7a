#include "blocks.h"

#define STEPS_PATTERN 7

int blocks_create(struct subject_blocks **blocks)
{
	return check_claimed("blocks-os-table") ? BLOCKS(create_over)(&watch_os, blocks) : BLOCKS(create)(blocks);
}

struct subject_blocks *blocks_make(void)
{
	struct subject_blocks *blocks = NULL;

	watch_begin();
	return ALLOC_OK(blocks_create(&blocks)) ? blocks : NULL;
}

bool blocks_end(struct subject_blocks *blocks)
{
	return !check_claimed("blocks-destroy") || ALLOC_OK(BLOCKS(destroy)(blocks));
}

/* ---- A walk ---- */

struct live {
	struct subject_block block;
	size_t asked; /* 0: nothing is there */
	unsigned char first;
};

/* Are the blocks themselves looked at? */
static bool judging;

static unsigned char pattern(const struct live *live, size_t at)
{
	return (unsigned char)(live->first + at * STEPS_PATTERN);
}

static bool lies_apart(const struct live *all, const struct live *live)
{
	for (unsigned i = 0; i < BLOCKS_LIVE; i++) {
		const struct live *other = &all[i];

		if (other == live || !other->asked || live->block.rx >= other->block.rx + other->block.bytes ||
		    other->block.rx >= live->block.rx + live->block.bytes)
			continue;
		check_note_number("other_at", other->block.rx);
		check_note_number("other_bytes", other->block.bytes);
		return CHECK_TRUE(false, "a block lies apart from all others");
	}
	return true;
}

static bool holds(const struct live *live)
{
	const unsigned char *at = (const unsigned char *)live->block.rx;

	for (size_t i = 0; i < live->asked; i++)
		if (at[i] != pattern(live, i)) {
			check_note_number("at", live->block.rx + i);
			return CHECK_EQUAL(pattern(live, i), at[i], "a block holds what was written to it");
		}
	return CHECK_TRUE(true, "a block holds what was written to it");
}

static bool take(struct subject_blocks *blocks, struct live *all, struct live *live, uint64_t *state)
{
	unsigned char bytes[256];
	const uint64_t random = alloc_random(state);

	live->asked = random % 16 ? random % 2000 + 1 : random % 70000 + 1;
	live->first = (unsigned char)(random >> 32);
	check_note_number("asked", live->asked);
	if (!ALLOC_OK(BLOCKS(allocate)(blocks, live->asked, &live->block)))
		return false;
	check_note_number("block_at", live->block.rx);
	check_note_number("block_bytes", live->block.bytes);
	if (judging && (!CHECK_EQUAL(0, live->block.rx % 8, "a block begins at a multiple of 8") ||
			!CHECK_TRUE(live->block.bytes >= live->asked, "a block is as large as was asked for") ||
			!lies_apart(all, live)))
		return false;
	for (size_t at = 0; at < live->asked; at += sizeof(bytes)) {
		const size_t count = live->asked - at < sizeof(bytes) ? live->asked - at : sizeof(bytes);

		for (size_t i = 0; i < count; i++)
			bytes[i] = pattern(live, at + i);
		if (!ALLOC_OK(BLOCKS(write)(blocks, &live->block, at, bytes, count)))
			return false;
	}
	return true;
}

static bool give(struct subject_blocks *blocks, struct live *live)
{
	if ((judging && !holds(live)) || !ALLOC_OK(BLOCKS(release)(blocks, &live->block)))
		return false;
	live->asked = 0;
	return true;
}

bool blocks_walk(struct subject_blocks *blocks, unsigned steps, bool (*after)(void))
{
	struct live all[BLOCKS_LIVE] = {{.asked = 0}};
	uint64_t state = check_seed | 1;

	for (unsigned step = 0; step < steps; step++) {
		struct live *live = &all[alloc_random(&state) % BLOCKS_LIVE];

		check_note_number("step", step);
		if (!(live->asked ? give(blocks, live) : take(blocks, all, live, &state)) || (after && !after()))
			return false;
	}
	for (unsigned i = 0; i < BLOCKS_LIVE; i++)
		if (all[i].asked && !give(blocks, &all[i]))
			return false;
	return !after || after();
}

bool blocks_walk_judged(struct subject_blocks *blocks, unsigned steps)
{
	bool went;

	judging = true;
	went = blocks_walk(blocks, steps, NULL);
	judging = false;
	return went;
}

bool blocks_put(struct subject_blocks *blocks, size_t bytes, unsigned value, struct subject_block *block)
{
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	const size_t count = execmem_port_probe_code(value, code);

	return ALLOC_OK(BLOCKS(allocate)(blocks, bytes < count ? count : bytes, block)) &&
	       ALLOC_OK(BLOCKS(write)(blocks, block, 0, code, count));
}
