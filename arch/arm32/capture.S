/*
 * arm32: the capturing call stub and its landings. See "Capturing call stub" in port.h and "Captured calls" in linux.c.
 *
 * Calls through the link register, so that it owns no other register while the callee runs. A landing returns through
 * the link register that arrives, so that a lost one shows. Flags and FPSCR are neither seeded nor stored. All of it is
 * A32 but the entries of the odd landings, so that a mode bit lost or added on the way to a target shows.
 */
#include "asm.h"

	.syntax	unified
	.arm

	.bss
	.balign	EXECMEM_POINTER_BYTES
.Lentry:
	.skip	EXECMEM_POINTER_BYTES	/* where the call goes */
.Lstack:
	.skip	EXECMEM_POINTER_BYTES	/* the stack pointer that capture_leave restores */
	.text

/*
 * store_registers where: every register to the struct execmem_port_registers at `where` in the capture, the link
 * register first to a word below the stack pointer. Leaves lr at the general registers and the capture in r0.
 */
	.macro	store_registers where
	str	lr, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	movw	lr, #:lower16:execmem_port_captured
	movt	lr, #:upper16:execmem_port_captured
	ldr	lr, [lr]
	add	lr, lr, #(\where + EXECMEM_CAPTURE_VECTOR)
	vstmia	lr!, {d0-d15}
	vstmia	lr!, {d16-d31}
	stm	lr, {r0-r12}
	ldr	r0, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	str	r0, [lr, #(EXECMEM_CAPTURE_LINK - EXECMEM_CAPTURE_GENERAL)]
	str	sp, [lr, #(EXECMEM_CAPTURE_STACK_POINTER - EXECMEM_CAPTURE_GENERAL)]
	.irp	n, 0, 4, 8, 12, 16, 20, 24, 28
	ldr	r0, [sp, #\n]
	str	r0, [lr, #(EXECMEM_CAPTURE_STACK - EXECMEM_CAPTURE_GENERAL + \n)]
	.endr
	sub	r0, lr, #(\where + EXECMEM_CAPTURE_GENERAL)
	.endm

/* void execmem_port_capture_enter(struct execmem_port_capture *capture); r0 capture */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_enter
	push	{r3-r11, lr}		/* r3: the stack pointer stays a multiple of 8 */
	vpush	{d8-d15}
	movw	r1, #:lower16:.Lstack
	movt	r1, #:upper16:.Lstack
	str	sp, [r1]
	ldr	r2, [r0, #EXECMEM_CAPTURE_ENTRY]
	movw	r1, #:lower16:.Lentry
	movt	r1, #:upper16:.Lentry
	str	r2, [r1]

	add	lr, r0, #(EXECMEM_CAPTURE_SEED + EXECMEM_CAPTURE_VECTOR)
	vldmia	lr!, {d0-d15}
	vldmia	lr!, {d16-d31}
	sub	sp, sp, #EXECMEM_CAPTURE_STACK_BYTES
	.irp	n, 0, 4, 8, 12, 16, 20, 24, 28
	ldr	r0, [lr, #(EXECMEM_CAPTURE_STACK - EXECMEM_CAPTURE_GENERAL + \n)]
	str	r0, [sp, #\n]
	.endr
	str	sp, [lr, #(EXECMEM_CAPTURE_STACK_POINTER - EXECMEM_CAPTURE_GENERAL)]
	ldm	lr, {r0-r12}
	movw	lr, #:lower16:.Lentry
	movt	lr, #:upper16:.Lentry
	ldr	lr, [lr]
	blx	lr
	store_registers EXECMEM_CAPTURE_AT_RETURN
	EXECMEM_FUNCTION_END execmem_port_capture_enter
	/* falls through */

/* Jumped to from a signal handler as well, with nothing known of the registers. */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_leave, 4
	movw	r1, #:lower16:.Lstack
	movt	r1, #:upper16:.Lstack
	ldr	sp, [r1]
	vpop	{d8-d15}
	pop	{r3-r11, pc}
	EXECMEM_FUNCTION_END execmem_port_capture_leave

	EXECMEM_FUNCTION_BEGIN execmem_port_landed
	ldr	lr, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	store_registers EXECMEM_CAPTURE_AT_LANDING
	ldr	lr, [sp, #EXECMEM_CAPTURE_BELOW_INDEX]
	str	lr, [r0, #EXECMEM_CAPTURE_LANDED]
	ldr	r0, [r0, #(EXECMEM_CAPTURE_AT_LANDING + EXECMEM_CAPTURE_GENERAL)]
	ldr	lr, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	bx	lr
	EXECMEM_FUNCTION_END execmem_port_landed

	.macro	land index
	str	lr, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	mov	lr, #\index
	str	lr, [sp, #EXECMEM_CAPTURE_BELOW_INDEX]
	b	execmem_port_landed
	.endm

	.irp	n, 0, 2
	EXECMEM_FUNCTION_BEGIN execmem_port_landing_\n
	land	\n
	EXECMEM_FUNCTION_END execmem_port_landing_\n
	.endr

	.irp	n, 1, 3
	.thumb
	EXECMEM_FUNCTION_BEGIN execmem_port_landing_\n
	bx	pc			/* to A32, two instructions on: changes no register */
	nop
	.arm
	land	\n
	EXECMEM_FUNCTION_END execmem_port_landing_\n
	.endr
