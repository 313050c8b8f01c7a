/*
 * x86: the capturing call stub and its landings. See "Capturing call stub" in port.h and "Captured calls" in linux.c.
 *
 * The call goes through memory, and what the stub needs afterwards is kept in the words below: it owns no register
 * while the callee runs. Vector registers are those of SSE2; the x87 stack is left alone.
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
.Leax:
	.skip	WORD	/* eax, while it points at the place to store to */
	.text

/*
 * void execmem_port_capture_enter(struct execmem_port_capture *capture);
 *	4(%esp)	capture
 *	Stack, downwards: our return address, the callee-saved registers, stack words 7 to 1, the callee's return
 *	address. The stack pointer is a multiple of 16 at the call.
 */
	EXECMEM_FUNCTION_BEGIN execmem_port_capture_enter
	movl	WORD(%esp), %ecx
	pushl	%ebx
	pushl	%ebp
	pushl	%esi
	pushl	%edi
	.cfi_adjust_cfa_offset 4 * WORD
	.cfi_rel_offset %edi, 0 * WORD
	.cfi_rel_offset %esi, 1 * WORD
	.cfi_rel_offset %ebp, 2 * WORD
	.cfi_rel_offset %ebx, 3 * WORD
	movl	%esp, .Lstack
	movl	EXECMEM_CAPTURE_ENTRY(%ecx), %eax
	movl	%eax, .Lentry
	.irp	n, 7, 6, 5, 4, 3, 2, 1
	pushl	SEED(STACK) + \n * WORD(%ecx)
	.endr
	.cfi_adjust_cfa_offset 7 * WORD
	leal	-WORD(%esp), %eax	/* as the callee finds it, below its return address */
	movl	%eax, SEED(STACK_POINTER)(%ecx)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	movups	SEED(VECTOR) + \n * EXECMEM_PORT_VECTOR_BYTES(%ecx), %xmm\n
	.endr
	movl	SEED(EAX)(%ecx), %eax
	movl	SEED(EBX)(%ecx), %ebx
	movl	SEED(EDX)(%ecx), %edx
	movl	SEED(ESI)(%ecx), %esi
	movl	SEED(EDI)(%ecx), %edi
	movl	SEED(EBP)(%ecx), %ebp
	movl	SEED(ECX)(%ecx), %ecx
	call	*.Lentry
	movl	%eax, .Leax
	movl	execmem_port_captured, %eax
	addl	$EXECMEM_CAPTURE_AT_RETURN, %eax
	subl	$WORD, %esp		/* a preserved stack pointer is the same number at all three moments */
	.cfi_adjust_cfa_offset WORD
	call	.Lstore

	.globl	execmem_port_capture_leave
	.hidden	execmem_port_capture_leave
	.type	execmem_port_capture_leave, %function
execmem_port_capture_leave:
	cld				/* an abandoned callee may have set it */
	movl	.Lstack, %esp
	.cfi_adjust_cfa_offset -8 * WORD
	popl	%edi
	popl	%esi
	popl	%ebp
	popl	%ebx
	.cfi_adjust_cfa_offset -4 * WORD
	ret
	EXECMEM_FUNCTION_END execmem_port_capture_enter

/*
 * The landings: reached by a template's jump, with the callee's return address at the stack pointer. All registers are
 * left as they came; flags are destroyed.
 */
	.irp	n, 0, 1, 2, 3
	EXECMEM_FUNCTION_BEGIN execmem_port_landing_\n
	EXECMEM_PAD
	movl	%eax, .Leax
	movl	execmem_port_captured, %eax
	movl	$\n, EXECMEM_CAPTURE_LANDED(%eax)
	jmp	execmem_port_landed
	EXECMEM_FUNCTION_END execmem_port_landing_\n
	.endr

	EXECMEM_FUNCTION_BEGIN execmem_port_landed
	addl	$EXECMEM_CAPTURE_AT_LANDING, %eax
	call	.Lstore
	movl	.Leax, %eax
	ret
	EXECMEM_FUNCTION_END execmem_port_landed

/*
 * Stores all registers and the caller's stack to the struct execmem_port_registers at eax; eax's own value is in .Leax.
 * Words go by push and pop, because no register is free.
 */
	.type	.Lstore, %function
	.cfi_startproc
.Lstore:
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	movups	%xmm\n, EXECMEM_CAPTURE_VECTOR + \n * EXECMEM_PORT_VECTOR_BYTES(%eax)
	.endr
	pushl	.Leax
	popl	EXECMEM_CAPTURE_EAX(%eax)
	movl	%ebx, EXECMEM_CAPTURE_EBX(%eax)
	movl	%ecx, EXECMEM_CAPTURE_ECX(%eax)
	movl	%edx, EXECMEM_CAPTURE_EDX(%eax)
	movl	%esi, EXECMEM_CAPTURE_ESI(%eax)
	movl	%edi, EXECMEM_CAPTURE_EDI(%eax)
	movl	%ebp, EXECMEM_CAPTURE_EBP(%eax)
	movl	%esp, EXECMEM_CAPTURE_STACK_POINTER(%eax)
	addl	$WORD, EXECMEM_CAPTURE_STACK_POINTER(%eax)	/* above our own return address */
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	pushl	WORD + \n * WORD(%esp)
	popl	EXECMEM_CAPTURE_STACK + \n * WORD(%eax)
	.endr
	ret
	.cfi_endproc
	.size	.Lstore, . - .Lstore
