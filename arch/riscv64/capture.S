/*
 * riscv64: the capturing call stub and its landings. See "Capturing call stub" in port.h and "Captured calls" in
 * linux.c.
 *
 * Calls through the link register, so that it owns no other register while the callee runs. A landing returns through
 * the link register that arrives, so that a lost one shows. fcsr is neither seeded nor stored.
 */
#include "asm.h"

	.bss
	.balign	EXECMEM_POINTER_BYTES
.Lentry:
	.skip	EXECMEM_POINTER_BYTES	/* where the call goes */
.Lstack:
	.skip	EXECMEM_POINTER_BYTES	/* the stack pointer that capture_leave restores */
	.text

/* each_vector operation, where: fld or fsd of f0 to f31 at `where`(ra). */
	.macro	each_vector operation, where
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \
		24, 25, 26, 27, 28, 29, 30, 31
	\operation	f\n, \where + EXECMEM_CAPTURE_VECTOR + \n * EXECMEM_PORT_VECTOR_BYTES(ra)
	.endr
	.endm

/* each_general operation, where: ld or sd of x3 to x31 at `where`(ra); x1 is ra, x2 the stack pointer. */
	.macro	each_general operation, where
	.irp	n, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, \
		26, 27, 28, 29, 30, 31
	\operation	x\n, \where + EXECMEM_CAPTURE_GENERAL + (\n - 2) * EXECMEM_POINTER_BYTES(ra)
	.endr
	.endm

/* each_saved general, vector: gp, tp, the callee-saved registers and the link register in the frame of capture_enter. */
	.macro	each_saved general, vector
	\general	ra, 0(sp)
	.irp	n, 3, 4
	\general	x\n, (\n - 2) * EXECMEM_POINTER_BYTES(sp)
	.endr
	.irp	n, 8, 9
	\general	x\n, (\n - 5) * EXECMEM_POINTER_BYTES(sp)
	\vector		f\n, (\n + 7) * EXECMEM_POINTER_BYTES(sp)
	.endr
	.irp	n, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27
	\general	x\n, (\n - 13) * EXECMEM_POINTER_BYTES(sp)
	\vector		f\n, (\n - 1) * EXECMEM_POINTER_BYTES(sp)
	.endr
	.endm

/*
 * store_registers where: every register to the struct execmem_port_registers at `where` in the capture, the link
 * register first to a word below the stack pointer. Leaves the capture in ra; changes t0.
 */
	.macro	store_registers where
	sd	ra, EXECMEM_CAPTURE_BELOW_LINK(sp)
	lla	ra, execmem_port_captured
	ld	ra, 0(ra)
	each_general sd, \where
	each_vector fsd, \where
	ld	t0, EXECMEM_CAPTURE_BELOW_LINK(sp)
	sd	t0, \where + EXECMEM_CAPTURE_GENERAL(ra)
	sd	sp, \where + EXECMEM_CAPTURE_STACK_POINTER(ra)
	.irp	n, 0, 8, 16, 24, 32, 40, 48, 56
	ld	t0, \n(sp)
	sd	t0, \where + EXECMEM_CAPTURE_STACK + \n(ra)
	.endr
	.endm

/* void execmem_port_capture_enter(struct execmem_port_capture *capture); a0 capture */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_enter
	addi	sp, sp, -EXECMEM_CAPTURE_SAVED_BYTES
	each_saved sd, fsd
	lla	t0, .Lstack
	sd	sp, 0(t0)
	ld	t1, EXECMEM_CAPTURE_ENTRY(a0)
	lla	t0, .Lentry
	sd	t1, 0(t0)

	addi	sp, sp, -EXECMEM_CAPTURE_STACK_BYTES
	.irp	n, 0, 8, 16, 24, 32, 40, 48, 56
	ld	t0, EXECMEM_CAPTURE_SEED + EXECMEM_CAPTURE_STACK + \n(a0)
	sd	t0, \n(sp)
	.endr
	sd	sp, EXECMEM_CAPTURE_SEED + EXECMEM_CAPTURE_STACK_POINTER(a0)
	mv	ra, a0
	each_vector fld, EXECMEM_CAPTURE_SEED
	each_general ld, EXECMEM_CAPTURE_SEED
	lla	ra, .Lentry
	ld	ra, 0(ra)
	jalr	ra
	store_registers EXECMEM_CAPTURE_AT_RETURN
	EXECMEM_FUNCTION_END execmem_port_capture_enter
	/* falls through */

/* Jumped to from a signal handler as well, with nothing known of the registers. */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_leave, 2
	lla	t0, .Lstack
	ld	sp, 0(t0)
	each_saved ld, fld
	addi	sp, sp, EXECMEM_CAPTURE_SAVED_BYTES
	ret
	EXECMEM_FUNCTION_END execmem_port_capture_leave

	EXECMEM_FUNCTION_BEGIN execmem_port_landed
	ld	ra, EXECMEM_CAPTURE_BELOW_LINK(sp)
	store_registers EXECMEM_CAPTURE_AT_LANDING
	ld	t0, EXECMEM_CAPTURE_BELOW_INDEX(sp)
	sw	t0, EXECMEM_CAPTURE_LANDED(ra)
	ld	t0, EXECMEM_CAPTURE_AT_LANDING + EXECMEM_CAPTURE_GENERAL + (5 - 2) * EXECMEM_POINTER_BYTES(ra)
	ld	ra, EXECMEM_CAPTURE_BELOW_LINK(sp)
	ret
	EXECMEM_FUNCTION_END execmem_port_landed

	.irp	n, 0, 1, 2, 3
	EXECMEM_FUNCTION_BEGIN execmem_port_landing_\n
	sd	ra, EXECMEM_CAPTURE_BELOW_LINK(sp)
	li	ra, \n
	sd	ra, EXECMEM_CAPTURE_BELOW_INDEX(sp)
	j	execmem_port_landed
	EXECMEM_FUNCTION_END execmem_port_landing_\n
	.endr
