/*
 * Random sequences of every call of the code heap against a naive model: blocks tile, free neighbours are merged, the
 * policy's choice is exact, nothing is issued twice, figures are what a count gives. Arguments: number of sequences,
 * first seed. A sequence that fails is cut down to what is needed for it before it is printed.
 */
#define _GNU_SOURCE
#include "test.h"

#include "../code_heap.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS   500
#define REGIONS 64
#define BLOCKS  65536 /* of a region */
#define UNIT    ((size_t)EXECMEM_UNIT_BYTES)

struct block {
	size_t count; /* segments */
	size_t code;  /* bytes asked for; 0: free */
	unsigned kind;
};

struct region {
	uintptr_t start;
	size_t segments, top, blocks;
	struct block *block;
};

static struct region region[REGIONS];
static size_t regions;
static struct execmem_allocator *allocator;
static struct execmem_code_heap *heap;
static struct execmem_code_config config;
static size_t segment, used, largest_used, live;
static bool verbose;
static unsigned long warned_full, warned_list;

/* ---- The model ---- */

static size_t up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* The lowest place in a free block at `start`, with `low` to `high` allowed, or 0. All are addresses. */
static uintptr_t place(uintptr_t start, size_t bytes, size_t need, size_t align, uintptr_t low, uintptr_t high)
{
	for (uintptr_t at = start; at + need <= start + bytes; at += segment) {
		if (at % align || (at != start && at - start < config.minimum * segment))
			continue;
		if (at >= low && at + (need - 1) <= high)
			return at;
	}
	return 0;
}

struct choice {
	size_t region, block;
	uintptr_t at;
};

/* Whether free block a comes before b in one region. */
static bool comes_before(const struct region *r, size_t a, size_t b)
{
	if (config.policy != EXECMEM_CODE_FIRST && r->block[a].count != r->block[b].count)
		return r->block[a].count < r->block[b].count;
	return a < b;
}

static bool choose_in(size_t index, size_t need, size_t align, uintptr_t low, uintptr_t high, bool all,
		      struct choice *choice)
{
	struct region *r = &region[index];
	size_t sure = align > segment ? need + config.minimum * segment + align - segment : need, tries = 0;
	bool *gone = calloc(r->blocks, sizeof(bool)), found = false;

	for (;;) {
		size_t best = SIZE_MAX;
		uintptr_t at = r->start, start = 0;

		for (size_t b = 0; b < r->blocks; at += r->block[b].count * segment, b++) {
			size_t bytes = r->block[b].count * segment;

			/* Blocks that the window touches, but for those that begin in its last, incomplete segment. */
			if (r->block[b].code || gone[b] || at + (bytes - 1) < low || at > high ||
			    high - at < segment - 1 || bytes < need)
				continue;
			if (low > at && up(low, segment) >= at + bytes)
				continue;
			if (tries >= EXECMEM_CODE_TRIES && !all && bytes < sure)
				continue;
			if (best == SIZE_MAX || comes_before(r, b, best)) {
				best = b;
				start = at;
			}
		}
		if (best == SIZE_MAX)
			break;
		gone[best] = true;
		*choice = (struct choice){index, best,
					  place(start, r->block[best].count * segment, need, align, low, high)};
		if (choice->at) {
			found = true;
			break;
		}
		tries++;
	}
	free(gone);
	return found;
}

static bool choose(size_t need, size_t align, const struct execmem_near *near, bool all, struct choice *choice)
{
	uintptr_t low = 0, high = UINTPTR_MAX;
	bool found = false;

	if (near) {
		low = near->target > near->reach ? near->target - near->reach : 0;
		high = near->reach > UINTPTR_MAX - near->target ? UINTPTR_MAX : near->target + near->reach;
	}
	for (size_t i = 0; i < regions; i++) {
		struct choice in;

		if (!choose_in(i, need, align, low, high, all, &in))
			continue;
		if (!found || (config.policy != EXECMEM_CODE_FIRST &&
			       region[i].block[in.block].count < region[choice->region].block[choice->block].count))
			*choice = in;
		found = true;
	}
	return found;
}

/* ---- The policy that prefers windows; what is mapped now is looked up in the library's own list ---- */

static size_t window_bytes;
static uintptr_t chosen; /* a window, or 0 */

