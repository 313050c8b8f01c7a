/*
 * Policy near, by what it is for: code that comes in many sizes, into a heap full of holes, needs few writable
 * mappings.
 */
#include "code_heap.h"

#define SEGMENT ((size_t)64)
#define WINDOWS 10u
#define SIZES   5u
#define NEW     60u

/* The holes of a window are of one size, other windows have others: best fit goes from window to window. */
static size_t hole(unsigned window)
{
	return SEGMENT * (4 + 4 * (window % SIZES));
}

/* Holes and blocks in turn fill each window. */
static bool fill(const struct code_pair *pair, const uintptr_t start)
{
	static uintptr_t holes[WINDOWS * (ALLOC_UNIT / (8 * SEGMENT) + 1)];
	unsigned count = 0;

	for (uintptr_t at = start; at < start + WINDOWS * ALLOC_UNIT;) {
		const uintptr_t end = start + ((at - start) / ALLOC_UNIT + 1) * ALLOC_UNIT;
		const size_t each = hole((unsigned)((at - start) / ALLOC_UNIT));

		for (unsigned i = 0; i < 2 && at < end; i++) {
			const size_t bytes = end - at < each ? end - at : each;
			const struct subject_code_request request = {0, 5};
			struct subject_code code;

			if (!ALLOC_OK(CODE(allocate_near)(pair->heap, bytes, &request, at + bytes / 2,
							  bytes - bytes / 2, &code)) ||
			    !CHECK_EQUAL(at, code.rx, "the one place within reach"))
				return false;
			if (i == 0 && bytes == each)
				holes[count++] = at;
			at += bytes;
		}
	}
	while (count)
		if (!ALLOC_OK(CODE(free)(pair->heap, holes[--count])))
			return false;
	return true;
}

static int find_start(void *context, const struct subject_code *block)
{
	*(uintptr_t *)context = block->rx;
	return 1;
}

CHECK(ch_code_windows, "CH-015",
      "policy near needs few writable mappings for code of many sizes in a heap full of holes")
{
	struct subject_code_config config = code_config();
	struct code_pair pair;
	unsigned long before;
	uintptr_t start = 0;
	int error;

	if (!alloc_claims("allocator os-table code-heap code-near"))
		return;
	config.policy = SUBJECT_CODE_NEAR;
	config.region_bytes = config.maximum_bytes = WINDOWS * ALLOC_UNIT;
	pair.allocator = alloc_make(NULL);
	MUST(pair.allocator != NULL);
	error = CODE(create)(pair.allocator, &config, &pair.heap);
	if (error == SUBJECT_ERROR_UNSUPPORTED) {
		check_not_claimed("the subject has no such policy");
		return;
	}
	MUST_OK(error);
	(void)CODE(walk)(pair.heap, find_start, &start);
	MUST(fill(&pair, start));
	before = watch.of_kind[WATCH_MAP];
	for (unsigned i = 0; i < NEW; i++) {
		struct subject_code code;

		MUST_OK(CODE(allocate)(pair.heap, hole(i * 3), NULL, &code));
		MUST(alloc_put(pair.allocator, code.rx, i));
	}
	check_note_number("mappings", watch.of_kind[WATCH_MAP] - before);
	MUST(CHECK_TRUE(watch.of_kind[WATCH_MAP] - before <= NEW / 5,
			"a block goes where a writable mapping is, as long as it fits there"));
	MUST(code_end(&pair));
}
