/*
 * x86: the functions that the compiler calls for 64-bit division, by their names in libgcc.
 */
#include <division.h>

uint64_t __udivdi3(uint64_t dividend, uint64_t divisor);
uint64_t __umoddi3(uint64_t dividend, uint64_t divisor);
int64_t __divdi3(int64_t dividend, int64_t divisor);
int64_t __moddi3(int64_t dividend, int64_t divisor);

uint64_t __udivdi3(uint64_t dividend, uint64_t divisor)
{
	uint64_t remainder;

	return execmem_divide_unsigned(dividend, divisor, &remainder);
}

uint64_t __umoddi3(uint64_t dividend, uint64_t divisor)
{
	uint64_t remainder;

	execmem_divide_unsigned(dividend, divisor, &remainder);
	return remainder;
}

int64_t __divdi3(int64_t dividend, int64_t divisor)
{
	int64_t remainder;

	return execmem_divide_signed(dividend, divisor, &remainder);
}

int64_t __moddi3(int64_t dividend, int64_t divisor)
{
	int64_t remainder;

	execmem_divide_signed(dividend, divisor, &remainder);
	return remainder;
}
