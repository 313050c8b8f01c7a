/*
 * arm32: the functions that the compiler calls for division, by their names in the Run-time ABI for the Arm
 * Architecture (rtabi32, "Integer (32/32->32) division functions"; armv7 need not divide in hardware). The 64-bit ones
 * return four registers, so their entries are in division_entry.S.
 */
#include <division.h>

uint64_t __aeabi_uidivmod(uint32_t dividend, uint32_t divisor);
uint64_t __aeabi_idivmod(int32_t dividend, int32_t divisor);
uint64_t execmem_port_uldivmod(uint64_t dividend, uint64_t divisor, uint64_t *remainder);
int64_t execmem_port_ldivmod(int64_t dividend, int64_t divisor, int64_t *remainder);

/* Those for the quotient alone, in r0, may leave anything in r1. */
uint64_t __aeabi_uidiv(uint32_t dividend, uint32_t divisor) __attribute__((alias("__aeabi_uidivmod")));
uint64_t __aeabi_idiv(int32_t dividend, int32_t divisor) __attribute__((alias("__aeabi_idivmod")));

/* Quotient in r0, remainder in r1. */
static uint64_t pair(uint32_t quotient, uint32_t remainder)
{
	return (uint64_t)remainder << 32 | quotient;
}

uint64_t execmem_port_uldivmod(uint64_t dividend, uint64_t divisor, uint64_t *remainder)
{
	return execmem_divide_unsigned(dividend, divisor, remainder);
}

int64_t execmem_port_ldivmod(int64_t dividend, int64_t divisor, int64_t *remainder)
{
	return execmem_divide_signed(dividend, divisor, remainder);
}

uint64_t __aeabi_uidivmod(uint32_t dividend, uint32_t divisor)
{
	uint64_t remainder;
	uint64_t quotient = execmem_port_uldivmod(dividend, divisor, &remainder);

	return pair((uint32_t)quotient, (uint32_t)remainder);
}

uint64_t __aeabi_idivmod(int32_t dividend, int32_t divisor)
{
	int64_t remainder;
	int64_t quotient = execmem_port_ldivmod(dividend, divisor, &remainder);

	return pair((uint32_t)quotient, (uint32_t)remainder);
}
