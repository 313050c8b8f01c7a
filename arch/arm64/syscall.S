/*
 * arm64: system calls.
 *
 * System calls: number x8; arguments x0 to x5; result x0; nothing else destroyed.
 */
#include "asm.h"

/*
 * long execmem_port_syscall(long number, long a, long b, long c, long d, long e, long f);
 *	x0 number, x1 a, x2 b, x3 c, x4 d, x5 e, x6 f
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_syscall
	mov	x8, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	mov	x4, x5
	mov	x5, x6
	svc	#0
	ret
	EXECMEM_FUNCTION_END execmem_port_syscall
