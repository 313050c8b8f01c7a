/*
 * The table of system operations over the raw system calls of arch/port.h.
 */
#include <execmem/os.h>

#include <port.h>

#include "linux_errno.h"

/* include/uapi: asm-generic/mman-common.h, linux/mman.h, memfd.h, fcntl.h, resource.h, prctl.h, futex.h, membarrier.h.
 * The same on every port so far. */
#define MAP_SHARED                    0x01
#define MAP_PRIVATE                   0x02
#define MAP_FIXED                     0x10
#define MAP_ANONYMOUS                 0x20
#define MAP_NORESERVE                 0x4000

#define MADV_DONTNEED                 4
#define MADV_WIPEONFORK               18
#define MADV_NEVER_DEFINED            0x7fff

#define MFD_CLOEXEC                   1u
#define MFD_ALLOW_SEALING             2u
#define MFD_EXEC                      0x10u
#define F_ADD_SEALS                   1033

#define AT_FDCWD                      (-100)
#define O_CLOEXEC                     02000000

#define RLIMIT_FSIZE                  1
#define RLIMIT_AS                     9

#define PR_SET_VMA                    0x53564d41
#define PR_SET_VMA_ANON_NAME          0

#define FUTEX_WAIT_PRIVATE            128
#define FUTEX_WAKE_PRIVATE            129

#define MEMBARRIER_SYNC_CORE          (1 << 5) /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */
#define MEMBARRIER_SYNC_CORE_REGISTER (1 << 6)

#define SPANS_A_CALL                  1024 /* UIO_MAXIOV */
#define STDERR                        2

