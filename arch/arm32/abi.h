/*
 * arm32: what its C and its assembly share. All sizes and offsets in bytes.
 *
 * Procedure Call Standard for the Arm Architecture (AAPCS, VFP registers for arguments) for calls;
 * arch/arm/tools/syscall.tbl for the system calls (number in r7, arguments in r0 to r5, result in r0).
 */
#ifndef EXECMEM_ABI_H
#define EXECMEM_ABI_H

#define EXECMEM_PORT_NAME           "arm32"
#define EXECMEM_POINTER_BYTES       4

/* ---- System calls ---- */
#define EXECMEM_SYS_EXIT            1
#define EXECMEM_SYS_READ            3
#define EXECMEM_SYS_WRITE           4
#define EXECMEM_SYS_CLOSE           6
#define EXECMEM_SYS_GETPID          20
#define EXECMEM_SYS_MUNMAP          91
#define EXECMEM_SYS_CLONE           120
#define EXECMEM_SYS_WAIT4           114
#define EXECMEM_SYS_MPROTECT        125
#define EXECMEM_SYS_PRCTL           172
#define EXECMEM_SYS_RT_SIGRETURN    173
#define EXECMEM_SYS_RT_SIGACTION    174
#define EXECMEM_SYS_SIGALTSTACK     186
#define EXECMEM_SYS_MMAP            192 /* mmap2 */
#define EXECMEM_SYS_FTRUNCATE       194 /* ftruncate64 */
#define EXECMEM_SYS_MINCORE         219
#define EXECMEM_SYS_MADVISE         220
#define EXECMEM_SYS_FCNTL           221 /* fcntl64 */
#define EXECMEM_SYS_FUTEX           240
#define EXECMEM_SYS_EXIT_GROUP      248
#define EXECMEM_SYS_OPENAT          322
#define EXECMEM_SYS_FALLOCATE       352
#define EXECMEM_SYS_PRLIMIT64       369
#define EXECMEM_SYS_MEMFD_CREATE    385
#define EXECMEM_SYS_MEMBARRIER      389
#define EXECMEM_SYS_STATX           397
#define EXECMEM_SYS_PIDFD_OPEN      434
#define EXECMEM_SYS_PROCESS_MADVISE 440
#define EXECMEM_SYS_ARM_CACHEFLUSH  0xf0002
#define EXECMEM_PORT_MMAP_UNIT      4096
#define EXECMEM_PORT_ALIGNED_PAIRS  1 /* a 64-bit argument starts at an even register */
#define EXECMEM_SA_RESTORER         0x04000000

/* ---- ucontext_t (asm/ucontext.h, asm/sigcontext.h): uc_mcontext is at 20 ---- */
#define EXECMEM_CONTEXT_R(n)        (32 + 4 * (n))
#define EXECMEM_CONTEXT_PC          92
#define EXECMEM_CONTEXT_CPSR        96
/* In the order of port.toml's registers.general: r0 to r12 and r14, the link register. */
#define EXECMEM_CONTEXT_R4(n)                                                                                          \
	EXECMEM_CONTEXT_R(n), EXECMEM_CONTEXT_R((n) + 1), EXECMEM_CONTEXT_R((n) + 2), EXECMEM_CONTEXT_R((n) + 3)
#define EXECMEM_CONTEXT_GENERAL                                                                                        \
	EXECMEM_CONTEXT_R4(0), EXECMEM_CONTEXT_R4(4), EXECMEM_CONTEXT_R4(8), EXECMEM_CONTEXT_R(12),                    \
		EXECMEM_CONTEXT_R(14)
#define EXECMEM_CPSR_T                0x20      /* T32 */
#define EXECMEM_CPSR_IT               0x600fc00 /* how far an IT block has come */
#define EXECMEM_MODE_BIT              1         /* of a T32 code address */
#define EXECMEM_PORT_OWN_CONTEXT_JUMP 1

