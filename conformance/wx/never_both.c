/*
 * W^X at every call, over a walk through every operation.
 */
#include "../alloc/alloc.h"

CHECK(wx_never_both, "WX-001", "no mapping is writable and executable, after any call of any operation")
{
	if (!alloc_claims("allocator os-table"))
		return;
	MUST(alloc_walk(NULL, NULL));
	MUST(CHECK_TRUE(watch.of_kind[WATCH_MAP] && watch.of_kind[WATCH_MAP_FIXED], "mappings were made"));
	WATCH_KEPT(WATCH_BOTH, "no mapping is writable and executable");
}
