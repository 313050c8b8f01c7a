#include "sequence.h"

#include "call.h"
#include "model.h"

/* ---- At random ---- */

struct chance {
	uint64_t state, number;
};

/* 0 to below - 1. In 32 bits: a 64-bit division is a library call on 32-bit ports. */
static unsigned below(struct chance *chance, unsigned limit)
{
	chance->state = call_mix(chance->state, chance->number++);
	return (unsigned)(chance->state >> 32) % limit;
}

/*
 * How many views and windows a sequence uses is its own: few windows are hits, some more than the cache holds are
 * evictions, many views leave nothing to evict.
 */
void sequence_make(struct sequence *sequence, uint64_t seed)
{
	struct chance chance = {seed, 0};
	const unsigned views = 1 + below(&chance, below(&chance, 2) ? 3 : SEQUENCE_VIEWS);
	const unsigned all = MODEL_REGIONS * SEQUENCE_WINDOWS, near = sequence->capacity + 3;
	const unsigned windows = 1 + below(&chance, below(&chance, 2) && near < all ? near : all);
	const unsigned first = below(&chance, all);
	bool open[SEQUENCE_VIEWS] = {false};

	sequence->count = 24 + 6 * sequence->capacity;
	for (unsigned i = 0; i < sequence->count; i++) {
		const unsigned window = (first + below(&chance, windows)) % all, kind = below(&chance, 64);
		struct sequence_step step = {.view = (uint8_t)below(&chance, views),
					     .region = (uint8_t)(window / SEQUENCE_WINDOWS),
					     .window = (uint8_t)(window % SEQUENCE_WINDOWS)};

		step.kind = (char)(kind == 62 ? 'x' : kind == 63 ? 'r' : open[step.view] ? 'c' : kind < 5 ? 's' : 'o');
		if (kind < 62)
			open[step.view] = !open[step.view];
		/* Mostly inside one window. */
		step.shape = (uint8_t)(below(&chance, 4) ? 0 : below(&chance, SEQUENCE_SHAPES));
		sequence->steps[i] = step;
	}
}

struct sequence_range sequence_range(const struct sequence *sequence, const struct sequence_step *step, size_t page,
				     size_t bytes)
{
	const size_t window = sequence->window;
	size_t start = step->window * window;
	struct sequence_range range;

	while (start >= bytes)
		start -= window;
	switch (step->shape) {
	case 1: /* across a boundary */
		range = (struct sequence_range){start + window - 8, 16};
		break;
	case 2: /* a whole window */
		range = (struct sequence_range){start, window};
		break;
	case 3: /* its last byte */
		range = (struct sequence_range){start + window - 1, 1};
		break;
	case 4: /* a byte on either side as well */
		range = (struct sequence_range){start ? start - 1 : 0, window + 2};
		break;
	case 5: /* its first page, and a byte */
		range = (struct sequence_range){start, page + 1};
		break;
	default:
		range = (struct sequence_range){start + 256, 16};
	}
	if (range.offset >= bytes)
		range.offset = start;
	if (range.bytes > bytes - range.offset)
		range.bytes = bytes - range.offset;
	return range;
}

/* ---- As a text ---- */

static void add_char(struct text *text, char c)
{
	text_add(text, (char[]){c, '\0'});
}

void sequence_add_setting(struct text *text, const struct sequence *sequence)
{
	text_add_decimal(text, sequence->capacity);
	text_add(text, sequence->keep_order ? "k" : "m");
	text_add_decimal(text, sequence->window);
}

void sequence_add_steps(struct text *text, const struct sequence *sequence, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to && i < sequence->count; i++) {
		const struct sequence_step *step = &sequence->steps[i];
		const bool opens = step->kind == 'o' || step->kind == 's';

		if (i > from)
			text_add(text, " ");
		add_char(text, step->kind);
		if (opens || step->kind == 'c')
			add_char(text, (char)('A' + step->view));
		if (step->kind != 'c')
			text_add_decimal(text, step->region);
		if (opens || step->kind == 'x')
			text_add_decimal(text, step->window);
		if (opens)
			text_add_decimal(text, step->shape);
	}
}

static bool read_number(const char **at, uint64_t *value)
{
	const char *start = *at;

	for (*value = 0; **at >= '0' && **at <= '9' && *at - start < 9; (*at)++)
		*value = *value * 10 + (uint64_t)(**at - '0');
	return *at > start;
}

/* One character from `first` on, of which there are `count`. */
static bool read_one(const char **at, char first, unsigned count, uint8_t *value)
{
	if (**at < first || **at >= first + (int)count)
		return false;
	*value = (uint8_t)(*(*at)++ - first);
	return true;
}

static bool read_step(const char **at, struct sequence_step *step)
{
	bool opens;

	*step = (struct sequence_step){.kind = *(*at)++};
	opens = step->kind == 'o' || step->kind == 's';
	if (!opens && step->kind != 'c' && step->kind != 'x' && step->kind != 'r')
		return false;
	return (!(opens || step->kind == 'c') || read_one(at, 'A', SEQUENCE_VIEWS, &step->view)) &&
	       (step->kind == 'c' || read_one(at, '0', MODEL_REGIONS, &step->region)) &&
	       (!(opens || step->kind == 'x') || read_one(at, '0', SEQUENCE_WINDOWS, &step->window)) &&
	       (!opens || read_one(at, '0', SEQUENCE_SHAPES, &step->shape)) && (**at == ' ' || !**at);
}

bool sequence_read(struct sequence *sequence, const char *text)
{
	uint64_t capacity, window;

	if (!read_number(&text, &capacity) || capacity > 16 || (*text != 'm' && *text != 'k'))
		return false;
	*sequence = (struct sequence){.capacity = (unsigned)capacity, .keep_order = *text++ == 'k'};
	if (!read_number(&text, &window) || !window || window & (window - 1) || (*text && *text != ' '))
		return false;
	sequence->window = (size_t)window;
	while (*text) {
		if (*text == ' ') {
			text++;
			continue;
		}
		if (sequence->count == SEQUENCE_STEPS_MOST || !read_step(&text, &sequence->steps[sequence->count]))
			return false;
		sequence->count++;
	}
	return sequence->count != 0;
}
