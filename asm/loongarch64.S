/*
 * loongarch64 templates. Assembled once for each stub page size, EXECMEM_STUB_PAGE bytes.
 *
 * The record is found by `pcaddi`: 20 bits of 4 bytes, counted from the instruction, so that distances of -2 MiB to
 * 2 MiB - 4 bytes fit. It takes its number in words: EXECMEM_PCADDI(bytes). The field is then found by the 12 signed
 * bits of `ld.d`. Both must hold what they are given, for each field.
 */
#include "asm.h"

/*
 * stub_precode: hands over the secret and jumps.
 *
 * record	SecretParam 0, Target 8, Type 16 (not read); 24 bytes
 * out		t2 SecretParam
 * clobbers	t0
 * code		16 bytes
 */
	EXECMEM_TEMPLATE_BEGIN stub_precode
	EXECMEM_REACH stub_precode, SecretParam, 0, (. - .Lstub_precode_slot), EXECMEM_REACH_PCADDI
	EXECMEM_REACH stub_precode, Target, 0, (. - .Lstub_precode_slot), EXECMEM_REACH_PCADDI
	pcaddi	$t0, EXECMEM_PCADDI(EXECMEM_STUB_PAGE)
	EXECMEM_REACH stub_precode, SecretParam, EXECMEM_STUB_PRECODE_SECRET_PARAM, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t2, $t0, EXECMEM_STUB_PRECODE_SECRET_PARAM
	EXECMEM_REACH stub_precode, Target, EXECMEM_STUB_PRECODE_TARGET, (EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t0, $t0, EXECMEM_STUB_PRECODE_TARGET
	jr	$t0
	EXECMEM_TEMPLATE_END stub_precode, EXECMEM_STUB_PRECODE_SLOT

/*
 * fixup_precode: jumps to Target, which first points at the tail; the tail hands over the method to the fixup thunk.
 *
 * record	Target 0, MethodDesc 8, PrecodeFixupThunk 16; 24 bytes
 * out		from the tail: t2 MethodDesc
 * clobbers	t0
 * code		32 bytes
 *
 * The barrier orders the load of Target, on its way here, before the loads of the rest of the record, which was written
 * before Target was set to point here.
 */
	EXECMEM_TEMPLATE_BEGIN fixup_precode
	EXECMEM_REACH fixup_precode, Target, 0, (. - .Lfixup_precode_slot), EXECMEM_REACH_PCADDI
	pcaddi	$t0, EXECMEM_PCADDI(EXECMEM_STUB_PAGE)
	EXECMEM_REACH fixup_precode, Target, EXECMEM_FIXUP_PRECODE_TARGET, (EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t0, $t0, EXECMEM_FIXUP_PRECODE_TARGET
	jr	$t0
	EXECMEM_TEMPLATE_ENTRY fixup_precode_tail
	dbar	0
	EXECMEM_AT fixup_precode, EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS
	EXECMEM_REACH fixup_precode, MethodDesc, 0, (EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS), EXECMEM_REACH_PCADDI
	EXECMEM_REACH fixup_precode, PrecodeFixupThunk, 0, (EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS), EXECMEM_REACH_PCADDI
	pcaddi	$t0, EXECMEM_PCADDI(EXECMEM_STUB_PAGE - EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS)
	EXECMEM_REACH fixup_precode, MethodDesc, EXECMEM_FIXUP_PRECODE_METHOD_DESC, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t2, $t0, EXECMEM_FIXUP_PRECODE_METHOD_DESC
	EXECMEM_REACH fixup_precode, PrecodeFixupThunk, EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t0, $t0, EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK
	jr	$t0
	EXECMEM_TEMPLATE_END fixup_precode, EXECMEM_FIXUP_PRECODE_SLOT

/*
 * call_counting: decrements the 16-bit cell; jumps to the method, or, when it became zero, to the threshold code.
 *
 * record	RemainingCallCountCell 0 (a pointer), TargetForMethod 8, TargetForThresholdReached 16; 24 bytes
 * out		t1 RemainingCallCountCell, by which the threshold code knows the stub
 * clobbers	t0, t3
 * code		40 bytes
 */
	EXECMEM_TEMPLATE_BEGIN call_counting
	EXECMEM_REACH call_counting, RemainingCallCountCell, 0, (. - .Lcall_counting_slot), EXECMEM_REACH_PCADDI
	EXECMEM_REACH call_counting, TargetForMethod, 0, (. - .Lcall_counting_slot), EXECMEM_REACH_PCADDI
	EXECMEM_REACH call_counting, TargetForThresholdReached, 0, (. - .Lcall_counting_slot), EXECMEM_REACH_PCADDI
	pcaddi	$t0, EXECMEM_PCADDI(EXECMEM_STUB_PAGE)
	EXECMEM_REACH call_counting, RemainingCallCountCell, EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t1, $t0, EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL
	ld.hu	$t3, $t1, 0
	addi.d	$t3, $t3, -1
	st.h	$t3, $t1, 0
	beqz	$t3, .Lcall_counting_threshold
	EXECMEM_REACH call_counting, TargetForMethod, EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t0, $t0, EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD
	jr	$t0
.Lcall_counting_threshold:
	EXECMEM_REACH call_counting, TargetForThresholdReached, EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t0, $t0, EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED
	jr	$t0
	EXECMEM_TEMPLATE_END call_counting, EXECMEM_CALL_COUNTING_SLOT

/*
 * closure: hands over the context and jumps.
 *
 * record	Data 0, Target 8; 16 bytes
 * out		t8 Data: GCC's static chain
 * clobbers	t0
 * code		16 bytes
 */
	EXECMEM_TEMPLATE_BEGIN closure
	EXECMEM_REACH closure, Data, 0, (. - .Lclosure_slot), EXECMEM_REACH_PCADDI
	EXECMEM_REACH closure, Target, 0, (. - .Lclosure_slot), EXECMEM_REACH_PCADDI
	pcaddi	$t0, EXECMEM_PCADDI(EXECMEM_STUB_PAGE)
	EXECMEM_REACH closure, Data, EXECMEM_CLOSURE_DATA, (EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t8, $t0, EXECMEM_CLOSURE_DATA
	EXECMEM_REACH closure, Target, EXECMEM_CLOSURE_TARGET, (EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld.d	$t0, $t0, EXECMEM_CLOSURE_TARGET
	jr	$t0
	EXECMEM_TEMPLATE_END closure, EXECMEM_CLOSURE_SLOT
