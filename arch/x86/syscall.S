/*
 * x86: system calls, and what serialises instruction fetch.
 *
 * System calls: number eax; arguments ebx, ecx, edx, esi, edi, ebp; result eax; nothing else changes.
 */
#include "asm.h"

/* Argument n of a function that has pushed `saved` words. */
#define ARGUMENT(n, saved) (4 * (saved) + 4 + 4 * (n))(%esp)

/* long execmem_port_syscall(long number, long a, long b, long c, long d, long e, long f); */
	EXECMEM_FUNCTION_BEGIN execmem_port_syscall
	pushl	%ebx
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset %ebx, 0
	pushl	%esi
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset %esi, 0
	pushl	%edi
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset %edi, 0
	pushl	%ebp
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset %ebp, 0
	movl	ARGUMENT(0, 4), %eax
	movl	ARGUMENT(1, 4), %ebx
	movl	ARGUMENT(2, 4), %ecx
	movl	ARGUMENT(3, 4), %edx
	movl	ARGUMENT(4, 4), %esi
	movl	ARGUMENT(5, 4), %edi
	movl	ARGUMENT(6, 4), %ebp
	int	$0x80
	popl	%ebp
	.cfi_adjust_cfa_offset -4
	.cfi_restore %ebp
	popl	%edi
	.cfi_adjust_cfa_offset -4
	.cfi_restore %edi
	popl	%esi
	.cfi_adjust_cfa_offset -4
	.cfi_restore %esi
	popl	%ebx
	.cfi_adjust_cfa_offset -4
	.cfi_restore %ebx
	ret
	EXECMEM_FUNCTION_END execmem_port_syscall

/*
 * void execmem_port_serialise(void);
 *
 * arch/cpuid.h says why. iret to itself serialises (Intel SDM volume 3A, "Serializing Instructions") and, unlike cpuid,
 * need not leave a virtual machine. Linux gives 32-bit threads no shadow stack, which iret would have to match.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_serialise
	popl	%edx			/* the frame, from the return address up: eip, cs, eflags */
	.cfi_adjust_cfa_offset -4
	.cfi_register %eip, %edx
	pushfl
	.cfi_adjust_cfa_offset 4
	pushl	%cs
	.cfi_adjust_cfa_offset 4
	pushl	%edx
	.cfi_adjust_cfa_offset 4
	iret
	EXECMEM_FUNCTION_END execmem_port_serialise
