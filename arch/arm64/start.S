/*
 * arm64: program start, threads and the return from a signal handler.
 *
 * System calls: number x8; arguments x0 to x5; result x0; nothing else destroyed.
 */
#include "asm.h"

/* Initial stack: argc at the stack pointer, which is a multiple of 16. */
	EXECMEM_FUNCTION_BEGIN _start
	.cfi_undefined x30
	mov	x29, xzr		/* the outermost frame */
	mov	x30, xzr
	mov	x0, sp
	bl	execmem_port_start
	udf	#0
	EXECMEM_FUNCTION_END _start

/*
 * long execmem_port_clone(unsigned long flags, void *stack_top, volatile int32_t *parent_tid,
 *			   volatile int32_t *child_tid, void (*run)(void *), void *argument);
 *	x0 flags, x1 stack_top, x2 parent_tid, x3 child_tid, x4 run, x5 argument
 *	The system call: x0 flags, x1 stack, x2 parent_tid, x3 tls (unused without CLONE_SETTLS), x4 child_tid.
 *	The child has the parent's registers, but x0 0 and sp stack_top.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_clone
	mov	x6, x4
	mov	x4, x3
	mov	x3, xzr
	mov	x8, #EXECMEM_SYS_CLONE
	svc	#0
	cbz	x0, .Lclone_child
	ret
.Lclone_child:
	.cfi_undefined x30
	mov	x29, xzr
	mov	x0, x5
	blr	x6
	mov	x0, xzr
	mov	x8, #EXECMEM_SYS_EXIT
	svc	#0
	udf	#0
	EXECMEM_FUNCTION_END execmem_port_clone

/* The handler's return address, with the signal frame at the stack pointer. Never called. */
	EXECMEM_FUNCTION_BEGIN execmem_port_sigreturn
	mov	x8, #EXECMEM_SYS_RT_SIGRETURN
	svc	#0
	udf	#0
	EXECMEM_FUNCTION_END execmem_port_sigreturn
