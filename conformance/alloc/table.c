#include "table.h"

#include "check.h"
#include "os.h"

/* include/uapi: asm-generic/mman-common.h, linux/mman.h, memfd.h, fcntl.h, resource.h, prctl.h, futex.h, membarrier.h,
 * stat.h. The same on every port so far. */
#define MAP_SHARED         0x01
#define MAP_PRIVATE        0x02
#define MAP_FIXED          0x10
#define MAP_ANONYMOUS      0x20
#define MAP_NORESERVE      0x4000
#define MADV_DONTNEED      4
#define MADV_WIPEONFORK    18
#define MADV_NO_SUCH       0x7ffe
#define MFD_CLOEXEC        1
#define MFD_ALLOW_SEALING  2
#define MFD_EXEC           0x10
#define F_ADD_SEALS        1033
#define AT_FDCWD           (-100)
#define AT_EMPTY_PATH      0x1000
#define STATX_BLOCKS       0x400
#define RLIMIT_FSIZE       1
#define RLIMIT_AS          9
#define PR_SET_VMA         0x53564d41
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129
#define SYNC_CORE          (1 << 5)
#define SYNC_CORE_REGISTER (1 << 6)
#define IN_CORE_PAGES      32
#define BLOCK_BYTES        512 /* of struct statx, whatever the file system has */

static int protection_of(unsigned protection)
{
	/* PROT_READ, PROT_WRITE and PROT_EXEC are 1, 2 and 4. */
	const int bits = (int)(protection & 7);

	return protection & SUBJECT_PADS ? bits | EXECMEM_PORT_PROT_PADS : bits;
}

static size_t page_size(void *context)
{
	(void)context;
	return check_os_page;
}

static int map_any(void *hint, size_t bytes, unsigned protection, int flags, int file, uint64_t offset, void **address)
{
	void *at;

	flags |= file == SUBJECT_NO_FILE ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	at = execmem_port_map(hint, bytes, protection_of(protection), flags, file, offset);
	if (execmem_port_is_error(at))
		return (int)(intptr_t)at;
	*address = at;
	return 0;
}

static int map(void *context, void *hint, size_t bytes, unsigned protection, int file, uint64_t offset, void **address)
{
	(void)context;
	return map_any(hint, bytes, protection, 0, file, offset, address);
}

static int map_fixed(void *context, void *address, size_t bytes, unsigned protection, int file, uint64_t offset)
{
	(void)context;
	return map_any(address, bytes, protection, MAP_FIXED, file, offset, &address);
}

static int protect(void *context, void *address, size_t bytes, unsigned protection)
{
	(void)context;
	return execmem_port_protect(address, bytes, protection_of(protection));
}

static int unmap(void *context, void *address, size_t bytes)
{
	(void)context;
	return execmem_port_unmap(address, bytes);
}

static int discard(void *context, void *address, size_t bytes)
{
	(void)context;
	return (int)TABLE_CALL(MADVISE, address, bytes, MADV_DONTNEED);
}

/* One at a time: what batching saves is not the suite's concern. */
static int discard_many(void *context, const struct subject_span *spans, size_t count, size_t *done)
{
	int error = 0;

	for (*done = 0; *done < count && !error; *done += !error)
		error = discard(context, spans[*done].address, spans[*done].bytes);
	return error;
}

static int file_create(void *context, const char *name, int executable, int *file)
{
	const long result =
		TABLE_CALL(MEMFD_CREATE, name, MFD_CLOEXEC | MFD_ALLOW_SEALING | (executable ? MFD_EXEC : 0));

	(void)context;
	if (result < 0)
		return (int)result;
	*file = (int)result;
	return 0;
}

static int file_grow(void *context, int file, uint64_t bytes)
{
	(void)context;
	return execmem_port_truncate(file, bytes);
}

static int file_seal(void *context, int file, unsigned seals)
{
	(void)context;
	return (int)TABLE_CALL(FCNTL, file, F_ADD_SEALS, seals); /* F_SEAL_SEAL and so on are 1, 2, 4, 8 */
}

static int file_punch(void *context, int file, uint64_t offset, uint64_t bytes)
{
	(void)context;
	return execmem_port_punch(file, offset, bytes);
}

static int file_close(void *context, int file)
{
	(void)context;
	return (int)TABLE_CALL(CLOSE, file);
}

long table_read_file(const char *path, char *to, size_t room)
{
	const long file = TABLE_CALL(OPENAT, AT_FDCWD, path, 0);
	long used = 0, count = 1;

	if (file < 0)
		return file;
	while (count > 0 && (size_t)used < room) {
		count = TABLE_CALL(READ, file, to + used, room - (size_t)used);
		used += count > 0 ? count : 0;
	}
	TABLE_CALL(CLOSE, file);
	return count < 0 ? count : used;
}

/* The decimal number at the start of a file. */
static int number_in(const char *path, uint64_t *value)
{
	char room[32];
	const long count = table_read_file(path, room, sizeof(room));
	uint64_t result = 0;

	for (long i = 0; i < count && room[i] >= '0' && room[i] <= '9'; i++)
		result = result * 10 + (uint64_t)(room[i] - '0');
	*value = result;
	return count < 0 ? (int)count : 0;
}

static int lines_in(const char *path, uint64_t *lines)
{
	const long file = TABLE_CALL(OPENAT, AT_FDCWD, path, 0);
	char room[4096];
	long count;

	if (file < 0)
		return (int)file;
	while ((count = TABLE_CALL(READ, file, room, sizeof(room))) > 0)
		for (long i = 0; i < count; i++)
			*lines += room[i] == '\n';
	TABLE_CALL(CLOSE, file);
	return (int)count;
}

