/*
 * Costs are counted, not timed: searches among very many free blocks, none of which is large enough but one.
 */
#include "code_heap.h"
#include "os.h"

#define SEGMENT ((size_t)16)
/* Words and nodes of one search, whatever the heap holds: a list of the free blocks needs as many as it has. */
#define BOUND   500u

static bool figures(struct subject_code_heap *heap, struct subject_code_figures *now)
{
	return ALLOC_OK(CODE(figures)(heap, now));
}

/* Blocks of two segments and of one in turn; those of one are freed. */
static bool checkerboard(struct subject_code_heap *heap, uintptr_t *at, size_t blocks)
{
	struct subject_code code;

	for (size_t i = 0; i < blocks; i++) {
		const int error = CODE(allocate)(heap, i % 2 ? SEGMENT : 2 * SEGMENT, NULL, &code);

		if (error)
			return ALLOC_OK(error);
		at[i] = code.rx;
	}
	for (size_t i = 1; i < blocks; i += 2)
		if (CODE(free)(heap, at[i]))
			return CHECK_TRUE(false, "each block can be freed");
	return true;
}

/* Frees what there is, from both ends to the middle, and takes all of it as one. */
static bool one_large(struct subject_code_heap *heap, const uintptr_t *at, size_t blocks)
{
	struct subject_code_figures now;
	struct subject_code code;

	for (size_t i = 0; i < blocks; i += 2) {
		const size_t k = i % 4 ? blocks - i : i; /* both are even */

		if (CODE(free)(heap, at[k]))
			return CHECK_TRUE(false, "each block can be freed");
	}
	if (!figures(heap, &now) || !CHECK_EQUAL(1, now.free_blocks, "free blocks are merged without a gap") ||
	    !CHECK_EQUAL(now.reserved_bytes, now.largest_free, "all there is is one free block"))
		return false;
	return ALLOC_OK(CODE(allocate)(heap, now.reserved_bytes, NULL, &code)) &&
	       CHECK_EQUAL(now.reserved_bytes, code.bytes, "one large block takes the place of very many tiny ones");
}

static bool costs(struct subject_allocator *allocator, enum subject_code_policy policy, size_t blocks)
{
	struct subject_code_config config = code_config();
	struct subject_code_heap *heap;
	struct subject_code_figures now;
	struct subject_code code;
	uintptr_t *at = os_share(blocks * sizeof(*at));
	bool right;

	config.policy = policy;
	config.segment_bytes = SEGMENT;
	config.region_bytes = config.maximum_bytes =
		(blocks * 3 / 2 * SEGMENT + 2 * ALLOC_UNIT) / ALLOC_UNIT * ALLOC_UNIT;
	check_note_number("blocks", blocks);
	check_note_number("policy", policy);
	if (!ALLOC_OK(CODE(create)(allocator, &config, &heap)) || !checkerboard(heap, at, blocks))
		return false;
	for (unsigned i = 0; i < 20; i++) { /* not in a hole; and in one */
		if (!ALLOC_OK(CODE(allocate)(heap, 3 * SEGMENT, NULL, &code)) || !ALLOC_OK(CODE(free)(heap, code.rx)) ||
		    !ALLOC_OK(CODE(allocate)(heap, SEGMENT, NULL, &code)) || !ALLOC_OK(CODE(free)(heap, code.rx)))
			return false;
	}
	right = figures(heap, &now) &&
		CHECK_TRUE(now.most_steps <= BOUND && now.most_steps > 0 && now.search_steps <= now.searches * BOUND,
			   "a search looks at as little among very many free blocks as among few") &&
		CHECK_TRUE(now.searches >= blocks, "each search is counted") && one_large(heap, at, blocks);
	os_unmap(at, blocks * sizeof(*at));
	return right && ALLOC_OK(CODE(destroy)(heap));
}

CHECK(ch_code_cost, "CH-013", "among very many free blocks, a search looks at no more than among few")
{
	static const enum subject_code_policy policies[] = {SUBJECT_CODE_FIRST, SUBJECT_CODE_BEST};
	struct subject_allocator *allocator;

	if (!alloc_claims("allocator os-table code-heap code-figures"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator);
	for (unsigned i = 0; i < 2; i++)
		for (size_t blocks = 100; blocks <= (check_rounds > 1 ? 1000000 : 4000);
		     blocks *= blocks < 4000 ? 40 : 250)
			MUST(costs(allocator, policies[i], blocks));
	MUST(alloc_end(allocator));
}

/* Policy near may look at all that lies in some windows, whatever else there is. */
#define BOUND_NEAR (8 * ALLOC_UNIT / SEGMENT)

/* Free blocks of two segments, of which none is aligned to four, and a heap that may grow. */
static bool unaligned(struct subject_allocator *allocator, enum subject_code_policy policy, size_t holes)
{
	const struct subject_code_request request = {4 * SEGMENT, 5};
	struct subject_code_config config = code_config();
	struct subject_code_heap *heap;
	struct subject_code_figures now;
	struct subject_code code;
	uintptr_t *at = os_share(holes * sizeof(*at));
	bool right = true;
	int error;

	config.policy = policy;
	config.segment_bytes = SEGMENT;
	config.region_bytes = (holes * 4 * SEGMENT + ALLOC_UNIT - 1) / ALLOC_UNIT * ALLOC_UNIT;
	config.maximum_bytes = 4 * config.region_bytes;
	check_note_number("blocks", holes);
	check_note_number("policy", policy);
	error = CODE(create)(allocator, &config, &heap);
	if (error == SUBJECT_ERROR_UNSUPPORTED)
		return true;
	for (size_t i = 0; i < holes && !error; i++) {
		error = CODE(allocate)(heap, SEGMENT, NULL, &code);
		error = error ? error : CODE(allocate)(heap, 2 * SEGMENT, NULL, &code);
		at[i] = code.rx;
		error = error ? error : CODE(allocate)(heap, SEGMENT, NULL, &code);
	}
	for (size_t i = 0; i < holes && !error; i++)
		error = CODE(free)(heap, at[i]);
	for (unsigned i = 0; i < 20 && !error; i++) {
		error = CODE(allocate)(heap, 2 * SEGMENT, &request, &code);
		right = right && CHECK_EQUAL(0, code.rx % request.align, "an alignment that was asked for");
	}
	right = right && ALLOC_OK(error) && figures(heap, &now) &&
		CHECK_TRUE(now.most_steps <= (policy == SUBJECT_CODE_NEAR ? BOUND_NEAR : BOUND),
			   "a search gives up on very many blocks that are not aligned");
	os_unmap(at, holes * sizeof(*at));
	return right && ALLOC_OK(CODE(destroy)(heap));
}

CHECK(ch_code_cost_aligned, "CH-013", "a search passes over few of very many blocks that fit but for their alignment")
{
	static const enum subject_code_policy policies[] = {SUBJECT_CODE_FIRST, SUBJECT_CODE_BEST, SUBJECT_CODE_NEAR};
	struct subject_allocator *allocator;

	if (!alloc_claims("allocator os-table code-heap code-figures"))
		return;
	allocator = alloc_make(NULL);
	MUST(allocator);
	for (unsigned i = 0; i < 3; i++)
		for (size_t holes = 50; holes <= (check_rounds > 1 ? 50000 : 1000); holes *= holes < 1000 ? 20 : 50)
			MUST(unaligned(allocator, policies[i], holes));
	MUST(alloc_end(allocator));
}
