/*
 * riscv64: the instruction cache. The rest is in arch/system.c.
 */
#include <port.h>

/*
 * `fence.i` reaches the hardware thread that executes it and no other, and the system may move this thread to another
 * one behind it (RISC-V Unprivileged ISA, "Zifencei"). The system call reaches all that run this process; where the
 * system has none, as under emulators that keep their translations coherent, the instruction must do.
 */
void execmem_port_sync_code(void *address, size_t bytes)
{
	execmem_port_syscall(EXECMEM_SYS_RISCV_FLUSH_ICACHE, (long)address, (long)((uintptr_t)address + bytes), 0, 0, 0,
			     0);
	__asm__ volatile("fence.i" : : : "memory");
}

/* li a0, value; ret */
size_t execmem_port_probe_code(unsigned value, unsigned char *code)
{
	const uint32_t function[] = {0x00000513 | value << 20, 0x00008067};

	/* Instructions are little-endian whatever data is. */
	for (size_t i = 0; i < sizeof(function); i++)
		code[i] = (unsigned char)(function[i / 4] >> (8 * (i % 4)));
	return sizeof(function);
}