static int limit(void *context, unsigned which, uint64_t *used, uint64_t *most)
{
	uint64_t pair[2] = {SUBJECT_UNLIMITED, SUBJECT_UNLIMITED}, now = 0;
	long error = -TABLE_EINVAL;

	(void)context;
	if (which == SUBJECT_LIMIT_FILE_BYTES) {
		error = TABLE_CALL(PRLIMIT64, 0, RLIMIT_FSIZE, 0, pair);
	} else if (which == SUBJECT_LIMIT_ADDRESS_BYTES) {
		error = TABLE_CALL(PRLIMIT64, 0, RLIMIT_AS, 0, pair);
		if (!error)
			error = number_in("/proc/self/statm", &now);
		now *= check_os_page;
	} else if (which == SUBJECT_LIMIT_MAPPINGS) {
		error = number_in("/proc/sys/vm/max_map_count", &pair[0]);
		if (!error)
			error = lines_in("/proc/self/maps", &now);
	}
	if (error)
		return (int)error;
	*used = now;
	*most = pair[0];
	return 0;
}

static int name(void *context, void *address, size_t bytes, const char *text)
{
	(void)context;
	return (int)TABLE_CALL(PRCTL, PR_SET_VMA, 0, address, bytes, text);
}

static int sync_code(void *context, const void *address, size_t bytes)
{
	(void)context;
	execmem_port_sync_code((void *)(uintptr_t)address, bytes);
	return 0;
}

static int serialize(void *context)
{
	long error = TABLE_CALL(MEMBARRIER, SYNC_CORE, 0, 0);

	(void)context;
	if (error == -TABLE_EPERM) {
		error = TABLE_CALL(MEMBARRIER, SYNC_CORE_REGISTER, 0, 0);
		if (!error)
			error = TABLE_CALL(MEMBARRIER, SYNC_CORE, 0, 0);
	}
	return error == -TABLE_EINVAL ? -TABLE_ENOSYS : (int)error;
}

static int probe_code(void *context, unsigned value, unsigned char *code, size_t *bytes)
{
	(void)context;
	*bytes = execmem_port_probe_code(value, code);
	return 0;
}

static unsigned probe_run(void *context, const void *code)
{
	unsigned (*function)(void) = (unsigned (*)(void))(uintptr_t)code;

	(void)context;
	return function();
}

static void wait(void *context, const uint32_t *word, uint32_t value)
{
	(void)context;
	TABLE_CALL(FUTEX, word, FUTEX_WAIT_PRIVATE, value);
}

static void wake(void *context, const uint32_t *word, unsigned count)
{
	(void)context;
	TABLE_CALL(FUTEX, word, FUTEX_WAKE_PRIVATE, count);
}

static int identity(void *context, uint64_t *process)
{
	(void)context;
	*process = os_process();
	return 0;
}

static int wipe_on_fork(void *context, void *address, size_t bytes)
{
	(void)context;
	/* An emulator that accepts any advice does nothing about it. */
	if (TABLE_CALL(MADVISE, address, bytes, MADV_NO_SUCH) == 0)
		return -TABLE_ENOSYS;
	return (int)TABLE_CALL(MADVISE, address, bytes, MADV_WIPEONFORK);
}

static int write_text(void *context, const char *text, size_t bytes)
{
	(void)context;
	(void)execmem_port_write(2, text, bytes);
	return 0;
}

int64_t table_file_blocks(int file)
{
	/* struct statx: stx_mask at 0, stx_blocks at 48, of 256 bytes. */
	uint64_t status[32] = {0};
	const long error = TABLE_CALL(STATX, file, "", AT_EMPTY_PATH, STATX_BLOCKS, status);

	return error ? (int64_t)error : (int64_t)(status[6] * BLOCK_BYTES);
}

int64_t table_resident(uintptr_t address, size_t bytes)
{
	/*
	 * An entry a page; an emulator whose pages are larger than the machine's gives one a page of the machine. So
	 * what was written is counted: mincore(2) leaves the highest bit zero.
	 */
	unsigned char in_core[IN_CORE_PAGES * 16];
	int64_t found = 0;

	for (size_t at = 0, piece; at < bytes; at += piece) {
		size_t entries = 0, set = 0;
		long error;

		piece = bytes - at < IN_CORE_PAGES * check_os_page ? bytes - at : IN_CORE_PAGES * check_os_page;
		__builtin_memset(in_core, 0x80, sizeof(in_core));
		error = TABLE_CALL(MINCORE, address + at, piece, in_core);
		if (error)
			return error;
		for (; entries < sizeof(in_core) && !(in_core[entries] & 0x80); entries++)
			set += in_core[entries] & 1;
		if (entries)
			found += (int64_t)(piece / entries * set);
	}
	return found;
}

const struct subject_os table_real = {
	.page_size = page_size,
	.map = map,
	.map_fixed = map_fixed,
	.protect = protect,
	.unmap = unmap,
	.discard = discard,
	.discard_many = discard_many,
	.file_create = file_create,
	.file_grow = file_grow,
	.file_seal = file_seal,
	.file_punch = file_punch,
	.file_close = file_close,
	.limit = limit,
	.name = name,
	.sync_code = sync_code,
	.serialize = serialize,
	.probe_code = probe_code,
	.probe_run = probe_run,
	.wait = wait,
	.wake = wake,
	.identity = identity,
	.wipe_on_fork = wipe_on_fork,
	.write = write_text,
};
