/*
 * x64: system calls, and what serialises instruction fetch.
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

/*
 * void execmem_port_serialise(void);
 *	destroys	rax, rdx; with a shadow stack r8 and rcx as well
 *
 * arch/cpuid.h says why. iretq to itself serialises (Intel SDM volume 3A, "Serializing Instructions") and, unlike cpuid,
 * need not leave a virtual machine. Where the thread has a shadow stack, iretq would look for its frame there: cpuid then.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_serialise
	xorl	%eax, %eax
	rdsspq	%rax			/* does nothing where there is no shadow stack */
	testq	%rax, %rax
	jne	.Lserialise_by_cpuid
	movq	%rsp, %rax
	movl	%ss, %edx
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	pushfq
	.cfi_adjust_cfa_offset 8
	movl	%cs, %edx
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	leaq	.Lserialised(%rip), %rdx
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	iretq
	.cfi_adjust_cfa_offset -40
.Lserialised:
	ret
.Lserialise_by_cpuid:
	movq	%rbx, %r8
	.cfi_register %rbx, %r8
	xorl	%eax, %eax
	cpuid
	movq	%r8, %rbx
	.cfi_restore %rbx
	ret
	EXECMEM_FUNCTION_END execmem_port_serialise
