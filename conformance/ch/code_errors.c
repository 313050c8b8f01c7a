/*
 * What is refused: sizes, addresses that are no block's beginning, a heap that is full.
 */
#include "code_heap.h"

struct sum {
	uint64_t blocks, mix;
};

static int add(void *context, const struct subject_code *block)
{
	struct sum *sum = context;

	sum->blocks++;
	sum->mix = sum->mix * 31 + (uint64_t)block->rx * 7 + (uint64_t)block->bytes * 5 +
		   (uint64_t)block->code_bytes * 3 + block->kind;
	return 0;
}

/* All that the walk tells, as a number. */
static uint64_t sum_of(struct subject_code_heap *heap)
{
	struct sum sum = {0, 0};

	(void)ALLOC_OK(CODE(walk)(heap, add, &sum));
	return sum.mix * 31 + sum.blocks;
}

static bool frees(struct subject_code_heap *heap, uintptr_t rx, int expected)
{
	size_t left = 77;

	check_note_number("address", rx);
	if (!ALLOC_IS(expected, CODE(free)(heap, rx)))
		return false;
	return !check_claimed("code-shrink") || (ALLOC_IS(expected, CODE(shrink)(heap, rx, 1, &left)) &&
						 CHECK_EQUAL(77, left, "an error leaves its outputs untouched"));
}

CHECK(ch_code_bad_free, "CH-006", "a free of what is no block's beginning is an error that changes nothing")
{
	const struct subject_code_config config = code_config();
	struct subject_code block[4], other;
	struct subject_code_heap *second;
	struct code_pair pair;
	uint64_t before;

	if (!alloc_claims("allocator os-table code-heap"))
		return;
	MUST(code_make(&config, &pair));
	for (unsigned i = 0; i < 4; i++)
		MUST_OK(CODE(allocate)(pair.heap, 200 + 700 * i, NULL, &block[i]));
	MUST_OK(CODE(free)(pair.heap, block[1].rx));
	MUST_OK(CODE(create)(pair.allocator, &config, &second));
	MUST_OK(CODE(allocate)(second, 200, NULL, &other));
	before = sum_of(pair.heap);
	for (unsigned i = 0; i < 4; i++) {
		const int inside = i == 1 ? SUBJECT_ERROR_FREED : SUBJECT_ERROR_INTERIOR;

		if (i == 1)
			MUST(frees(pair.heap, block[i].rx, SUBJECT_ERROR_FREED));
		for (size_t offset = 1; offset < block[i].bytes; offset += offset < 70 ? 1 : 61)
			MUST(frees(pair.heap, block[i].rx + offset, inside));
		MUST(frees(pair.heap, block[i].rx + block[i].bytes - 1, inside));
	}
	MUST(frees(pair.heap, block[3].rx + block[3].bytes, SUBJECT_ERROR_FREED)); /* never allocated */
	MUST(frees(pair.heap, 0, SUBJECT_ERROR_NOT_FOUND));
	MUST(frees(pair.heap, UINTPTR_MAX, SUBJECT_ERROR_NOT_FOUND));
	MUST(frees(pair.heap, CODE_FOREIGN, SUBJECT_ERROR_NOT_FOUND));
	MUST(frees(pair.heap, other.rx, SUBJECT_ERROR_NOT_FOUND)); /* another heap's */
	MUST(CHECK_EQUAL(before, sum_of(pair.heap), "blocks are as before the calls that were refused"));
	MUST_OK(CODE(free)(second, other.rx));
	MUST_OK(CODE(destroy)(second));
	MUST_OK(CODE(free)(pair.heap, block[2].rx));
	MUST(frees(pair.heap, block[2].rx, SUBJECT_ERROR_FREED));
	MUST(code_end(&pair));
}

static bool refuses(struct subject_code_heap *heap, int expected, size_t bytes, size_t align, unsigned kind)
{
	const struct subject_code_request request = {align, kind};
	struct subject_code code = {.bytes = 77};

	check_note_number("bytes_asked_for", bytes);
	check_note_number("align", align);
	return ALLOC_IS(expected, CODE(allocate)(heap, bytes, &request, &code)) &&
	       CHECK_EQUAL(77, code.bytes, "an error leaves its outputs untouched");
}

