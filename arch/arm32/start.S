/*
 * arm32: program start, threads and the return from a signal handler. All of it A32.
 *
 * System calls: number r7; arguments r0 to r5; result r0; nothing else destroyed.
 */
#include "asm.h"

	.syntax	unified
	.arm

/* Initial stack: argc at the stack pointer, which is a multiple of 8. r0 (a function for atexit) is not used. */
	EXECMEM_FUNCTION_BEGIN _start
	.cfi_undefined lr
	mov	r11, #0			/* the outermost frame */
	mov	lr, #0
	mov	r0, sp
	bl	execmem_port_start
	udf	#0
	EXECMEM_FUNCTION_END _start

/*
 * long execmem_port_clone(unsigned long flags, void *stack_top, volatile int32_t *parent_tid,
 *			   volatile int32_t *child_tid, void (*run)(void *), void *argument);
 *	r0 flags, r1 stack_top, r2 parent_tid, r3 child_tid; on the stack run, argument
 *	The system call: r0 flags, r1 stack, r2 parent_tid, r3 tls (unused without CLONE_SETTLS), r4 child_tid.
 *	The child has the parent's registers, but r0 0 and sp stack_top.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_clone
	mov	r12, sp
	push	{r4, r5, r6, r7}
	mov	r4, r3
	ldm	r12, {r5, r6}
	mov	r7, #EXECMEM_SYS_CLONE
	svc	#0
	cmp	r0, #0
	beq	.Lclone_child
	pop	{r4, r5, r6, r7}
	bx	lr
.Lclone_child:
	.cfi_undefined lr
	mov	r11, #0
	mov	r0, r6
	blx	r5
	mov	r0, #0
	mov	r7, #EXECMEM_SYS_EXIT
	svc	#0
	udf	#0
	EXECMEM_FUNCTION_END execmem_port_clone

/* The handler's return address, with the signal frame at the stack pointer. Never called. */
	EXECMEM_FUNCTION_BEGIN execmem_port_sigreturn
	mov	r7, #EXECMEM_SYS_RT_SIGRETURN
	svc	#0
	udf	#0
	EXECMEM_FUNCTION_END execmem_port_sigreturn
