/*
 * arm32: the instruction cache. The rest is in arch/system.c.
 */
#include <port.h>

/* Cache maintenance is privileged: the kernel's own call (arch/arm/kernel/traps.c, do_cache_op). */
void execmem_port_sync_code(void *address, size_t bytes)
{
	execmem_port_syscall(EXECMEM_SYS_ARM_CACHEFLUSH, (long)address, (long)((char *)address + bytes), 0, 0, 0, 0);
}

/* A32: mov r0, #value; bx lr */
size_t execmem_port_probe_code(unsigned value, unsigned char *code)
{
	const uint32_t function[] = {0xe3a00000 | value, 0xe12fff1e};

	/* Instructions are little-endian whatever data is. */
	for (size_t i = 0; i < sizeof(function); i++)
		code[i] = (unsigned char)(function[i / 4] >> (8 * (i % 4)));
	return sizeof(function);
}
