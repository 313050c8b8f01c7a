/*
 * What the table was asked for is what the system has.
 */
#include "../alloc/alloc.h"
#include "../alloc/maps.h"

static bool agreed;

static void compare(const char *operation)
{
	agreed = agreed && maps_agree(operation);
}

CHECK(wx_extents, "WX-030",
      "after each operation the model of what was mapped equals /proc/self/maps, extent by extent")
{
	if (!alloc_claims("allocator os-table"))
		return;
	agreed = true;
	(void)alloc_walk(NULL, NULL, compare);
}
