#include "os.h"

#include <port.h>

#include "check.h"

#define MAP_SHARED          0x01
#define MAP_PRIVATE         0x02
#define MAP_ANONYMOUS       0x20
#define MAP_FIXED_NOREPLACE 0x100000
#define FUTEX_WAIT          0
#define FUTEX_WAKE          1
#define SIGNAL_MASK_BYTES   8 /* of the kernel's sigset_t, 64 signals */

/* The last calls, in a ring: what a failure block shows. */
#define KEPT                12

static struct call {
	const char *name;
	const void *address;
	size_t bytes;
	int protection; /* -1: the call has none */
	long result;
} calls[KEPT];
static unsigned call_count;

void os_note(const char *name, const void *address, size_t bytes, int protection, long result)
{
	calls[call_count++ % KEPT] = (struct call){name, address, bytes, protection, result};
}

unsigned char *os_reserve(void *address, size_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED_NOREPLACE : 0);
	void *got = execmem_port_map(address, bytes, 0, flags, -1, 0);

	os_note("map", address, bytes, 0, (long)(intptr_t)got);
	if (execmem_port_is_error(got))
		check_broken("the system refuses a reservation", (long)(intptr_t)got);
	/* Kernels and emulators that do not know the flag take the address for a hint. */
	if (address && got != address)
		check_broken("the address of --code-at is taken", 0);
	return got;
}

void *os_share(size_t bytes)
{
	void *got = execmem_port_map(NULL, bytes, OS_READ | OS_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	os_note("map", got, bytes, OS_READ | OS_WRITE, (long)(intptr_t)got);
	if (execmem_port_is_error(got))
		check_broken("the system refuses shared memory", (long)(intptr_t)got);
	return got;
}

int os_try_protect(void *address, size_t bytes, int protection)
{
	const int result = execmem_port_protect(address, bytes, protection);

	os_note("protect", address, bytes, protection, result);
	return result;
}

void os_protect(void *address, size_t bytes, int protection)
{
	const int result = os_try_protect(address, bytes, protection);

	if (result)
		check_broken("the system refuses a protection", result);
}

void os_unmap(void *address, size_t bytes)
{
	const int result = execmem_port_unmap(address, bytes);

	os_note("unmap", address, bytes, -1, result);
	if (result)
		check_broken("the system refuses to unmap", result);
}

void os_sync_code(void *address, size_t bytes)
{
	execmem_port_sync_code(address, bytes);
	os_note("sync_code", address, bytes, -1, 0);
}

void os_wait(volatile int32_t *word, int32_t value)
{
	execmem_port_syscall(EXECMEM_SYS_FUTEX, (long)word, FUTEX_WAIT, value, 0, 0, 0);
}

void os_wake(volatile int32_t *word)
{
	execmem_port_syscall(EXECMEM_SYS_FUTEX, (long)word, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

void os_default_signal(int signal)
{
	/* SIG_DFL, no flags, an empty mask: all zero in every port's struct sigaction, of at most 32 bytes. */
	static const uint64_t defaults[4];

	execmem_port_syscall(EXECMEM_SYS_RT_SIGACTION, signal, (long)defaults, 0, SIGNAL_MASK_BYTES, 0, 0);
}

/* ---- Processes ---- */

static uint32_t process; /* 0: not asked for */

long os_fork(void)
{
	const long child = execmem_port_fork();

	if (child < 0)
		check_broken("the system refuses a process", child);
	if (!child)
		process = 0;
	return child;
}

uint64_t os_process(void)
{
	uint32_t known = __atomic_load_n(&process, __ATOMIC_RELAXED);

	if (!known) {
		known = (uint32_t)execmem_port_syscall(EXECMEM_SYS_GETPID, 0, 0, 0, 0, 0, 0);
		__atomic_store_n(&process, known, __ATOMIC_RELAXED);
	}
	return known;
}

int os_ended(long child)
{
	int status = 0;
	const int error = execmem_port_wait(child, &status);

	if (error)
		check_broken("the system does not say how a process ended", error);
	return status;
}

int os_apart(int (*run)(void))
{
	const long child = os_fork();

	if (!child)
		execmem_port_exit(run());
	return os_ended(child);
}

/* ---- What a failure block shows ---- */

static void describe_call(struct text *text, const struct call *call)
{
	text_add(text, call->name);
	text_add(text, "(");
	text_add_hex(text, (uintptr_t)call->address);
	text_add(text, ",");
	text_add_hex(text, call->bytes);
	if (call->protection >= 0) {
		text_add(text, ",");
		text_add(text, call->protection & OS_READ ? "r" : "-");
		text_add(text, call->protection & OS_WRITE ? "w" : "-");
		text_add(text, call->protection & OS_EXECUTE ? "x" : "-");
		text_add(text, call->protection & EXECMEM_PORT_PROT_PADS ? "p" : "");
	}
	text_add(text, ")=");
	text_add_signed_hex(text, call->result);
}

void os_describe(struct text *text)
{
	for (unsigned i = call_count < KEPT ? 0 : call_count - KEPT; i < call_count; i++) {
		if (text->used)
			text_add(text, "; ");
		describe_call(text, &calls[i % KEPT]);
	}
}
