#include "call.h"

#include "check.h"
#include "os.h"

static struct {
	volatile bool under_way;
	call_hook *hook;
	void *argument;
	struct call_signal ended;
} call;

/* splitmix64's finaliser (Steele, Lea and Flood 2014), over a Weyl sequence. */
uint64_t call_mix(uint64_t a, uint64_t b)
{
	uint64_t z = a * UINT64_C(0x9e3779b97f4a7c15) + b + UINT64_C(0x2545f4914f6cdd1d);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void handle(int signal, void *address, void *context)
{
	const struct call_signal now = {signal, execmem_port_context_pc(context), (uintptr_t)address};

	if (!call.under_way) {
		check_crash(signal, now.pc, now.address);
		return;
	}
	if (call.hook && call.hook(&now, context, call.argument))
		return;
	call.ended = now;
	execmem_port_capture_abandon(context);
}

void call_install(void)
{
	static const int signals[] = {OS_SIGSEGV, OS_SIGBUS, OS_SIGILL, OS_SIGTRAP, OS_SIGFPE};

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		const int error = execmem_port_handle(signals[i], handle);

		if (error)
			check_broken("the system refuses a signal handler", error);
	}
}

void call_seed(struct execmem_port_capture *capture, uint64_t number)
{
	struct execmem_port_registers *seed = &capture->seed;
	uint64_t next = call_mix(check_seed, number);

	for (unsigned i = 0; i < EXECMEM_PORT_GENERAL; i++)
		seed->general[i] = (uintptr_t)(next = call_mix(next, i));
	for (unsigned i = 0; i < EXECMEM_PORT_VECTORS; i++)
		for (unsigned k = 0; k < EXECMEM_PORT_VECTOR_BYTES / 8; k++)
			seed->vector[i][k] = next = call_mix(next, k);
	for (unsigned i = 0; i < EXECMEM_PORT_STACK_WORDS; i++)
		seed->stack[i] = (uintptr_t)(next = call_mix(next, i));
}

struct call_signal call_captured(struct execmem_port_capture *capture, call_hook *hook, void *argument)
{
	capture->landed = EXECMEM_PORT_LANDED_NOWHERE;
	capture->abandoned = 0;
	call.ended = (struct call_signal){0, 0, 0};
	call.hook = hook;
	call.argument = argument;
	call.under_way = true;
	execmem_port_call_captured(capture);
	call.under_way = false;
	return call.ended;
}
