/*
 * x64: what its C and its assembly share. All sizes and offsets in bytes.
 *
 * System V ABI AMD64 supplement for calls; arch/x86/entry/syscalls/syscall_64.tbl for the system calls (number in rax,
 * arguments in rdi, rsi, rdx, r10, r8, r9; rcx and r11 destroyed).
 */
#ifndef EXECMEM_ABI_H
#define EXECMEM_ABI_H

#define EXECMEM_PORT_NAME           "x64"
#define EXECMEM_POINTER_BYTES       8

/* ---- System calls ---- */
#define EXECMEM_SYS_READ            0
#define EXECMEM_SYS_WRITE           1
#define EXECMEM_SYS_CLOSE           3
#define EXECMEM_SYS_MMAP            9
#define EXECMEM_SYS_MPROTECT        10
#define EXECMEM_SYS_MUNMAP          11
#define EXECMEM_SYS_RT_SIGACTION    13
#define EXECMEM_SYS_RT_SIGRETURN    15
#define EXECMEM_SYS_MINCORE         27
#define EXECMEM_SYS_MADVISE         28
#define EXECMEM_SYS_GETPID          39
#define EXECMEM_SYS_CLONE           56
#define EXECMEM_SYS_WAIT4           61
#define EXECMEM_SYS_EXIT            60
#define EXECMEM_SYS_FCNTL           72
#define EXECMEM_SYS_FTRUNCATE       77
#define EXECMEM_SYS_SIGALTSTACK     131
#define EXECMEM_SYS_PRCTL           157
#define EXECMEM_SYS_FUTEX           202
#define EXECMEM_SYS_EXIT_GROUP      231
#define EXECMEM_SYS_OPENAT          257
#define EXECMEM_SYS_FALLOCATE       285
#define EXECMEM_SYS_PRLIMIT64       302
#define EXECMEM_SYS_MEMFD_CREATE    319
#define EXECMEM_SYS_MEMBARRIER      324
#define EXECMEM_SYS_STATX           332
#define EXECMEM_SYS_PIDFD_OPEN      434
#define EXECMEM_SYS_PROCESS_MADVISE 440
#define EXECMEM_PORT_MMAP_UNIT      1
#define EXECMEM_SA_RESTORER         0x04000000

/* qemu-user 7.2 enters signal handlers 8 bytes off the ABI's stack alignment. */
#define EXECMEM_HANDLER_ENTRY       __attribute__((force_align_arg_pointer))

/* ---- ucontext_t (asm/ucontext.h, asm/sigcontext.h): uc_mcontext is at 40 ---- */
#define EXECMEM_CONTEXT_R8          40
#define EXECMEM_CONTEXT_R9          48
#define EXECMEM_CONTEXT_R10         56
#define EXECMEM_CONTEXT_R11         64
#define EXECMEM_CONTEXT_R12         72
#define EXECMEM_CONTEXT_R13         80
#define EXECMEM_CONTEXT_R14         88
#define EXECMEM_CONTEXT_R15         96
#define EXECMEM_CONTEXT_RDI         104
#define EXECMEM_CONTEXT_RSI         112
#define EXECMEM_CONTEXT_RBP         120
#define EXECMEM_CONTEXT_RBX         128
#define EXECMEM_CONTEXT_RDX         136
#define EXECMEM_CONTEXT_RAX         144
#define EXECMEM_CONTEXT_RCX         152
#define EXECMEM_CONTEXT_PC          168
/* In the order of port.toml's registers.general. */
#define EXECMEM_CONTEXT_GENERAL                                                                                        \
	EXECMEM_CONTEXT_RAX, EXECMEM_CONTEXT_RBX, EXECMEM_CONTEXT_RCX, EXECMEM_CONTEXT_RDX, EXECMEM_CONTEXT_RSI,       \
		EXECMEM_CONTEXT_RDI, EXECMEM_CONTEXT_RBP, EXECMEM_CONTEXT_R8, EXECMEM_CONTEXT_R9, EXECMEM_CONTEXT_R10, \
		EXECMEM_CONTEXT_R11, EXECMEM_CONTEXT_R12, EXECMEM_CONTEXT_R13, EXECMEM_CONTEXT_R14,                    \
		EXECMEM_CONTEXT_R15

/* ---- Captured calls ---- */
#define EXECMEM_PORT_GENERAL                               15
#define EXECMEM_PORT_VECTORS                               16
#define EXECMEM_PORT_VECTOR_BYTES                          16
#define EXECMEM_PORT_STACK_FIRST                           1 /* behind the return address */
/* struct execmem_port_capture */
#define EXECMEM_CAPTURE_ENTRY                              0
#define EXECMEM_CAPTURE_LANDED                             8
#define EXECMEM_CAPTURE_SEED                               16
#define EXECMEM_CAPTURE_AT_LANDING                         464
#define EXECMEM_CAPTURE_AT_RETURN                          912
/* struct execmem_port_registers */
#define EXECMEM_CAPTURE_VECTOR                             0
#define EXECMEM_CAPTURE_GENERAL                            256
#define EXECMEM_CAPTURE_STACK_POINTER                      376
#define EXECMEM_CAPTURE_STACK                              384
/* each general register in it, in the order of port.toml's registers.general */
#define EXECMEM_CAPTURE_RAX                                256
#define EXECMEM_CAPTURE_RBX                                264
#define EXECMEM_CAPTURE_RCX                                272
#define EXECMEM_CAPTURE_RDX                                280
#define EXECMEM_CAPTURE_RSI                                288
#define EXECMEM_CAPTURE_RDI                                296
#define EXECMEM_CAPTURE_RBP                                304
#define EXECMEM_CAPTURE_R8                                 312
#define EXECMEM_CAPTURE_R9                                 320
#define EXECMEM_CAPTURE_R10                                328
#define EXECMEM_CAPTURE_R11                                336
#define EXECMEM_CAPTURE_R12                                344
#define EXECMEM_CAPTURE_R13                                352
#define EXECMEM_CAPTURE_R14                                360
#define EXECMEM_CAPTURE_R15                                368

/* ---- Templates ---- */
#define EXECMEM_PAD_INSTRUCTION                            endbr64
/* disp32(%rip): bits, signed, scale; counted from the end of the instruction */
#define EXECMEM_REACH_DISP32                               32, 1, 1

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
#define EXECMEM_STUB_PRECODE_SLOT  24
#define EXECMEM_FIXUP_PRECODE_SLOT 32
#define EXECMEM_CALL_COUNTING_SLOT 32
#define EXECMEM_CLOSURE_SLOT       24
#else
#define EXECMEM_STUB_PRECODE_SLOT  24
#define EXECMEM_FIXUP_PRECODE_SLOT 24
#define EXECMEM_CALL_COUNTING_SLOT 32
#define EXECMEM_CLOSURE_SLOT       16
#endif

#endif