CHECK(ch_code_sizes, "CH-009", "sizes of 0, of 1, of all there is and of more are answered as they must be")
{
	struct subject_code_config config = code_config();
	struct subject_code code;
	struct code_pair pair;
	uint64_t before;

	if (!alloc_claims("allocator os-table code-heap"))
		return;
	config.maximum_bytes = config.region_bytes = 2 * ALLOC_UNIT;
	MUST(code_make(&config, &pair));
	before = sum_of(pair.heap);
	MUST(refuses(pair.heap, SUBJECT_ERROR_ARGUMENT, 0, 0, 1));
	for (size_t less = 0; less < 200; less += less < 66 ? 1 : 33)
		MUST(refuses(pair.heap, SUBJECT_ERROR_ARGUMENT, SIZE_MAX - less, 0, 1));
	MUST(refuses(pair.heap, SUBJECT_ERROR_ARGUMENT, SIZE_MAX / 2 + 1, 0, 1));
	MUST(refuses(pair.heap, SUBJECT_ERROR_FULL, config.region_bytes + 1, 0, 1));
	MUST(refuses(pair.heap, SUBJECT_ERROR_ARGUMENT, 1, 3, 1));
	MUST(refuses(pair.heap, SUBJECT_ERROR_ARGUMENT, 1, 2 * ALLOC_UNIT, 1));
	MUST(refuses(pair.heap, SUBJECT_ERROR_ARGUMENT, 1, 0, 63));
	MUST(CHECK_EQUAL(before, sum_of(pair.heap), "calls that were refused change nothing"));
	/* All of it as one block, or as blocks of a byte each. */
	MUST_OK(CODE(allocate)(pair.heap, config.region_bytes, NULL, &code));
	MUST(CHECK_EQUAL(config.region_bytes, code.bytes, "a block takes the whole region"));
	MUST(refuses(pair.heap, SUBJECT_ERROR_FULL, 1, 0, 1));
	MUST_OK(CODE(free)(pair.heap, code.rx));
	for (size_t i = 0; i < config.region_bytes / config.segment_bytes; i++) {
		MUST_OK(CODE(allocate)(pair.heap, 1, NULL, &code));
		MUST(CHECK_EQUAL(config.segment_bytes, code.bytes, "a byte takes a segment"));
	}
	MUST(refuses(pair.heap, SUBJECT_ERROR_FULL, 1, 0, 1));
	MUST(code_end(&pair));
}

CHECK(ch_code_cut_sizes, "CH-009", "code is cut to a byte at least, and to what it has at most")
{
	const struct subject_code_config config = code_config();
	struct subject_code code;
	struct code_pair pair;
	size_t left = 77;

	if (!alloc_claims("allocator os-table code-heap code-shrink"))
		return;
	MUST(code_make(&config, &pair));
	for (size_t bytes = 1; bytes < 1000; bytes = bytes * 3 + 1) {
		uint64_t before;

		MUST_OK(CODE(allocate)(pair.heap, bytes, NULL, &code));
		before = sum_of(pair.heap);
		check_note_number("bytes", bytes);
		MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, CODE(shrink)(pair.heap, code.rx, 0, &left)));
		MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, CODE(shrink)(pair.heap, code.rx, bytes + 1, &left)));
		MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, CODE(shrink)(pair.heap, code.rx, SIZE_MAX, &left)));
		MUST(CHECK_EQUAL(77, left, "an error leaves its outputs untouched") &&
		     CHECK_EQUAL(before, sum_of(pair.heap), "calls that were refused change nothing"));
	}
	MUST(code_end(&pair));
}

static bool near(struct subject_code_heap *heap, int expected, uintptr_t target, size_t reach)
{
	const struct subject_code_request request = {0, 1};
	struct subject_code code;

	check_note_number("target", target);
	check_note_number("reach", reach);
	return ALLOC_IS(expected, CODE(allocate_near)(heap, 100, &request, target, reach, &code));
}

CHECK(ch_code_ends, "CH-010", "targets at the ends of the address range do not wrap around it")
{
	const struct subject_code_config config = code_config();
	struct code_pair pair;

	if (!alloc_claims("allocator os-table code-heap code-near"))
		return;
	MUST(code_make(&config, &pair));
	MUST(near(pair.heap, 0, 0, UINTPTR_MAX));
	MUST(near(pair.heap, 0, UINTPTR_MAX, UINTPTR_MAX));
	MUST(near(pair.heap, 0, UINTPTR_MAX / 2, UINTPTR_MAX));
	MUST(near(pair.heap, 0, 1, UINTPTR_MAX - 1));
	for (size_t reach = 0; reach < 8192; reach = reach * 2 + 1) {
		MUST(near(pair.heap, SUBJECT_ERROR_UNREACHABLE, UINTPTR_MAX, reach));
		MUST(near(pair.heap, SUBJECT_ERROR_UNREACHABLE, UINTPTR_MAX - reach, 2 * reach));
		MUST(near(pair.heap, SUBJECT_ERROR_UNREACHABLE, 0, reach));
		MUST(near(pair.heap, SUBJECT_ERROR_UNREACHABLE, reach, reach));
	}
	MUST(code_end(&pair));
}