static uintptr_t most(uintptr_t a, uintptr_t b)
{
	return a > b ? a : b;
}

static uintptr_t least(uintptr_t a, uintptr_t b)
{
	return a < b ? a : b;
}

/* The smallest part in [low, high) of a region. */
static bool choose_part(size_t index, size_t need, size_t align, uintptr_t low, uintptr_t high, struct choice *choice)
{
	const struct region *r = &region[index];
	uintptr_t at = r->start;
	size_t smallest = SIZE_MAX;

	for (size_t b = 0; b < r->blocks; at += r->block[b].count * segment, b++) {
		uintptr_t start = most(at, low), end = least(at + r->block[b].count * segment, high), found;

		if (r->block[b].code)
			continue;
		if (start != at && start - at < config.minimum * segment)
			start = at + config.minimum * segment;
		if (end < start || end - start < need || end - start >= smallest)
			continue;
		found = place(at, r->block[b].count * segment, need, align, low, high - 1);
		if (!found)
			continue;
		*choice = (struct choice){index, b, found};
		smallest = end - start;
	}
	return smallest != SIZE_MAX;
}

/* The same in what is allowed near a target: whole segments. */
static bool choose_allowed(size_t index, size_t need, size_t align, const struct execmem_near *near, uintptr_t low,
			   uintptr_t high, struct choice *choice)
{
	uintptr_t start = region[index].start, end = start + region[index].segments * segment;

	if (near) {
		uintptr_t from = near->target > near->reach ? near->target - near->reach : 0;
		uintptr_t to = near->reach > UINTPTR_MAX - near->target ? UINTPTR_MAX : near->target + near->reach;

		if (from >= end || to < start)
			return false;
		if (from > start)
			low = most(low, start + up(from - start, segment));
		if (to < end - 1)
			high = least(high, start + (to - start + 1) / segment * segment);
	}
	high = least(high, end);
	return low < high && choose_part(index, need, align, low, high, choice);
}

static bool choose_mapped(size_t need, size_t align, const struct execmem_near *near, struct choice *choice)
{
	for (const struct execmem_mapping *mapping = allocator->cache.newest; mapping; mapping = mapping->older) {
		for (size_t i = 0; i < regions; i++) {
			uintptr_t low = region[i].start + mapping->offset;

			if (mapping->region->start == region[i].start &&
			    choose_allowed(i, need, align, near, low, low + mapping->bytes, choice))
				return true;
		}
	}
	for (size_t i = 0; i < regions && chosen; i++) {
		if (chosen - region[i].start < region[i].segments * segment &&
		    choose_allowed(i, need, align, near, chosen, chosen + window_bytes, choice))
			return true;
	}
	return false;
}

static size_t free_in(const struct region *r, uintptr_t low, uintptr_t high)
{
	uintptr_t at = r->start;
	size_t sum = 0;

	for (size_t b = 0; b < r->blocks; at += r->block[b].count * segment, b++) {
		uintptr_t from = most(at, low), to = least(at + r->block[b].count * segment, high);

		sum += !r->block[b].code && from < to ? to - from : 0;
	}
	return sum;
}

static bool choose_emptiest(size_t need, struct choice *choice)
{
	size_t best = config.near_percent * (window_bytes / segment);

	best = best ? up(best, 100) / 100 * segment - 1 : 0;
	for (size_t i = 0; i < regions; i++) {
		const struct region *r = &region[i];
		uintptr_t end = r->start + r->segments * segment, top = r->start + r->top * segment;

		for (uintptr_t low = r->start; low < top; low += window_bytes) {
			uintptr_t high = least(low + window_bytes, end);
			struct choice in;

			if (free_in(r, low, high) > best && choose_part(i, need, segment, low, high, &in)) {
				best = free_in(r, low, high);
				*choice = in;
				chosen = low;
			}
		}
	}
	return choice->at != 0;
}

