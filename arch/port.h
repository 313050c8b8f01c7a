/*
 * The port contract: everything that the library and the conformance programs ask of an architecture.
 *
 * A port fills it with arch/<port>/abi.h (constants shared by C and assembly), arch/<port>/port.c and a few small
 * assembly files; arch/system.c and arch/linux.c fill what is the same on every Linux port from those constants.
 * arch/PORTING.md walks through it. Nothing outside arch/ and asm/ may ask which architecture it is on.
 *
 * The library alone needs the sections "System calls" and "Instruction cache", which lie in arch/system.c,
 * arch/<port>/port.c and arch/<port>/syscall.S, and define no name that a C library has. All else is for programs
 * without one: installed as the library execmem_port, which holds this whole contract.
 *
 * Threads: every function may be called from any thread, and all but execmem_port_thread_* from a signal handler,
 * unless it says otherwise.
 */
#ifndef EXECMEM_PORT_H
#define EXECMEM_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h" /* arch/<port>/abi.h: the build names the one directory; beside this file where it is installed */

/*
 * ---- Constants that abi.h defines (plain integers, usable from assembly) ----
 *
 * EXECMEM_PORT_NAME             string literal, the port's name
 * EXECMEM_POINTER_BYTES         4 or 8
 * EXECMEM_SYS_<name>            system call numbers used by the C files of arch/, by ref/os_linux.c and by the suite's
 *                               own table (conformance/alloc/table.c)
 * EXECMEM_PORT_MMAP_UNIT        bytes in one unit of the mmap offset argument (1, or 4096 for mmap2)
 * EXECMEM_PORT_ALIGNED_PAIRS    1 where a 64-bit argument of a system call starts at an even register; else left out
 * EXECMEM_PORT_CLONE_STACK_FIRST 1 where the clone system call takes the stack before the flags; else left out
 * EXECMEM_PORT_GENERAL          how many general registers a capture holds (the stack pointer is apart)
 * EXECMEM_PORT_VECTORS          how many floating-point or vector registers a capture holds
 * EXECMEM_PORT_VECTOR_BYTES     bytes kept of each
 * EXECMEM_CAPTURE_*             byte offsets into struct execmem_port_capture, asserted in arch/linux.c
 * EXECMEM_PORT_FAULT_BYTES      what the address that a signal names is rounded down to a multiple of: the page size
 *                               where the machine tells the page alone; else left out
 * EXECMEM_PORT_STUB_PAGE        preferred stub page size, and
 * EXECMEM_PORT_STUB_PAGE_MOST   the largest that every template of asm/<port>.S reaches and the port's manifest
 *                               declares; only where they differ from the values below
 * EXECMEM_STUB_PRECODE_*, EXECMEM_FIXUP_PRECODE_*, EXECMEM_CALL_COUNTING_*, EXECMEM_CLOSURE_*
 *                               record field offsets and slot sizes, in bytes, of the templates in asm/<port>.S
 */

#ifndef EXECMEM_PORT_FAULT_BYTES
#define EXECMEM_PORT_FAULT_BYTES 1
#endif
#ifndef EXECMEM_PORT_STUB_PAGE
#define EXECMEM_PORT_STUB_PAGE 16384
#endif
#ifndef EXECMEM_PORT_STUB_PAGE_MOST
#define EXECMEM_PORT_STUB_PAGE_MOST 65536
#endif

/* ---- System calls ---- */

/* Raw system call. Returns the kernel's value: negative errno on failure. Never sets a global. */
long execmem_port_syscall(long number, long a, long b, long c, long d, long e, long f);

/*
 * mmap with a byte offset that is a multiple of the page size; hides mmap2. Returns the address, or a negative errno
 * as (intptr_t) in [-4095, -1]: test with execmem_port_is_error.
 */
void *execmem_port_map(void *address, size_t bytes, int protection, int flags, int fd, uint64_t offset);
int execmem_port_protect(void *address, size_t bytes, int protection); /* 0 or negative errno */
int execmem_port_unmap(void *address, size_t bytes);                   /* 0 or negative errno */

static inline int execmem_port_is_error(const void *value)
{
	return (uintptr_t)value >= (uintptr_t)-4095;
}

long execmem_port_write(int fd, const void *bytes, size_t count); /* count written, or negative errno */

/*
 * For memory files: ftruncate, and fallocate that punches a hole and keeps the size. They hide how 32-bit ports pass a
 * 64-bit argument. 0 or negative errno.
 */
int execmem_port_truncate(int fd, uint64_t bytes);
int execmem_port_punch(int fd, uint64_t offset, uint64_t bytes);

/* ---- Program start ---- */

/*
 * Supplied by the program, called by the port's _start with the initial stack of the System V ABI taken apart. Vectors
 * are null-terminated; auxv ends with the pair {0, 0}. The return value is the exit status.
 */
int execmem_main(int argc, char **argv, char **envp, const uintptr_t *auxv);

_Noreturn void execmem_port_exit(int status); /* ends the whole process (exit_group) */

/* ---- Threads (raw clone; no thread-local storage) ---- */

struct execmem_port_thread {
	void (*run)(void *argument);
	void *argument;
	void *stack;          /* mapped by start, unmapped by join */
	volatile int32_t tid; /* cleared by the kernel and woken as a futex when the thread has ended */
};

