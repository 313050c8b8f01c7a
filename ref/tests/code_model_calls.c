#include "code_model.h"

#include <string.h>

static void know_region(uintptr_t at)
{
	struct execmem_found found;
	struct code_model_region new;
	size_t i = code_model.regions;

	OK(execmem_lookup(code_model.allocator, (void *)at, &found));
	EXPECT_EQUAL(code_model.config.kind, found.kind);
	EXPECT(found.owner == code_model.heap);
	for (size_t k = 0; k < code_model.regions; k++) {
		if (code_model.region[k].start == found.start.at)
			return;
	}
	EXPECT(code_model.regions < CODE_MODEL_REGIONS);
	new = code_model.region[code_model.regions]; /* its memory */
	new.start = found.start.at;
	new.segments = found.bytes / code_model.segment;
	new.top = 0;
	new.blocks = 1;
	new.block[0] = (struct code_model_block){new.segments, 0, 0};
	while (i && code_model.region[i - 1].start > new.start)
		i--;
	memmove(&code_model.region[i + 1], &code_model.region[i], (code_model.regions - i) * sizeof(new));
	code_model.region[i] = new;
	code_model.regions++;
}

static bool pick(uint64_t random, size_t *r, size_t *b)
{
	size_t nth = code_model.live ? random % code_model.live : 0;

	for (*r = 0; *r < code_model.regions; ++*r) {
		for (*b = 0; *b < code_model.region[*r].blocks; ++*b) {
			if (code_model.region[*r].block[*b].code && nth-- == 0)
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

static void do_allocate(const struct sequence_step *step)
{
	size_t bytes = random_bytes(step->b), need = code_model_count(bytes) * code_model.segment, behind, reserved = 0;
	struct execmem_near near = {code_model.region[step->c % code_model.regions].start, 0};
	struct execmem_code_request request = {.kind = step->a >> 8 & 3 ? code_model.config.kind
									: (unsigned)(step->a >> 12) % 63};
	struct execmem_code code = {.bytes = 0};
	unsigned long full = code_model.warned_full;
	size_t align = code_model.segment, count, grown = code_model.regions;
	struct code_model_choice choice;
	struct code_model_region *r;
	bool fits;
	int error;

	if (step->a >> 20 & 1)
		request.align = (size_t)1 << (step->a >> 24) % 17;
	align = request.align > align ? request.align : align;
	if (step->a >> 21 & 1 && step->a >> 22 & 1) {
		near.target += (step->c >> 8) % (code_model.region[0].segments * code_model.segment);
		near.reach = step->c >> 60 & 1 ? (size_t)1 << 30 : (size_t)(step->c >> 32) % (2 * UNIT);
		request.near = &near;
	}
	for (size_t i = 0; i < code_model.regions; i++)
		reserved += code_model.region[i].segments * code_model.segment;
	fits = code_model_choose_near(need, align, request.near, false, &choice);
	error = execmem_code_allocate(code_model.heap, bytes, &request, &code);
	if (!fits && error) {
		EXPECT(!code_model_choose_near(need, align, request.near, true, &choice));
		EXPECT_EQUAL(0, code.bytes);
		EXPECT_EQUAL(full + 1, code_model.warned_full);
		if (error == EXECMEM_ERROR_FULL)
			EXPECT(reserved + code_model_up(need, UNIT) > code_model.config.maximum_bytes ||
			       (align > code_model.segment &&
				reserved + code_model_up(need + align + code_model.config.minimum * code_model.segment -
								 code_model.segment,
							 UNIT) >
					code_model.config.maximum_bytes));
		else
			EXPECT(error == EXECMEM_ERROR_UNREACHABLE && request.near);
		return;
	}
	OK(error);
	EXPECT_EQUAL(full, code_model.warned_full);
	if (!fits) {
		know_region(code.rx.at);
		if (code_model.regions > grown) {
			fits = code_model_choose_near(need, align, request.near, false, &choice);
		} else {
			EXPECT(align > code_model.segment);
			fits = code_model_choose_near(need, align, request.near, true, &choice);
		}
		EXPECT(fits);
	}
	EXPECT_EQUAL(choice.at, code.rx.at);
	r = &code_model.region[choice.region];
	count = need / code_model.segment;
	{
		size_t before = (choice.at - code_model_address(r, choice.block)) / code_model.segment,
		       b = choice.block;

		behind = r->block[b].count - before - count;
		if (behind < code_model.config.minimum) {
			count += behind;
			behind = 0;
		}
		if (before) {
			r->block[b].count = before;
			code_model_insert(r, ++b, (struct code_model_block){0, 0, 0});
		}
		r->block[b] = (struct code_model_block){count, bytes, request.kind};
		if (behind)
			code_model_insert(r, b + 1, (struct code_model_block){behind, 0, 0});
	}
	EXPECT_EQUAL(count * code_model.segment, code.bytes);
	EXPECT_EQUAL(bytes, code.code_bytes);
	EXPECT_EQUAL(request.kind, code.kind);
	if ((choice.at - r->start) / code_model.segment + count > r->top)
		r->top = (choice.at - r->start) / code_model.segment + count;
	code_model.used += count;
	code_model.largest_used = code_model.used > code_model.largest_used ? code_model.used : code_model.largest_used;
	code_model.live++;
	/* Its memory is there: reading what is not would end the program. */
	(void)*(volatile unsigned char *)code.rx.at;
	(void)*(volatile unsigned char *)(code.rx.at + code.bytes - 1);
}

static void do_free(const struct sequence_step *step)
{
	size_t r, b;

	if (!pick(step->b, &r, &b))
		return;
	OK(execmem_code_free(code_model.heap, (execmem_rx){code_model_address(&code_model.region[r], b)}));
	code_model.used -= code_model.region[r].block[b].count;
	code_model.live--;
	code_model_give(&code_model.region[r], b);
}

static void do_bad_free(const struct sequence_step *step)
{
	struct code_model_region *r = &code_model.region[step->b % code_model.regions];
	size_t b = (step->b >> 8) % r->blocks, bytes = r->block[b].count * code_model.segment;
	size_t offset = step->c % bytes;
	uintptr_t start = code_model_address(r, b);

	if (r->block[b].code && offset == 0)
		offset = bytes > 1 ? 1 : 0;
	EXPECT_EQUAL(r->block[b].code ? EXECMEM_ERROR_INTERIOR : EXECMEM_ERROR_FREED,
		     execmem_code_free(code_model.heap, (execmem_rx){start + offset}));
	EXPECT_EQUAL(r->block[b].code ? EXECMEM_ERROR_INTERIOR : EXECMEM_ERROR_FREED,
		     execmem_code_shrink(code_model.heap, (execmem_rx){start + offset}, 1, NULL));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_code_free(code_model.heap, (execmem_rx){0}));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_code_free(code_model.heap, (execmem_rx){UINTPTR_MAX}));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_code_free(code_model.heap, (execmem_rx){(uintptr_t)&code_model}));
}

