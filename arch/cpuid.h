/*
 * What the ports to Intel's instruction sets share of port.h: each has a port.c that defines the functions by these.
 */
#ifndef EXECMEM_CPUID_H
#define EXECMEM_CPUID_H

#include <stddef.h>

/*
 * Instruction caches follow stores by physical address, but instructions that were fetched already are only checked by
 * linear address: code written through another linear address than it is fetched from needs a serialising instruction
 * before it runs (Intel SDM volume 3A, "Memory Cache Control", section "Self-Modifying Code"; case a of sync_core in
 * Linux's arch/x86/include/asm/sync_core.h). Double mapping is just that case, for new code as for old. So this is done
 * for every publishing, but by iret to itself, which costs a hundredth of cpuid where cpuid leaves a virtual machine.
 *
 * It serves the calling thread. A thread that may be running into code while that is replaced needs an event of its own
 * (section "Handling Self- and Cross-Modifying Code"; AMD64 APM volume 2, "Cross-Modifying Code"): membarrier's
 * SYNC_CORE, which EXECMEM_PUBLISH_SERIALIZE asks for. <port>/syscall.S has it.
 */
void execmem_port_serialise(void);

/* endbr32 or endbr64, of which `pad` is the last byte; mov $value, %eax; ret. Returns the bytes written to `code`. */
static inline size_t execmem_cpuid_probe_code(unsigned char pad, unsigned value, unsigned char *code)
{
	const unsigned char function[] = {0xf3, 0x0f, 0x1e, pad, 0xb8, (unsigned char)value, 0, 0, 0, 0xc3};

	for (size_t i = 0; i < sizeof(function); i++)
		code[i] = function[i];
	return sizeof(function);
}

#endif
