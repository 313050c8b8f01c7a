/*
 * What the assembly files of libffi call: never reached here, but a program has to link.
 */
	.section .note.GNU-stack, "", %progbits
	.text
	.irp	name, abort, ffi_closure_unix64_inner, ffi_closure_SYSV_inner, ffi_closure_inner_SYSV, ffi_closure_inner_VFP, ffi_closure_inner
	.globl	\name
	.hidden	\name
\name:
	.endr
