/*
 * Data of family FT: what each call may meet, and what may be kept silent.
 */
#include "../alloc/table.h"
#include "../text.h"
#include "trial.h"

#define EINTR      4
#define EIO        5
#define EBUSY      16
#define EPIPE      32
#define EOPNOTSUPP 95

/* Manual pages of mmap, mprotect, munmap, madvise, memfd_create, ftruncate, fcntl, fallocate, close, open, prctl,
 * membarrier, write. */
static const int errors[WATCH_KIND_COUNT][6] = {
	[WATCH_MAP] = {TABLE_ENOMEM, TABLE_EACCES, TABLE_EAGAIN},
	[WATCH_MAP_FIXED] = {TABLE_ENOMEM, TABLE_EACCES, TABLE_EAGAIN},
	[WATCH_PROTECT] = {TABLE_ENOMEM, TABLE_EACCES},
	[WATCH_UNMAP] = {TABLE_ENOMEM, TABLE_EINVAL},
	[WATCH_DISCARD] = {TABLE_EAGAIN, TABLE_ENOMEM},
	[WATCH_DISCARD_MANY] = {TABLE_ENOSYS, TABLE_EPERM},
	[WATCH_FILE_CREATE] = {TABLE_EPERM, TABLE_EACCES, TABLE_EMFILE, TABLE_ENOMEM, TABLE_EINVAL},
	[WATCH_FILE_GROW] = {TABLE_ENOSPC, TABLE_EFBIG, EINTR, TABLE_EPERM},
	[WATCH_FILE_SEAL] = {TABLE_EPERM, EBUSY, TABLE_EINVAL},
	[WATCH_FILE_PUNCH] = {EOPNOTSUPP, TABLE_ENOSPC, TABLE_EPERM, EINTR},
	[WATCH_FILE_CLOSE] = {EIO},
	[WATCH_LIMIT] = {TABLE_ENOENT, TABLE_EMFILE, TABLE_EACCES},
	[WATCH_NAME] = {TABLE_EINVAL, TABLE_ENOMEM},
	[WATCH_SYNC_CODE] = {TABLE_ENOSYS, TABLE_EINVAL},
	[WATCH_SERIALIZE] = {TABLE_ENOSYS, TABLE_EPERM},
	[WATCH_PROBE_CODE] = {TABLE_EINVAL},
	[WATCH_IDENTITY] = {TABLE_EAGAIN},
	[WATCH_WIPE_ON_FORK] = {TABLE_EINVAL, TABLE_ENOMEM, TABLE_ENOSYS},
	[WATCH_WRITE] = {EIO, TABLE_EAGAIN, EPIPE},
};

const int *ft_errors(enum watch_kind kind)
{
	return errors[kind];
}

static const struct {
	const char *operation;
	enum watch_kind kind;
	const char *why;
} ignored[] = {
	{"create", WATCH_FILE_CREATE, "a file is made without the right to execute, which it does not need"},
	{"create", WATCH_FILE_SEAL, "nothing depends on the seal"},
	{"create", WATCH_WIPE_ON_FORK, "the process is asked for at each operation instead"},
	{"create", WATCH_FILE_PUNCH, "the blocks of the probe are offered again before their place is used"},
	{"reserve", WATCH_NAME, "a name in /proc/self/maps is for readers alone"},
	{"reserve_near", WATCH_NAME, "a name in /proc/self/maps is for readers alone"},
	{"reserve_near", WATCH_MAP, "another place within reach is taken"},
	{"commit", WATCH_LIMIT, "what is free in the file is used, in pieces, where it cannot grow"},
	{"commit", WATCH_FILE_GROW, "what is free in the file is used, in pieces, where it cannot grow"},
	{"commit", WATCH_FILE_PUNCH, "blocks that were refused before are offered again: another place is used"},
	{"decommit", WATCH_FILE_PUNCH, "the pages are gone; their blocks are offered again before their place is used"},
	{"release", WATCH_FILE_PUNCH, "the pages are gone; their blocks are offered again before their place is used"},
	{"release", WATCH_UNMAP, "memory of bookkeeping is kept for the next region"},
	{"fork_prepare", WATCH_FILE_SEAL, "nothing depends on the seal"},
	{"fork_prepare", WATCH_FILE_CREATE, "a file is made without the right to execute, which it does not need"},
	{"fork_parent", WATCH_IDENTITY, "the caller is believed: nothing else can give back what preparing has taken"},
	{"fork_child", WATCH_FILE_CLOSE, "a descriptor of the parent's file does no harm, and the child goes on"},
};

const char *ft_ignored(const char *operation, const struct watch_call *call)
{
	for (unsigned i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (text_equal(ignored[i].operation, operation) && ignored[i].kind == call->kind &&
		    (call->kind != WATCH_FILE_CREATE || call->protection))
			return ignored[i].why;
	return NULL;
}
