/*
 * x64: system calls.
 *
 * System calls: number rax; arguments rdi, rsi, rdx, r10, r8, r9; result rax; rcx and r11 destroyed.
 */
#include "asm.h"

/*
 * long execmem_port_syscall(long number, long a, long b, long c, long d, long e, long f);
 *	rdi number, rsi a, rdx b, rcx c, r8 d, r9 e, 8(%rsp) f
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_syscall
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
	syscall
	ret
	EXECMEM_FUNCTION_END execmem_port_syscall
