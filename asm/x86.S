/*
 * x86: the templates.
 *
 * There is no addressing from the instruction pointer. A field of the record is addressed absolutely: the 32-bit
 * displacement holds the distance from the slot's start to the field, and the page builder adds the slot's address to
 * it (port.toml lists these patch sites). So there is no limit of reach, and a page is good for one address only.
 *
 * Every template may be entered by an indirect call or jump, so in the variant "ibt" each entry begins with endbr32.
 * Arguments (ecx and edx, as in fastcall; the stack), callee-saved registers and the stack pointer are not touched;
 * flags are destroyed where it says so.
 */
#include "asm.h"

/*
 * stub_precode: hands SecretParam to Target.
 *	record		SecretParam 0, Target 4, Type 8 (not read)
 *	out		eax = SecretParam
 *	clobbers	nothing else
 *	code		11 bytes, 15 with pads
 */
	EXECMEM_TEMPLATE_BEGIN stub_precode
	EXECMEM_TEMPLATE_PAD
	movl	EXECMEM_STUB_PAGE + EXECMEM_STUB_PRECODE_SECRET_PARAM, %eax
	jmpl	*EXECMEM_STUB_PAGE + EXECMEM_STUB_PRECODE_TARGET
	EXECMEM_TEMPLATE_END stub_precode, EXECMEM_STUB_PRECODE_SLOT

/*
 * fixup_precode: jumps to Target. Target first holds the address of the tail, which hands MethodDesc to
 * PrecodeFixupThunk; that finds the method's code and patches Target, so that the next call goes there directly.
 *	record		Target 0, MethodDesc 4, PrecodeFixupThunk 8
 *	out		eax = MethodDesc, through the tail only
 *	clobbers	nothing else
 *	code		17 bytes, 25 with pads; the tail is an entry of its own
 */
	EXECMEM_TEMPLATE_BEGIN fixup_precode
	EXECMEM_TEMPLATE_PAD
	jmpl	*EXECMEM_STUB_PAGE + EXECMEM_FIXUP_PRECODE_TARGET
	EXECMEM_TEMPLATE_ENTRY fixup_precode_tail
	movl	EXECMEM_STUB_PAGE + EXECMEM_FIXUP_PRECODE_METHOD_DESC, %eax
	jmpl	*EXECMEM_STUB_PAGE + EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK
	EXECMEM_TEMPLATE_END fixup_precode, EXECMEM_FIXUP_PRECODE_SLOT

/*
 * call_counting: takes one from the 16-bit cell that RemainingCallCountCell points at; jumps to
 * TargetForThresholdReached where that gave zero, else to TargetForMethod.
 *	record		RemainingCallCountCell 0, TargetForMethod 4, TargetForThresholdReached 8
 *	out		eax = RemainingCallCountCell, by which the threshold code knows the stub
 *	clobbers	flags
 *	code		22 bytes, 26 with pads
 */
	EXECMEM_TEMPLATE_BEGIN call_counting
	EXECMEM_TEMPLATE_PAD
	movl	EXECMEM_STUB_PAGE + EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL, %eax
	decw	(%eax)
	je	.Lcall_counting_threshold
	jmpl	*EXECMEM_STUB_PAGE + EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD
.Lcall_counting_threshold:
	jmpl	*EXECMEM_STUB_PAGE + EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED
	EXECMEM_TEMPLATE_END call_counting, EXECMEM_CALL_COUNTING_SLOT

/*
 * closure: hands Data to Target.
 *	record		Data 0, Target 4
 *	out		eax = Data
 *	clobbers	nothing else
 *	code		11 bytes, 15 with pads
 */
	EXECMEM_TEMPLATE_BEGIN closure
	EXECMEM_TEMPLATE_PAD
	movl	EXECMEM_STUB_PAGE + EXECMEM_CLOSURE_DATA, %eax
	jmpl	*EXECMEM_STUB_PAGE + EXECMEM_CLOSURE_TARGET
	EXECMEM_TEMPLATE_END closure, EXECMEM_CLOSURE_SLOT