#define SYS(name_, ...)               SYS6(name_, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define SYS6(name_, a, b, c, d, e, f, ...)                                                                             \
	execmem_port_syscall(EXECMEM_SYS_##name_, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static size_t page_size(void *context)
{
	return (uintptr_t)context;
}

/* ---- Mappings ---- */

/* PROT_READ, PROT_WRITE and PROT_EXEC have the values of EXECMEM_READ and so on. */
static int port_protection(unsigned protection)
{
	int bits = (int)(protection & (EXECMEM_READ | EXECMEM_WRITE | EXECMEM_EXECUTE));

	return protection & EXECMEM_PADS ? bits | EXECMEM_PORT_PROT_PADS : bits;
}

static int map_any(void *address, size_t bytes, unsigned protection, int flags, int file, uint64_t offset,
		   void **result)
{
	void *at;

	flags |= file == EXECMEM_NO_FILE ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	at = execmem_port_map(address, bytes, port_protection(protection), flags, file, offset);
	if (execmem_port_is_error(at))
		return (int)(intptr_t)at;
	*result = at;
	return 0;
}

static int map(void *context, void *hint, size_t bytes, unsigned protection, int file, uint64_t offset, void **address)
{
	(void)context;
	return map_any(hint, bytes, protection, 0, file, offset, address);
}

static int map_fixed(void *context, void *address, size_t bytes, unsigned protection, int file, uint64_t offset)
{
	void *at;

	(void)context;
	return map_any(address, bytes, protection, MAP_FIXED, file, offset, &at);
}

static int protect(void *context, void *address, size_t bytes, unsigned protection)
{
	(void)context;
	return execmem_port_protect(address, bytes, port_protection(protection));
}

static int unmap(void *context, void *address, size_t bytes)
{
	(void)context;
	return execmem_port_unmap(address, bytes);
}

static int discard(void *context, void *address, size_t bytes)
{
	(void)context;
	return (int)SYS(MADVISE, address, bytes, MADV_DONTNEED);
}

/* How many of `spans` lie wholly in the first `bytes` bytes of them. */
static size_t spans_in(const struct execmem_span *spans, size_t count, size_t bytes)
{
	size_t i = 0;

	for (; i < count && spans[i].bytes <= bytes; i++)
		bytes -= spans[i].bytes;
	return i;
}

/* process_madvise(2) of the calling process: kernels before 6.13 refuse MADV_DONTNEED. */
static int discard_many(void *context, const struct execmem_span *spans, size_t count, size_t *done)
{
	long process, result = 0;

	(void)context;
	*done = 0;
	process = SYS(PIDFD_OPEN, SYS(GETPID, 0), 0);
	if (process < 0)
		return (int)process;
	while (*done < count) {
		size_t batch = count - *done < SPANS_A_CALL ? count - *done : SPANS_A_CALL, taken;

		result = SYS(PROCESS_MADVISE, process, spans + *done, batch, MADV_DONTNEED, 0);
		if (result < 0)
			break;
		taken = spans_in(spans + *done, batch, (size_t)result);
		*done += taken;
		if (taken == 0) {
			result = -EINVAL;
			break;
		}
	}
	SYS(CLOSE, process);
	return result < 0 ? (int)result : 0;
}

static int name(void *context, void *address, size_t bytes, const char *text)
{
	(void)context;
	return (int)SYS(PRCTL, PR_SET_VMA, PR_SET_VMA_ANON_NAME, address, bytes, text);
}

/* ---- Memory files ---- */

static int file_create(void *context, const char *text, int executable, int *file)
{
	long result = SYS(MEMFD_CREATE, text, MFD_CLOEXEC | MFD_ALLOW_SEALING | (executable ? MFD_EXEC : 0));

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

/* F_SEAL_SEAL to F_SEAL_WRITE have the values of EXECMEM_SEAL_SEAL and so on. */
static int file_seal(void *context, int file, unsigned seals)
{
	(void)context;
	return (int)SYS(FCNTL, file, F_ADD_SEALS, seals);
}

static int file_punch(void *context, int file, uint64_t offset, uint64_t bytes)
{
	(void)context;
	return execmem_port_punch(file, offset, bytes);
}

static int file_close(void *context, int file)
{
	(void)context;
	return (int)SYS(CLOSE, file);
}

/* ---- Limits ---- */

/* A file of /proc, read in pieces. */
struct proc_file {
	int fd;
	long count, next; /* of bytes */
	char bytes[512];
};

static int proc_open(struct proc_file *file, const char *path)
{
	long fd = SYS(OPENAT, AT_FDCWD, path, O_CLOEXEC, 0);

	*file = (struct proc_file){.fd = (int)fd};
	return fd < 0 ? (int)fd : 0;
}

/* The next byte, or -1 at the end or where the system refuses. */
static int proc_next(struct proc_file *file)
{
	if (file->next == file->count) {
		file->next = 0;
		do {
			file->count = SYS(READ, file->fd, file->bytes, sizeof(file->bytes));
		} while (file->count == -EINTR);
		if (file->count <= 0) {
			file->count = 0;
			return -1;
		}
	}
	return file->bytes[file->next++];
}

/* The decimal number at the start of a file. */
static int proc_number(const char *path, uint64_t *number)
{
	struct proc_file file;
	uint64_t value = 0;
	int error = proc_open(&file, path), c;

	if (error)
		return error;
	while ((c = proc_next(&file)) >= '0' && c <= '9')
		value = value * 10 + (unsigned)(c - '0');
	SYS(CLOSE, file.fd);
	*number = value;
	return 0;
}

static int proc_lines(const char *path, uint64_t *lines)
{
	struct proc_file file;
	uint64_t value = 0;
	int error = proc_open(&file, path), c;

	if (error)
		return error;
	while ((c = proc_next(&file)) >= 0)
		value += c == '\n';
	SYS(CLOSE, file.fd);
	*lines = value;
	return 0;
}

static int resource_limit(int which, uint64_t *limit)
{
	uint64_t pair[2]; /* struct rlimit64: soft, hard */
	long error = SYS(PRLIMIT64, 0, which, 0, pair);

	if (error)
		return (int)error;
	*limit = pair[0];
	return 0;
}

static int limit(void *context, enum execmem_limit which, struct execmem_usage *usage)
{
	struct execmem_usage result = {0, EXECMEM_UNLIMITED};
	int error;

	switch (which) {
	case EXECMEM_LIMIT_FILE_BYTES:
		error = resource_limit(RLIMIT_FSIZE, &result.limit);
		break;
	case EXECMEM_LIMIT_ADDRESS_BYTES:
		error = resource_limit(RLIMIT_AS, &result.limit);
		if (!error && result.limit != EXECMEM_UNLIMITED) {
			error = proc_number("/proc/self/statm", &result.used);
			result.used *= page_size(context);
		}
		break;
	case EXECMEM_LIMIT_MAPPINGS:
		error = proc_number("/proc/sys/vm/max_map_count", &result.limit);
		if (!error)
			error = proc_lines("/proc/self/maps", &result.used);
		break;
	default:
		error = -EINVAL;
	}
	if (!error)
		*usage = result;
	return error;
}

/* ---- Code ---- */

static int sync_code(void *context, const void *address, size_t bytes)
{
	(void)context;
	execmem_port_sync_code((void *)(uintptr_t)address, bytes);
	return 0;
}

static int serialize(void *context)
{
	long error = SYS(MEMBARRIER, MEMBARRIER_SYNC_CORE, 0, 0);

	(void)context;
	if (error == -EPERM) {
		error = SYS(MEMBARRIER, MEMBARRIER_SYNC_CORE_REGISTER, 0, 0);
		if (!error)
			error = SYS(MEMBARRIER, MEMBARRIER_SYNC_CORE, 0, 0);
	}
	/* What membarrier(2) answers where the architecture has no such command. */
	return error == -EINVAL ? -ENOSYS : (int)error;
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

/* ---- Threads and processes ---- */

static void wait(void *context, const uint32_t *word, uint32_t value)
{
	(void)context;
	SYS(FUTEX, word, FUTEX_WAIT_PRIVATE, value, 0, 0, 0);
}

static void wake(void *context, const uint32_t *word, unsigned count)
{
	(void)context;
	SYS(FUTEX, word, FUTEX_WAKE_PRIVATE, count, 0, 0, 0);
}

static int identity(void *context, uint64_t *process)
{
	(void)context;
	*process = (uint64_t)SYS(GETPID, 0);
	return 0;
}

static int wipe_on_fork(void *context, void *address, size_t bytes)
{
	(void)context;
	/* qemu-user 7.2 answers 0 to every advice, and does nothing. */
	if (SYS(MADVISE, address, bytes, MADV_NEVER_DEFINED) == 0)
		return -ENOSYS;
	return (int)SYS(MADVISE, address, bytes, MADV_WIPEONFORK);
}

static int write(void *context, const char *text, size_t bytes)
{
	(void)context;
	while (bytes) {
		long count = execmem_port_write(STDERR, text, bytes);

		if (count < 0 && count != -EINTR)
			return (int)count;
		if (count > 0) {
			text += count;
			bytes -= (size_t)count;
		}
	}
	return 0;
}

struct execmem_os execmem_os_linux(size_t page_bytes)
{
	return (struct execmem_os){
		.context = (void *)(uintptr_t)page_bytes,
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
		.write = write,
	};
}
