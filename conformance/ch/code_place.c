/*
 * Places that are only just possible: where the bounds of a range, an alignment or a second region leave one.
 */
#include "code_heap.h"

#define SEGMENT ((size_t)64)
#define EACH    ((size_t)256)
#define MOST    (2 * ALLOC_UNIT / SEGMENT)
/* From the middle of the range to its end, where the other end is not to matter. */
#define FAR     ((size_t)1 << 20)

static const enum subject_code_policy policies[] = {SUBJECT_CODE_FIRST, SUBJECT_CODE_BEST, SUBJECT_CODE_NEAR};
static uintptr_t at[MOST]; /* blocks that fill the heap, by address */
static struct code_pair pair;
static const struct subject_code_request plain = {0, 5};

static void sort(size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k && at[k] < at[k - 1]; k--) {
			const uintptr_t other = at[k];

			at[k] = at[k - 1];
			at[k - 1] = other;
		}
}

/* A heap of so many units in regions of one, full of blocks of `bytes`; with a policy that is there. */
static bool full(unsigned policy, size_t units, size_t bytes, size_t *count)
{
	struct subject_code_config config = code_config();
	struct subject_code code;
	int error;

	config.policy = policies[policy];
	config.segment_bytes = SEGMENT;
	config.maximum_bytes = units * ALLOC_UNIT;
	check_note_number("policy", config.policy);
	if (!code_make(&config, &pair))
		return false;
	for (*count = 0; !(error = CODE(allocate)(pair.heap, bytes, NULL, &code)); ++*count) {
		if (!CHECK_TRUE(*count < units * ALLOC_UNIT / bytes, "a heap has no more room than it may"))
			return false;
		at[*count] = code.rx;
		/* The second region above the first, as far as the subject can be asked to. */
		if (*count + 1 == ALLOC_UNIT / bytes && units > 1 && check_claimed("code-near") &&
		    !CODE(allocate_near)(pair.heap, bytes, &plain, at[0] + 64 * ALLOC_UNIT, 32 * ALLOC_UNIT, &code))
			at[++*count] = code.rx;
	}
	sort(*count);
	return ALLOC_IS(SUBJECT_ERROR_FULL, error);
}

/* Whether the subject has the policy. */
static bool has(unsigned policy)
{
	struct subject_allocator *allocator = alloc_make(NULL);
	struct subject_code_config config = code_config();
	struct subject_code_heap *heap;
	int error;

	config.policy = policies[policy];
	error = CODE(create)(allocator, &config, &heap);
	if (!error)
		(void)ALLOC_OK(CODE(destroy)(heap));
	(void)alloc_end(allocator);
	return error != SUBJECT_ERROR_UNSUPPORTED;
}

/* Asks for a block, all of whose bytes lie in [low, high], an odd number; expected at `place`, or nowhere for 0. */
static bool within(uintptr_t low, uintptr_t high, uintptr_t place, const char *what)
{
	const uintptr_t target = low + (high - low) / 2;
	struct subject_code code;
	const int error = CODE(allocate_near)(pair.heap, 2 * SEGMENT, &plain, target, high - target, &code);

	check_note_number("low", low);
	check_note_number("high", high);
	if (!place)
		return CHECK_TRUE(error == SUBJECT_ERROR_FULL || error == SUBJECT_ERROR_UNREACHABLE, what);
	return ALLOC_OK(error) && CHECK_EQUAL(place, code.rx, what) && ALLOC_OK(CODE(free)(pair.heap, code.rx));
}

CHECK(ch_code_reach_bounds, "CH-008", "the one place within reach is found, and where it lacks a byte there is none")
{
	size_t count;

	if (!alloc_claims("allocator os-table code-heap code-near"))
		return;
	for (unsigned policy = 0; policy < 3; policy++) {
		uintptr_t hole;

		if (!has(policy))
			continue;
		MUST(full(policy, 1, EACH, &count));
		hole = at[100];
		MUST_OK(CODE(free)(pair.heap, hole));
		MUST(within(hole + 2 * SEGMENT, hole + 2 * FAR, hole + 2 * SEGMENT, "the end of a free block"));
		MUST(within(hole + 2 * SEGMENT + 1, hole + 2 * FAR + 1, 0, "a byte too little at its end"));
		MUST(within(hole - 2 * FAR + 1, hole + 2 * SEGMENT - 1, hole, "the beginning of a free block"));
		MUST(within(hole - 2 * FAR, hole + 2 * SEGMENT - 2, 0, "a byte too little at its beginning"));
		MUST(within(hole + SEGMENT, hole + 3 * SEGMENT, hole + SEGMENT, "the middle of a free block"));
		MUST(within(hole + SEGMENT + 1, hole + 3 * SEGMENT - 1, 0, "a byte too little in its middle"));
		MUST(code_end(&pair));
	}
}

