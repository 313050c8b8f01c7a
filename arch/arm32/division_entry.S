/*
 * arm32: 64-bit division as the Run-time ABI for the Arm Architecture has it: dividend in r0 and r1, divisor in r2 and
 * r3; quotient to r0 and r1, remainder to r2 and r3.
 */
#include "asm.h"

	.syntax	unified
	.arm

#define EXECMEM_REMAINDER     8 /* from the stack pointer; the pointer to it is the fifth argument, at 0 */
#define EXECMEM_DIVISION_STACK 16

	.macro	division entry, divide
	EXECMEM_FUNCTION_BEGIN \entry
	push	{r11, lr}
	sub	sp, sp, #EXECMEM_DIVISION_STACK
	add	r12, sp, #EXECMEM_REMAINDER
	str	r12, [sp]
	bl	\divide
	ldrd	r2, r3, [sp, #EXECMEM_REMAINDER]
	add	sp, sp, #EXECMEM_DIVISION_STACK
	pop	{r11, pc}
	EXECMEM_FUNCTION_END \entry
	.endm

	division __aeabi_uldivmod, execmem_port_uldivmod
	division __aeabi_ldivmod, execmem_port_ldivmod
