/*
 * x64: the instruction cache. The rest is in arch/system.c.
 */
#include <cpuid.h>
#include <port.h>

void execmem_port_sync_code(void *address, size_t bytes)
{
	(void)address;
	(void)bytes;
	execmem_port_serialise();
}

size_t execmem_port_probe_code(unsigned value, unsigned char *code)
{
	return execmem_cpuid_probe_code(0xfa, value, code); /* endbr64 */
}
