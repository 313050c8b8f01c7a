/*
 * What a program without a C library brings, the same on every Linux port from the constants of abi.h: exit, program
 * start, threads, signals and the bookkeeping of captured calls. What libexecmem itself needs is in arch/system.c. A
 * port supplies in its own files:
 *
 *	_start			passes the initial stack pointer to execmem_port_start
 *	execmem_port_clone, execmem_port_capture_enter, execmem_port_capture_leave, execmem_port_landing_<0..3>
 *				as declared below
 *	execmem_port_sigreturn	where abi.h defines EXECMEM_SA_RESTORER
 *
 * and may replace a part by defining, in abi.h, EXECMEM_PORT_OWN_CONTEXT_JUMP or EXECMEM_PORT_OWN_GUARD_LANDINGS.
 *
 * Structures and flags are those of Linux's include/uapi; a port that differs from asm-generic says so in abi.h.
 */
#include <port.h>

/* asm-generic/mman*.h, signal*.h, errno-base.h; linux/sched.h, futex.h. The same on every port so far. */
#define PROT_NONE            0
#define PROT_READ            1
#define PROT_WRITE           2
#define MAP_PRIVATE          0x02
#define MAP_ANONYMOUS        0x20

#define SA_SIGINFO           0x00000004ul
#define SA_ONSTACK           0x08000000ul
#define SA_NODEFER           0x40000000ul
#define SS_DISABLE           2
#define SIGNALS              64

#define CLONE_VM             0x00000100ul
#define CLONE_FS             0x00000200ul
#define CLONE_FILES          0x00000400ul
#define CLONE_SIGHAND        0x00000800ul
#define CLONE_THREAD         0x00010000ul
#define CLONE_SYSVSEM        0x00040000ul
#define CLONE_PARENT_SETTID  0x00100000ul
#define CLONE_CHILD_CLEARTID 0x00200000ul

/* Not FUTEX_PRIVATE: the kernel's wake at the end of a thread is a shared one. */
#define FUTEX_WAIT           0

#define EINVAL               22
#define ENOSYS               38

/* Multiples of every page size in use, so that no page size needs to be known here. */
#define STACK_BYTES          65536
#define SIGNAL_STACK_BYTES   65536
#define GUARD_BYTES          65536

