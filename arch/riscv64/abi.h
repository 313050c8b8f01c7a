/*
 * riscv64: what its C and its assembly share. All sizes and offsets in bytes.
 *
 * RISC-V ELF psABI (lp64d) for calls; asm-generic/unistd.h for the system calls (number in a7, arguments in a0 to a5,
 * result in a0; nothing else destroyed).
 */
#ifndef EXECMEM_ABI_H
#define EXECMEM_ABI_H

#define EXECMEM_PORT_NAME              "riscv64"
#define EXECMEM_POINTER_BYTES          8

/* ---- System calls ---- */
#define EXECMEM_SYS_FCNTL              25
#define EXECMEM_SYS_FTRUNCATE          46
#define EXECMEM_SYS_FALLOCATE          47
#define EXECMEM_SYS_OPENAT             56
#define EXECMEM_SYS_CLOSE              57
#define EXECMEM_SYS_READ               63
#define EXECMEM_SYS_WRITE              64
#define EXECMEM_SYS_EXIT               93
#define EXECMEM_SYS_EXIT_GROUP         94
#define EXECMEM_SYS_FUTEX              98
#define EXECMEM_SYS_SIGALTSTACK        132
#define EXECMEM_SYS_RT_SIGACTION       134
#define EXECMEM_SYS_PRCTL              167
#define EXECMEM_SYS_GETPID             172
#define EXECMEM_SYS_MUNMAP             215
#define EXECMEM_SYS_CLONE              220
#define EXECMEM_SYS_MMAP               222
#define EXECMEM_SYS_MPROTECT           226
#define EXECMEM_SYS_MINCORE            232
#define EXECMEM_SYS_MADVISE            233
#define EXECMEM_SYS_RISCV_FLUSH_ICACHE 259 /* asm/unistd.h */
#define EXECMEM_SYS_WAIT4              260
#define EXECMEM_SYS_PRLIMIT64          261
#define EXECMEM_SYS_MEMFD_CREATE       279
#define EXECMEM_SYS_MEMBARRIER         283
#define EXECMEM_SYS_STATX              291
#define EXECMEM_SYS_PIDFD_OPEN         434
#define EXECMEM_SYS_PROCESS_MADVISE    440
#define EXECMEM_PORT_MMAP_UNIT         1

/* ---- ucontext_t (asm/ucontext.h, asm/ptrace.h): uc_mcontext is at 176, the pc in the place of x0 ---- */
#define EXECMEM_CONTEXT_PC             176
#define EXECMEM_CONTEXT_X(n)           (176 + 8 * (n))
/* In the order of port.toml's registers.general: all but x0, always zero, and x2, the stack pointer. */
#define EXECMEM_CONTEXT_X4(n)                                                                                          \
	EXECMEM_CONTEXT_X(n), EXECMEM_CONTEXT_X((n) + 1), EXECMEM_CONTEXT_X((n) + 2), EXECMEM_CONTEXT_X((n) + 3)
#define EXECMEM_CONTEXT_GENERAL                                                                                        \
	EXECMEM_CONTEXT_X(1), EXECMEM_CONTEXT_X(3), EXECMEM_CONTEXT_X4(4), EXECMEM_CONTEXT_X4(8),                      \
		EXECMEM_CONTEXT_X4(12), EXECMEM_CONTEXT_X4(16), EXECMEM_CONTEXT_X4(20), EXECMEM_CONTEXT_X4(24),        \
		EXECMEM_CONTEXT_X4(28)

/* ---- Captured calls: x1, x3 to x31; f0 to f31 ---- */
#define EXECMEM_PORT_GENERAL                               30
#define EXECMEM_PORT_VECTORS                               32
#define EXECMEM_PORT_VECTOR_BYTES                          8
/* struct execmem_port_capture */
#define EXECMEM_CAPTURE_ENTRY                              0
#define EXECMEM_CAPTURE_LANDED                             8
#define EXECMEM_CAPTURE_SEED                               16
#define EXECMEM_CAPTURE_AT_LANDING                         584
#define EXECMEM_CAPTURE_AT_RETURN                          1152
/* struct execmem_port_registers */
#define EXECMEM_CAPTURE_VECTOR                             0
#define EXECMEM_CAPTURE_GENERAL                            256
#define EXECMEM_CAPTURE_STACK_POINTER                      496
#define EXECMEM_CAPTURE_STACK                              504
/* Where the callee-saved registers are kept below the stack pointer of the caller of capture_enter. */
#define EXECMEM_CAPTURE_SAVED_BYTES                        224
#define EXECMEM_CAPTURE_STACK_BYTES                        64 /* EXECMEM_PORT_STACK_WORDS words */
/* Below the stack pointer, untouched by anyone because signal handlers run on a stack of their own. */
#define EXECMEM_CAPTURE_BELOW_LINK                         (-8)
#define EXECMEM_CAPTURE_BELOW_INDEX                        (-16)

/* ---- Templates ---- */
/*
 * auipc adds units of 4096 bytes to its own address; the load behind it adds the rest, -2048 to 2047. The assembler
 * takes auipc's signed 20 bits as an unsigned number, so that it refuses only half of what does not fit.
 */
#define EXECMEM_AUIPC(bytes)                               ((bytes) / 4096)
/* bits, signed, scale; auipc counts from itself, a load from its register */
#define EXECMEM_REACH_AUIPC                                20, 1, 4096
#define EXECMEM_REACH_LOAD                                 12, 1, 1

#define EXECMEM_STUB_PRECODE_SECRET_PARAM                  0
#define EXECMEM_STUB_PRECODE_TARGET                        8
#define EXECMEM_STUB_PRECODE_TYPE                          16
#define EXECMEM_FIXUP_PRECODE_TARGET                       0
#define EXECMEM_FIXUP_PRECODE_METHOD_DESC                  8
#define EXECMEM_FIXUP_PRECODE_PRECODE_FIXUP_THUNK          16
/* The threshold code finds the stub through the pointer in t3, and counts on its offset being 0. */
#define EXECMEM_CALL_COUNTING_REMAINING_CALL_COUNT_CELL    0
#define EXECMEM_CALL_COUNTING_TARGET_FOR_METHOD            8
#define EXECMEM_CALL_COUNTING_TARGET_FOR_THRESHOLD_REACHED 16
#define EXECMEM_CLOSURE_DATA                               0
#define EXECMEM_CLOSURE_TARGET                             8

/* Where in the slot the fixup's tail has its auipc, so that the record lies that much nearer. */
#define EXECMEM_FIXUP_PRECODE_TAIL_ADDRESS                 16

/* Bytes from slot to slot, as port.toml's pitch: at least the code and at least the record. */
#define EXECMEM_STUB_PRECODE_SLOT                          24
#define EXECMEM_FIXUP_PRECODE_SLOT                         32
#define EXECMEM_CALL_COUNTING_SLOT                         40
#define EXECMEM_CLOSURE_SLOT                               16

#endif
