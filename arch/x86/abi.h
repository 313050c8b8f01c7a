/*
 * x86: what its C and its assembly share. All sizes and offsets in bytes.
 *
 * System V ABI i386 supplement for calls; arch/x86/entry/syscalls/syscall_32.tbl for the system calls (int 0x80, number
 * in eax, arguments in ebx, ecx, edx, esi, edi, ebp; only eax changes).
 */
#ifndef EXECMEM_ABI_H
#define EXECMEM_ABI_H

#define EXECMEM_PORT_NAME           "x86"
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
#define EXECMEM_SYS_MINCORE         218
#define EXECMEM_SYS_MADVISE         219
#define EXECMEM_SYS_FCNTL           221 /* fcntl64 */
#define EXECMEM_SYS_FUTEX           240
#define EXECMEM_SYS_EXIT_GROUP      252
#define EXECMEM_SYS_OPENAT          295
#define EXECMEM_SYS_FALLOCATE       324
#define EXECMEM_SYS_PRLIMIT64       340
#define EXECMEM_SYS_MEMFD_CREATE    356
#define EXECMEM_SYS_MEMBARRIER      375
#define EXECMEM_SYS_STATX           383
#define EXECMEM_SYS_PIDFD_OPEN      434
#define EXECMEM_SYS_PROCESS_MADVISE 440
#define EXECMEM_PORT_MMAP_UNIT      4096
#define EXECMEM_SA_RESTORER         0x04000000

/* qemu-user 7.2 enters signal handlers 8 bytes off the ABI's stack alignment. */
#define EXECMEM_HANDLER_ENTRY       __attribute__((force_align_arg_pointer))

/* ---- ucontext_t (asm/ucontext.h, asm/sigcontext.h): uc_mcontext is at 20, four segment registers first ---- */
#define EXECMEM_CONTEXT_EDI         36
#define EXECMEM_CONTEXT_ESI         40
#define EXECMEM_CONTEXT_EBP         44
#define EXECMEM_CONTEXT_EBX         52
#define EXECMEM_CONTEXT_EDX         56
#define EXECMEM_CONTEXT_ECX         60
#define EXECMEM_CONTEXT_EAX         64
#define EXECMEM_CONTEXT_PC          76
/* In the order of port.toml's registers.general. */
#define EXECMEM_CONTEXT_GENERAL                                                                                        \
	EXECMEM_CONTEXT_EAX, EXECMEM_CONTEXT_EBX, EXECMEM_CONTEXT_ECX, EXECMEM_CONTEXT_EDX, EXECMEM_CONTEXT_ESI,       \
		EXECMEM_CONTEXT_EDI, EXECMEM_CONTEXT_EBP

/* ---- Captured calls ---- */
#define EXECMEM_PORT_GENERAL                               7
#define EXECMEM_PORT_VECTORS                               8
#define EXECMEM_PORT_VECTOR_BYTES                          16
#define EXECMEM_PORT_STACK_FIRST                           1 /* behind the return address */
/* struct execmem_port_capture; a 64-bit integer is aligned to 4 */
#define EXECMEM_CAPTURE_ENTRY                              0
#define EXECMEM_CAPTURE_LANDED                             4
#define EXECMEM_CAPTURE_SEED                               12
#define EXECMEM_CAPTURE_AT_LANDING                         204
#define EXECMEM_CAPTURE_AT_RETURN                          396
/* struct execmem_port_registers */
#define EXECMEM_CAPTURE_VECTOR                             0
#define EXECMEM_CAPTURE_GENERAL                            128
#define EXECMEM_CAPTURE_STACK_POINTER                      156
#define EXECMEM_CAPTURE_STACK                              160
/* each general register in it, in the order of port.toml's registers.general */
#define EXECMEM_CAPTURE_EAX                                128
#define EXECMEM_CAPTURE_EBX                                132
#define EXECMEM_CAPTURE_ECX                                136
#define EXECMEM_CAPTURE_EDX                                140
#define EXECMEM_CAPTURE_ESI                                144
#define EXECMEM_CAPTURE_EDI                                148
#define EXECMEM_CAPTURE_EBP                                152

/* ---- Templates ---- */
#define EXECMEM_PAD_INSTRUCTION                            endbr32

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

/* Bytes from slot to slot, as port.toml's pitch: at least the code and at least the record. */
#if EXECMEM_LANDING_PADS
#define EXECMEM_STUB_PRECODE_SLOT  16
#define EXECMEM_FIXUP_PRECODE_SLOT 28
#define EXECMEM_CALL_COUNTING_SLOT 28
#define EXECMEM_CLOSURE_SLOT       16
#else
#define EXECMEM_STUB_PRECODE_SLOT  12
#define EXECMEM_FIXUP_PRECODE_SLOT 20
#define EXECMEM_CALL_COUNTING_SLOT 24
#define EXECMEM_CLOSURE_SLOT       12
#endif

#endif
