/*
 * Calls of files that memory is mapped from. Whatever way a subject asks for a file without a name, or for one of its
 * own under a name of its choice, it is given a memory file of the table.
 */
#include "hosted.h"

#include <stdarg.h>

#include <port.h>

#define O_CREAT         0100
#define O_TMPFILE_ALONE 020000000
#define MFD_EXEC        0x10
#define MFD_OTHERS      ~0x13u /* not closed on exec, sealable, executable */
#define F_ADD_SEALS     1033
#define PUNCH_KEEP_SIZE 3
#define SEEK_CUR        1
#define FILES_MOST      1024

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
int __real_memfd_create(const char *name, unsigned flags);
int __real_shm_open(const char *name, int flags, unsigned mode);
int __real_shm_unlink(const char *name);
int __real_mkostemp(char *name, int flags);
int __real_mkostemp64(char *name, int flags);
int __real_mkstemp(char *name);
int __real_mkstemp64(char *name);
int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __real_ftruncate(int file, long bytes);
int __real_ftruncate64(int file, int64_t bytes);
int __real_fallocate(int file, int mode, long offset, long bytes);
int __real_fallocate64(int file, int mode, int64_t offset, int64_t bytes);
int __real_posix_fallocate(int file, long offset, long bytes);
int __real_posix_fallocate64(int file, int64_t offset, int64_t bytes);
long __real_write(int file, const void *bytes, size_t count);
int __real_fcntl(int file, int command, ...);
int __real_fcntl64(int file, int command, ...);
int __real_close(int file);
int64_t lseek64(int file, int64_t offset, int whence);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_shm_open(const char *name, int flags, unsigned mode);
int __wrap_shm_unlink(const char *name);
int __wrap_mkostemp(char *name, int flags);
int __wrap_mkostemp64(char *name, int flags);
int __wrap_mkstemp(char *name);
int __wrap_mkstemp64(char *name);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_ftruncate(int file, long bytes);
int __wrap_ftruncate64(int file, int64_t bytes);
int __wrap_fallocate(int file, int mode, long offset, long bytes);
int __wrap_fallocate64(int file, int mode, int64_t offset, int64_t bytes);
int __wrap_posix_fallocate(int file, long offset, long bytes);
int __wrap_posix_fallocate64(int file, int64_t offset, int64_t bytes);
long __wrap_write(int file, const void *bytes, size_t count);
int __wrap_fcntl(int file, int command, ...);
int __wrap_fcntl64(int file, int command, ...);
int __wrap_close(int file);

static bool known_files[FILES_MOST];

bool hosted_knows(int file)
{
	return file >= 0 && file < FILES_MOST && __atomic_load_n(&known_files[file], __ATOMIC_RELAXED);
}

void hosted_know(int file, bool known)
{
	if (file >= 0 && file < FILES_MOST)
		__atomic_store_n(&known_files[file], known, __ATOMIC_RELAXED);
}

int hosted_file(const char *name, int executable)
{
	int file = -1;

	if (hosted_answer(hosted_os->file_create(hosted_os->context, name, executable, &file)))
		return -1;
	hosted_know(file, true);
	return file;
}

/* ---- Making one ---- */

int __wrap_memfd_create(const char *name, unsigned flags)
{
	if (!hosted_os || flags & MFD_OTHERS)
		return __real_memfd_create(name, flags);
	return hosted_file(name, (flags & MFD_EXEC) != 0);
}

int __wrap_shm_open(const char *name, int flags, unsigned mode)
{
	return hosted_os && flags & O_CREAT ? hosted_file(name, false) : __real_shm_open(name, flags, mode);
}

/* A memory file has no name that could be taken away. */
int __wrap_shm_unlink(const char *name)
{
	return hosted_os ? 0 : __real_shm_unlink(name);
}

int __wrap_mkostemp(char *name, int flags)
{
	return hosted_os ? hosted_file(name, false) : __real_mkostemp(name, flags);
}

int __wrap_mkostemp64(char *name, int flags)
{
	return hosted_os ? hosted_file(name, false) : __real_mkostemp64(name, flags);
}

int __wrap_mkstemp(char *name)
{
	return hosted_os ? hosted_file(name, false) : __real_mkstemp(name);
}

int __wrap_mkstemp64(char *name)
{
	return hosted_os ? hosted_file(name, false) : __real_mkstemp64(name);
}

