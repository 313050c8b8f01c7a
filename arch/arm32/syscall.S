/*
 * arm32: system calls. All of it A32.
 *
 * System calls: number r7; arguments r0 to r5; result r0; nothing else destroyed.
 */
#include "asm.h"

	.syntax	unified
	.arm

/*
 * long execmem_port_syscall(long number, long a, long b, long c, long d, long e, long f);
 *	r0 number, r1 a, r2 b, r3 c; on the stack d, e, f
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_syscall
	mov	r12, sp
	push	{r4, r5, r7, lr}
	mov	r7, r0
	mov	r0, r1
	mov	r1, r2
	mov	r2, r3
	ldm	r12, {r3, r4, r5}
	svc	#0
	pop	{r4, r5, r7, pc}
	EXECMEM_FUNCTION_END execmem_port_syscall