static void do_shrink(const struct sequence_step *step)
{
	size_t r, b, bytes, count, rest, left = 0;
	struct code_model_block *block;
	bool next_free;

	if (!pick(step->b, &r, &b))
		return;
	block = &code_model.region[r].block[b];
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT,
		     execmem_code_shrink(code_model.heap, (execmem_rx){code_model_address(&code_model.region[r], b)},
					 block->code + 1, &left));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT,
		     execmem_code_shrink(code_model.heap, (execmem_rx){code_model_address(&code_model.region[r], b)}, 0,
					 &left));
	bytes = 1 + step->c % block->code;
	count = code_model_count(bytes);
	next_free = b + 1 < code_model.region[r].blocks && !code_model.region[r].block[b + 1].code;
	rest = block->count - count;
	if (rest < code_model.config.minimum && !next_free) {
		count = block->count;
		rest = 0;
	}
	OK(execmem_code_shrink(code_model.heap, (execmem_rx){code_model_address(&code_model.region[r], b)}, bytes,
			       &left));
	EXPECT_EQUAL(count * code_model.segment, left);
	block->code = bytes;
	block->count = count;
	code_model.used -= rest;
	if (rest) {
		code_model_insert(&code_model.region[r], b + 1, (struct code_model_block){rest, 0, 0});
		code_model_merge(&code_model.region[r], b + 1);
	}
}

/* Opens the windows of a block. */
static void do_write(const struct sequence_step *step)
{
	static const unsigned char code[64];
	size_t r, b, bytes;

	if (!pick(step->b, &r, &b))
		return;
	bytes = code_model.region[r].block[b].code < sizeof(code) ? code_model.region[r].block[b].code : sizeof(code);
	OK(execmem_write(code_model.allocator, (execmem_rx){code_model_address(&code_model.region[r], b)}, code, bytes,
			 0));
}

static void do_wrong(void)
{
	struct execmem_code code = {.bytes = 7};
	struct execmem_code_request request = {.align = 3};

	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(code_model.heap, 0, NULL, &code));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(code_model.heap, SIZE_MAX, NULL, &code));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(code_model.heap, SIZE_MAX - 15, NULL, &code));
	EXPECT_EQUAL(EXECMEM_ERROR_FULL,
		     execmem_code_allocate(code_model.heap, code_model.config.maximum_bytes + 1, NULL, &code));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(code_model.heap, 1, &request, &code));
	request = (struct execmem_code_request){.align = 2 * UNIT};
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(code_model.heap, 1, &request, &code));
	request = (struct execmem_code_request){.kind = EXECMEM_KIND_MAX + 1};
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_allocate(code_model.heap, 1, &request, &code));
	EXPECT_EQUAL(7, code.bytes);
}

