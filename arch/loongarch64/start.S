/*
 * loongarch64: program start and threads.
 *
 * System calls: number a7; arguments a0 to a5; result a0; t0 to t8 destroyed.
 */
#include "asm.h"

/* Initial stack: argc at the stack pointer, which is a multiple of 16. */
	EXECMEM_FUNCTION_BEGIN _start
	.cfi_undefined 1
	move	$fp, $zero		/* the outermost frame */
	move	$ra, $zero
	move	$a0, $sp
	bl	execmem_port_start
	break	0
	EXECMEM_FUNCTION_END _start

/*
 * long execmem_port_clone(unsigned long flags, void *stack_top, volatile int32_t *parent_tid,
 *			   volatile int32_t *child_tid, void (*run)(void *), void *argument);
 *	a0 flags, a1 stack_top, a2 parent_tid, a3 child_tid, a4 run, a5 argument
 *	The system call: a0 flags, a1 stack, a2 parent_tid, a3 child_tid, a4 tls (unused without CLONE_SETTLS).
 *	The child has the parent's registers, but a0 0 and sp stack_top.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_clone
	ori	$a7, $zero, EXECMEM_SYS_CLONE
	syscall	0
	beqz	$a0, .Lclone_child
	ret
.Lclone_child:
	.cfi_undefined 1
	move	$fp, $zero
	move	$a0, $a5
	jirl	$ra, $a4, 0
	move	$a0, $zero
	ori	$a7, $zero, EXECMEM_SYS_EXIT
	syscall	0
	break	0
	EXECMEM_FUNCTION_END execmem_port_clone
