/*
 * riscv64: program start and threads.
 *
 * System calls: number a7; arguments a0 to a5; result a0; nothing else destroyed.
 */
#include "asm.h"

/* Initial stack: argc at the stack pointer, which is a multiple of 16. gp stays as it is: nothing is relaxed. */
	EXECMEM_FUNCTION_BEGIN _start
	.cfi_undefined 1
	mv	s0, zero		/* the outermost frame */
	mv	ra, zero
	mv	a0, sp
	call	execmem_port_start
	unimp
	EXECMEM_FUNCTION_END _start

/*
 * long execmem_port_clone(unsigned long flags, void *stack_top, volatile int32_t *parent_tid,
 *			   volatile int32_t *child_tid, void (*run)(void *), void *argument);
 *	a0 flags, a1 stack_top, a2 parent_tid, a3 child_tid, a4 run, a5 argument
 *	The system call: a0 flags, a1 stack, a2 parent_tid, a3 tls (unused without CLONE_SETTLS), a4 child_tid.
 *	The child has the parent's registers, but a0 0 and sp stack_top.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_clone
	mv	t1, a4
	mv	a4, a3
	mv	a3, zero
	li	a7, EXECMEM_SYS_CLONE
	ecall
	beqz	a0, .Lclone_child
	ret
.Lclone_child:
	.cfi_undefined 1
	mv	s0, zero
	mv	a0, a5
	jalr	t1
	mv	a0, zero
	li	a7, EXECMEM_SYS_EXIT
	ecall
	unimp
	EXECMEM_FUNCTION_END execmem_port_clone