static bool choose_end(size_t need, size_t align, const struct execmem_near *near, struct choice *choice)
{
	for (size_t i = 0; i < regions; i++) {
		const struct region *r = &region[i];
		uintptr_t start = r->start + r->segments * segment - r->block[r->blocks - 1].count * segment;
		uintptr_t window = start - (start - r->start) % window_bytes;

		if (r->block[r->blocks - 1].code)
			continue;
		for (; window < r->start + r->segments * segment; window += window_bytes) {
			if (choose_allowed(i, need, align, near, most(window, start), window + window_bytes, choice) &&
			    choice->block == r->blocks - 1) {
				chosen = window;
				return true;
			}
		}
	}
	return false;
}

static bool choose_by_policy(size_t need, size_t align, const struct execmem_near *near, bool all,
			     struct choice *choice)
{
	choice->at = 0;
	if (config.policy == EXECMEM_CODE_NEAR && need <= window_bytes) {
		if (choose_mapped(need, align, near, choice))
			return true;
		if (align == segment && !near && choose_emptiest(need, choice))
			return true;
		if (choose_end(need, align, near, choice))
			return true;
	}
	return choose(need, align, near, all, choice);
}

static void insert(struct region *r, size_t at, struct block block)
{
	EXPECT(r->blocks < BLOCKS);
	memmove(&r->block[at + 1], &r->block[at], (r->blocks - at) * sizeof(block));
	r->block[at] = block;
	r->blocks++;
}

static void merge(struct region *r, size_t b)
{
	if (b + 1 >= r->blocks || r->block[b].code || r->block[b + 1].code)
		return;
	r->block[b].count += r->block[b + 1].count;
	r->blocks--;
	memmove(&r->block[b + 1], &r->block[b + 2], (r->blocks - b - 1) * sizeof(struct block));
}

static void give(struct region *r, size_t b)
{
	r->block[b].code = 0;
	r->block[b].kind = 0;
	merge(r, b);
	if (b)
		merge(r, b - 1);
}

static uintptr_t address(const struct region *r, size_t b)
{
	uintptr_t at = r->start;

	for (size_t i = 0; i < b; i++)
		at += r->block[i].count * segment;
	return at;
}

static size_t count_for(size_t bytes)
{
	size_t count = up(bytes, segment) / segment;

	return count < config.minimum ? config.minimum : count;
}

/* ---- Comparing ---- */

static struct {
	size_t region, block;
} cursor;

static int compare(void *context, const struct execmem_code *block)
{
	const struct region *r = &region[cursor.region];
	uintptr_t *at = context;

	EXPECT(cursor.region < regions);
	if (cursor.block == 0)
		*at = r->start;
	EXPECT_EQUAL(*at, block->rx.at);
	EXPECT_EQUAL(r->block[cursor.block].count * segment, block->bytes);
	EXPECT_EQUAL(r->block[cursor.block].code, block->code_bytes);
	EXPECT_EQUAL(r->block[cursor.block].kind, block->kind);
	*at += block->bytes;
	if (++cursor.block == r->blocks) {
		EXPECT_EQUAL(r->start + r->segments * segment, *at);
		cursor.region++;
		cursor.block = 0;
	}
	return 0;
}

static void check_figures(void)
{
	struct execmem_code_figures figures;
	size_t free_blocks = 0, free_bytes = 0, unused = 0, blocks = 0, top = 0, largest = 0, reserved = 0;

	for (size_t i = 0; i < regions; i++) {
		size_t at = 0;

		for (size_t b = 0; b < region[i].blocks; at += region[i].block[b].count, b++) {
			size_t count = region[i].block[b].count;

			if (region[i].block[b].code) {
				unused += count * segment - region[i].block[b].code;
				blocks++;
				continue;
			}
			largest = count > largest ? count : largest;
			EXPECT(count >= config.minimum);
			if (at >= region[i].top)
				continue;
			free_blocks++;
			free_bytes += (at + count < region[i].top ? count : region[i].top - at) * segment;
		}
		top += region[i].top;
		reserved += region[i].segments * segment;
	}
	OK(execmem_code_figures(heap, &figures));
	EXPECT_EQUAL(free_blocks, figures.free_blocks);
	EXPECT_EQUAL(free_bytes, figures.free_bytes);
	EXPECT_EQUAL(unused, figures.unused_bytes);
	EXPECT_EQUAL(top, figures.segment_map_bytes);
	EXPECT_EQUAL(top * segment, figures.footprint_bytes);
	EXPECT_EQUAL(used * segment, figures.used_bytes);
	EXPECT_EQUAL(largest_used * segment, figures.largest_used_bytes);
	EXPECT_EQUAL(free_bytes + unused + top, figures.wasted_bytes);
	if (largest_used) {
		double percent = (double)figures.wasted_bytes * 10000 / (double)(largest_used * segment);

		EXPECT((double)figures.overhead_per_myriad >= percent - 0.5001 &&
		       (double)figures.overhead_per_myriad <= percent + 0.5001);
	}
	EXPECT_EQUAL(blocks, figures.live_blocks);
	EXPECT_EQUAL(live, figures.live_blocks);
	EXPECT_EQUAL(largest * segment, figures.largest_free);
	EXPECT_EQUAL(reserved, figures.reserved_bytes);
	EXPECT_EQUAL(regions, figures.regions);
	EXPECT_EQUAL(stats_of(allocator).committed_bytes, figures.committed_bytes);
	EXPECT(figures.committed_bytes >= used * segment);
	EXPECT_EQUAL(figures.allocations - figures.frees, live);
}

