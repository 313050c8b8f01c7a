/*
 * arm32: continuing after a signal.
 */
#include <port.h>

/* The mode bit goes to CPSR.T; an IT block that was interrupted is over. */
void execmem_port_context_jump(void *context, uintptr_t target)
{
	uint32_t *cpsr = (uint32_t *)((uintptr_t)context + EXECMEM_CONTEXT_CPSR);

	*(uint32_t *)((uintptr_t)context + EXECMEM_CONTEXT_PC) = target & ~(uintptr_t)EXECMEM_MODE_BIT;
	*cpsr &= ~(uint32_t)(EXECMEM_CPSR_T | EXECMEM_CPSR_IT);
	if (target & EXECMEM_MODE_BIT)
		*cpsr |= EXECMEM_CPSR_T;
}
