/*
 * arm64: what its C and its assembly share. All sizes and offsets in bytes.
 *
 * Procedure Call Standard for the Arm 64-bit Architecture (AAPCS64) for calls; asm-generic/unistd.h for the system
 * calls (number in x8, arguments in x0 to x5, result in x0).
 */
#ifndef EXECMEM_ABI_H
#define EXECMEM_ABI_H

#define EXECMEM_PORT_NAME           "arm64"
#define EXECMEM_POINTER_BYTES       8

/* ---- System calls ---- */
#define EXECMEM_SYS_FCNTL           25
#define EXECMEM_SYS_FTRUNCATE       46
#define EXECMEM_SYS_FALLOCATE       47
#define EXECMEM_SYS_OPENAT          56
#define EXECMEM_SYS_CLOSE           57
#define EXECMEM_SYS_READ            63
#define EXECMEM_SYS_WRITE           64
#define EXECMEM_SYS_EXIT            93
#define EXECMEM_SYS_EXIT_GROUP      94
#define EXECMEM_SYS_FUTEX           98
#define EXECMEM_SYS_SIGALTSTACK     132
#define EXECMEM_SYS_RT_SIGACTION    134
#define EXECMEM_SYS_RT_SIGRETURN    139
#define EXECMEM_SYS_PRCTL           167
#define EXECMEM_SYS_GETPID          172
#define EXECMEM_SYS_MUNMAP          215
#define EXECMEM_SYS_CLONE           220
#define EXECMEM_SYS_MINCORE         232
#define EXECMEM_SYS_WAIT4           260
#define EXECMEM_SYS_MMAP            222
#define EXECMEM_SYS_MPROTECT        226
#define EXECMEM_SYS_MADVISE         233
#define EXECMEM_SYS_PRLIMIT64       261
#define EXECMEM_SYS_MEMFD_CREATE    279
#define EXECMEM_SYS_MEMBARRIER      283
#define EXECMEM_SYS_STATX           291
#define EXECMEM_SYS_PIDFD_OPEN      434
#define EXECMEM_SYS_PROCESS_MADVISE 440
#define EXECMEM_PORT_MMAP_UNIT      1
#define EXECMEM_SA_RESTORER         0x04000000

/* ---- ucontext_t (asm/ucontext.h, asm/sigcontext.h): uc_mcontext is at 176 ---- */
#define EXECMEM_CONTEXT_X(n)        (184 + 8 * (n))
#define EXECMEM_CONTEXT_PC          440
#define EXECMEM_CONTEXT_PSTATE      448
/* In the order of port.toml's registers.general. */
#define EXECMEM_CONTEXT_X8(n)                                                                                          \
	EXECMEM_CONTEXT_X(n), EXECMEM_CONTEXT_X((n) + 1), EXECMEM_CONTEXT_X((n) + 2), EXECMEM_CONTEXT_X((n) + 3),      \
		EXECMEM_CONTEXT_X((n) + 4), EXECMEM_CONTEXT_X((n) + 5), EXECMEM_CONTEXT_X((n) + 6),                    \
		EXECMEM_CONTEXT_X((n) + 7)
#define EXECMEM_CONTEXT_GENERAL                                                                                        \
	EXECMEM_CONTEXT_X8(0), EXECMEM_CONTEXT_X8(8), EXECMEM_CONTEXT_X8(16), EXECMEM_CONTEXT_X(24),                   \
		EXECMEM_CONTEXT_X(25), EXECMEM_CONTEXT_X(26), EXECMEM_CONTEXT_X(27), EXECMEM_CONTEXT_X(28),            \
		EXECMEM_CONTEXT_X(29), EXECMEM_CONTEXT_X(30)
/* PSTATE.BTYPE: how the last branch was made; not 0 only just before an indirect branch's target runs. */
#define EXECMEM_PSTATE_BTYPE                               0xc00
#define EXECMEM_PORT_OWN_CONTEXT_JUMP                      1

/* ---- Captured calls: x0 to x30, v0 to v31 ---- */
#define EXECMEM_PORT_GENERAL                               31
#define EXECMEM_PORT_VECTORS                               32
#define EXECMEM_PORT_VECTOR_BYTES                          16
/* struct execmem_port_capture */
#define EXECMEM_CAPTURE_ENTRY                              0
#define EXECMEM_CAPTURE_LANDED                             8
#define EXECMEM_CAPTURE_SEED                               16
#define EXECMEM_CAPTURE_AT_LANDING                         848
#define EXECMEM_CAPTURE_AT_RETURN                          1680
/* struct execmem_port_registers */
#define EXECMEM_CAPTURE_VECTOR                             0
#define EXECMEM_CAPTURE_GENERAL                            512
#define EXECMEM_CAPTURE_STACK_POINTER                      760
#define EXECMEM_CAPTURE_STACK                              768
/* Where the callee-saved registers are kept below the stack pointer of the caller of capture_enter. */
#define EXECMEM_CAPTURE_SAVED_BYTES                        160
#define EXECMEM_CAPTURE_STACK_BYTES                        64 /* EXECMEM_PORT_STACK_WORDS words */
/* Below the stack pointer, untouched by anyone because signal handlers run on a stack of their own. */
#define EXECMEM_CAPTURE_BELOW_LINK                         (-8)
#define EXECMEM_CAPTURE_BELOW_INDEX                        (-16)

/* ---- Landing pads ---- */
#define EXECMEM_PORT_PROT_PADS                             0x10 /* PROT_BTI, asm/mman.h */
#define EXECMEM_PORT_OWN_GUARD_LANDINGS                    1
/* Alignment and size of the section of the landings: a multiple of every OS page size. */
#define EXECMEM_LANDINGS_BYTES                             65536

/* ---- Templates ---- */
#define EXECMEM_PAD_INSTRUCTION                            bti c
/* ldr (literal): bits, signed, scale; counted from the instruction */
#define EXECMEM_REACH_LITERAL                              19, 1, 4

#define EXECMEM_STUB_PRECODE_SECRET_PARAM                  0
#define EXECMEM_STUB_PRECODE_TARGET                        8
#define EXECMEM_STUB_PRECODE_TYPE                          16
#define EXECMEM_FIXUP_PRECODE_TARGET                       0
#define EXECMEM_FIXUP_PRECODE_METHOD_DESC                  8
#define EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK          16
#define EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL    0
#define EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD            8
#define EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED 16
#define EXECMEM_CLOSURE_DATA                               0
#define EXECMEM_CLOSURE_TARGET                             8

/* Bytes from slot to slot, as port.toml's pitch: at least the code and at least the record. */
#if EXECMEM_LANDING_PADS
#define EXECMEM_FIXUP_PRECODE_SLOT 32
#else
#define EXECMEM_FIXUP_PRECODE_SLOT 24
#endif
#define EXECMEM_STUB_PRECODE_SLOT  24
#define EXECMEM_CALL_COUNTING_SLOT 40
#define EXECMEM_CLOSURE_SLOT       16

#endif
