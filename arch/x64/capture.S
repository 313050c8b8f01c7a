/*
 * x64: the capturing call stub and its landings. See "Capturing call stub" in port.h and "Captured calls" in linux.c.
 *
 * The call goes through memory, and what the stub needs afterwards is kept in the words below: it owns no register
 * while the callee runs.
 */
#include "asm.h"

#define WORD EXECMEM_POINTER_BYTES
#define SEED(field) (EXECMEM_CAPTURE_SEED + EXECMEM_CAPTURE_##field)

	.bss
	.balign	WORD
.Lentry:
	.skip	WORD	/* where the call goes */
.Lstack:
	.skip	WORD	/* the stack pointer that capture_leave restores */
.Lrax:
	.skip	WORD	/* rax, while it points at the place to store to */
	.text

/*
 * void execmem_port_capture_enter(struct execmem_port_capture *capture);
 *	rdi	capture
 *	Stack, downwards: our return address, the callee-saved registers, stack words 7 to 1, the callee's return
 *	address. The stack pointer is a multiple of 16 at the call.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_enter
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	.cfi_adjust_cfa_offset 6 * WORD
	.cfi_rel_offset %r15, 0 * WORD
	.cfi_rel_offset %r14, 1 * WORD
	.cfi_rel_offset %r13, 2 * WORD
	.cfi_rel_offset %r12, 3 * WORD
	.cfi_rel_offset %rbp, 4 * WORD
	.cfi_rel_offset %rbx, 5 * WORD
	movq	%rsp, .Lstack(%rip)
	movq	EXECMEM_CAPTURE_ENTRY(%rdi), %rax
	movq	%rax, .Lentry(%rip)
	.irp	n, 7, 6, 5, 4, 3, 2, 1
	pushq	SEED(STACK) + \n * WORD(%rdi)
	.endr
	.cfi_adjust_cfa_offset 7 * WORD
	leaq	-WORD(%rsp), %rax	/* as the callee finds it, below its return address */
	movq	%rax, SEED(STACK_POINTER)(%rdi)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	SEED(VECTOR) + \n * EXECMEM_PORT_VECTOR_BYTES(%rdi), %xmm\n
	.endr
	movq	SEED(RAX)(%rdi), %rax
	movq	SEED(RBX)(%rdi), %rbx
	movq	SEED(RCX)(%rdi), %rcx
	movq	SEED(RDX)(%rdi), %rdx
	movq	SEED(RSI)(%rdi), %rsi
	movq	SEED(RBP)(%rdi), %rbp
	movq	SEED(R8)(%rdi), %r8
	movq	SEED(R9)(%rdi), %r9
	movq	SEED(R10)(%rdi), %r10
	movq	SEED(R11)(%rdi), %r11
	movq	SEED(R12)(%rdi), %r12
	movq	SEED(R13)(%rdi), %r13
	movq	SEED(R14)(%rdi), %r14
	movq	SEED(R15)(%rdi), %r15
	movq	SEED(RDI)(%rdi), %rdi
	call	*.Lentry(%rip)
	movq	%rax, .Lrax(%rip)
	movq	execmem_port_captured(%rip), %rax
	addq	$EXECMEM_CAPTURE_AT_RETURN, %rax
	subq	$WORD, %rsp		/* a preserved stack pointer is the same number at all three moments */
	.cfi_adjust_cfa_offset WORD
	call	.Lstore

	.globl	execmem_port_capture_leave
	.hidden	execmem_port_capture_leave
	.type	execmem_port_capture_leave, %function
execmem_port_capture_leave:
	cld				/* an abandoned callee may have set it */
	movq	.Lstack(%rip), %rsp
	.cfi_adjust_cfa_offset -8 * WORD
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	.cfi_adjust_cfa_offset -6 * WORD
	ret
	EXECMEM_FUNCTION_END execmem_port_capture_enter

/*
 * The landings: reached by a template's jump, with the callee's return address at the stack pointer. All registers are
 * left as they came; flags are destroyed.
 */
	.irp	n, 0, 1, 2, 3
	EXECMEM_FUNCTION_BEGIN execmem_port_landing_\n
	EXECMEM_PAD
	movq	%rax, .Lrax(%rip)
	movq	execmem_port_captured(%rip), %rax
	movl	$\n, EXECMEM_CAPTURE_LANDED(%rax)
	jmp	execmem_port_landed
	EXECMEM_FUNCTION_END execmem_port_landing_\n
	.endr

	EXECMEM_FUNCTION_BEGIN execmem_port_landed
	addq	$EXECMEM_CAPTURE_AT_LANDING, %rax
	call	.Lstore
	movq	.Lrax(%rip), %rax
	ret
	EXECMEM_FUNCTION_END execmem_port_landed

/*
 * Stores all registers and the caller's stack to the struct execmem_port_registers at rax; rax's own value is in .Lrax.
 * Words go by push and pop, because no register is free.
 */
	.type	.Lstore, %function
	.cfi_startproc
.Lstore:
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	%xmm\n, EXECMEM_CAPTURE_VECTOR + \n * EXECMEM_PORT_VECTOR_BYTES(%rax)
	.endr
	pushq	.Lrax(%rip)
	popq	EXECMEM_CAPTURE_RAX(%rax)
	movq	%rbx, EXECMEM_CAPTURE_RBX(%rax)
	movq	%rcx, EXECMEM_CAPTURE_RCX(%rax)
	movq	%rdx, EXECMEM_CAPTURE_RDX(%rax)
	movq	%rsi, EXECMEM_CAPTURE_RSI(%rax)
	movq	%rdi, EXECMEM_CAPTURE_RDI(%rax)
	movq	%rbp, EXECMEM_CAPTURE_RBP(%rax)
	movq	%r8, EXECMEM_CAPTURE_R8(%rax)
	movq	%r9, EXECMEM_CAPTURE_R9(%rax)
	movq	%r10, EXECMEM_CAPTURE_R10(%rax)
	movq	%r11, EXECMEM_CAPTURE_R11(%rax)
	movq	%r12, EXECMEM_CAPTURE_R12(%rax)
	movq	%r13, EXECMEM_CAPTURE_R13(%rax)
	movq	%r14, EXECMEM_CAPTURE_R14(%rax)
	movq	%r15, EXECMEM_CAPTURE_R15(%rax)
	movq	%rsp, EXECMEM_CAPTURE_STACK_POINTER(%rax)
	addq	$WORD, EXECMEM_CAPTURE_STACK_POINTER(%rax)	/* above our own return address */
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	pushq	WORD + \n * WORD(%rsp)
	popq	EXECMEM_CAPTURE_STACK + \n * WORD(%rax)
	.endr
	ret
	.cfi_endproc
	.size	.Lstore, . - .Lstore
