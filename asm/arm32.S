/*
 * arm32 templates, in two variants: A32, and T32 (EXECMEM_THUMB=1), with the same text. EXECMEM_STUB_PAGE is the stub
 * page size in bytes; 4096 is all that they can reach.
 *
 * Fields are loaded by `ldr Rt, [pc, #immediate]`: 12 bits upwards, to 4095 bytes, from the pc that the instruction
 * reads (EXECMEM_PC). So a field's offset may exceed the offset of its load in the slot by 3 bytes in T32, by 7 in A32.
 * The immediates are numbers, EXECMEM_LITERAL(field, load), because the assembler refuses a label for some distances
 * that it can encode. A load to pc honours the mode bit of what it loads.
 */
#include "asm.h"

	.syntax	unified
#if EXECMEM_THUMB
	.thumb
#else
	.arm
#endif

/* load_at template, field, offset, at: the literal load that follows, `at` bytes into the slot, reaches its field. */
	.macro	load_at template, field, offset, at
	EXECMEM_REACH \template, \field, \offset, (EXECMEM_PC(\at)), EXECMEM_REACH_LITERAL
	EXECMEM_AT \template, \at
	.endm

/*
 * stub_precode: hands over the secret and jumps.
 *
 * record	SecretParam 0, Target 4, Type 8 (not read); 12 bytes
 * out		r12 SecretParam
 * clobbers	nothing
 * code		8 bytes
 */
	EXECMEM_TEMPLATE_BEGIN stub_precode
	load_at stub_precode, SecretParam, EXECMEM_STUB_PRECODE_SECRET_PARAM, EXECMEM_STUB_PRECODE_SECRET_PARAM_AT
	ldr	r12, [pc, #EXECMEM_LITERAL(EXECMEM_STUB_PRECODE_SECRET_PARAM, EXECMEM_STUB_PRECODE_SECRET_PARAM_AT)]
	load_at stub_precode, Target, EXECMEM_STUB_PRECODE_TARGET, EXECMEM_STUB_PRECODE_TARGET_AT
	ldr	pc, [pc, #EXECMEM_LITERAL(EXECMEM_STUB_PRECODE_TARGET, EXECMEM_STUB_PRECODE_TARGET_AT)]
	EXECMEM_TEMPLATE_END stub_precode, EXECMEM_STUB_PRECODE_SLOT

/*
 * fixup_precode: jumps to Target, which first points at the tail; the tail hands over the method to the fixup thunk.
 *
 * record	Target 0 (with the mode bit), MethodDesc 4, PrecodeFixupThunk 8; 12 bytes
 * out		from the tail: r12 MethodDesc
 * clobbers	nothing
 * code		16 bytes
 *
 * The barrier orders the load of Target, on its way here, before the loads of the rest of the record, which was written
 * before Target was set to point here.
 */
	EXECMEM_TEMPLATE_BEGIN fixup_precode
	load_at fixup_precode, Target, EXECMEM_FIXUP_PRECODE_TARGET, EXECMEM_FIXUP_PRECODE_TARGET_AT
	ldr	pc, [pc, #EXECMEM_LITERAL(EXECMEM_FIXUP_PRECODE_TARGET, EXECMEM_FIXUP_PRECODE_TARGET_AT)]
	EXECMEM_TEMPLATE_ENTRY fixup_precode_tail
	dmb	ish
	load_at fixup_precode, MethodDesc, EXECMEM_FIXUP_PRECODE_METHOD_DESC, EXECMEM_FIXUP_PRECODE_METHOD_DESC_AT
	ldr	r12, [pc, #EXECMEM_LITERAL(EXECMEM_FIXUP_PRECODE_METHOD_DESC, EXECMEM_FIXUP_PRECODE_METHOD_DESC_AT)]
	load_at fixup_precode, PrecodeFixupThunk, EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK, \
		EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK_AT
	ldr	pc, [pc, #EXECMEM_LITERAL(EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK, \
					  EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK_AT)]
	EXECMEM_TEMPLATE_END fixup_precode, EXECMEM_FIXUP_PRECODE_SLOT

/*
 * call_counting: decrements the 16-bit cell; jumps to the method, or, when it became zero, to the threshold code.
 *
 * record	RemainingCallCountCell 0 (a pointer), TargetForMethod 4, TargetForThresholdReached 8; 12 bytes
 * out		r12 RemainingCallCountCell, by which the threshold code knows the stub
 * clobbers	nothing: r0, an argument, is kept on the stack meanwhile (one word)
 * code		A32 32 bytes, T32 28
 */
	EXECMEM_TEMPLATE_BEGIN call_counting
	push	{r0}
	load_at call_counting, RemainingCallCountCell, EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL, \
		EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL_AT
	ldr	r12, [pc, #EXECMEM_LITERAL(EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL, \
					   EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL_AT)]
	ldrh	r0, [r12]
	subs	r0, r0, #1
	strh	r0, [r12]
	pop	{r0}
	it	ne			/* no code in A32 */
	load_at call_counting, TargetForMethod, EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD, \
		EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD_AT
	ldrne	pc, [pc, #EXECMEM_LITERAL(EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD, \
					  EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD_AT)]
	load_at call_counting, TargetForThresholdReached, EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED, \
		EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED_AT
	ldr	pc, [pc, #EXECMEM_LITERAL(EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED, \
					  EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED_AT)]
	EXECMEM_TEMPLATE_END call_counting, EXECMEM_CALL_COUNTING_SLOT

/*
 * closure: hands over the context and jumps.
 *
 * record	Data 0, Target 4; 8 bytes
 * out		r12 Data: GCC's static chain
 * clobbers	nothing
 * code		8 bytes
 */
	EXECMEM_TEMPLATE_BEGIN closure
	load_at closure, Data, EXECMEM_CLOSURE_DATA, EXECMEM_CLOSURE_DATA_AT
	ldr	r12, [pc, #EXECMEM_LITERAL(EXECMEM_CLOSURE_DATA, EXECMEM_CLOSURE_DATA_AT)]
	load_at closure, Target, EXECMEM_CLOSURE_TARGET, EXECMEM_CLOSURE_TARGET_AT
	ldr	pc, [pc, #EXECMEM_LITERAL(EXECMEM_CLOSURE_TARGET, EXECMEM_CLOSURE_TARGET_AT)]
	EXECMEM_TEMPLATE_END closure, EXECMEM_CLOSURE_SLOT