static void check_all(void)
{
	uintptr_t at = 0;

	cursor.region = cursor.block = 0;
	OK(execmem_code_walk(heap, compare, &at));
	EXPECT_EQUAL(regions, cursor.region);
	check_figures();
}

/* What is known of every address of a block and around it. */
static void check_find(const struct region *r, size_t b, size_t offset)
{
	uintptr_t start = address(r, b);
	struct execmem_code code = {.bytes = 1};
	int error = execmem_code_find(allocator, (void *)(start + offset), &code);

	if (!r->block[b].code) {
		EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, error);
		EXPECT_EQUAL(1, code.bytes);
		EXPECT_EQUAL(-1, execmem_code_kind(allocator, (void *)(start + offset)));
		return;
	}
	OK(error);
	EXPECT_EQUAL(start, code.rx.at);
	EXPECT_EQUAL(r->block[b].count * segment, code.bytes);
	EXPECT_EQUAL(r->block[b].code, code.code_bytes);
	EXPECT_EQUAL(r->block[b].kind, code.kind);
	EXPECT_EQUAL(r->block[b].kind, execmem_code_kind(allocator, (void *)(start + offset)));
}

/* ---- Steps: each is told by its own numbers alone, so that any may be left out ---- */

struct step {
	uint64_t a, b, c;
};

static void know_region(uintptr_t at)
{
	struct execmem_found found;
	struct region new;
	size_t i = regions;

	OK(execmem_lookup(allocator, (void *)at, &found));
	EXPECT_EQUAL(config.kind, found.kind);
	EXPECT(found.owner == heap);
	for (size_t k = 0; k < regions; k++) {
		if (region[k].start == found.start.at)
			return;
	}
	EXPECT(regions < REGIONS);
	new = region[regions]; /* its memory */
	new.start = found.start.at;
	new.segments = found.bytes / segment;
	new.top = 0;
	new.blocks = 1;
	new.block[0] = (struct block){new.segments, 0, 0};
	while (i && region[i - 1].start > new.start)
		i--;
	memmove(&region[i + 1], &region[i], (regions - i) * sizeof(new));
	region[i] = new;
	regions++;
}

static bool pick(uint64_t random, size_t *r, size_t *b)
{
	size_t nth = live ? random % live : 0;

	for (*r = 0; *r < regions; ++*r) {
		for (*b = 0; *b < region[*r].blocks; ++*b) {
			if (region[*r].block[*b].code && nth-- == 0)
				return true;
		}
	}
	return false;
}

static size_t random_bytes(uint64_t random)
{
	static const size_t most[] = {1, 8, 40, 200, 1000, 5000, 70000, 300000};

	return 1 + (random >> 8) % most[random % 8];
}

