/*
 * arm64: continuing after a signal, and guarded landings.
 */
#include <port.h>

#define PROT_READ 1
#define PROT_EXEC 4

/* The interrupted instruction may have been an indirect branch's target: that is over. */
void execmem_port_context_jump(void *context, uintptr_t target)
{
	*(uint64_t *)((uintptr_t)context + EXECMEM_CONTEXT_PC) = target;
	*(uint64_t *)((uintptr_t)context + EXECMEM_CONTEXT_PSTATE) &= ~UINT64_C(EXECMEM_PSTATE_BTYPE);
}

extern char execmem_port_landings[]; /* capture.S */

int execmem_port_guard_landings(void)
{
	return execmem_port_protect(execmem_port_landings, EXECMEM_LANDINGS_BYTES,
				    PROT_READ | PROT_EXEC | EXECMEM_PORT_PROT_PADS);
}