static bool lowest(uintptr_t expected, size_t bytes, size_t align, bool near, const char *what)
{
	const struct subject_code_request request = {align, 5};
	struct subject_code code;

	check_note_number("align", align);
	if (near && !check_claimed("code-near"))
		return true;
	return ALLOC_OK(near ? CODE(allocate_near)(pair.heap, bytes, &request, UINTPTR_MAX / 2, UINTPTR_MAX, &code)
			     : CODE(allocate)(pair.heap, bytes, &request, &code)) &&
	       CHECK_EQUAL(expected, code.rx, what) && ALLOC_OK(CODE(free)(pair.heap, code.rx));
}

/* Frees blocks of both regions, and asks: with and without an alignment, and near everything. */
static void equals(unsigned policy)
{
	const bool first = policies[policy] == SUBJECT_CODE_FIRST;
	const size_t half = ALLOC_UNIT / EACH;
	size_t count;

	if (!has(policy)) {
		check_not_claimed("the subject has no such policy");
		return;
	}
	MUST(full(policy, 2, EACH, &count));
	MUST(CHECK_EQUAL((uint64_t)2 * half, count, "a heap has the room that it may have"));
	MUST_OK(CODE(free)(pair.heap, at[half - 5]));
	MUST_OK(CODE(free)(pair.heap, at[half + 7]));
	MUST_OK(CODE(free)(pair.heap, at[half + 9]));
	for (unsigned near = 0; near < 2; near++)
		for (size_t align = 0; align <= EACH; align += EACH)
			MUST(lowest(at[half - 5], EACH, align, near, "of equal blocks the lowest, of all regions"));
	/* A larger one below. */
	MUST_OK(CODE(free)(pair.heap, at[half - 6]));
	for (unsigned near = 0; near < 2; near++)
		for (size_t align = 0; align <= EACH; align += EACH)
			MUST(lowest(first ? at[half - 6] : at[half + 7], EACH, align, near,
				    first ? "the lowest, though it is larger" : "the smallest, though it is higher"));
	MUST(code_end(&pair));
}

CHECK(ch_code_first_regions, "CH-002", "policy first takes the lowest address of all regions, in every way to ask")
{
	if (alloc_claims("allocator os-table code-heap"))
		equals(0);
}

CHECK(ch_code_best_regions, "CH-003", "policy best takes the smallest of all regions, of equals the lowest")
{
	if (alloc_claims("allocator os-table code-heap"))
		equals(1);
}

CHECK(ch_code_unaligned, "CH-001", "among many free blocks that are large enough, the one is found that is aligned")
{
	const struct subject_code_request request = {EACH, 5};
	struct subject_code code;
	size_t count;

	if (!alloc_claims("allocator os-table code-heap"))
		return;
	for (unsigned policy = 0; policy < 3; policy++) {
		if (!has(policy))
			continue;
		MUST(full(policy, 1, SEGMENT, &count));
		for (size_t i = 0; i < 800; i += 4) {
			MUST_OK(CODE(free)(pair.heap, at[i + 1]));
			MUST_OK(CODE(free)(pair.heap, at[i + 2]));
		}
		MUST(ALLOC_IS(SUBJECT_ERROR_FULL, CODE(allocate)(pair.heap, 2 * SEGMENT, &request, &code)));
		MUST_OK(CODE(free)(pair.heap, at[804]));
		MUST_OK(CODE(free)(pair.heap, at[805]));
		MUST_OK(CODE(allocate)(pair.heap, 2 * SEGMENT, &request, &code));
		MUST(CHECK_EQUAL(at[804], code.rx, "the one block that is aligned"));
		MUST(code_end(&pair));
	}
}