static void do_step(const struct sequence_step *step)
{
	sequence_say(step);
	sequence_calls++;
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
			const struct code_model_region *r = &code_model.region[random % code_model.regions];
			size_t b = (random >> 3) % r->blocks;

			code_model_check_find(r, b, 0);
			code_model_check_find(r, b, r->block[b].count * code_model.segment - 1);
			code_model_check_find(r, b, step->c % (r->block[b].count * code_model.segment));
		}
		if (step->b % 16 == 0)
			do_wrong();
	}
	if (sequence_compares(step))
		code_model_check();
}

static void warn(void *context, const struct execmem_code_warning *warning)
{
	struct execmem_code_figures figures;

	EXPECT(context == &code_model.heap);
	OK(execmem_code_figures(code_model.heap, &figures)); /* no lock is held */
	EXPECT_EQUAL(figures.free_blocks, warning->figures.free_blocks);
	if (warning->event == EXECMEM_CODE_FULL) {
		EXPECT(warning->error && warning->bytes);
		code_model.warned_full++;
	} else {
		EXPECT(figures.free_blocks > code_model.config.free_blocks && !warning->error);
		code_model.warned_list++;
	}
}

static void change(struct execmem_config *allocator_config)
{
	allocator_config->window_bytes = code_model.window_bytes;
	allocator_config->rw_cache = code_model.cached;
}

/* Nothing is known any more. */
static void start(void)
{
	for (size_t i = 0; i < CODE_MODEL_REGIONS; i++) {
		if (!code_model.region[i].block)
			code_model.region[i].block =
				malloc((CODE_MODEL_BLOCKS + 1) * sizeof(*code_model.region[i].block));
		EXPECT(code_model.region[i].block);
	}
	code_model.regions = code_model.used = code_model.live = 0;
}

void code_model_play(const struct sequence *sequence)
{
	uint64_t state = sequence->seed * 0x9e3779b97f4a7c15u + 1, random;
	struct execmem_code code;

	for (int i = 0; i < 8; i++)
		next_random(&state);
	random = next_random(&state);
	code_model.config = execmem_code_config_default();
	code_model.config.segment_bytes = code_model.segment = (size_t)16 << (random & 8 ? random % 4 : random % 9);
	code_model.config.minimum = random >> 16 & 1 ? 1 : 1 + (random >> 20) % (random >> 26 & 1 ? 8 : 64);
	code_model.config.policy = (enum execmem_code_policy)((random >> 32) % 3);
	code_model.config.near_percent = (unsigned)(random >> 44) % 101;
	code_model.config.region_bytes =
		code_model_up(UNIT * (1 + (random >> 36) % 4), code_model.config.minimum * code_model.segment);
	code_model.config.maximum_bytes =
		code_model_up(code_model.config.region_bytes, UNIT) + UNIT * ((random >> 40) % 28);
	code_model.config.kind = (unsigned)(random >> 48) % 4;
	code_model.config.free_blocks = 1 + (random >> 52) % 20;
	code_model.config.warn = warn;
	code_model.config.context = &code_model.heap;
	code_model.window_bytes = UNIT >> (random >> 56) % 4;
	code_model.cached = (unsigned)(random >> 58) % 5;
	if (sequence_verbose)
		fprintf(stderr, "\tsegment %zu, minimum %u, policy %d, percent %u, window %zu, %u cached\n",
			code_model.segment, code_model.config.minimum, (int)code_model.config.policy,
			code_model.config.near_percent, code_model.window_bytes, code_model.cached);
	start();
	code_model.allocator = make(change);
	OK(execmem_code_heap_create(code_model.allocator, &code_model.config, &code_model.heap));
	/* Find the region that is there. */
	OK(execmem_code_allocate(code_model.heap, 1, NULL, &code));
	know_region(code.rx.at);
	OK(execmem_code_free(code_model.heap, code.rx));
	code_model.largest_used = code_model.region[0].top = code.bytes / code_model.segment;
	code_model.chosen = code_model.config.minimum * code_model.segment <= code_model.window_bytes
				    ? code_model.region[0].start
				    : 0;
	for (size_t i = 0; i < sequence->count; i++)
		do_step(&sequence->step[i]);
	while (code_model.live)
		do_free(&(struct sequence_step){.a = 0});
	code_model_check();
	for (size_t i = 0; i < code_model.regions; i++)
		EXPECT_EQUAL(1, code_model.region[i].blocks);
	OK(execmem_code_heap_destroy(code_model.heap));
	EXPECT_EQUAL(0, file_blocks());
	OK(execmem_destroy(code_model.allocator));
}