static void do_allocate(const struct step *step)
{
	size_t bytes = random_bytes(step->b), need = count_for(bytes) * segment, behind, reserved = 0;
	struct execmem_near near = {region[step->c % regions].start, 0};
	struct execmem_code_request request = {.kind = step->a >> 8 & 3 ? config.kind : (unsigned)(step->a >> 12) % 63};
	struct execmem_code code = {.bytes = 0};
	unsigned long full = warned_full;
	size_t align = segment, count, grown = regions;
	struct choice choice;
	struct region *r;
	bool fits;
	int error;

	if (step->a >> 20 & 1)
		request.align = (size_t)1 << (step->a >> 24) % 17;
	align = request.align > align ? request.align : align;
	if (step->a >> 21 & 1 && step->a >> 22 & 1) {
		near.target += (step->c >> 8) % (region[0].segments * segment);
		near.reach = step->c >> 60 & 1 ? (size_t)1 << 30 : (size_t)(step->c >> 32) % (2 * UNIT);
		request.near = &near;
	}
	for (size_t i = 0; i < regions; i++)
		reserved += region[i].segments * segment;
	fits = choose_by_policy(need, align, request.near, false, &choice);
	error = execmem_code_allocate(heap, bytes, &request, &code);
	if (!fits && error) {
		EXPECT(!choose_by_policy(need, align, request.near, true, &choice));
		EXPECT_EQUAL(0, code.bytes);
		EXPECT_EQUAL(full + 1, warned_full);
		if (error == EXECMEM_ERROR_FULL)
			EXPECT(reserved + up(need, UNIT) > config.maximum_bytes ||
			       (align > segment &&
				reserved + up(need + align + config.minimum * segment - segment, UNIT) >
					config.maximum_bytes));
		else
			EXPECT(error == EXECMEM_ERROR_UNREACHABLE && request.near);
		return;
	}
	OK(error);
	EXPECT_EQUAL(full, warned_full);
	if (!fits) {
		know_region(code.rx.at);
		if (regions > grown) {
			fits = choose_by_policy(need, align, request.near, false, &choice);
		} else {
			EXPECT(align > segment);
			fits = choose_by_policy(need, align, request.near, true, &choice);
		}
		EXPECT(fits);
	}
	EXPECT_EQUAL(choice.at, code.rx.at);
	r = &region[choice.region];
	count = need / segment;
	{
		size_t before = (choice.at - address(r, choice.block)) / segment, b = choice.block;

		behind = r->block[b].count - before - count;
		if (behind < config.minimum) {
			count += behind;
			behind = 0;
		}
		if (before) {
			r->block[b].count = before;
			insert(r, ++b, (struct block){0, 0, 0});
		}
		r->block[b] = (struct block){count, bytes, request.kind};
		if (behind)
			insert(r, b + 1, (struct block){behind, 0, 0});
	}
	EXPECT_EQUAL(count * segment, code.bytes);
	EXPECT_EQUAL(bytes, code.code_bytes);
	EXPECT_EQUAL(request.kind, code.kind);
	if ((choice.at - r->start) / segment + count > r->top)
		r->top = (choice.at - r->start) / segment + count;
	used += count;
	largest_used = used > largest_used ? used : largest_used;
	live++;
	/* Its memory is there: reading what is not would end the program. */
	(void)*(volatile unsigned char *)code.rx.at;
	(void)*(volatile unsigned char *)(code.rx.at + code.bytes - 1);
}

static void do_free(const struct step *step)
{
	size_t r, b;

	if (!pick(step->b, &r, &b))
		return;
	OK(execmem_code_free(heap, (execmem_rx){address(&region[r], b)}));
	used -= region[r].block[b].count;
	live--;
	give(&region[r], b);
}

static void do_bad_free(const struct step *step)
{
	struct region *r = &region[step->b % regions];
	size_t b = (step->b >> 8) % r->blocks, bytes = r->block[b].count * segment;
	size_t offset = step->c % bytes;
	uintptr_t start = address(r, b);

	if (r->block[b].code && offset == 0)
		offset = bytes > 1 ? 1 : 0;
	EXPECT_EQUAL(r->block[b].code ? EXECMEM_ERROR_INTERIOR : EXECMEM_ERROR_FREED,
		     execmem_code_free(heap, (execmem_rx){start + offset}));
	EXPECT_EQUAL(r->block[b].code ? EXECMEM_ERROR_INTERIOR : EXECMEM_ERROR_FREED,
		     execmem_code_shrink(heap, (execmem_rx){start + offset}, 1, NULL));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_code_free(heap, (execmem_rx){0}));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_code_free(heap, (execmem_rx){UINTPTR_MAX}));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_code_free(heap, (execmem_rx){(uintptr_t)&heap}));
}