/* Starts `thread->run(thread->argument)` on a new 64 KiB stack. 0 or negative errno, and then nothing was made. */
int execmem_port_thread_start(struct execmem_port_thread *thread);
/* Waits for the end of the thread and unmaps its stack. To be called once a started thread. */
void execmem_port_thread_join(struct execmem_port_thread *thread);

/* ---- Processes ---- */

/*
 * A copy of the calling process that has the calling thread alone. 0 in the child, its identity in the parent, or a
 * negative errno. For programs with one thread: nothing is done for locks that others hold.
 */
long execmem_port_fork(void);
/*
 * Waits for the end of a child. 0, with its exit status in `status` or, where a signal ended it, minus the signal's
 * number; or a negative errno.
 */
int execmem_port_wait(long child, int *status);

/* ---- Instruction cache ---- */

/*
 * Makes `bytes` bytes written at `address` (the *executable* address) visible to instruction fetch on every thread
 * that next passes a context-synchronising event; on the calling thread they are visible on return.
 */
void execmem_port_sync_code(void *address, size_t bytes);

/*
 * Writes to `code`, room for EXECMEM_PORT_PROBE_BYTES, a position-independent function of the C calling convention that
 * takes nothing and returns `value` (0 to 255), to be entered at its first byte without a mode bit, through a landing
 * pad where the port has pads. Returns its bytes. The caller synchronises.
 */
#define EXECMEM_PORT_PROBE_BYTES 64
size_t execmem_port_probe_code(unsigned value, unsigned char *code);

/* ---- Signals ---- */

/* Handler of `execmem_port_handle`: signal number, si_addr (rounded down, where EXECMEM_PORT_FAULT_BYTES says so), and
 * the machine context to be read and changed below. */
typedef void execmem_port_handler(int signal, void *address, void *context);

/*
 * Installs a handler for one signal, with SA_SIGINFO | SA_ONSTACK | SA_NODEFER on the alternate stack that it also
 * sets for the calling thread. 0 or negative errno.
 */
int execmem_port_handle(int signal, execmem_port_handler *handler);

uintptr_t execmem_port_context_pc(const void *context); /* without a mode bit */
/* Sets general register `index` (the order of port.toml's registers.general) of an interrupted context. */
void execmem_port_context_set(void *context, unsigned index, uintptr_t value);
/* Continues at `target`; a mode bit in it is honoured, as an indirect branch would. */
void execmem_port_context_jump(void *context, uintptr_t target);

/* ---- Capturing call stub ---- */

#define EXECMEM_PORT_STACK_WORDS 8
/* The first stack word that holds a seed on arrival: 1 where calls push a return address, which abi.h then says. */
#ifndef EXECMEM_PORT_STACK_FIRST
#define EXECMEM_PORT_STACK_FIRST 0
#endif
#define EXECMEM_PORT_LANDINGS 4
#define EXECMEM_PORT_LANDED_NOWHERE                                                                                    \
	0x7fffffff /* `landed` where the callee returned, or was abandoned, before a landing */

/* Registers at one moment. general and vector follow the order of port.toml's registers.general and .vector. */
struct execmem_port_registers {
	uint64_t vector[EXECMEM_PORT_VECTORS][EXECMEM_PORT_VECTOR_BYTES / 8];
	uintptr_t general[EXECMEM_PORT_GENERAL];
	/*
	 * As the callee finds it at its entry, so below the return address where calls push one. At return, that size
	 * is taken off again: a stack pointer that was preserved is the same number at all three moments.
	 */
	uintptr_t stack_pointer;
	/* words from the stack pointer up, the return address first where calls push one (seed[0] is ignored there) */
	uintptr_t stack[EXECMEM_PORT_STACK_WORDS];
};

/*
 * One captured call. `seed` is loaded into every register (its stack_pointer is an output), `entry` is called, and the
 * registers are stored into `at_landing` when one of execmem_port_landing[] is reached and into `at_return` when
 * control is back. general registers that the call stub itself must own while calling (the one through which it jumps,
 * a link register, a thread pointer) are listed in port.toml's registers.reserved and are not compared.
 */
struct execmem_port_capture {
	uintptr_t entry;    /* with its mode bit, where the port has one */
	uint32_t landed;    /* out: index of the landing reached, or EXECMEM_PORT_LANDED_NOWHERE */
	uint32_t abandoned; /* out: 1 after execmem_port_capture_abandon */
	struct execmem_port_registers seed, at_landing, at_return;
};

/* Not reentrant: one captured call in the process at a time. */
void execmem_port_call_captured(struct execmem_port_capture *capture);

/* Addresses (with mode bit) to put into a record's target fields. Each starts with a landing pad where the port has
 * pads. */
extern const uintptr_t execmem_port_landing[EXECMEM_PORT_LANDINGS];

/*
 * From a signal handler, while a captured call is under way: makes the interrupted context continue at the end of
 * execmem_port_call_captured, callee-saved registers and stack pointer restored, `abandoned` set.
 */
void execmem_port_capture_abandon(void *context);

/* ---- Landing-pad enforcement ---- */

/*
 * Extra mmap/mprotect protection bits that turn on landing-pad enforcement for a page (PROT_BTI), or 0 where the port
 * has none that a process can ask for.
 */
#ifndef EXECMEM_PORT_PROT_PADS
#define EXECMEM_PORT_PROT_PADS 0
#endif

/*
 * Turns enforcement on for the pages that hold execmem_port_landing[]. 0, or a negative errno (-38, ENOSYS, where the
 * port has none).
 */
int execmem_port_guard_landings(void);

#endif
