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
	sum->mix = sum->mix * 31 + block->rx * 7 + block->bytes * 5 + block->code_bytes * 3 + block->kind;
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
	struct subject_code block[4];
	struct code_pair pair;
	uint64_t before;

	if (!alloc_claims("allocator os-table code-heap"))
		return;
	MUST(code_make(&config, &pair));
	for (unsigned i = 0; i < 4; i++)
		MUST_OK(CODE(allocate)(pair.heap, 200 + 700 * i, NULL, &block[i]));
	MUST_OK(CODE(free)(pair.heap, block[1].rx));
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
	MUST(CHECK_EQUAL(before, sum_of(pair.heap), "blocks are as before the calls that were refused"));
	MUST_OK(CODE(free)(pair.heap, block[2].rx));
	MUST(frees(pair.heap, block[2].rx, SUBJECT_ERROR_FREED));
	MUST(code_end(&pair));
}
