/*
 * loongarch64: the capturing call stub and its landings. See "Capturing call stub" in port.h and "Captured calls" in
 * linux.c.
 *
 * Calls through the link register, so that it owns no other register while the callee runs. A landing returns through
 * the link register that arrives, so that a lost one shows. FCSR and the condition flags are neither seeded nor stored.
 */
#include "asm.h"

	.bss
	.balign	EXECMEM_POINTER_BYTES
.Lentry:
	.skip	EXECMEM_POINTER_BYTES	/* where the call goes */
.Lstack:
	.skip	EXECMEM_POINTER_BYTES	/* the stack pointer that capture_leave restores */
	.text

/* each_vector operation, where: fld.d or fst.d of f0 to f31 at `where`(ra). */
	.macro	each_vector operation, where
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \
		24, 25, 26, 27, 28, 29, 30, 31
	\operation	$f\n, $ra, \where + EXECMEM_CAPTURE_VECTOR + \n * EXECMEM_PORT_VECTOR_BYTES
	.endr
	.endm

/* each_general operation, where: ld.d or st.d of r2 and r4 to r31 at `where`(ra); r1 is ra, r3 the stack pointer. */
	.macro	each_general operation, where
	\operation	$r2, $ra, \where + EXECMEM_CAPTURE_GENERAL + EXECMEM_POINTER_BYTES
	.irp	n, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, \
		27, 28, 29, 30, 31
	\operation	$r\n, $ra, \where + EXECMEM_CAPTURE_GENERAL + (\n - 2) * EXECMEM_POINTER_BYTES
	.endr
	.endm

/* each_saved general, vector: the callee-saved registers and the link register in the frame of capture_enter. */
	.macro	each_saved general, vector
	\general	$ra, $sp, 0
	.irp	n, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	\general	$r\n, $sp, (\n - 21) * EXECMEM_POINTER_BYTES
	.endr
	.irp	n, 24, 25, 26, 27, 28, 29, 30, 31
	\vector	$f\n, $sp, (\n - 13) * EXECMEM_POINTER_BYTES
	.endr
	.endm

/*
 * store_registers where: every register to the struct execmem_port_registers at `where` in the capture, the link
 * register first to a word below the stack pointer. Leaves the capture in ra; changes t0.
 */
	.macro	store_registers where
	st.d	$ra, $sp, EXECMEM_CAPTURE_BELOW_LINK
	la.pcrel	$ra, execmem_port_captured
	ld.d	$ra, $ra, 0
	each_general st.d, \where
	each_vector fst.d, \where
	ld.d	$t0, $sp, EXECMEM_CAPTURE_BELOW_LINK
	st.d	$t0, $ra, \where + EXECMEM_CAPTURE_GENERAL
	st.d	$sp, $ra, \where + EXECMEM_CAPTURE_STACK_POINTER
	.irp	n, 0, 8, 16, 24, 32, 40, 48, 56
	ld.d	$t0, $sp, \n
	st.d	$t0, $ra, \where + EXECMEM_CAPTURE_STACK + \n
	.endr
	.endm

/* void execmem_port_capture_enter(struct execmem_port_capture *capture); a0 capture */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_enter
	addi.d	$sp, $sp, -EXECMEM_CAPTURE_SAVED_BYTES
	each_saved st.d, fst.d
	la.pcrel	$t0, .Lstack
	st.d	$sp, $t0, 0
	ld.d	$t1, $a0, EXECMEM_CAPTURE_ENTRY
	la.pcrel	$t0, .Lentry
	st.d	$t1, $t0, 0

	addi.d	$sp, $sp, -EXECMEM_CAPTURE_STACK_BYTES
	.irp	n, 0, 8, 16, 24, 32, 40, 48, 56
	ld.d	$t0, $a0, EXECMEM_CAPTURE_SEED + EXECMEM_CAPTURE_STACK + \n
	st.d	$t0, $sp, \n
	.endr
	st.d	$sp, $a0, EXECMEM_CAPTURE_SEED + EXECMEM_CAPTURE_STACK_POINTER
	move	$ra, $a0
	each_vector fld.d, EXECMEM_CAPTURE_SEED
	each_general ld.d, EXECMEM_CAPTURE_SEED
	la.pcrel	$ra, .Lentry
	ld.d	$ra, $ra, 0
	jirl	$ra, $ra, 0
	store_registers EXECMEM_CAPTURE_AT_RETURN
	EXECMEM_FUNCTION_END execmem_port_capture_enter
	/* falls through */

/* Jumped to from a signal handler as well, with nothing known of the registers. */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_leave, 4
	la.pcrel	$t0, .Lstack
	ld.d	$sp, $t0, 0
	each_saved ld.d, fld.d
	addi.d	$sp, $sp, EXECMEM_CAPTURE_SAVED_BYTES
	ret
	EXECMEM_FUNCTION_END execmem_port_capture_leave

	EXECMEM_FUNCTION_BEGIN execmem_port_landed
	ld.d	$ra, $sp, EXECMEM_CAPTURE_BELOW_LINK
	store_registers EXECMEM_CAPTURE_AT_LANDING
	ld.d	$t0, $sp, EXECMEM_CAPTURE_BELOW_INDEX
	st.w	$t0, $ra, EXECMEM_CAPTURE_LANDED
	ld.d	$t0, $ra, EXECMEM_CAPTURE_AT_LANDING + EXECMEM_CAPTURE_GENERAL + (12 - 2) * EXECMEM_POINTER_BYTES
	ld.d	$ra, $sp, EXECMEM_CAPTURE_BELOW_LINK
	ret
	EXECMEM_FUNCTION_END execmem_port_landed

	.irp	n, 0, 1, 2, 3
	EXECMEM_FUNCTION_BEGIN execmem_port_landing_\n
	st.d	$ra, $sp, EXECMEM_CAPTURE_BELOW_LINK
	ori	$ra, $zero, \n
	st.d	$ra, $sp, EXECMEM_CAPTURE_BELOW_INDEX
	b	execmem_port_landed
	EXECMEM_FUNCTION_END execmem_port_landing_\n
	.endr