static void do_shrink(const struct step *step)
{
	size_t r, b, bytes, count, rest, left = 0;
	struct block *block;
	bool next_free;

	if (!pick(step->b, &r, &b))
		return;
	block = &region[r].block[b];
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT,
		     execmem_code_shrink(heap, (execmem_rx){address(&region[r], b)}, block->code + 1, &left));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_shrink(heap, (execmem_rx){address(&region[r], b)}, 0, &left));
	bytes = 1 + step->c % block->code;
	count = count_for(bytes);
	next_free = b + 1 < region[r].blocks && !region[r].block[b + 1].code;
	rest = block->count - count;
	if (rest < config.minimum && !next_free) {
		count = block->count;
		rest = 0;
	}
	OK(execmem_code_shrink(heap, (execmem_rx){address(&region[r], b)}, bytes, &left));
	EXPECT_EQUAL(count * segment, left);
	block->code = bytes;
	block->count = count;
	used -= rest;
	if (rest) {
		insert(&region[r], b + 1, (struct block){rest, 0, 0});
		merge(&region[r], b + 1);
	}
}

/* Opens the windows of a block. */
static void do_write(const struct step *step)
{
	static const unsigned char code[64];
	size_t r, b, bytes;

	if (!pick(step->b, &r, &b))
		return;
	bytes = region[r].block[b].code < sizeof(code) ? region[r].block[b].code : sizeof(code);
	OK(execmem_write(allocator, (execmem_rx){address(&region[r], b)}, code, bytes, 0));
}

static void do_wrong(void)
{
	struct execmem_code code = {.bytes = 7};
	struct execmem_code_request request = {.align = 3};

	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(heap, 0, NULL, &code));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(heap, SIZE_MAX, NULL, &code));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(heap, SIZE_MAX - 15, NULL, &code));
	EXPECT_EQUAL(EXECMEM_ERROR_FULL, execmem_code_allocate(heap, config.maximum_bytes + 1, NULL, &code));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(heap, 1, &request, &code));
	request = (struct execmem_code_request){.align = 2 * UNIT};
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(heap, 1, &request, &code));
	request = (struct execmem_code_request){.kind = EXECMEM_KIND_MAX + 1};
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(heap, 1, &request, &code));
	EXPECT_EQUAL(7, code.bytes);
}

static void do_step(const struct step *step)
{
	if (verbose)
		fprintf(stderr, "\t{0x%llx, 0x%llx, 0x%llx}\n", (unsigned long long)step->a,
			(unsigned long long)step->b, (unsigned long long)step->c);
	switch (step->a % 16) {
	default:
		do_allocate(step);
		break;
	case 8:
	case 9:
	case 10:
	case 11:
		do_free(step);
		break;
	case 13:
		do_bad_free(step);
		break;
	case 14:
		do_shrink(step);
		break;
	case 12:
		do_write(step);
		break;
	case 15:
		for (uint64_t random = step->b | 1; random; random = random >> 16) {
			const struct region *r = &region[random % regions];
			size_t b = (random >> 3) % r->blocks;

			check_find(r, b, 0);
			check_find(r, b, r->block[b].count * segment - 1);
			check_find(r, b, step->c % (r->block[b].count * segment));
		}
		if (step->b % 16 == 0)
			do_wrong();
	}
	check_all();
}

static void warn(void *context, const struct execmem_code_warning *warning)
{
	struct execmem_code_figures figures;

	EXPECT(context == &heap);
	OK(execmem_code_figures(heap, &figures)); /* no lock is held */
	EXPECT_EQUAL(figures.free_blocks, warning->figures.free_blocks);
	if (warning->event == EXECMEM_CODE_FULL) {
		EXPECT(warning->error && warning->bytes);
		warned_full++;
	} else {
		EXPECT(figures.free_blocks > config.free_blocks && !warning->error);
		warned_list++;
	}
}

static unsigned cached;

static void change(struct execmem_config *allocator_config)
{
	allocator_config->window_bytes = window_bytes;
	allocator_config->rw_cache = cached;
}

