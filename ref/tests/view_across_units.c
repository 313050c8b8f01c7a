/* A view over units that are apart in the memory file is one range of addresses, each byte its executable one. */
#include "test.h"

#define UNIT ((size_t)EXECMEM_UNIT_BYTES)

static void change(struct execmem_config *config)
{
	config->window_bytes = 4 * UNIT;
}

int main(void)
{
	struct execmem_allocator *allocator = make(change);
	struct execmem_region a, b;
	struct execmem_view view;

	OK(execmem_reserve(allocator, 5 * UNIT, NULL, 0, NULL, &a));
	OK(execmem_reserve(allocator, 5 * UNIT, NULL, 0, NULL, &b));
	for (size_t i = 0; i < 4; i++) {
		OK(execmem_commit(&a, i * UNIT, UNIT));
		OK(execmem_commit(&b, i * UNIT, UNIT));
	}
	OK(execmem_map_rw(allocator, (execmem_rx){a.rx.at + UNIT / 2}, 3 * UNIT, 0, &view));
	for (size_t i = 0; i < 3 * UNIT; i += 1021) {
		view.rw.at[i] = (unsigned char)(i * 7 + 1);
		EXPECT(((const unsigned char *)view.rx.at)[i] == (unsigned char)(i * 7 + 1));
	}
	/* Nothing of the other region was touched. */
	for (size_t i = 0; i < 4 * UNIT; i++)
		EXPECT(((const unsigned char *)b.rx.at)[i] == 0);
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_decommit(&a, 0, UNIT)); /* its unit is in the open mapping */
	OK(execmem_unmap_rw(&view));
	OK(execmem_decommit(&a, 0, UNIT));
	EXPECT_EQUAL(0, stats_of(allocator).views_mapped);
	OK(execmem_map_rw(allocator, (execmem_rx){a.rx.at + UNIT}, 1, 0, &view)); /* clipped to what has a place */
	view.rw.at[0] = 3;
	EXPECT_EQUAL(3, *(const unsigned char *)(a.rx.at + UNIT));
	OK(execmem_unmap_rw(&view));
	OK(execmem_release(&a));
	OK(execmem_release(&b));
	OK(execmem_destroy(allocator));
	return 0;
}
