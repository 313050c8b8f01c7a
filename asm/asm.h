/*
 * Assembly shared by every port: symbols, sections, call frame information, landing pads and the reach check.
 * Instructions stay visible in the files that use it. For clang's integrated assembler, after preprocessing.
 *
 * Used by asm/<port>.S (the templates) and by the assembly files of arch/<port>.
 */
#ifndef EXECMEM_ASM_H
#define EXECMEM_ASM_H

#include <abi.h> /* arch/<port>/abi.h: the build names the one directory */

/* Every file that includes this one declares that it needs no executable stack. */
	.section .note.GNU-stack, "", %progbits
	.text

/*
 * EXECMEM_FUNCTION_BEGIN name[, alignment]
 * EXECMEM_FUNCTION_END name
 *
 * A global function of the port; hidden, because the programs are linked once and statically.
 */
	.macro	EXECMEM_FUNCTION_BEGIN name, alignment=16
	.balign	\alignment
	.globl	\name
	.hidden	\name
	.type	\name, %function
	.cfi_startproc
\name:
	.endm

	.macro	EXECMEM_FUNCTION_END name
	.cfi_endproc
	.size	\name, . - \name
	.endm

/*
 * EXECMEM_TEMPLATE_BEGIN name
 * EXECMEM_TEMPLATE_END name, slot
 *
 * The code between is what is copied to each slot. Defines, for the harness and the library,
 *	execmem_<name>_begin, execmem_<name>_end
 *	execmem_<name>_pitch	absolute: `slot`, the bytes from slot to slot
 * and, for the instructions between, assembler-local,
 *	.L<name>_slot		the start of the slot
 *	.L<name>_record		where the record of this slot lies: one stub page above
 *
 * Not typed as functions: they are bytes to be copied, and a port with a mode bit would add it to their addresses.
 */
	.macro	EXECMEM_TEMPLATE_BEGIN name
	.balign	64
	.globl	execmem_\name\()_begin
	.hidden	execmem_\name\()_begin
	.set	.L\name\()_record, .L\name\()_slot + EXECMEM_STUB_PAGE
	.cfi_startproc
execmem_\name\()_begin:
.L\name\()_slot:
	.endm

	.macro	EXECMEM_TEMPLATE_END name, slot
	.cfi_endproc
	.size	execmem_\name\()_begin, . - execmem_\name\()_begin
	.globl	execmem_\name\()_end
	.hidden	execmem_\name\()_end
execmem_\name\()_end:
	.globl	execmem_\name\()_pitch
	.hidden	execmem_\name\()_pitch
	.set	execmem_\name\()_pitch, \slot
	.endm

/*
 * EXECMEM_TEMPLATE_ENTRY name
 *
 * A further entry of the template that is open: a global symbol and, in the variants with pads, a landing pad.
 */
	.macro	EXECMEM_TEMPLATE_ENTRY name
	.globl	execmem_\name
	.hidden	execmem_\name
execmem_\name:
	EXECMEM_TEMPLATE_PAD
	.endm

/*
 * EXECMEM_PAD is the port's landing pad instruction, where abi.h names one as EXECMEM_PAD_INSTRUCTION, else nothing.
 * EXECMEM_TEMPLATE_PAD is the same in the variants that claim pads (EXECMEM_LANDING_PADS=1), else nothing.
 */
	.macro	EXECMEM_PAD
#ifdef EXECMEM_PAD_INSTRUCTION
	EXECMEM_PAD_INSTRUCTION
#endif
	.endm

	.macro	EXECMEM_TEMPLATE_PAD
#if EXECMEM_LANDING_PADS
	EXECMEM_PAD
#endif
	.endm

/*
 * EXECMEM_AT template, offset
 *
 * Refuses to assemble where the next instruction is not `offset` bytes into the slot: for constants of abi.h that stand
 * in for a label where an assembler takes none.
 */
	.macro	EXECMEM_AT template, offset
	.ifndef	.Lreach_refused	/* instructions may be missing then */
	.if	(. - .L\template\()_slot) != (\offset)
	.error	"\template: the next instruction is not where abi.h has it, at \offset"
	.endif
	.endif
	.endm

/*
 * EXECMEM_REACH template, field, offset, base, bits, signed, scale
 *
 * Refuses to assemble where an immediate cannot hold the distance to a field, because assemblers cut some such
 * distances without a word. One line an offending field, all of them in one run:
 *	execmem-reach: port=P template=T field=F reach=LOWEST..HIGHEST distance=DISTANCE	(bytes)
 *
 * offset	bytes from the record to the field
 * base		bytes from the start of the slot to the place that the instruction counts from (in parentheses)
 * bits, signed, scale	the immediate: its width, 1 where it is two's complement, the bytes that it counts in. abi.h
 *		names the three together, as in `#define EXECMEM_REACH_LITERAL 19, 1, 4`
 *
 * No instruction whose length the assembler settles later (a relaxable branch) may stand between the start of the slot
 * and `base`: its distance is then not known yet.
 */
	.macro	EXECMEM_REACH template, field, offset, base, bits, signed, scale
	.altmacro	/* for %(expression): the number itself as the argument's text */
	execmem_reach_judge EXECMEM_PORT_NAME, \template, \field, \
		%(-\signed * (1 << (\bits - 1)) * \scale), %(((1 << (\bits - \signed)) - 1) * \scale), %(\scale), \
		%(EXECMEM_STUB_PAGE + \offset - \base)
	.noaltmacro
	.endm

/* The parameters' names must not be words of the message: under .altmacro the bare word is replaced as well. */
	.macro	execmem_reach_judge port_, template_, field_, lowest_, highest_, scale_, distance_
	.if	(\distance_ < \lowest_) || (\distance_ > \highest_) || (\distance_ % \scale_)
	.error	"execmem-reach: port=\port_ template=\template_ field=\field_ reach=\lowest_\()..\highest_ distance=\distance_"
	.set	.Lreach_refused, 1
	.endif
	.endm

#endif
