#include "code_play.h"

#include "call.h"

/* The play under way. */
static struct {
	struct subject_allocator *allocator;
	struct subject_code_heap *heap;
	const struct code_sequence *sequence;
	struct code_outcome *outcome;
	struct code_model model;
} now;

#define LOOKS(look_) (now.sequence->look == CODE_LOOK_##look_)

/* ---- Comparing ---- */

static bool same(uint64_t expected, uint64_t actual, const char *what)
{
	if (expected == actual || now.outcome->differs)
		return !now.outcome->differs;
	now.outcome->differs = true;
	now.outcome->expected = expected;
	now.outcome->actual = actual;
	now.outcome->what = what;
	return false;
}

static bool answers(int expected, int actual, const char *what)
{
	return same((uint64_t)(int64_t)expected, (uint64_t)(int64_t)actual, what);
}

static int compare_block(void *context, const struct subject_code *block)
{
	uint32_t *next = context;
	const struct code_model_block *expected = &now.model.blocks[*next];

	++*next;
	return !(
		same(true, *next <= now.model.count, "there are no more blocks than the model's") &&
		same(expected->at, block->rx, "a block begins where the one before it ends") &&
		same(expected->bytes, block->bytes, "a block, merged with its free neighbours, has the model's size") &&
		same(expected->code, block->code_bytes,
		     "a block is live or free, and has the code that was asked for") &&
		(!expected->code || same(expected->kind, block->kind, "a block is of the kind that was asked for")));
}

static bool compare_blocks(void)
{
	uint32_t count = 0;

	return answers(0, CODE(walk)(now.heap, compare_block, &count), "the walk reaches its end") &&
	       same(now.model.count, count, "there are no fewer blocks than the model's");
}

static bool compare_found(const struct code_model_block *block, size_t offset)
{
	struct subject_code code = {.bytes = 1};
	const int error = CODE(find)(now.allocator, block->at + offset, &code);

	if (!block->code)
		return answers(SUBJECT_ERROR_NOT_FOUND, error, "no live block is found in free memory") &&
		       same(1, code.bytes, "an error leaves its outputs untouched");
	return answers(0, error, "the block of an address is found") &&
	       same(block->at, code.rx, "its beginning is found from an inner address") &&
	       same(block->bytes, code.bytes, "its size is found from an inner address") &&
	       same(block->code, code.code_bytes, "the bytes that were asked for are found from an inner address");
}

static bool compare_address(const struct code_model_block *block, size_t offset)
{
	if (LOOKS(FIND))
		return compare_found(block, offset);
	return answers(block->code ? (int)block->kind : -1, CODE(kind)(now.allocator, block->at + offset),
		       "an address has the kind of its live block, and none in free memory");
}

static bool compare_addresses(uint64_t random)
{
	for (uint32_t i = 0; i < now.model.count; i++) {
		const struct code_model_block *block = &now.model.blocks[i];

		if (!compare_address(block, 0) || !compare_address(block, block->bytes - 1) ||
		    !compare_address(block, (size_t)(call_mix(random, i) % block->bytes)))
			return false;
	}
	return true;
}

static bool compare_histogram(uint64_t random)
{
	size_t counts[5], expected[5] = {0};
	const size_t step = 1 + (size_t)(random % 400);

	for (uint32_t i = 0; i < now.model.count; i++)
		if (now.model.blocks[i].code)
			expected[now.model.blocks[i].code / step < 4 ? now.model.blocks[i].code / step : 4]++;
	if (!answers(0, CODE(histogram)(now.heap, step, counts, 5), "a histogram is had"))
		return false;
	for (unsigned i = 0; i < 5; i++)
		if (!same(expected[i], counts[i], "live blocks are counted by their size"))
			return false;
	return true;
}

static bool compare_figures(uint64_t random)
{
	const struct subject_code_figures expected = code_model_figures(&now.model);
	struct subject_code_figures actual;

#define FIGURE(name_) &&same(expected.name_, actual.name_, #name_ " is as a count gives it")
	return answers(0, CODE(figures)(now.heap, &actual), "figures are had") FIGURE(free_blocks) FIGURE(free_bytes)
		       FIGURE(unused_bytes) FIGURE(segment_map_bytes) FIGURE(used_bytes) FIGURE(largest_used_bytes)
			       FIGURE(wasted_bytes) FIGURE(overhead_per_myriad) FIGURE(live_blocks)
				       FIGURE(footprint_bytes) FIGURE(reserved_bytes) FIGURE(largest_free)
					       FIGURE(regions) FIGURE(allocations) FIGURE(frees) &&
	       compare_histogram(random);
#undef FIGURE
}

static bool compare(uint64_t random)
{
	switch (now.sequence->look) {
	case CODE_LOOK_FIND:
	case CODE_LOOK_KIND:
		return compare_addresses(random);
	case CODE_LOOK_FIGURES:
		return compare_figures(random);
	case CODE_LOOK_BLOCKS:
		return compare_blocks();
	default:
		return true;
	}
}

