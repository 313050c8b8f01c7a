/*
 * Calls that a subject makes by their number: syscall(2), and prctl(2).
 */
#include "hosted.h"

#include <stdarg.h>

#include <port.h>

#define ARGUMENTS      6
#define MFD_EXEC       0x10
#define MFD_OTHERS     ~0x13ul
#define F_ADD_SEALS    1033
#define PR_SET_VMA     0x53564d41
#define SYNC_CORE      (1 << 5)
#define PAIR_FIRST(at) ((at) + (EXECMEM_POINTER_BYTES == 4 && PAIRS_ALIGNED ? (at) % 2 : 0))
#ifdef EXECMEM_PORT_ALIGNED_PAIRS
#define PAIRS_ALIGNED 1
#else
#define PAIRS_ALIGNED 0
#endif

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
long __real_syscall(long number, ...);
int __real_prctl(int option, ...);
long __wrap_syscall(long number, ...);
int __wrap_prctl(int option, ...);
int __wrap_munmap(void *address, size_t bytes);
int __wrap_mprotect(void *address, size_t bytes, int protection);
int __wrap_madvise(void *address, size_t bytes, int advice);
int __wrap_ftruncate64(int file, int64_t bytes);
int __wrap_close(int file);

/* A 64-bit argument that begins at word `at`: one word, or two with the lower one first. */
static int64_t wide(const long *words, unsigned at)
{
	if (EXECMEM_POINTER_BYTES == 8)
		return words[at];
	at = PAIR_FIRST(at);
	return (int64_t)((uint64_t)(uint32_t)words[at] | (uint64_t)(uint32_t)words[at + 1] << 32);
}

static void *pointer(long word)
{
	return (void *)(uintptr_t)word;
}

/* Is it answered here? Then *answer is what it returns. */
static bool by_table(long number, const long *words, long *answer)
{
	switch (number) {
	case EXECMEM_SYS_MEMFD_CREATE:
		if ((unsigned long)words[1] & MFD_OTHERS)
			return false;
		*answer = hosted_file(pointer(words[0]), (words[1] & MFD_EXEC) != 0);
		return true;
	case EXECMEM_SYS_MMAP:
		*answer = (long)(intptr_t)hosted_map(pointer(words[0]), (size_t)words[1], (int)words[2], (int)words[3],
						     (int)words[4],
						     (int64_t)(unsigned long)words[5] * EXECMEM_PORT_MMAP_UNIT);
		return true;
	case EXECMEM_SYS_MUNMAP:
		*answer = __wrap_munmap(pointer(words[0]), (size_t)words[1]);
		return true;
	case EXECMEM_SYS_MPROTECT:
		*answer = __wrap_mprotect(pointer(words[0]), (size_t)words[1], (int)words[2]);
		return true;
	case EXECMEM_SYS_MADVISE:
		*answer = __wrap_madvise(pointer(words[0]), (size_t)words[1], (int)words[2]);
		return true;
	case EXECMEM_SYS_FTRUNCATE:
		*answer = __wrap_ftruncate64((int)words[0], wide(words, 1));
		return true;
	case EXECMEM_SYS_CLOSE:
		*answer = __wrap_close((int)words[0]);
		return true;
	case EXECMEM_SYS_FCNTL:
		if (words[1] != F_ADD_SEALS || !hosted_knows((int)words[0]))
			return false;
		*answer = hosted_answer(hosted_os->file_seal(hosted_os->context, (int)words[0], (unsigned)words[2]));
		return true;
	case EXECMEM_SYS_MEMBARRIER:
		if (words[0] != SYNC_CORE)
			return false;
		*answer = hosted_answer(hosted_os->serialize(hosted_os->context));
		return true;
	default:
		return false;
	}
}

long __wrap_syscall(long number, ...)
{
	long words[ARGUMENTS], answer;
	va_list list;

	va_start(list, number);
	for (unsigned i = 0; i < ARGUMENTS; i++)
		words[i] = va_arg(list, long);
	va_end(list);
	if (hosted_os && by_table(number, words, &answer))
		return answer;
	return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

int __wrap_prctl(int option, ...)
{
	unsigned long words[4];
	va_list list;

	va_start(list, option);
	for (unsigned i = 0; i < 4; i++)
		words[i] = va_arg(list, unsigned long);
	va_end(list);
	if (hosted_os && option == PR_SET_VMA && words[0] == 0)
		return hosted_answer(
			hosted_os->name(hosted_os->context, (void *)words[1], words[2], (const char *)words[3]));
	return __real_prctl(option, words[0], words[1], words[2], words[3]);
}
/* NOLINTEND(bugprone-reserved-identifier) */
