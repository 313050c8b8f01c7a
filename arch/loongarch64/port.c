/*
 * loongarch64: the instruction cache. The rest is in arch/system.c.
 */
#include <port.h>

/*
 * The hardware keeps instruction caches coherent with stores; `ibar 0` makes the fetches of this hardware thread see
 * what was stored before it (LoongArch Reference Manual volume 1, "IBAR").
 */
void execmem_port_sync_code(void *address, size_t bytes)
{
	(void)address;
	(void)bytes;
	__asm__ volatile("dbar 0\n\tibar 0" : : : "memory");
}

/* ori $a0, $zero, value; ret */
size_t execmem_port_probe_code(unsigned value, unsigned char *code)
{
	const uint32_t function[] = {0x03800004 | value << 10, 0x4c000020};

	/* Instructions are little-endian whatever data is. */
	for (size_t i = 0; i < sizeof(function); i++)
		code[i] = (unsigned char)(function[i / 4] >> (8 * (i % 4)));
	return sizeof(function);
}
