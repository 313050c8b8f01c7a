/*
 * Captured calls of code that may do anything: a signal while one is under way ends the call, not the program.
 *
 * Not reentrant, and for one thread: see execmem_port_call_captured.
 */
#ifndef CALL_H
#define CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <port.h>

/* A deterministic mix of two numbers, for values that differ everywhere and can be had again from the seed. */
uint64_t call_mix(uint64_t a, uint64_t b);

/* The signal that ended a captured call. */
struct call_signal {
	int signal; /* 0: none */
	uintptr_t pc, address;
};

/* What call_signal.address is after a fault at `address`: some machines tell its page alone. */
static inline uintptr_t call_fault_address(uintptr_t address)
{
	return address & ~((uintptr_t)EXECMEM_PORT_FAULT_BYTES - 1);
}

/*
 * Called, in the signal handler, for each signal during the call. True: it has changed `context` and the call goes on.
 * False: the call is abandoned.
 */
typedef bool call_hook(const struct call_signal *signal, void *context, void *argument);

/* Installs the handlers. Once, at program start. A signal outside a captured call goes to check_crash. */
void call_install(void);

/* Seeds every general and vector register and stack word of `capture` from `number`. */
void call_seed(struct execmem_port_capture *capture, uint64_t number);

/* Calls capture->entry. A null hook abandons at the first signal. Returns the signal that ended the call. */
struct call_signal call_captured(struct execmem_port_capture *capture, call_hook *hook, void *argument);

#endif