static bool is_nameless(int flags)
{
	return hosted_os && flags & O_TMPFILE_ALONE;
}

static unsigned mode_of(int flags, va_list list)
{
	return flags & (O_CREAT | O_TMPFILE_ALONE) ? va_arg(list, unsigned) : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	unsigned mode;
	va_list list;

	va_start(list, flags);
	mode = mode_of(flags, list);
	va_end(list);
	return is_nameless(flags) ? hosted_file(path, false) : __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, ...)
{
	unsigned mode;
	va_list list;

	va_start(list, flags);
	mode = mode_of(flags, list);
	va_end(list);
	return is_nameless(flags) ? hosted_file(path, false) : __real_open64(path, flags, mode);
}

/* ---- Its length ---- */

static int grow(int file, int64_t bytes)
{
	return hosted_os->file_grow(hosted_os->context, file, (uint64_t)bytes);
}

int __wrap_ftruncate(int file, long bytes)
{
	return hosted_os && hosted_knows(file) ? hosted_answer(grow(file, bytes)) : __real_ftruncate(file, bytes);
}

int __wrap_ftruncate64(int file, int64_t bytes)
{
	return hosted_os && hosted_knows(file) ? hosted_answer(grow(file, bytes)) : __real_ftruncate64(file, bytes);
}

static int allocate(int file, int mode, int64_t offset, int64_t bytes)
{
	if (mode == PUNCH_KEEP_SIZE)
		return hosted_os->file_punch(hosted_os->context, file, (uint64_t)offset, (uint64_t)bytes);
	return grow(file, offset + bytes);
}

static bool allocates(int file, int mode)
{
	return hosted_os && hosted_knows(file) && (mode == 0 || mode == PUNCH_KEEP_SIZE);
}

int __wrap_fallocate(int file, int mode, long offset, long bytes)
{
	return allocates(file, mode) ? hosted_answer(allocate(file, mode, offset, bytes))
				     : __real_fallocate(file, mode, offset, bytes);
}

int __wrap_fallocate64(int file, int mode, int64_t offset, int64_t bytes)
{
	return allocates(file, mode) ? hosted_answer(allocate(file, mode, offset, bytes))
				     : __real_fallocate64(file, mode, offset, bytes);
}

/* These two return the errno. */
int __wrap_posix_fallocate(int file, long offset, long bytes)
{
	return allocates(file, 0) ? -allocate(file, 0, offset, bytes) : __real_posix_fallocate(file, offset, bytes);
}

int __wrap_posix_fallocate64(int file, int64_t offset, int64_t bytes)
{
	return allocates(file, 0) ? -allocate(file, 0, offset, bytes) : __real_posix_fallocate64(file, offset, bytes);
}

/* Writing makes a file longer as well. */
long __wrap_write(int file, const void *bytes, size_t count)
{
	if (hosted_os && hosted_knows(file)) {
		const int64_t at = lseek64(file, 0, SEEK_CUR);

		if (at < 0 || hosted_answer(grow(file, at + (int64_t)count)))
			return -1;
	}
	return __real_write(file, bytes, count);
}

/* ---- Seals, and its end ---- */

static int seal(int file, unsigned long seals)
{
	return hosted_answer(hosted_os->file_seal(hosted_os->context, file, (unsigned)seals));
}

int __wrap_fcntl(int file, int command, ...)
{
	unsigned long argument;
	va_list list;

	va_start(list, command);
	argument = va_arg(list, unsigned long); /* a pointer or an int: a register, or a word of the stack */
	va_end(list);
	if (hosted_os && command == F_ADD_SEALS && hosted_knows(file))
		return seal(file, argument);
	return __real_fcntl(file, command, argument);
}

int __wrap_fcntl64(int file, int command, ...)
{
	unsigned long argument;
	va_list list;

	va_start(list, command);
	argument = va_arg(list, unsigned long);
	va_end(list);
	if (hosted_os && command == F_ADD_SEALS && hosted_knows(file))
		return seal(file, argument);
	return __real_fcntl64(file, command, argument);
}

int __wrap_close(int file)
{
	int error;

	if (!hosted_os || !hosted_knows(file))
		return __real_close(file);
	error = hosted_os->file_close(hosted_os->context, file);
	if (!error)
		hosted_know(file, false);
	return hosted_answer(error);
}
/* NOLINTEND(bugprone-reserved-identifier) */
