/*
 * Very many small blocks side by side, of which ever more are of a kind of their own: whatever a heap remembers of a
 * block, it has to make room for it, to move it, and to forget it.
 */
#include "call.h"
#include "code_heap.h"

#define MOST   ((size_t)540) /* two groups of 256, and some of a third */
#define PHASES 4u

static struct {
	uintptr_t rx;
	size_t code;
	unsigned kind;
	bool live;
} blocks[MOST];

enum look { SIZES, KINDS };

static bool is_right(struct subject_allocator *allocator, enum look look, size_t i)
{
	const uintptr_t inside = blocks[i].rx + blocks[i].code / 2;
	struct subject_code code = {0};

	check_note_number("block", i);
	if (look == KINDS)
		return CODE(kind)(allocator, inside) == (blocks[i].live ? (int)blocks[i].kind : -1) ||
		       CHECK_TRUE(false, "an address has the kind of its block, and none in free memory");
	if (CODE(find)(allocator, inside, &code))
		return !blocks[i].live || CHECK_TRUE(false, "a live block is found");
	return (blocks[i].live && code.rx == blocks[i].rx && code.code_bytes == blocks[i].code) ||
	       CHECK_TRUE(false, "a block is found, with the bytes that were asked for");
}

static bool all_right(struct subject_allocator *allocator, enum look look, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!is_right(allocator, look, i))
			return false;
	return CHECK_TRUE(true, "all blocks are what they are");
}

/* Each block is of the minimum, so that what was freed fits again just there. */
static bool play(enum look look, size_t segment, unsigned minimum)
{
	struct subject_code_config config = code_config();
	const size_t bytes = segment * minimum, count = MOST / minimum < 90 ? 90 : MOST / minimum;
	struct code_pair pair;

	check_note_number("segment", segment);
	check_note_number("minimum", minimum);
	config.segment_bytes = segment;
	config.minimum = minimum;
	config.region_bytes = (count * bytes + ALLOC_UNIT) / ALLOC_UNIT * ALLOC_UNIT;
	config.maximum_bytes = config.region_bytes;
	__builtin_memset(blocks, 0, sizeof(blocks));
	if (!code_make(&config, &pair))
		return false;
	for (unsigned phase = 0; phase < PHASES; phase++) {
		for (size_t i = 0; i < count; i++) {
			const uint64_t random = call_mix(check_seed * 64 + phase, i);
			/* Of its own kind: hardly any at first, nearly all at the end, and then hardly any again. */
			const bool own = random % 8 < (phase == PHASES - 1 ? 1 : 3 * phase + 1);
			const struct subject_code_request request = {0, own ? (unsigned)(random >> 8) % 63 : 5};
			struct subject_code code;

			if (blocks[i].live)
				continue;
			blocks[i].code = (random >> 16) % 4 ? 1 + (size_t)(random >> 20) % bytes : 1;
			if (!ALLOC_OK(CODE(allocate)(pair.heap, blocks[i].code, &request, &code)))
				return false;
			blocks[i].rx = code.rx;
			blocks[i].kind = request.kind;
			blocks[i].live = true;
		}
		if (!all_right(pair.allocator, look, count))
			return false;
		for (size_t i = 0; i < count; i++) {
			if (call_mix(check_seed * 64 + phase, i + MOST) % 3 && phase + 2 < PHASES)
				continue;
			blocks[i].live = false;
			if (!ALLOC_OK(CODE(free)(pair.heap, blocks[i].rx)))
				return false;
		}
		if (!all_right(pair.allocator, look, count))
			return false;
	}
	return code_end(&pair);
}

/* What is to be remembered takes 4, 8, nearly 8, 16 and 32 bits. */
static void play_all(enum look look)
{
	static const struct {
		size_t segment;
		unsigned minimum;
	} heaps[] = {{16, 1}, {32, 3}, {256, 1}, {512, 2}, {4096, 12}};

	if (!alloc_claims("allocator os-table code-heap code-find"))
		return;
	for (unsigned i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i++)
		MUST(play(look, heaps[i].segment, heaps[i].minimum));
}

CHECK(ch_code_many_sizes, "CH-004", "of very many small blocks side by side, each is found with its size")
{
	play_all(SIZES);
}

CHECK(ch_code_many_kinds, "CH-005", "of very many small blocks side by side, each has its kind")
{
	play_all(KINDS);
}
