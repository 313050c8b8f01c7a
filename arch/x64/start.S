/*
 * x64: program start, threads and the return from a signal handler.
 *
 * System calls: number rax; arguments rdi, rsi, rdx, r10, r8, r9; result rax; rcx and r11 destroyed.
 */
#include "asm.h"

/* Initial stack: argc at the stack pointer, which is a multiple of 16. rdx (a function for atexit) is not used. */
	EXECMEM_FUNCTION_BEGIN _start
	.cfi_undefined %rip
	xorl	%ebp, %ebp		/* the outermost frame */
	movq	%rsp, %rdi
	call	execmem_port_start
	hlt
	EXECMEM_FUNCTION_END _start

/*
 * long execmem_port_clone(unsigned long flags, void *stack_top, volatile int32_t *parent_tid,
 *			   volatile int32_t *child_tid, void (*run)(void *), void *argument);
 *	rdi flags, rsi stack_top, rdx parent_tid, rcx child_tid, r8 run, r9 argument
 *	The system call: rdi flags, rsi stack, rdx parent_tid, r10 child_tid, r8 tls (unused without CLONE_SETTLS).
 *	The child has the parent's registers, but rax 0 and rsp stack_top.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_clone
	movq	%rcx, %r10
	movl	$EXECMEM_SYS_CLONE, %eax
	syscall
	testq	%rax, %rax
	je	.Lclone_child
	ret
.Lclone_child:
	.cfi_undefined %rip
	xorl	%ebp, %ebp
	movq	%r9, %rdi
	call	*%r8
	xorl	%edi, %edi
	movl	$EXECMEM_SYS_EXIT, %eax
	syscall
	hlt
	EXECMEM_FUNCTION_END execmem_port_clone

/* The handler's return address, with the signal frame at the stack pointer. Never called. */
	EXECMEM_FUNCTION_BEGIN execmem_port_sigreturn
	movl	$EXECMEM_SYS_RT_SIGRETURN, %eax
	syscall
	hlt
	EXECMEM_FUNCTION_END execmem_port_sigreturn