static void run(uint64_t seed, const struct step *steps, const bool *left_out)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1, random;
	struct execmem_code code;

	for (int i = 0; i < 8; i++)
		next_random(&state);
	random = next_random(&state);
	config = execmem_code_config_default();
	config.segment_bytes = segment = (size_t)16 << (random & 8 ? random % 4 : random % 9);
	config.minimum = random >> 16 & 1 ? 1 : 1 + (random >> 20) % (random >> 26 & 1 ? 8 : 64);
	config.policy = (enum execmem_code_policy)((random >> 32) % 3);
	config.near_percent = (unsigned)(random >> 44) % 101;
	config.region_bytes = up(UNIT * (1 + (random >> 36) % 4), config.minimum * segment);
	config.maximum_bytes = up(config.region_bytes, UNIT) + UNIT * ((random >> 40) % 28);
	config.kind = (unsigned)(random >> 48) % 4;
	config.free_blocks = 1 + (random >> 52) % 20;
	config.warn = warn;
	config.context = &heap;
	window_bytes = UNIT >> (random >> 56) % 4;
	cached = (unsigned)(random >> 58) % 5;
	if (verbose)
		fprintf(stderr, "\tsegment %zu, minimum %u, policy %d, percent %u, window %zu, %u cached\n", segment,
			config.minimum, (int)config.policy, config.near_percent, window_bytes, cached);
	allocator = make(change);
	OK(execmem_code_heap_create(allocator, &config, &heap));
	/* Find the region that is there. */
	OK(execmem_code_allocate(heap, 1, NULL, &code));
	know_region(code.rx.at);
	OK(execmem_code_free(heap, code.rx));
	largest_used = region[0].top = code.bytes / segment;
	chosen = config.minimum * segment <= window_bytes ? region[0].start : 0;
	for (int i = 0; i < STEPS; i++) {
		if (!left_out[i])
			do_step(&steps[i]);
	}
	while (live)
		do_free(&steps[0]);
	check_all();
	for (size_t i = 0; i < regions; i++)
		EXPECT_EQUAL(1, region[i].blocks);
	OK(execmem_code_heap_destroy(heap));
	EXPECT_EQUAL(0, file_blocks());
	OK(execmem_destroy(allocator));
}

/* In a process of its own: whether it goes well. */
static bool passes(uint64_t seed, const struct step *steps, const bool *left_out, bool quiet)
{
	int status;
	pid_t child = fork();

	EXPECT(child >= 0);
	if (child == 0) {
		if (quiet && !freopen("/dev/null", "w", stderr))
			_exit(1);
		verbose = !quiet;
		run(seed, steps, left_out);
		exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child);
	return status == 0;
}

/* Leaves out ever smaller runs of steps, as long as it fails without them. */
static void cut(uint64_t seed, const struct step *steps, bool *left_out)
{
	for (int length = STEPS / 2; length; length /= 2) {
		for (int from = 0; from < STEPS; from += length) {
			bool saved[STEPS];
			int to = from + length < STEPS ? from + length : STEPS;

			memcpy(saved, left_out, sizeof(saved));
			memset(left_out + from, true, (size_t)(to - from));
			if (memcmp(saved, left_out, sizeof(saved)) != 0 && passes(seed, steps, left_out, true))
				memcpy(left_out, saved, sizeof(saved));
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t sequences = argc > 1 ? strtoull(argv[1], NULL, 0) : 40,
		 first = argc > 2 ? strtoull(argv[2], NULL, 0) : 130;

	for (size_t i = 0; i < REGIONS; i++)
		region[i].block = malloc((BLOCKS + 1) * sizeof(struct block));
	for (uint64_t seed = first; seed < first + sequences; seed++) {
		static struct step steps[STEPS];
		bool left_out[STEPS] = {false};
		uint64_t state = seed * 0xd1342543de82ef95u + 7;

		for (int i = 0; i < STEPS; i++) {
			steps[i].a = next_random(&state);
			steps[i].b = next_random(&state);
			steps[i].c = next_random(&state);
		}
		if (passes(seed, steps, left_out, true))
			continue;
		cut(seed, steps, left_out);
		test_seed = seed;
		fprintf(stderr, "seed %llu fails; the steps that it needs:\n", (unsigned long long)seed);
		(void)passes(seed, steps, left_out, false);
		return 1;
	}
	return 0;
}
