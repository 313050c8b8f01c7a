/*
 * riscv64: system calls.
 *
 * System calls: number a7; arguments a0 to a5; result a0; nothing else destroyed.
 */
#include "asm.h"

/*
 * long execmem_port_syscall(long number, long a, long b, long c, long d, long e, long f);
 *	a0 number, a1 a, a2 b, a3 c, a4 d, a5 e, a6 f
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_syscall
	mv	a7, a0
	mv	a0, a1
	mv	a1, a2
	mv	a2, a3
	mv	a3, a4
	mv	a4, a5
	mv	a5, a6
	ecall
	ret
	EXECMEM_FUNCTION_END execmem_port_syscall
