/*
 * Where mappings go that may lie anywhere.
 */
#include "test.h"

/* Below the place where Linux begins to map, above what sanitizers keep for themselves. */
#define PLACES     0x7ea000000000u
#define PLACES_END (PLACES + ((uintptr_t)1 << 36))

void watch_place_alike(void)
{
	watch.place = PLACES;
}

int place_anywhere(const struct execmem_os *real, size_t bytes, unsigned protection, int file, uint64_t offset,
		   void **address)
{
	if (!watch.place)
		return real->map(real->context, NULL, bytes, protection, file, offset, address);
	for (;;) {
		void *place;
		int error;

		if (bytes > PLACES_END - watch.place)
			watch.place = PLACES;
		place = (void *)watch.place;
		error = real->map(real->context, place, bytes, protection, file, offset, address);
		if (error)
			return error;
		if (*address == place) {
			watch.place += bytes;
			return 0;
		}
		EXPECT_EQUAL(0, real->unmap(real->context, *address, bytes));
		watch.place += EXECMEM_UNIT_BYTES;
	}
}
