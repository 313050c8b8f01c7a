/*
 * arm64 templates. Assembled once for each stub page size, EXECMEM_STUB_PAGE bytes, and in two variants: plain, and
 * with landing pads (EXECMEM_LANDING_PADS=1).
 *
 * Fields are loaded by `ldr` (literal): 19 bits of 4 bytes, counted from the instruction, so that distances of
 * -1 MiB to 1 MiB - 4 bytes fit. Every jump leaves through x16: a `bti c`, which stands at each entry and at compiled
 * functions, accepts `blr`, and `br` from x16 and x17 alone (Arm ARM, "BTYPE"). The fixup's tail is entered by that
 * same `br x16`, so `bti c` is its pad as well.
 */
#include "asm.h"

/*
 * stub_precode: hands over the secret and jumps.
 *
 * record	SecretParam 0, Target 8, Type 16 (not read); 24 bytes
 * out		x12 SecretParam
 * clobbers	x16
 * code		12 bytes, with pads 16
 */
	EXECMEM_TEMPLATE_BEGIN stub_precode
	EXECMEM_TEMPLATE_PAD
	EXECMEM_REACH stub_precode, SecretParam, EXECMEM_STUB_PRECODE_SECRET_PARAM, \
		(. - .Lstub_precode_slot), EXECMEM_REACH_LITERAL
	ldr	x12, .Lstub_precode_record + EXECMEM_STUB_PRECODE_SECRET_PARAM
	EXECMEM_REACH stub_precode, Target, EXECMEM_STUB_PRECODE_TARGET, \
		(. - .Lstub_precode_slot), EXECMEM_REACH_LITERAL
	ldr	x16, .Lstub_precode_record + EXECMEM_STUB_PRECODE_TARGET
	br	x16
	EXECMEM_TEMPLATE_END stub_precode, EXECMEM_STUB_PRECODE_SLOT

/*
 * fixup_precode: jumps to Target, which first points at the tail; the tail hands over the method to the fixup thunk.
 *
 * record	Target 0, MethodDesc 8, PrecodeFixupThunk 16; 24 bytes
 * out		from the tail: x12 MethodDesc
 * clobbers	x16
 * code		24 bytes, with pads 32
 *
 * The barrier orders the load of Target, on its way here, before the loads of the rest of the record, which was written
 * before Target was set to point here.
 */
	EXECMEM_TEMPLATE_BEGIN fixup_precode
	EXECMEM_TEMPLATE_PAD
	EXECMEM_REACH fixup_precode, Target, EXECMEM_FIXUP_PRECODE_TARGET, \
		(. - .Lfixup_precode_slot), EXECMEM_REACH_LITERAL
	ldr	x16, .Lfixup_precode_record + EXECMEM_FIXUP_PRECODE_TARGET
	br	x16
	EXECMEM_TEMPLATE_ENTRY fixup_precode_tail
	dmb	ishld
	EXECMEM_REACH fixup_precode, MethodDesc, EXECMEM_FIXUP_PRECODE_METHOD_DESC, \
		(. - .Lfixup_precode_slot), EXECMEM_REACH_LITERAL
	ldr	x12, .Lfixup_precode_record + EXECMEM_FIXUP_PRECODE_METHOD_DESC
	EXECMEM_REACH fixup_precode, PrecodeFixupThunk, EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK, \
		(. - .Lfixup_precode_slot), EXECMEM_REACH_LITERAL
	ldr	x16, .Lfixup_precode_record + EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK
	br	x16
	EXECMEM_TEMPLATE_END fixup_precode, EXECMEM_FIXUP_PRECODE_SLOT

/*
 * call_counting: decrements the 16-bit cell; jumps to the method, or, when it became zero, to the threshold code.
 *
 * record	RemainingCallCountCell 0 (a pointer), TargetForMethod 8, TargetForThresholdReached 16; 24 bytes
 * out		x9 RemainingCallCountCell, by which the threshold code knows the stub
 * clobbers	x16
 * code		36 bytes, with pads 40
 */
	EXECMEM_TEMPLATE_BEGIN call_counting
	EXECMEM_TEMPLATE_PAD
	EXECMEM_REACH call_counting, RemainingCallCountCell, EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL, \
		(. - .Lcall_counting_slot), EXECMEM_REACH_LITERAL
	ldr	x9, .Lcall_counting_record + EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL
	ldrh	w16, [x9]
	sub	w16, w16, #1
	strh	w16, [x9]
	cbz	w16, .Lcall_counting_threshold
	EXECMEM_REACH call_counting, TargetForMethod, EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD, \
		(. - .Lcall_counting_slot), EXECMEM_REACH_LITERAL
	ldr	x16, .Lcall_counting_record + EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD
	br	x16
.Lcall_counting_threshold:
	EXECMEM_REACH call_counting, TargetForThresholdReached, EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED, \
		(. - .Lcall_counting_slot), EXECMEM_REACH_LITERAL
	ldr	x16, .Lcall_counting_record + EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED
	br	x16
	EXECMEM_TEMPLATE_END call_counting, EXECMEM_CALL_COUNTING_SLOT

/*
 * closure: hands over the context and jumps.
 *
 * record	Data 0, Target 8; 16 bytes
 * out		x17 Data: libffi's context register. x18, GCC's static chain, is the platform's own (AAPCS64)
 * clobbers	x16
 * code		12 bytes, with pads 16
 */
	EXECMEM_TEMPLATE_BEGIN closure
	EXECMEM_TEMPLATE_PAD
	EXECMEM_REACH closure, Data, EXECMEM_CLOSURE_DATA, \
		(. - .Lclosure_slot), EXECMEM_REACH_LITERAL
	ldr	x17, .Lclosure_record + EXECMEM_CLOSURE_DATA
	EXECMEM_REACH closure, Target, EXECMEM_CLOSURE_TARGET, \
		(. - .Lclosure_slot), EXECMEM_REACH_LITERAL
	ldr	x16, .Lclosure_record + EXECMEM_CLOSURE_TARGET
	br	x16
	EXECMEM_TEMPLATE_END closure, EXECMEM_CLOSURE_SLOT
