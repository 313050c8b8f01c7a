/*
 * x86: program start, threads and the return from a signal handler.
 *
 * System calls: number eax; arguments ebx, ecx, edx, esi, edi, ebp; result eax; nothing else changes.
 */
#include "asm.h"

/* Argument n of a function that has pushed `saved` words. */
#define ARGUMENT(n, saved) (4 * (saved) + 4 + 4 * (n))(%esp)

/* Initial stack: argc at the stack pointer, which is a multiple of 16. */
	EXECMEM_FUNCTION_BEGIN _start
	.cfi_undefined %eip
	xorl	%ebp, %ebp		/* the outermost frame */
	movl	%esp, %eax
	subl	$12, %esp		/* a multiple of 16 again at the call */
	pushl	%eax
	call	execmem_port_start
	hlt
	EXECMEM_FUNCTION_END _start

/*
 * long execmem_port_clone(unsigned long flags, void *stack_top, volatile int32_t *parent_tid,
 *			   volatile int32_t *child_tid, void (*run)(void *), void *argument);
 *	The system call: ebx flags, ecx stack, edx parent_tid, esi tls (unused without CLONE_SETTLS), edi child_tid.
 *	The child has the parent's registers, but eax 0 and esp at `argument`, put on its stack beforehand; ebp is run.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_clone
	pushl	%ebx
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset %ebx, 0
	pushl	%edi
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset %edi, 0
	pushl	%ebp
	.cfi_adjust_cfa_offset 4
	.cfi_rel_offset %ebp, 0
	movl	ARGUMENT(0, 3), %ebx
	movl	ARGUMENT(1, 3), %ecx
	movl	ARGUMENT(2, 3), %edx
	movl	ARGUMENT(3, 3), %edi
	movl	ARGUMENT(4, 3), %ebp
	movl	ARGUMENT(5, 3), %eax
	subl	$16, %ecx		/* still a multiple of 16 at the call */
	movl	%eax, (%ecx)
	movl	$EXECMEM_SYS_CLONE, %eax
	int	$0x80
	testl	%eax, %eax
	je	.Lclone_child
	.cfi_remember_state
	popl	%ebp
	.cfi_adjust_cfa_offset -4
	.cfi_restore %ebp
	popl	%edi
	.cfi_adjust_cfa_offset -4
	.cfi_restore %edi
	popl	%ebx
	.cfi_adjust_cfa_offset -4
	.cfi_restore %ebx
	ret
.Lclone_child:
	.cfi_restore_state
	.cfi_undefined %eip
	movl	%ebp, %eax
	xorl	%ebp, %ebp
	call	*%eax
	xorl	%ebx, %ebx
	movl	$EXECMEM_SYS_EXIT, %eax
	int	$0x80
	hlt
	EXECMEM_FUNCTION_END execmem_port_clone

/* The handler's return address, with the signal frame at the stack pointer. Never called. */
	EXECMEM_FUNCTION_BEGIN execmem_port_sigreturn
	movl	$EXECMEM_SYS_RT_SIGRETURN, %eax
	int	$0x80
	hlt
	EXECMEM_FUNCTION_END execmem_port_sigreturn
