/*
 * The port contract as far as libexecmem uses it, over the C library: for tests under sanitizers, natively on x64.
 */
#define _GNU_SOURCE
#include <port.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static long result(long value)
{
	return value == -1 ? -errno : value;
}

long execmem_port_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	return result(syscall(number, a, b, c, d, e, f));
}

void *execmem_port_map(void *address, size_t bytes, int protection, int flags, int fd, uint64_t offset)
{
	/* The call itself: a sanitizer's mmap would do more. */
	return (void *)result(syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

int execmem_port_protect(void *address, size_t bytes, int protection)
{
	return (int)result(syscall(SYS_mprotect, address, bytes, protection));
}

int execmem_port_unmap(void *address, size_t bytes)
{
	return (int)result(syscall(SYS_munmap, address, bytes));
}

int execmem_port_truncate(int fd, uint64_t bytes)
{
	return (int)result(ftruncate(fd, (off_t)bytes));
}

int execmem_port_punch(int fd, uint64_t offset, uint64_t bytes)
{
	return (int)result(fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, (off_t)offset, (off_t)bytes));
}

long execmem_port_write(int fd, const void *bytes, size_t count)
{
	return result(write(fd, bytes, count));
}

/* Natively x64 keeps instruction caches coherent; what the port itself does is not under test here. */
void execmem_port_sync_code(void *address, size_t bytes)
{
	(void)address;
	(void)bytes;
	__asm__ volatile("" : : : "memory");
}

size_t execmem_port_probe_code(unsigned value, unsigned char *code)
{
	const unsigned char function[] = {0xb8, (unsigned char)value, 0, 0, 0, 0xc3}; /* mov $value, %eax; ret */

	for (size_t i = 0; i < sizeof(function); i++)
		code[i] = function[i];
	return sizeof(function);
}
