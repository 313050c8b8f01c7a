/*
 * x64: the templates.
 *
 * A field of a slot's record is addressed from the instruction pointer, 32 bits counted from the end of the
 * instruction: a stub page may be just under 2 GiB.
 *
 * Every template may be entered by an indirect call or jump, so in the variant "ibt" each entry begins with endbr64.
 * Arguments, callee-saved registers and the stack are not touched; flags are destroyed where it says so.
 */
#include "asm.h"

/*
 * stub_precode: hands SecretParam to Target.
 *	record		SecretParam 0, Target 8, Type 16 (not read)
 *	out		r10 = SecretParam
 *	clobbers	nothing else
 *	code		13 bytes, 17 with pads
 */
	EXECMEM_TEMPLATE_BEGIN stub_precode
	EXECMEM_TEMPLATE_PAD
	movq	.Lstub_precode_record + EXECMEM_STUB_PRECODE_SECRET_PARAM(%rip), %r10
	EXECMEM_REACH stub_precode, SecretParam, EXECMEM_STUB_PRECODE_SECRET_PARAM, \
		(. - .Lstub_precode_slot), EXECMEM_REACH_DISP32
	jmpq	*.Lstub_precode_record + EXECMEM_STUB_PRECODE_TARGET(%rip)
	EXECMEM_REACH stub_precode, Target, EXECMEM_STUB_PRECODE_TARGET, \
		(. - .Lstub_precode_slot), EXECMEM_REACH_DISP32
	EXECMEM_TEMPLATE_END stub_precode, EXECMEM_STUB_PRECODE_SLOT

/*
 * fixup_precode: jumps to Target. Target first holds the address of the tail, which hands MethodDesc to
 * PrecodeFixupThunk; that finds the method's code and patches Target, so that the next call goes there directly.
 *	record		Target 0, MethodDesc 8, PrecodeFixupThunk 16
 *	out		r10 = MethodDesc, through the tail only
 *	clobbers	nothing else
 *	code		19 bytes, 27 with pads; the tail is an entry of its own
 */
	EXECMEM_TEMPLATE_BEGIN fixup_precode
	EXECMEM_TEMPLATE_PAD
	jmpq	*.Lfixup_precode_record + EXECMEM_FIXUP_PRECODE_TARGET(%rip)
	EXECMEM_REACH fixup_precode, Target, EXECMEM_FIXUP_PRECODE_TARGET, \
		(. - .Lfixup_precode_slot), EXECMEM_REACH_DISP32
	EXECMEM_TEMPLATE_ENTRY fixup_precode_tail
	movq	.Lfixup_precode_record + EXECMEM_FIXUP_PRECODE_METHOD_DESC(%rip), %r10
	EXECMEM_REACH fixup_precode, MethodDesc, EXECMEM_FIXUP_PRECODE_METHOD_DESC, \
		(. - .Lfixup_precode_slot), EXECMEM_REACH_DISP32
	jmpq	*.Lfixup_precode_record + EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK(%rip)
	EXECMEM_REACH fixup_precode, PrecodeFixupThunk, EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK, \
		(. - .Lfixup_precode_slot), EXECMEM_REACH_DISP32
	EXECMEM_TEMPLATE_END fixup_precode, EXECMEM_FIXUP_PRECODE_SLOT

/*
 * call_counting: takes one from the 16-bit cell that RemainingCallCountCell points at; jumps to
 * TargetForThresholdReached where that gave zero, else to TargetForMethod.
 *	record		RemainingCallCountCell 0, TargetForMethod 8, TargetForThresholdReached 16
 *	out		rax = RemainingCallCountCell, by which the threshold code knows the stub
 *	clobbers	flags
 *	code		28 bytes, 32 with pads
 *
 * {disp32} keeps the branch from being relaxed, so that the distances behind it are known to EXECMEM_REACH.
 */
	EXECMEM_TEMPLATE_BEGIN call_counting
	EXECMEM_TEMPLATE_PAD
	movq	.Lcall_counting_record + EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL(%rip), %rax
	EXECMEM_REACH call_counting, RemainingCallCountCell, EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL, \
		(. - .Lcall_counting_slot), EXECMEM_REACH_DISP32
	decw	(%rax)
	{disp32} je .Lcall_counting_threshold
	jmpq	*.Lcall_counting_record + EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD(%rip)
	EXECMEM_REACH call_counting, TargetForMethod, EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD, \
		(. - .Lcall_counting_slot), EXECMEM_REACH_DISP32
.Lcall_counting_threshold:
	jmpq	*.Lcall_counting_record + EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED(%rip)
	EXECMEM_REACH call_counting, TargetForThresholdReached, EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED, \
		(. - .Lcall_counting_slot), EXECMEM_REACH_DISP32
	EXECMEM_TEMPLATE_END call_counting, EXECMEM_CALL_COUNTING_SLOT

/*
 * closure: hands Data to Target.
 *	record		Data 0, Target 8
 *	out		r10 = Data (the static chain register of the System V ABI)
 *	clobbers	nothing else
 *	code		13 bytes, 17 with pads
 */
	EXECMEM_TEMPLATE_BEGIN closure
	EXECMEM_TEMPLATE_PAD
	movq	.Lclosure_record + EXECMEM_CLOSURE_DATA(%rip), %r10
	EXECMEM_REACH closure, Data, EXECMEM_CLOSURE_DATA, (. - .Lclosure_slot), EXECMEM_REACH_DISP32
	jmpq	*.Lclosure_record + EXECMEM_CLOSURE_TARGET(%rip)
	EXECMEM_REACH closure, Target, EXECMEM_CLOSURE_TARGET, (. - .Lclosure_slot), EXECMEM_REACH_DISP32
	EXECMEM_TEMPLATE_END closure, EXECMEM_CLOSURE_SLOT
