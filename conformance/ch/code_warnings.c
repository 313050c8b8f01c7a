/*
 * What the callback of a heap is told: that the free list is long, that the heap is full.
 */
#include "code_heap.h"

#define BOUND  6u
#define BLOCKS 32u

static struct {
	struct subject_code_heap *heap;
	struct subject_code_warning last;
	unsigned lists, fulls;
	bool same; /* the figures were those that could be had in the callback */
} told;

static void warn(void *context, const struct subject_code_warning *warning)
{
	struct subject_code_figures figures = {0};

	/* Nothing is locked: the heap may be used. */
	told.same = context == &told && !CODE(figures)(told.heap, &figures) &&
		    figures.free_blocks == warning->figures.free_blocks &&
		    figures.used_bytes == warning->figures.used_bytes &&
		    figures.largest_free == warning->figures.largest_free;
	told.last = *warning;
	if (warning->event == SUBJECT_CODE_FULL)
		told.fulls++;
	else
		told.lists++;
}

static bool lists(unsigned expected)
{
	return CHECK_EQUAL(expected, told.lists, "a free list that grows past the bound is told of, once") &&
	       CHECK_TRUE(!told.lists || told.same, "the callback is told the figures, and may use the heap");
}

/* The list is told of again after it was half as long, and not after it was one longer than that. */
static bool rearm(const struct subject_code block[BLOCKS], unsigned expected)
{
	struct subject_code again[BOUND + 1];
	unsigned taken = 0;

	for (unsigned i = 0; i <= BOUND; i++)
		if (!ALLOC_OK(CODE(free)(told.heap, block[2 * i].rx)))
			return false;
	for (unsigned least = BOUND / 2 + 1; least >= BOUND / 2; least--) {
		while (BOUND + 1 - taken > least)
			if (!ALLOC_OK(CODE(allocate)(told.heap, 64, NULL, &again[taken++])))
				return false;
		if (!lists(expected + 1))
			return false;
		while (taken)
			if (!ALLOC_OK(CODE(free)(told.heap, again[--taken].rx)))
				return false;
		if (!lists(expected + (least == BOUND / 2 ? 2 : 1)))
			return false;
	}
	while (taken <= BOUND)
		if (!ALLOC_OK(CODE(allocate)(told.heap, 64, NULL, &again[taken++])))
			return false;
	return true;
}

/* Cutting blocks that are followed by others makes as long a list. */
static bool cut(unsigned expected)
{
	struct subject_code block[BOUND + 1], behind;

	if (!check_claimed("code-shrink"))
		return true;
	for (unsigned i = 0; i <= BOUND; i++)
		if (!ALLOC_OK(CODE(allocate)(told.heap, 200, NULL, &block[i])) ||
		    !ALLOC_OK(CODE(allocate)(told.heap, 64, NULL, &behind)))
			return false;
	for (unsigned i = 0; i <= BOUND; i++)
		if (!lists(expected) || !ALLOC_OK(CODE(shrink)(told.heap, block[i].rx, 1, NULL)))
			return false;
	return lists(expected + 1);
}

/* Frees every second block from `from` on, until the list is told of; and half of what that made is taken again. */
static bool grow_list(const struct subject_code block[BLOCKS], unsigned expected)
{
	struct subject_code again[BOUND];

	for (unsigned i = 0; i <= BOUND; i++)
		if (!ALLOC_OK(CODE(free)(told.heap, block[2 * i].rx)) || !lists(expected + (i == BOUND)))
			return false;
	if (!CHECK_EQUAL(BOUND + 1, told.last.figures.free_blocks, "it is told of when the bound is passed"))
		return false;
	/* Up and down around the bound: nothing new. */
	for (unsigned i = 0; i < 3; i++)
		if (!ALLOC_OK(CODE(allocate)(told.heap, 64, NULL, &again[0])) ||
		    !ALLOC_OK(CODE(free)(told.heap, again[0].rx)) || !lists(expected + 1))
			return false;
	for (unsigned i = 0; i <= BOUND; i++)
		if (!ALLOC_OK(CODE(allocate)(told.heap, 64, NULL, &again[0])))
			return false;
	return lists(expected + 1);
}

CHECK(ch_code_free_list, "CH-011", "a free list past the bound is told of once, and again after it was half as long")
{
	struct subject_code_config config = code_config();
	struct subject_code block[BLOCKS];
	struct code_pair pair;

	if (!alloc_claims("allocator os-table code-heap code-figures"))
		return;
	config.policy = SUBJECT_CODE_FIRST;
	config.free_blocks = BOUND;
	config.warn = warn;
	config.context = &told;
	MUST(code_make(&config, &pair));
	__builtin_memset(&told, 0, sizeof(told));
	told.heap = pair.heap;
	for (unsigned i = 0; i < BLOCKS; i++)
		MUST_OK(CODE(allocate)(pair.heap, 64, NULL, &block[i]));
	MUST(grow_list(block, 0));
	MUST(grow_list(block, 1));
	MUST(rearm(block, 2));
	MUST(cut(4));
	MUST(CHECK_EQUAL(0, told.fulls, "a heap with room is not full"));
	MUST(code_end(&pair));
}

CHECK(ch_code_full, "CH-012", "a heap that is full says so, with figures, and works again when something is freed")
{
	struct subject_code_config config = code_config();
	struct subject_code block, large;
	struct code_pair pair;

	if (!alloc_claims("allocator os-table code-heap code-figures"))
		return;
	config.maximum_bytes = config.region_bytes;
	config.warn = warn;
	config.context = &told;
	MUST(code_make(&config, &pair));
	__builtin_memset(&told, 0, sizeof(told));
	told.heap = pair.heap;
	MUST_OK(CODE(allocate)(pair.heap, 1000, NULL, &block));
	MUST_OK(CODE(allocate)(pair.heap, config.region_bytes - block.bytes - 128, NULL, &large));
	MUST(CHECK_EQUAL(0, told.fulls, "a heap with room is not full"));
	MUST(ALLOC_IS(SUBJECT_ERROR_FULL, CODE(allocate)(pair.heap, 129, NULL, &large)));
	MUST(CHECK_EQUAL(1, told.fulls, "the callback is told of a full heap"));
	MUST(CHECK_TRUE(told.same, "the callback is told the figures, and may use the heap"));
	MUST(CHECK_EQUAL(129, told.last.bytes, "it is told what was asked for"));
	MUST(ALLOC_IS(SUBJECT_ERROR_FULL, told.last.error));
	MUST(CHECK_EQUAL(128, told.last.figures.largest_free, "it is told what there is"));
	MUST_OK(CODE(allocate)(pair.heap, 128, NULL, &large));
	MUST(ALLOC_IS(SUBJECT_ERROR_FULL, CODE(allocate)(pair.heap, 1, NULL, &large)));
	MUST(CHECK_EQUAL(2, told.fulls, "and each time"));
	MUST(CHECK_EQUAL(0, told.last.figures.largest_free, "with what there is then"));
	MUST_OK(CODE(free)(pair.heap, block.rx));
	MUST_OK(CODE(allocate)(pair.heap, 1000, NULL, &large));
	MUST(CHECK_EQUAL(block.rx, large.rx, "what is freed can be had again"));
	MUST(code_end(&pair));
}
