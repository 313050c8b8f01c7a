/*
 * loongarch64: system calls.
 *
 * System calls: number a7; arguments a0 to a5; result a0; t0 to t8 destroyed.
 */
#include "asm.h"

/*
 * long execmem_port_syscall(long number, long a, long b, long c, long d, long e, long f);
 *	a0 number, a1 a, a2 b, a3 c, a4 d, a5 e, a6 f
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_syscall
	move	$a7, $a0
	move	$a0, $a1
	move	$a1, $a2
	move	$a2, $a3
	move	$a3, $a4
	move	$a4, $a5
	move	$a5, $a6
	syscall	0
	ret
	EXECMEM_FUNCTION_END execmem_port_syscall
