/*
 * 64-bit division for ports whose compiler calls a library function for it: such a port defines, in a file of its own,
 * the functions that its compiler names, by these two. Any dividend and divisor; a zero divisor traps.
 */
#ifndef EXECMEM_DIVISION_H
#define EXECMEM_DIVISION_H

#include <stdint.h>

static inline uint64_t execmem_divide_unsigned(uint64_t dividend, uint64_t divisor, uint64_t *remainder)
{
	uint64_t quotient = 0;
	int shift;

	if (divisor == 0)
		__builtin_trap();
	if (dividend < divisor) {
		*remainder = dividend;
		return 0;
	}
	/* The divisor's highest bit under the dividend's, then one bit of the quotient a step. */
	shift = __builtin_clzll(divisor) - __builtin_clzll(dividend);
	for (; shift >= 0; shift--) {
		if (dividend >= divisor << shift) {
			dividend -= divisor << shift;
			quotient |= (uint64_t)1 << shift;
		}
	}
	*remainder = dividend;
	return quotient;
}

/* Rounds towards zero; the remainder has the dividend's sign (C11 6.5.5). INT64_MIN / -1 wraps to INT64_MIN. */
static inline int64_t execmem_divide_signed(int64_t dividend, int64_t divisor, int64_t *remainder)
{
	uint64_t n = dividend < 0 ? -(uint64_t)dividend : (uint64_t)dividend;
	uint64_t d = divisor < 0 ? -(uint64_t)divisor : (uint64_t)divisor;
	uint64_t rest;
	uint64_t quotient = execmem_divide_unsigned(n, d, &rest);

	*remainder = (int64_t)(dividend < 0 ? -rest : rest);
	return (int64_t)((dividend < 0) != (divisor < 0) ? -quotient : quotient);
}

#endif
