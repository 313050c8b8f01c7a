/*
 * What is remembered of few blocks, or of many: a number by segment, kept by group. A group's cell lists segments with
 * their numbers in 16, 32 or 64 bytes; a group with more of them has a table of all its segments.
 *
 * Readers take no lock. A number stays where it is as long as its block is live, unless its group moves to a larger
 * cell; then the reader sees that the group's reference has changed, and reads again. Groups never move back.
 */
#include "code_heap.h"

#define CELL       ((size_t)16)
#define TABLE      3u /* the class of tables; below it, cells of CELL << class bytes */
#define GROUP      ((size_t)1 << EXECMEM_CODE_GROUP_SHIFT)
#define ENTRY_SEGS 8u /* bits of an entry that hold the segment in its group; above them the number + 1, or 0 */

_Static_assert(EXECMEM_CODE_GROUP_SHIFT <= ENTRY_SEGS || sizeof(uintptr_t) > 8, "a segment's place fits its entry");

/* Numbers that leave 16-bit entries: up to 254. */
static bool is_narrow(const struct execmem_code_side *side)
{
	return side->shift < 3 || side->most < 255;
}

static size_t table_bytes(const struct execmem_code_side *side)
{
	return (GROUP << side->shift) / 8;
}

void execmem_code_side_measure(struct execmem_code_side *side, size_t most)
{
	side->most = (uint32_t)most;
	side->shift = 2;
	while ((uint64_t)most >> (1u << side->shift))
		side->shift++;
	side->fresh = 1;
}

size_t execmem_code_side_room(const struct execmem_code_side *side, size_t groups)
{
	/* Each group may have had every cell and the table. */
	return CELL + groups * (7 * CELL + table_bytes(side));
}

size_t execmem_code_side_used(const struct execmem_code_side *side)
{
	return side->fresh > 1 ? side->fresh * CELL : 0;
}

/* A reference: the cell's place in units of CELL, and its class. */
static unsigned class_of(uint32_t reference)
{
	return reference & 3;
}

static void *cell_of(const struct execmem_code_side *side, uint32_t reference)
{
	return side->cells + (size_t)(reference >> 2) * CELL;
}

static unsigned entries(const struct execmem_code_side *side, unsigned class)
{
	return (unsigned)(CELL << class) / (is_narrow(side) ? 2 : 4);
}

static uint32_t get_entry(const struct execmem_code_side *side, const void *cell, unsigned n)
{
	const uint16_t *narrow = cell;
	const uint32_t *wide = cell;

	return is_narrow(side) ? __atomic_load_n(&narrow[n], __ATOMIC_ACQUIRE)
			       : __atomic_load_n(&wide[n], __ATOMIC_ACQUIRE);
}

static void put_entry(const struct execmem_code_side *side, void *cell, unsigned n, uint32_t entry)
{
	uint16_t *narrow = cell;
	uint32_t *wide = cell;

	if (is_narrow(side))
		__atomic_store_n(&narrow[n], (uint16_t)entry, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&wide[n], entry, __ATOMIC_RELEASE);
}

static uint32_t get_in_table(const struct execmem_code_side *side, const void *table, size_t place)
{
	const unsigned char *bytes = table;
	const uint16_t *halves = table;
	const uint32_t *words = table;

	switch (side->shift) {
	case 2:
		return __atomic_load_n(&bytes[place / 2], __ATOMIC_ACQUIRE) >> (place % 2 * 4) & 15;
	case 3:
		return __atomic_load_n(&bytes[place], __ATOMIC_ACQUIRE);
	case 4:
		return __atomic_load_n(&halves[place], __ATOMIC_ACQUIRE);
	default:
		return __atomic_load_n(&words[place], __ATOMIC_ACQUIRE);
	}
}

static void put_in_table(const struct execmem_code_side *side, void *table, size_t place, uint32_t value)
{
	unsigned char *bytes = table;
	uint16_t *halves = table;
	uint32_t *words = table;
	unsigned half = place % 2 * 4;

	switch (side->shift) {
	case 2:
		value = (bytes[place / 2] & ~(15u << half)) | value << half;
		__atomic_store_n(&bytes[place / 2], (unsigned char)value, __ATOMIC_RELEASE);
		break;
	case 3:
		__atomic_store_n(&bytes[place], (unsigned char)value, __ATOMIC_RELEASE);
		break;
	case 4:
		__atomic_store_n(&halves[place], (uint16_t)value, __ATOMIC_RELEASE);
		break;
	default:
		__atomic_store_n(&words[place], value, __ATOMIC_RELEASE);
	}
}

