/*
 * arm32: the instruction cache, and continuing after a signal. The rest is in arch/linux.c.
 */
#include <port.h>

/* Cache maintenance is privileged: the kernel's own call (arch/arm/kernel/traps.c, do_cache_op). */
void execmem_port_sync_code(void *address, size_t bytes)
{
	char *end = (char *)address + bytes;

	execmem_port_syscall(EXECMEM_SYS_ARM_CACHEFLUSH, (long)address, (long)end, 0, 0, 0, 0);
}

/* The mode bit goes to CPSR.T; an IT block that was interrupted is over. */
void execmem_port_context_jump(void *context, uintptr_t target)
{
	uint32_t *cpsr = (uint32_t *)((uintptr_t)context + EXECMEM_CONTEXT_CPSR);

	*(uint32_t *)((uintptr_t)context + EXECMEM_CONTEXT_PC) = target & ~(uintptr_t)EXECMEM_MODE_BIT;
	*cpsr &= ~(uint32_t)(EXECMEM_CPSR_T | EXECMEM_CPSR_IT);
	if (target & EXECMEM_MODE_BIT)
		*cpsr |= EXECMEM_CPSR_T;
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
