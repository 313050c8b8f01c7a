/*
 * What the ports to Intel's instruction sets share of port.h: each has a port.c that defines the functions by these.
 */
#ifndef EXECMEM_CPUID_H
#define EXECMEM_CPUID_H

#include <stddef.h>

/*
 * Instruction caches follow stores, but code written through another linear address than it is fetched from needs a
 * serialising instruction before it runs (Intel SDM volume 3A, "Memory Cache Control", section "Self-Modifying Code").
 * This one serves the calling thread; other threads have their own context-synchronising event, as port.h says.
 */
#define EXECMEM_SERIALISE()                                                                                            \
	__asm__ volatile("xorl %%eax, %%eax; cpuid" : : : "eax", "ebx", "ecx", "edx", "cc", "memory")

/* endbr32 or endbr64, of which `pad` is the last byte; mov $value, %eax; ret. Returns the bytes written to `code`. */
static inline size_t execmem_cpuid_probe_code(unsigned char pad, unsigned value, unsigned char *code)
{
	const unsigned char function[] = {0xf3, 0x0f, 0x1e, pad, 0xb8, (unsigned char)value, 0, 0, 0, 0xc3};

	for (size_t i = 0; i < sizeof(function); i++)
		code[i] = function[i];
	return sizeof(function);
}

#endif