/* The entry of a place in a list: its index, or where one is free, or -1. heap->lock is held. */
static int find_entry(const struct execmem_code_side *side, const void *cell, unsigned class, size_t place)
{
	const uint16_t *narrow = cell;
	const uint32_t *wide = cell;
	unsigned most = entries(side, class);
	int free = -1;

	if (is_narrow(side)) {
		for (unsigned n = 0; n < most; n++) {
			if (!narrow[n])
				free = (int)n;
			else if ((narrow[n] & (GROUP - 1)) == place)
				return (int)n;
		}
		return free;
	}
	for (unsigned n = 0; n < most; n++) {
		if (!wide[n])
			free = (int)n;
		else if ((wide[n] & (GROUP - 1)) == place)
			return (int)n;
	}
	return free;
}

/* The number of a place in a list, or 0. Each entry is read once: free ones may become another segment's at any time.
 */
static uint32_t get_in_list(const struct execmem_code_side *side, const void *cell, unsigned class, size_t place)
{
	const uint16_t *narrow = cell;
	const uint32_t *wide = cell;
	const bool is = is_narrow(side);

	for (unsigned n = 0, most = entries(side, class); n < most; n++) {
		uint32_t entry = is ? __atomic_load_n(&narrow[n], __ATOMIC_ACQUIRE)
				    : __atomic_load_n(&wide[n], __ATOMIC_ACQUIRE);

		if (entry && (entry & (GROUP - 1)) == place)
			return (entry >> ENTRY_SEGS) - 1;
	}
	return 0;
}

uint32_t execmem_code_side_get(const struct execmem_code_side *side, size_t i)
{
	const uint32_t *reference = &side->references[i >> EXECMEM_CODE_GROUP_SHIFT];
	size_t place = i % GROUP;

	for (;;) {
		uint32_t at = __atomic_load_n(reference, __ATOMIC_ACQUIRE), value = 0;
		const void *cell = cell_of(side, at);

		if (!at)
			return 0;
		if (class_of(at) == TABLE)
			value = get_in_table(side, cell, place);
		else
			value = get_in_list(side, cell, class_of(at), place);
		if (__atomic_load_n(reference, __ATOMIC_RELAXED) == at)
			return value;
	}
}

/* A cell of a class, with zeros. */
static uint32_t take_cell(struct execmem_code_side *side, unsigned class)
{
	uint32_t reference;

	if (class < TABLE && side->free[class]) {
		uint32_t *words = cell_of(side, side->free[class]);

		reference = side->free[class];
		side->free[class] = words[0];
		for (size_t n = 0; n < (CELL << class) / sizeof(*words); n++)
			__atomic_store_n(&words[n], 0, __ATOMIC_RELAXED);
		return reference;
	}
	reference = side->fresh << 2 | class;
	side->fresh += (uint32_t)((class == TABLE ? table_bytes(side) : CELL << class) / CELL);
	return reference;
}

/* The reader that may still be looking at it will see that its reference has changed. */
static void free_cell(struct execmem_code_side *side, uint32_t reference)
{
	uint32_t *words = cell_of(side, reference);

	__atomic_store_n(&words[0], side->free[class_of(reference)], __ATOMIC_RELAXED);
	side->free[class_of(reference)] = reference;
}

/* Moves a group's numbers to a larger cell. */
static uint32_t enlarge(struct execmem_code_side *side, uint32_t old)
{
	unsigned class = old ? class_of(old) + 1 : 0;
	uint32_t made = take_cell(side, class);
	void *from = cell_of(side, old), *to = cell_of(side, made);

	for (unsigned n = 0; old && n < entries(side, class_of(old)); n++) {
		uint32_t entry = get_entry(side, from, n);

		if (class < TABLE)
			put_entry(side, to, n, entry);
		else if (entry)
			put_in_table(side, to, entry & (GROUP - 1), (entry >> ENTRY_SEGS) - 1);
	}
	return made;
}

void execmem_code_side_put(struct execmem_code_side *side, size_t i, uint32_t value)
{
	uint32_t *reference = &side->references[i >> EXECMEM_CODE_GROUP_SHIFT], old = *reference, at = old;
	size_t place = i % GROUP;
	int n = -1;

	for (;;) {
		if (at && class_of(at) == TABLE) {
			put_in_table(side, cell_of(side, at), place, value);
			break;
		}
		n = at ? find_entry(side, cell_of(side, at), class_of(at), place) : -1;
		if (n >= 0) {
			put_entry(side, cell_of(side, at), (unsigned)n, (uint32_t)place | (value + 1) << ENTRY_SEGS);
			break;
		}
		at = enlarge(side, at);
	}
	if (at == old)
		return;
	__atomic_store_n(reference, at, __ATOMIC_RELEASE);
	if (old)
		free_cell(side, old);
}

void execmem_code_side_drop(struct execmem_code_side *side, size_t i)
{
	uint32_t at = side->references[i >> EXECMEM_CODE_GROUP_SHIFT];
	int n;

	if (!at)
		return;
	if (class_of(at) == TABLE) {
		put_in_table(side, cell_of(side, at), i % GROUP, 0);
		return;
	}
	n = find_entry(side, cell_of(side, at), class_of(at), i % GROUP);
	if (n >= 0)
		put_entry(side, cell_of(side, at), (unsigned)n, 0);
}
