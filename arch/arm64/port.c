/*
 * arm64: the instruction cache. The rest is in arch/system.c.
 */
#include <port.h>

/* Arm ARM, "Ordering of cache maintenance for code": clean to the point of unification, then invalidate. CTR_EL0 gives
 * the smallest lines of all caches as a power of two of words, and the steps that this machine does not need. */
#define CTR_WORD_BYTES     4u
#define CTR_INSTRUCTION(c) (CTR_WORD_BYTES << ((c) & 15))
#define CTR_DATA(c)        (CTR_WORD_BYTES << ((c) >> 16 & 15))
#define CTR_IDC            (UINT64_C(1) << 28) /* data need not be cleaned */
#define CTR_DIC            (UINT64_C(1) << 29) /* instructions need not be invalidated */

void execmem_port_sync_code(void *address, size_t bytes)
{
	uintptr_t start = (uintptr_t)address, end = start + bytes, line;
	uint64_t ctr;

	__asm__("mrs %0, ctr_el0" : "=r"(ctr));
	if (!(ctr & CTR_IDC)) {
		for (line = start & ~(uintptr_t)(CTR_DATA(ctr) - 1); line < end; line += CTR_DATA(ctr))
			__asm__ volatile("dc cvau, %0" : : "r"(line) : "memory");
	}
	__asm__ volatile("dsb ish" : : : "memory");
	if (!(ctr & CTR_DIC)) {
		for (line = start & ~(uintptr_t)(CTR_INSTRUCTION(ctr) - 1); line < end; line += CTR_INSTRUCTION(ctr))
			__asm__ volatile("ic ivau, %0" : : "r"(line) : "memory");
		__asm__ volatile("dsb ish" : : : "memory");
	}
	__asm__ volatile("isb" : : : "memory");
}

/* bti c; movz w0, #value; ret */
size_t execmem_port_probe_code(unsigned value, unsigned char *code)
{
	const uint32_t function[] = {0xd503245f, 0x52800000 | value << 5, 0xd65f03c0};

	/* Instructions are little-endian whatever data is. */
	for (size_t i = 0; i < sizeof(function); i++)
		code[i] = (unsigned char)(function[i / 4] >> (8 * (i % 4)));
	return sizeof(function);
}
