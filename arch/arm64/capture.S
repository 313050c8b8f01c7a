/*
 * arm64: the capturing call stub and its landings. See "Capturing call stub" in port.h and "Captured calls" in linux.c.
 *
 * Calls through the link register, so that it owns no other register while the callee runs. A landing returns through
 * the link register that arrives, so that a lost one shows. The condition flags, FPCR and FPSR are neither seeded nor
 * stored.
 */
#include "asm.h"

	.bss
	.balign	EXECMEM_POINTER_BYTES
.Lentry:
	.skip	EXECMEM_POINTER_BYTES	/* where the call goes */
.Lstack:
	.skip	EXECMEM_POINTER_BYTES	/* the stack pointer that capture_leave restores */
	.text

/* each_vector operation: ld1 or st1 of v0 to v31 at x30, which is behind them then, at the general registers. */
	.macro	each_vector operation
	\operation	{v0.2d-v3.2d}, [x30], #64
	\operation	{v4.2d-v7.2d}, [x30], #64
	\operation	{v8.2d-v11.2d}, [x30], #64
	\operation	{v12.2d-v15.2d}, [x30], #64
	\operation	{v16.2d-v19.2d}, [x30], #64
	\operation	{v20.2d-v23.2d}, [x30], #64
	\operation	{v24.2d-v27.2d}, [x30], #64
	\operation	{v28.2d-v31.2d}, [x30], #64
	.endm

/* each_general operation: ldp or stp of x0 to x29 at x30. */
	.macro	each_general operation
	\operation	x0, x1, [x30]
	\operation	x2, x3, [x30, #16]
	\operation	x4, x5, [x30, #32]
	\operation	x6, x7, [x30, #48]
	\operation	x8, x9, [x30, #64]
	\operation	x10, x11, [x30, #80]
	\operation	x12, x13, [x30, #96]
	\operation	x14, x15, [x30, #112]
	\operation	x16, x17, [x30, #128]
	\operation	x18, x19, [x30, #144]
	\operation	x20, x21, [x30, #160]
	\operation	x22, x23, [x30, #176]
	\operation	x24, x25, [x30, #192]
	\operation	x26, x27, [x30, #208]
	\operation	x28, x29, [x30, #224]
	.endm

/* each_saved operation: ldp or stp of the callee-saved registers in the frame of capture_enter. */
	.macro	each_saved operation
	\operation	x19, x20, [sp]
	\operation	x21, x22, [sp, #16]
	\operation	x23, x24, [sp, #32]
	\operation	x25, x26, [sp, #48]
	\operation	x27, x28, [sp, #64]
	\operation	x29, x30, [sp, #80]
	\operation	d8, d9, [sp, #96]
	\operation	d10, d11, [sp, #112]
	\operation	d12, d13, [sp, #128]
	\operation	d14, d15, [sp, #144]
	.endm

/*
 * store_registers where: every register to the struct execmem_port_registers at `where` in the capture, the link
 * register first to a word below the stack pointer. Leaves x30 at the general registers and the capture in x0; changes
 * x1.
 */
	.macro	store_registers where
	str	x30, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	adrp	x30, execmem_port_captured
	ldr	x30, [x30, :lo12:execmem_port_captured]
	add	x30, x30, #(\where + EXECMEM_CAPTURE_VECTOR)
	each_vector st1
	each_general stp
	ldr	x0, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	mov	x1, sp
	stp	x0, x1, [x30, #(30 * EXECMEM_POINTER_BYTES)]
	.irp	n, 0, 16, 32, 48
	ldp	x0, x1, [sp, #\n]
	stp	x0, x1, [x30, #(EXECMEM_CAPTURE_STACK - EXECMEM_CAPTURE_GENERAL + \n)]
	.endr
	sub	x0, x30, #(\where + EXECMEM_CAPTURE_GENERAL)
	.endm

/* void execmem_port_capture_enter(struct execmem_port_capture *capture); x0 capture */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_enter
	sub	sp, sp, #EXECMEM_CAPTURE_SAVED_BYTES
	each_saved stp
	mov	x1, sp
	adrp	x2, .Lstack
	str	x1, [x2, :lo12:.Lstack]
	ldr	x1, [x0, #EXECMEM_CAPTURE_ENTRY]
	adrp	x2, .Lentry
	str	x1, [x2, :lo12:.Lentry]

	sub	sp, sp, #EXECMEM_CAPTURE_STACK_BYTES
	add	x30, x0, #(EXECMEM_CAPTURE_SEED + EXECMEM_CAPTURE_VECTOR)
	each_vector ld1
	.irp	n, 0, 16, 32, 48
	ldp	x1, x2, [x30, #(EXECMEM_CAPTURE_STACK - EXECMEM_CAPTURE_GENERAL + \n)]
	stp	x1, x2, [sp, #\n]
	.endr
	mov	x1, sp
	str	x1, [x30, #(EXECMEM_CAPTURE_STACK_POINTER - EXECMEM_CAPTURE_GENERAL)]
	each_general ldp
	adrp	x30, .Lentry
	ldr	x30, [x30, :lo12:.Lentry]
	blr	x30
	store_registers EXECMEM_CAPTURE_AT_RETURN
	EXECMEM_FUNCTION_END execmem_port_capture_enter
	/* falls through */

/* Jumped to from a signal handler as well, with nothing known of the registers. */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_leave, 4
	adrp	x1, .Lstack
	ldr	x1, [x1, :lo12:.Lstack]
	mov	sp, x1
	each_saved ldp
	add	sp, sp, #EXECMEM_CAPTURE_SAVED_BYTES
	ret
	EXECMEM_FUNCTION_END execmem_port_capture_leave

	EXECMEM_FUNCTION_BEGIN execmem_port_landed
	ldr	x30, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	store_registers EXECMEM_CAPTURE_AT_LANDING
	ldr	x1, [sp, #EXECMEM_CAPTURE_BELOW_INDEX]
	str	w1, [x0, #EXECMEM_CAPTURE_LANDED]
	ldp	x0, x1, [x30]
	ldr	x30, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	ret
	EXECMEM_FUNCTION_END execmem_port_landed

/* Alone in their pages, so that execmem_port_guard_landings guards nothing else. */
	.section execmem_landings, "ax", %progbits
	.balign	EXECMEM_LANDINGS_BYTES
	.globl	execmem_port_landings
	.hidden	execmem_port_landings
execmem_port_landings:
	.irp	n, 0, 1, 2, 3
	EXECMEM_FUNCTION_BEGIN execmem_port_landing_\n
	EXECMEM_PAD
	str	x30, [sp, #EXECMEM_CAPTURE_BELOW_LINK]
	mov	x30, #\n
	str	x30, [sp, #EXECMEM_CAPTURE_BELOW_INDEX]
	b	execmem_port_landed
	EXECMEM_FUNCTION_END execmem_port_landing_\n
	.endr
	.balign	EXECMEM_LANDINGS_BYTES
