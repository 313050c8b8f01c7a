/*
 * The system calls that libexecmem makes, the same on every Linux port from the constants of abi.h and the port's own
 * execmem_port_syscall. This file, arch/<port>/port.c and arch/<port>/syscall.S are all of arch/ that the library
 * needs: nothing here may refer to what a program without a C library brings (arch/linux.c and the rest).
 */
#include <port.h>

/* include/uapi: linux/falloc.h, asm-generic/errno-base.h and errno.h. The same on every port so far. */
#define FALLOC_FL_KEEP_SIZE  0x01
#define FALLOC_FL_PUNCH_HOLE 0x02

#define ENOMEM               12
#define EINVAL               22
#define EOVERFLOW            75

_Static_assert(sizeof(void *) == EXECMEM_POINTER_BYTES, "EXECMEM_POINTER_BYTES");

/*
 * A place to ask for where the system finds none by itself: above this code by more than a program is large, and never
 * twice the same. Null where addresses are too short for that.
 */
static void *wish(size_t bytes)
{
#if EXECMEM_POINTER_BYTES == 8
	static uintptr_t asked;
	const uintptr_t unit = (uintptr_t)1 << 20, here = (uintptr_t)&execmem_port_map & ~(unit - 1);
	const uintptr_t units = bytes / unit + 1;

	return (void *)(here + ((uintptr_t)1 << 36) + __atomic_fetch_add(&asked, units, __ATOMIC_RELAXED) * unit);
#else
	(void)bytes;
	return (void *)0;
#endif
}

void *execmem_port_map(void *address, size_t bytes, int protection, int flags, int fd, uint64_t offset)
{
	uint64_t units = offset / EXECMEM_PORT_MMAP_UNIT;
	long result;

	if (offset % EXECMEM_PORT_MMAP_UNIT != 0)
		return (void *)-EINVAL;
	if (units != (unsigned long)units)
		return (void *)-EOVERFLOW;
	result = execmem_port_syscall(EXECMEM_SYS_MMAP, (long)address, (long)bytes, protection, flags, fd, (long)units);
	/*
	 * qemu-user (7.2, mmap_find_vma) looks for a place where it found the last one, takes what the host offers
	 * instead, and gives up after a few that are no multiple of a page larger than the host's. It finds none ever
	 * after, but takes a place that is asked for.
	 */
	for (unsigned i = 0; result == -ENOMEM && !address && i < 4; i++) {
		void *const place = wish(bytes);

		if (!place)
			break;
		result = execmem_port_syscall(EXECMEM_SYS_MMAP, (long)place, (long)bytes, protection, flags, fd,
					      (long)units);
	}
	return (void *)result;
}

int execmem_port_protect(void *address, size_t bytes, int protection)
{
	return (int)execmem_port_syscall(EXECMEM_SYS_MPROTECT, (long)address, (long)bytes, protection, 0, 0, 0);
}

int execmem_port_unmap(void *address, size_t bytes)
{
	return (int)execmem_port_syscall(EXECMEM_SYS_MUNMAP, (long)address, (long)bytes, 0, 0, 0, 0);
}

/*
 * Words of a 64-bit argument as a 32-bit port passes them, in the order of its memory; the second is 0 on a 64-bit
 * port, which passes one.
 */
#if EXECMEM_POINTER_BYTES == 8
#define WORDS(value_) (long)(value_)
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define WORDS(value_) (long)(uint32_t)(value_), (long)((value_) >> 32)
#else
#define WORDS(value_) (long)((value_) >> 32), (long)(uint32_t)(value_)
#endif

/* The arguments after the number, up to six of them; what is missing is 0. */
#define CALL(number_, ...)                    CALL6(number_, __VA_ARGS__, 0, 0, 0, 0, 0)
#define CALL6(number_, a, b, c, d, e, f, ...) execmem_port_syscall(number_, a, b, c, d, e, f)

int execmem_port_truncate(int fd, uint64_t bytes)
{
#if EXECMEM_PORT_ALIGNED_PAIRS
	return (int)CALL(EXECMEM_SYS_FTRUNCATE, fd, 0, WORDS(bytes));
#else
	return (int)CALL(EXECMEM_SYS_FTRUNCATE, fd, WORDS(bytes));
#endif
}

int execmem_port_punch(int fd, uint64_t offset, uint64_t bytes)
{
	return (int)CALL(EXECMEM_SYS_FALLOCATE, fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, WORDS(offset),
			 WORDS(bytes));
}

long execmem_port_write(int fd, const void *bytes, size_t count)
{
	return execmem_port_syscall(EXECMEM_SYS_WRITE, fd, (long)bytes, (long)count, 0, 0, 0);
}