/* ---- Steps ---- */

static size_t size_of(uint64_t random)
{
	static const size_t most[] = {1, 8, 40, 200, 1000, 5000, 20000, 70000};

	return 1 + (size_t)((random >> 8) % most[random % (sizeof(most) / sizeof(most[0]))]);
}

/* The block came from outside of what is known: the region that it lies in is new. */
static bool know_region(uintptr_t at)
{
	struct subject_found found;

	if (ALLOC(lookup)(now.allocator, (const void *)at, &found))
		return same(true, !LOOKS(BLOCKS), "a block lies in a region of the allocator") && false;
	if (code_model_find(&now.model, found.start) != CODE_MODEL_NONE)
		return false;
	code_model_region(&now.model, found.start, found.bytes);
	return true;
}

/* No block came. Right, where nothing fits and the heap may not grow. */
static bool refused(int error, const struct code_model_wish *wish)
{
	const bool near = wish->high != UINTPTR_MAX;
	const size_t growth = (wish->bytes + ALLOC_UNIT - 1) / ALLOC_UNIT * ALLOC_UNIT;
	uintptr_t at;

	if (!LOOKS(BLOCKS) && !LOOKS(REACH))
		return true;
	if (error != SUBJECT_ERROR_FULL && !(near && error == SUBJECT_ERROR_UNREACHABLE))
		return answers(SUBJECT_ERROR_FULL, error, "an allocation fails for want of space alone");
	return same(CODE_MODEL_NONE, code_model_choose(&now.model, true, wish, &at),
		    "an allocation fails where nothing fits") &&
	       same(true,
		    near || wish->align > now.model.segment ||
			    now.model.reserved + growth > now.sequence->config.maximum_bytes,
		    "an allocation fails where no further region is allowed");
}

/* Whether the place is the policy's. */
static bool right_place(const struct code_model_wish *wish, uintptr_t actual)
{
	uintptr_t at = 0;

	if (!LOOKS(FIRST) && !LOOKS(BEST))
		return true;
	(void)code_model_choose(&now.model, LOOKS(FIRST), wish, &at);
	return same(at, actual,
		    LOOKS(FIRST) ? "policy first takes the lowest address"
				 : "policy best takes the smallest block, of equals the lowest");
}

static bool allocate(const struct code_step *step)
{
	const size_t bytes = size_of(step->b);
	const struct subject_code_request request = {
		.align = step->c % 4 ? 0 : (size_t)1 << (step->c >> 8) % 13,
		.kind = step->c >> 16 & 1 ? now.sequence->config.kind : (unsigned)(step->c >> 20) % 63,
	};
	struct code_model_wish wish = {code_model_bytes(&now.model, bytes), now.model.segment, 0, UINTPTR_MAX};
	struct subject_code code = {.bytes = 7};
	uint32_t block;
	size_t taken;
	int error;

	if (request.align > wish.align)
		wish.align = request.align;
	if (LOOKS(REACH)) {
		const uintptr_t target = now.model.blocks[step->a / 16 % now.model.count].at;
		const size_t reach = size_of(step->a >> 24) + 64;

		wish.low = target - reach;
		wish.high = target + reach;
		error = CODE(allocate_near)(now.heap, bytes, &request, target, reach, &code);
	} else {
		error = CODE(allocate)(now.heap, bytes, &request, &code);
	}
	if (error)
		return refused(error, &wish) && same(7, code.bytes, "an error leaves its outputs untouched");
	if (LOOKS(REACH) && !same(true, code.rx >= wish.low && code.rx + (wish.bytes - 1) <= wish.high,
				  "every byte of a block lies within reach of its target"))
		return false;
	if (code_model_find(&now.model, code.rx) == CODE_MODEL_NONE) {
		uintptr_t at;

		if (LOOKS(BLOCKS) && !same(CODE_MODEL_NONE, code_model_choose(&now.model, true, &wish, &at),
					   "the heap grows where nothing fits alone"))
			return false;
		if (!know_region(code.rx))
			return false;
		if (LOOKS(BLOCKS) && !same(true, now.model.reserved <= now.sequence->config.maximum_bytes,
					   "the heap grows up to its maximum"))
			return false;
	}
	block = code_model_allowed(&now.model, &wish, code.rx);
	if (block == CODE_MODEL_NONE)
		return same(true, !LOOKS(BLOCKS), "a block lies in memory that was free, where it may") && false;
	if (!right_place(&wish, code.rx))
		return false;
	taken = code_model_take(&now.model, block, code.rx, bytes, request.kind);
	return !LOOKS(BLOCKS) ||
	       (same(taken, code.bytes, "a block has the bytes that it needs, or what would be left too") &&
		same(bytes, code.code_bytes, "a block has the code that was asked for") &&
		same(request.kind, code.kind, "a block has the kind that was asked for"));
}

