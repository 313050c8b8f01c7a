/*
 * Calls of memory: mmap, munmap, mprotect, madvise, and how large pages are.
 */
#include "hosted.h"

#include <check.h>
#include <port.h>

#define MAP_SHARED          0x01
#define MAP_PRIVATE         0x02
#define MAP_FIXED           0x10
#define MAP_ANONYMOUS       0x20
#define MAP_FIXED_NOREPLACE 0x100000
#define MADV_DONTNEED       4
#define MADV_WIPEONFORK     18
#define SC_PAGESIZE         30
#define AT_PAGESZ           6
#define EINVAL              22
#define EEXIST              17

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
int *__errno_location(void);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, long offset);
void *__real_mmap64(void *address, size_t bytes, int protection, int flags, int file, int64_t offset);
int __real_munmap(void *address, size_t bytes);
int __real_mprotect(void *address, size_t bytes, int protection);
int __real_madvise(void *address, size_t bytes, int advice);
long __real_sysconf(int name);
unsigned long __real_getauxval(unsigned long type);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, long offset);
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int file, int64_t offset);
int __wrap_munmap(void *address, size_t bytes);
int __wrap_mprotect(void *address, size_t bytes, int protection);
int __wrap_madvise(void *address, size_t bytes, int advice);
long __wrap_sysconf(int name);
int __wrap_getpagesize(void);
unsigned long __wrap_getauxval(unsigned long type);
void __wrap___clear_cache(char *begin, char *end);

const struct subject_os *hosted_os;

void hosted_over(const struct subject_os *os)
{
	hosted_os = os;
}

size_t hosted_page(void)
{
	return hosted_os ? hosted_os->page_size(hosted_os->context) : check_page;
}

int hosted_answer(int error)
{
	if (!error)
		return 0;
	*__errno_location() = -error;
	return -1;
}

/* As the kernel rounds a length; it wraps to 0, which the kernel refuses as well. */
static size_t whole_pages(size_t bytes)
{
	const size_t page = hosted_page();

	return (bytes + page - 1) & ~(page - 1);
}

static unsigned protection_of(int protection)
{
	const unsigned pads = EXECMEM_PORT_PROT_PADS && (protection & EXECMEM_PORT_PROT_PADS) ? SUBJECT_PADS : 0;

	return ((unsigned)protection & 7) | pads; /* PROT_READ, PROT_WRITE and PROT_EXEC are 1, 2 and 4 */
}

/* Shared where there is a file, private where there is none: what the table can say. */
static bool is_expressible(int flags, int file)
{
	return flags & MAP_ANONYMOUS ? (flags & MAP_PRIVATE) != 0 : (flags & MAP_SHARED) != 0 && hosted_knows(file);
}

void *hosted_map(void *address, size_t bytes, int protection, int flags, int file, int64_t offset)
{
	const size_t whole = whole_pages(bytes);
	const unsigned wanted = protection_of(protection);
	const int from = flags & MAP_ANONYMOUS ? SUBJECT_NO_FILE : file;
	void *at = address;
	int error;

	if (!hosted_os || !is_expressible(flags, file))
		return __real_mmap64(address, bytes, protection, flags, file, offset);
	if (!whole || offset < 0)
		error = -EINVAL;
	else if (flags & MAP_FIXED)
		error = hosted_os->map_fixed(hosted_os->context, address, whole, wanted, from,
					     from == SUBJECT_NO_FILE ? 0 : (uint64_t)offset);
	else
		error = hosted_os->map(hosted_os->context, address, whole, wanted, from,
				       from == SUBJECT_NO_FILE ? 0 : (uint64_t)offset, &at);
	if (!error && (flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE && at != address) {
		(void)hosted_os->unmap(hosted_os->context, at, whole);
		error = -EEXIST;
	}
	return hosted_answer(error) ? HOSTED_FAILED : at;
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, long offset)
{
	return hosted_map(address, bytes, protection, flags, file, offset);
}

void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int file, int64_t offset)
{
	return hosted_map(address, bytes, protection, flags, file, offset);
}

int __wrap_munmap(void *address, size_t bytes)
{
	if (!hosted_os)
		return __real_munmap(address, bytes);
	return hosted_answer(bytes ? hosted_os->unmap(hosted_os->context, address, whole_pages(bytes)) : -EINVAL);
}

int __wrap_mprotect(void *address, size_t bytes, int protection)
{
	if (!hosted_os)
		return __real_mprotect(address, bytes, protection);
	return hosted_answer(
		hosted_os->protect(hosted_os->context, address, whole_pages(bytes), protection_of(protection)));
}

int __wrap_madvise(void *address, size_t bytes, int advice)
{
	if (hosted_os && advice == MADV_DONTNEED)
		return hosted_answer(hosted_os->discard(hosted_os->context, address, whole_pages(bytes)));
	if (hosted_os && advice == MADV_WIPEONFORK)
		return hosted_answer(hosted_os->wipe_on_fork(hosted_os->context, address, whole_pages(bytes)));
	return __real_madvise(address, bytes, advice);
}

long __wrap_sysconf(int name)
{
	return name == SC_PAGESIZE ? (long)hosted_page() : __real_sysconf(name);
}

int __wrap_getpagesize(void)
{
	return (int)hosted_page();
}

unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_PAGESZ ? hosted_page() : __real_getauxval(type);
}

/* The compiler's __builtin___clear_cache, on ports where that is a call. */
void __wrap___clear_cache(char *begin, char *end)
{
	const size_t bytes = (size_t)(end - begin);

	if (hosted_os)
		(void)hosted_os->sync_code(hosted_os->context, begin, bytes);
	else
		execmem_port_sync_code(begin, bytes);
}
/* NOLINTEND(bugprone-reserved-identifier) */
