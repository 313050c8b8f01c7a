/*
 * riscv64 templates. Assembled once for each stub page size, EXECMEM_STUB_PAGE bytes.
 *
 * The record is found by `auipc`: 20 bits of 4096 bytes, counted from the instruction, so that distances of -2 GiB to
 * 2 GiB - 4096 bytes fit. It takes its number in units: EXECMEM_AUIPC(bytes). The field is then found by the 12 signed
 * bits of `ld`, which also take back how far into its slot the auipc stands. Both must hold what they are given, for
 * each field.
 *
 * Jumps leave through t1: a jump through ra or t0 is a return to the branch predictor (RISC-V Unprivileged ISA,
 * "Unconditional Jumps"). Instructions are of four bytes throughout, so that the slots do not depend on the compressed
 * extension.
 */
#include "asm.h"

	.option	norvc

/*
 * stub_precode: hands over the secret and jumps.
 *
 * record	SecretParam 0, Target 8, Type 16 (not read); 24 bytes
 * out		t2 SecretParam
 * clobbers	t1
 * code		16 bytes
 */
	EXECMEM_TEMPLATE_BEGIN stub_precode
	EXECMEM_REACH stub_precode, SecretParam, 0, (. - .Lstub_precode_slot), EXECMEM_REACH_AUIPC
	EXECMEM_REACH stub_precode, Target, 0, (. - .Lstub_precode_slot), EXECMEM_REACH_AUIPC
	auipc	t1, EXECMEM_AUIPC(EXECMEM_STUB_PAGE)
	EXECMEM_REACH stub_precode, SecretParam, EXECMEM_STUB_PRECODE_SECRET_PARAM, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld	t2, EXECMEM_STUB_PRECODE_SECRET_PARAM(t1)
	EXECMEM_REACH stub_precode, Target, EXECMEM_STUB_PRECODE_TARGET, (EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld	t1, EXECMEM_STUB_PRECODE_TARGET(t1)
	jr	t1
	EXECMEM_TEMPLATE_END stub_precode, EXECMEM_STUB_PRECODE_SLOT

/*
 * fixup_precode: jumps to Target, which first points at the tail; the tail hands over the method to the fixup thunk.
 *
 * record	Target 0, MethodDesc 8, PrecodeFixupThunk 16; 24 bytes
 * out		from the tail: t2 MethodDesc
 * clobbers	t1
 * code		32 bytes
 *
 * The fence orders the load of Target, on its way here, before the loads of the rest of the record, which was written
 * before Target was set to point here. The jump between them orders no load (RVWMO has control dependencies to stores
 * alone).
 */
	EXECMEM_TEMPLATE_BEGIN fixup_precode
	EXECMEM_REACH fixup_precode, Target, 0, (. - .Lfixup_precode_slot), EXECMEM_REACH_AUIPC
	auipc	t1, EXECMEM_AUIPC(EXECMEM_STUB_PAGE)
	EXECMEM_REACH fixup_precode, Target, EXECMEM_FIXUP_PRECODE_TARGET, (EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld	t1, EXECMEM_FIXUP_PRECODE_TARGET(t1)
	jr	t1
	EXECMEM_TEMPLATE_ENTRY fixup_precode_tail
	fence	r, r
	EXECMEM_AT fixup_precode, EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS
	EXECMEM_REACH fixup_precode, MethodDesc, 0, (0), EXECMEM_REACH_AUIPC
	EXECMEM_REACH fixup_precode, PrecodeFixupThunk, 0, (0), EXECMEM_REACH_AUIPC
	auipc	t1, EXECMEM_AUIPC(EXECMEM_STUB_PAGE)
	EXECMEM_REACH fixup_precode, MethodDesc, EXECMEM_FIXUP_PRECODE_METHOD_DESC, \
		(EXECMEM_STUB_PAGE + EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS), EXECMEM_REACH_LOAD
	ld	t2, EXECMEM_FIXUP_PRECODE_METHOD_DESC - EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS(t1)
	EXECMEM_REACH fixup_precode, PrecodeFixupThunk, EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK, \
		(EXECMEM_STUB_PAGE + EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS), EXECMEM_REACH_LOAD
	ld	t1, EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK - EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS(t1)
	jr	t1
	EXECMEM_TEMPLATE_END fixup_precode, EXECMEM_FIXUP_PRECODE_SLOT

/*
 * call_counting: decrements the 16-bit cell; jumps to the method, or, when it became zero, to the threshold code.
 *
 * record	RemainingCallCountCell 0 (a pointer), TargetForMethod 8, TargetForThresholdReached 16; 24 bytes
 * out		t3 RemainingCallCountCell, by which the threshold code knows the stub
 * clobbers	t1, t2
 * code		40 bytes
 */
	EXECMEM_TEMPLATE_BEGIN call_counting
	EXECMEM_REACH call_counting, RemainingCallCountCell, 0, (. - .Lcall_counting_slot), EXECMEM_REACH_AUIPC
	EXECMEM_REACH call_counting, TargetForMethod, 0, (. - .Lcall_counting_slot), EXECMEM_REACH_AUIPC
	EXECMEM_REACH call_counting, TargetForThresholdReached, 0, (. - .Lcall_counting_slot), EXECMEM_REACH_AUIPC
	auipc	t1, EXECMEM_AUIPC(EXECMEM_STUB_PAGE)
	EXECMEM_REACH call_counting, RemainingCallCountCell, EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld	t3, EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL(t1)
	lhu	t2, 0(t3)
	addi	t2, t2, -1
	sh	t2, 0(t3)
	beqz	t2, .Lcall_counting_threshold
	EXECMEM_REACH call_counting, TargetForMethod, EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld	t1, EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD(t1)
	jr	t1
.Lcall_counting_threshold:
	EXECMEM_REACH call_counting, TargetForThresholdReached, EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED, \
		(EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld	t1, EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED(t1)
	jr	t1
	EXECMEM_TEMPLATE_END call_counting, EXECMEM_CALL_COUNTING_SLOT

/*
 * closure: hands over the context and jumps.
 *
 * record	Data 0, Target 8; 16 bytes
 * out		t2 Data: the static chain of GCC and clang
 * clobbers	t1
 * code		16 bytes
 */
	EXECMEM_TEMPLATE_BEGIN closure
	EXECMEM_REACH closure, Data, 0, (. - .Lclosure_slot), EXECMEM_REACH_AUIPC
	EXECMEM_REACH closure, Target, 0, (. - .Lclosure_slot), EXECMEM_REACH_AUIPC
	auipc	t1, EXECMEM_AUIPC(EXECMEM_STUB_PAGE)
	EXECMEM_REACH closure, Data, EXECMEM_CLOSURE_DATA, (EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld	t2, EXECMEM_CLOSURE_DATA(t1)
	EXECMEM_REACH closure, Target, EXECMEM_CLOSURE_TARGET, (EXECMEM_STUB_PAGE), EXECMEM_REACH_LOAD
	ld	t1, EXECMEM_CLOSURE_TARGET(t1)
	jr	t1
	EXECMEM_TEMPLATE_END closure, EXECMEM_CLOSURE_SLOT