static bool give(const struct code_step *step)
{
	const uint32_t block = code_model_live(&now.model, step->b);

	if (block == CODE_MODEL_NONE)
		return true;
	if (!answers(0, CODE(free)(now.heap, now.model.blocks[block].at), "a live block can be freed"))
		return false;
	code_model_give(&now.model, block);
	return true;
}

static bool cut(const struct code_step *step)
{
	const uint32_t block = code_model_live(&now.model, step->b);
	size_t bytes, left = 0, expected;

	if (block == CODE_MODEL_NONE || !check_claimed("code-shrink"))
		return true;
	bytes = 1 + (size_t)(step->c % now.model.blocks[block].code);
	if (!answers(0, CODE(shrink)(now.heap, now.model.blocks[block].at, bytes, &left), "a live block can be cut"))
		return false;
	expected = code_model_cut(&now.model, block, bytes);
	return !LOOKS(BLOCKS) || same(expected, left, "a block that is cut keeps what its code needs");
}

/* Opens a view of a block, which is what policy near looks at. */
static bool touch(const struct code_step *step)
{
	const uint32_t block = code_model_live(&now.model, step->b);
	struct subject_view view;

	return block == CODE_MODEL_NONE ||
	       (answers(0,
			ALLOC(open)(now.allocator, now.model.blocks[block].at, now.model.blocks[block].code, 0, &view),
			"a view of a block is opened") &&
		answers(0, ALLOC(close)(&view), "a view is closed"));
}

static char letter(const struct code_step *step)
{
	return "aaaaaaaaffffffsw"[step->a % 16];
}

static bool play_step(const struct code_step *step)
{
	switch (letter(step)) {
	case 'f':
		return give(step);
	case 's':
		return cut(step);
	case 'w':
		return touch(step);
	default:
		return allocate(step);
	}
}

/* ---- Sequences ---- */

void code_sequence_make(struct code_sequence *sequence, enum code_look look, unsigned number, uint64_t seed)
{
	const uint64_t random = call_mix(seed, 0);
	struct subject_code_config *config = &sequence->config;

	sequence->look = look;
	*config = code_config();
	config->segment_bytes = (size_t)16 << (random & 3 ? (random >> 4) % 4 : (random >> 4) % 9);
	config->minimum = random & 4 ? 1 : 1 + (unsigned)(random >> 8) % 12;
	config->policy = look == CODE_LOOK_FIRST  ? SUBJECT_CODE_FIRST
			 : look == CODE_LOOK_BEST ? SUBJECT_CODE_BEST
						  : (enum subject_code_policy)(number % 3);
	config->region_bytes = ALLOC_UNIT * (1 + (random >> 16) % 3);
	config->maximum_bytes = config->region_bytes + ALLOC_UNIT * ((random >> 20) % 12);
	config->kind = (unsigned)(random >> 28) % 63;
	for (unsigned i = 0; i < CODE_STEPS; i++)
		sequence->steps[i] = (struct code_step){call_mix(seed, 3 * i + 1), call_mix(seed, 3 * i + 2),
							call_mix(seed, 3 * i + 3), false};
}

unsigned code_sequence_text(struct text *text, const struct code_sequence *sequence, unsigned from)
{
	for (; from < CODE_STEPS && text->used + 24 < text->bytes; from++) {
		const struct code_step *step = &sequence->steps[from];

		if (step->out)
			continue;
		text_add(text, (char[]){letter(step), '\0'});
		text_add_decimal(text, letter(step) == 'a' ? size_of(step->b) : step->b % 1000);
		text_add(text, " ");
	}
	return from;
}

static int first_region(void *context, const struct subject_code *block)
{
	(void)context;
	code_model_region(&now.model, block->rx, block->bytes);
	return 1;
}

void code_play(const struct code_sequence *sequence, struct code_outcome *outcome)
{
	const struct subject_code_config *config = &sequence->config;
	const struct subject_config over = alloc_config();
	struct subject_refusals refusals;
	int error;

	__builtin_memset(outcome, 0, sizeof(*outcome));
	now.sequence = sequence;
	now.outcome = outcome;
	code_model_make(&now.model, config->segment_bytes, config->minimum);
	if (!answers(0, ALLOC(create_over)(&watch_os, &over, &now.allocator, &refusals), "an allocator is made"))
		return;
	error = CODE(create)(now.allocator, config, &now.heap);
	outcome->unsupported = error == SUBJECT_ERROR_UNSUPPORTED;
	if (!outcome->unsupported && answers(0, error, "a heap is made")) {
		(void)CODE(walk)(now.heap, first_region, NULL);
		for (unsigned i = 0; i < CODE_STEPS; i++) {
			outcome->step = i;
			if (!sequence->steps[i].out &&
			    (!play_step(&sequence->steps[i]) || !compare(sequence->steps[i].c)))
				break;
		}
		(void)answers(0, CODE(destroy)(now.heap), "a heap is destroyed");
	}
	(void)answers(0, ALLOC(destroy)(now.allocator), "an allocator is destroyed");
}