/* ---- Captured calls: r0 to r12, r14; d0 to d31 ---- */
#define EXECMEM_PORT_GENERAL          14
#define EXECMEM_PORT_VECTORS          32
#define EXECMEM_PORT_VECTOR_BYTES     8
/* struct execmem_port_capture */
#define EXECMEM_CAPTURE_ENTRY         0
#define EXECMEM_CAPTURE_LANDED        4
#define EXECMEM_CAPTURE_SEED          16
#define EXECMEM_CAPTURE_AT_LANDING    368
#define EXECMEM_CAPTURE_AT_RETURN     720
/* struct execmem_port_registers */
#define EXECMEM_CAPTURE_VECTOR        0
#define EXECMEM_CAPTURE_GENERAL       256
#define EXECMEM_CAPTURE_LINK          308 /* the last of the general registers */
#define EXECMEM_CAPTURE_STACK_POINTER 312
#define EXECMEM_CAPTURE_STACK         316
#define EXECMEM_CAPTURE_STACK_BYTES   32 /* EXECMEM_PORT_STACK_WORDS words */
/* Below the stack pointer, untouched by anyone because signal handlers run on a stack of their own. */
#define EXECMEM_CAPTURE_BELOW_LINK    (-4)
#define EXECMEM_CAPTURE_BELOW_INDEX   (-8)

/* ---- Templates ---- */
/* What 12 bits reach, and the smallest OS page: EXECMEM_REACH_LITERAL below. */
#define EXECMEM_PORT_STUB_PAGE        4096
#define EXECMEM_PORT_STUB_PAGE_MOST   4096

/*
 * What pc reads as in an instruction `at` bytes into its slot, counted from the slot's start (Arm ARM, "Use of labels
 * in UAL instruction syntax"). A slot starts at a word; T32 instructions may stand at half-words.
 */
#if EXECMEM_THUMB
#define EXECMEM_PC(at) (((at) + 4) / 4 * 4)
#else
#define EXECMEM_PC(at) ((at) + 8)
#endif
/* The immediate of `ldr Rt, [pc, #immediate]`, `at` bytes into the slot, for the field at `offset` in the record. */
#define EXECMEM_LITERAL(offset, at)                        (EXECMEM_STUB_PAGE + (offset) - EXECMEM_PC(at))
/* Its bits, signed, scale; upwards only. */
#define EXECMEM_REACH_LITERAL                              12, 0, 1

#define EXECMEM_STUB_PRECODE_SECRET_PARAM                  0
#define EXECMEM_STUB_PRECODE_TARGET                        4
#define EXECMEM_STUB_PRECODE_TYPE                          8
#define EXECMEM_FIXUP_PRECODE_TARGET                       0
#define EXECMEM_FIXUP_PRECODE_METHOD_DESC                  4
#define EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK          8
#define EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL    0
#define EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD            4
#define EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED 8
#define EXECMEM_CLOSURE_DATA                               0
#define EXECMEM_CLOSURE_TARGET                             4

/*
 * Where in the slot each load stands (the assembler takes no label for some of these distances), and _SLOT, the bytes
 * from slot to slot, as port.toml's pitch: at least the code and at least the record, a multiple of a word.
 */
#define EXECMEM_STUB_PRECODE_SECRET_PARAM_AT               0
#define EXECMEM_STUB_PRECODE_TARGET_AT                     4
#define EXECMEM_FIXUP_PRECODE_TARGET_AT                    0
#define EXECMEM_FIXUP_PRECODE_METHOD_DESC_AT               8
#define EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK_AT       12
#define EXECMEM_CLOSURE_DATA_AT                            0
#define EXECMEM_CLOSURE_TARGET_AT                          4
#define EXECMEM_STUB_PRECODE_SLOT                          12
#define EXECMEM_FIXUP_PRECODE_SLOT                         16
#define EXECMEM_CLOSURE_SLOT                               8
#if EXECMEM_THUMB
#define EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL_AT    2
#define EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD_AT            20
#define EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED_AT 24
#define EXECMEM_CALL_COUNTING_SLOT                            28
#else
#define EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL_AT    4
#define EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD_AT            24
#define EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED_AT 28
#define EXECMEM_CALL_COUNTING_SLOT                            32
#endif

#endif
