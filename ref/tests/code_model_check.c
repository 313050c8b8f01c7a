#include "code_model.h"

static struct {
	size_t region, block;
} cursor;

static int compare(void *context, const struct execmem_code *block)
{
	const struct code_model_region *r = &code_model.region[cursor.region];
	uintptr_t *at = context;

	EXPECT(cursor.region < code_model.regions);
	if (cursor.block == 0)
		*at = r->start;
	EXPECT_EQUAL(*at, block->rx.at);
	EXPECT_EQUAL(r->block[cursor.block].count * code_model.segment, block->bytes);
	EXPECT_EQUAL(r->block[cursor.block].code, block->code_bytes);
	EXPECT_EQUAL(r->block[cursor.block].kind, block->kind);
	*at += block->bytes;
	if (++cursor.block == r->blocks) {
		EXPECT_EQUAL(r->start + r->segments * code_model.segment, *at);
		cursor.region++;
		cursor.block = 0;
	}
	return 0;
}

static void check_figures(void)
{
	struct execmem_code_figures figures;
	size_t free_blocks = 0, free_bytes = 0, unused = 0, blocks = 0, top = 0, largest = 0, reserved = 0;

	for (size_t i = 0; i < code_model.regions; i++) {
		size_t at = 0;

		for (size_t b = 0; b < code_model.region[i].blocks; at += code_model.region[i].block[b].count, b++) {
			size_t count = code_model.region[i].block[b].count;

			if (code_model.region[i].block[b].code) {
				unused += count * code_model.segment - code_model.region[i].block[b].code;
				blocks++;
				continue;
			}
			largest = count > largest ? count : largest;
			EXPECT(count >= code_model.config.minimum);
			if (at >= code_model.region[i].top)
				continue;
			free_blocks++;
			free_bytes += (at + count < code_model.region[i].top ? count : code_model.region[i].top - at) *
				      code_model.segment;
		}
		top += code_model.region[i].top;
		reserved += code_model.region[i].segments * code_model.segment;
	}
	OK(execmem_code_figures(code_model.heap, &figures));
	EXPECT_EQUAL(free_blocks, figures.free_blocks);
	EXPECT_EQUAL(free_bytes, figures.free_bytes);
	EXPECT_EQUAL(unused, figures.unused_bytes);
	EXPECT_EQUAL(top, figures.segment_map_bytes);
	EXPECT_EQUAL(top * code_model.segment, figures.footprint_bytes);
	EXPECT_EQUAL(code_model.used * code_model.segment, figures.used_bytes);
	EXPECT_EQUAL(code_model.largest_used * code_model.segment, figures.largest_used_bytes);
	EXPECT_EQUAL(free_bytes + unused + top, figures.wasted_bytes);
	if (code_model.largest_used) {
		double percent =
			(double)figures.wasted_bytes * 10000 / (double)(code_model.largest_used * code_model.segment);

		EXPECT((double)figures.overhead_per_myriad >= percent - 0.5001 &&
		       (double)figures.overhead_per_myriad <= percent + 0.5001);
	}
	EXPECT_EQUAL(blocks, figures.live_blocks);
	EXPECT_EQUAL(code_model.live, figures.live_blocks);
	EXPECT_EQUAL(largest * code_model.segment, figures.largest_free);
	EXPECT_EQUAL(reserved, figures.reserved_bytes);
	EXPECT_EQUAL(code_model.regions, figures.regions);
	EXPECT_EQUAL(stats_of(code_model.allocator).committed_bytes, figures.committed_bytes);
	EXPECT(figures.committed_bytes >= code_model.used * code_model.segment);
	EXPECT_EQUAL(figures.allocations - figures.frees, code_model.live);
}

void code_model_check(void)
{
	uintptr_t at = 0;

	cursor.region = cursor.block = 0;
	OK(execmem_code_walk(code_model.heap, compare, &at));
	EXPECT_EQUAL(code_model.regions, cursor.region);
	check_figures();
}

/* What is known of every address of a block and around it. */
void code_model_check_find(const struct code_model_region *r, size_t b, size_t offset)
{
	uintptr_t start = code_model_address(r, b);
	struct execmem_code code = {.bytes = 1};
	int error = execmem_code_find(code_model.allocator, (void *)(start + offset), &code);

	if (!r->block[b].code) {
		EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, error);
		EXPECT_EQUAL(1, code.bytes);
		EXPECT_EQUAL(-1, execmem_code_kind(code_model.allocator, (void *)(start + offset)));
		return;
	}
	OK(error);
	EXPECT_EQUAL(start, code.rx.at);
	EXPECT_EQUAL(r->block[b].count * code_model.segment, code.bytes);
	EXPECT_EQUAL(r->block[b].code, code.code_bytes);
	EXPECT_EQUAL(r->block[b].kind, code.kind);
	EXPECT_EQUAL(r->block[b].kind, execmem_code_kind(code_model.allocator, (void *)(start + offset)));
}
