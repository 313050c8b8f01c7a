#include <execmem/os.h>

const char *execmem_os_missing(const struct execmem_os *os)
{
#define CHECK(entry_)                                                                                                  \
	if (!os->entry_)                                                                                               \
		return #entry_;
	CHECK(page_size)
	CHECK(map)
	CHECK(map_fixed)
	CHECK(protect)
	CHECK(unmap)
	CHECK(discard)
	CHECK(discard_many)
	CHECK(file_create)
	CHECK(file_grow)
	CHECK(file_seal)
	CHECK(file_punch)
	CHECK(file_close)
	CHECK(limit)
	CHECK(name)
	CHECK(sync_code)
	CHECK(serialize)
	CHECK(probe_code)
	CHECK(probe_run)
	CHECK(wait)
	CHECK(wake)
	CHECK(identity)
	CHECK(wipe_on_fork)
	CHECK(write)
#undef CHECK
	return NULL;
}

/* Every entry is a pointer: one that the list above forgets shows here. */
_Static_assert(sizeof(struct execmem_os) == 24 * sizeof(void *), "execmem_os_missing does not check every entry");