#define ASSERT_OFFSET(type_, member_, offset_)                                                                         \
	_Static_assert(offsetof(struct type_, member_) == (offset_), #type_ "." #member_ " is not at " #offset_)
ASSERT_OFFSET(execmem_port_capture, entry, EXECMEM_CAPTURE_ENTRY);
ASSERT_OFFSET(execmem_port_capture, landed, EXECMEM_CAPTURE_LANDED);
ASSERT_OFFSET(execmem_port_capture, seed, EXECMEM_CAPTURE_SEED);
ASSERT_OFFSET(execmem_port_capture, at_landing, EXECMEM_CAPTURE_AT_LANDING);
ASSERT_OFFSET(execmem_port_capture, at_return, EXECMEM_CAPTURE_AT_RETURN);
ASSERT_OFFSET(execmem_port_registers, vector, EXECMEM_CAPTURE_VECTOR);
ASSERT_OFFSET(execmem_port_registers, general, EXECMEM_CAPTURE_GENERAL);
ASSERT_OFFSET(execmem_port_registers, stack_pointer, EXECMEM_CAPTURE_STACK_POINTER);
ASSERT_OFFSET(execmem_port_registers, stack, EXECMEM_CAPTURE_STACK);

/* ---- Processes ---- */

_Noreturn void execmem_port_exit(int status)
{
	for (;;)
		execmem_port_syscall(EXECMEM_SYS_EXIT_GROUP, status, 0, 0, 0, 0, 0);
}

#define SIGCHLD           17
#define WAIT_SIGNAL(word) ((word) & 0x7f)
#define WAIT_STATUS(word) ((word) >> 8 & 0xff)

/* clone without a stack of its own: the child goes on where it is, on its copy (clone(2)). */
long execmem_port_fork(void)
{
#if EXECMEM_PORT_CLONE_STACK_FIRST
	return execmem_port_syscall(EXECMEM_SYS_CLONE, 0, SIGCHLD, 0, 0, 0, 0);
#else
	return execmem_port_syscall(EXECMEM_SYS_CLONE, SIGCHLD, 0, 0, 0, 0, 0);
#endif
}

int execmem_port_wait(long child, int *status)
{
	int word = 0;
	long ended;

	do
		ended = execmem_port_syscall(EXECMEM_SYS_WAIT4, child, (long)&word, 0, 0, 0, 0);
	while (ended == -4); /* EINTR */
	if (ended < 0)
		return (int)ended;
	*status = WAIT_SIGNAL(word) ? -WAIT_SIGNAL(word) : WAIT_STATUS(word);
	return 0;
}

/* ---- Program start ---- */

/* From _start. `stack` is the initial stack pointer: argc, argv, null, envp, null, auxv (System V ABI, "Process
 * Initialization"). */
_Noreturn void execmem_port_start(uintptr_t *stack);

_Noreturn void execmem_port_start(uintptr_t *stack)
{
	int argc = (int)stack[0];
	char **argv = (char **)(stack + 1);
	char **envp = argv + argc + 1;
	char **end = envp;

	while (*end)
		end++;
	execmem_port_exit(execmem_main(argc, argv, envp, (const uintptr_t *)(end + 1)));
}

/* ---- Signals ---- */

/* stack_t */
struct signal_stack {
	void *base;
	int flags;
	size_t bytes;
};

/* struct sigaction as the kernel has it; a port without SA_RESTORER has no such member at all. */
struct signal_action {
	void (*handler)(int, void *, void *);
	unsigned long flags;
#ifdef EXECMEM_SA_RESTORER
	void (*restorer)(void);
#endif
	uint32_t mask[SIGNALS / 32];
};

/* The start of siginfo_t, for the signals that carry an address. */
struct signal_info {
	int number, error, code;
	void *address;
};

#ifdef EXECMEM_SA_RESTORER
/* Where a handler returns to: makes the rt_sigreturn system call. */
void execmem_port_sigreturn(void);
#endif

static execmem_port_handler *handlers[SIGNALS + 1];

/*
 * abi.h may give the function that the kernel calls attributes of its own, as EXECMEM_HANDLER_ENTRY: an
 * emulator may enter it with a stack pointer that is less aligned than the ABI says.
 */
#ifndef EXECMEM_HANDLER_ENTRY
#define EXECMEM_HANDLER_ENTRY
#endif

EXECMEM_HANDLER_ENTRY static void dispatch(int signal, void *info, void *context)
{
	handlers[signal](signal, ((struct signal_info *)info)->address, context);
}

static int set_signal_stack(void *base)
{
	struct signal_stack stack = {.base = base, .bytes = SIGNAL_STACK_BYTES};

	return (int)execmem_port_syscall(EXECMEM_SYS_SIGALTSTACK, (long)&stack, 0, 0, 0, 0, 0);
}

/* Gives the calling thread a signal stack unless it has one: threads made below do, the first thread does not. */
static int need_signal_stack(void)
{
	struct signal_stack now;
	void *base;
	int error;

	error = (int)execmem_port_syscall(EXECMEM_SYS_SIGALTSTACK, 0, (long)&now, 0, 0, 0, 0);
	if (error || !(now.flags & SS_DISABLE))
		return error;
	base = execmem_port_map(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (execmem_port_is_error(base))
		return (int)(intptr_t)base;
	error = set_signal_stack(base);
	if (error)
		execmem_port_unmap(base, SIGNAL_STACK_BYTES);
	return error;
}

int execmem_port_handle(int signal, execmem_port_handler *handler)
{
	struct signal_action action = {.handler = dispatch, .flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	execmem_port_handler *before;
	int error;

	if (signal < 1 || signal > SIGNALS)
		return -EINVAL;
#ifdef EXECMEM_SA_RESTORER
	action.flags |= EXECMEM_SA_RESTORER;
	action.restorer = execmem_port_sigreturn;
#endif
	error = need_signal_stack();
	if (error)
		return error;
	before = handlers[signal];
	handlers[signal] = handler;
	error = (int)execmem_port_syscall(EXECMEM_SYS_RT_SIGACTION, signal, (long)&action, 0, sizeof(action.mask), 0,
					  0);
	if (error)
		handlers[signal] = before;
	return error;
}

/* Byte offsets into ucontext_t, in the order of port.toml's registers.general. */
static const uint16_t context_general[] = {EXECMEM_CONTEXT_GENERAL};
_Static_assert(sizeof(context_general) / sizeof(context_general[0]) == EXECMEM_PORT_GENERAL, "EXECMEM_CONTEXT_GENERAL");

static uintptr_t *context_word(const void *context, size_t offset)
{
	return (uintptr_t *)((uintptr_t)context + offset);
}

uintptr_t execmem_port_context_pc(const void *context)
{
	return *context_word(context, EXECMEM_CONTEXT_PC);
}

void execmem_port_context_set(void *context, unsigned index, uintptr_t value)
{
	*context_word(context, context_general[index]) = value;
}

#ifndef EXECMEM_PORT_OWN_CONTEXT_JUMP
void execmem_port_context_jump(void *context, uintptr_t target)
{
	*context_word(context, EXECMEM_CONTEXT_PC) = target;
}
#endif

/* ---- Threads ---- */

/*
 * The clone system call with these arguments, put in the port's order; the child calls run(argument) on `stack_top`
 * (a multiple of 16) and then makes the exit system call for itself alone, without touching its stack. Returns the
 * thread's id to the parent, or a negative errno.
 */
long execmem_port_clone(unsigned long flags, void *stack_top, volatile int32_t *parent_tid, volatile int32_t *child_tid,
			void (*run)(void *argument), void *argument);

/* The mapping of a thread, upwards: guard, stack, signal stack. */
#define THREAD_BYTES (GUARD_BYTES + STACK_BYTES + SIGNAL_STACK_BYTES)

static void thread_run(void *argument)
{
	struct execmem_port_thread *thread = argument;

	/* Refused only for arguments that these are not; a handler would run on the thread's own stack then. */
	set_signal_stack((char *)thread->stack + GUARD_BYTES + STACK_BYTES);
	thread->run(thread->argument);
}

int execmem_port_thread_start(struct execmem_port_thread *thread)
{
	char *mapping;
	long result;

	mapping = execmem_port_map(NULL, THREAD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (execmem_port_is_error(mapping))
		return (int)(intptr_t)mapping;
	result = execmem_port_protect(mapping, GUARD_BYTES, PROT_NONE);
	if (result == 0) {
		thread->stack = mapping;
		/* All of the first six: qemu-user refuses a thread that shares less. */
		result = execmem_port_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
						    CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
					    mapping + GUARD_BYTES + STACK_BYTES, &thread->tid, &thread->tid, thread_run,
					    thread);
	}
	if (result < 0)
		execmem_port_unmap(mapping, THREAD_BYTES);
	return result < 0 ? (int)result : 0;
}

void execmem_port_thread_join(struct execmem_port_thread *thread)
{
	int32_t tid;

	while ((tid = __atomic_load_n(&thread->tid, __ATOMIC_ACQUIRE)) != 0)
		execmem_port_syscall(EXECMEM_SYS_FUTEX, (long)&thread->tid, FUTEX_WAIT, tid, 0, 0, 0);
	execmem_port_unmap(thread->stack, THREAD_BYTES);
}

/* ---- Captured calls ---- */

/*
 * The assembly part of execmem_port_call_captured. Saves the callee-saved registers on the stack and the stack pointer
 * in a word of its own, loads capture->seed, calls capture->entry, and stores the registers to at_return. The landings
 * store the registers to execmem_port_captured->at_landing and their index to ->landed, restore what they used and
 * return. execmem_port_capture_leave, never called but jumped to, restores the stack pointer from that word, then the
 * callee-saved registers, and returns from execmem_port_capture_enter.
 */
void execmem_port_capture_enter(struct execmem_port_capture *capture);
void execmem_port_capture_leave(void);
void execmem_port_landing_0(void);
void execmem_port_landing_1(void);
void execmem_port_landing_2(void);
void execmem_port_landing_3(void);

/* The captured call under way, for the landings. */
extern struct execmem_port_capture *execmem_port_captured;
struct execmem_port_capture *execmem_port_captured;

const uintptr_t execmem_port_landing[EXECMEM_PORT_LANDINGS] = {
	(uintptr_t)execmem_port_landing_0,
	(uintptr_t)execmem_port_landing_1,
	(uintptr_t)execmem_port_landing_2,
	(uintptr_t)execmem_port_landing_3,
};

void execmem_port_call_captured(struct execmem_port_capture *capture)
{
	capture->landed = EXECMEM_PORT_LANDED_NOWHERE;
	capture->abandoned = 0;
	execmem_port_captured = capture;
	execmem_port_capture_enter(capture);
}

void execmem_port_capture_abandon(void *context)
{
	execmem_port_captured->abandoned = 1;
	execmem_port_context_jump(context, (uintptr_t)execmem_port_capture_leave);
}

/* ---- Landing-pad enforcement ---- */

#ifndef EXECMEM_PORT_OWN_GUARD_LANDINGS
int execmem_port_guard_landings(void)
{
	return -ENOSYS;
}
#endif
