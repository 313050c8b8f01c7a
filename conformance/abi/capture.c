/*
 * The checker's own proof: the capturing call stub shows what a call changes, exactly.
 *
 * Every other check of registers rests on this one. Each call is made twice, with different seeds, so that a register
 * that happens to hold what the clobber leaves does not pass for unchanged.
 */
#include <port.h>

#include <call.h>
#include <check.h>
#include <subject.h>

#include "clobber.h"

#define SEEDS 2
#define RIGHT 0

static struct execmem_port_capture capture;

static bool call(uintptr_t entry, unsigned landing, unsigned seed)
{
	struct call_signal ended;

	call_seed(&capture, seed);
	capture.entry = entry;
	ended = call_captured(&capture, NULL, NULL);
	return CHECK_EQUAL(0, (uint64_t)ended.signal, "a captured call runs without a signal") &&
	       CHECK_EQUAL(landing, capture.landed, "a captured call names the landing that was reached") &&
	       CHECK_EQUAL(0, capture.abandoned, "a call that returns is not abandoned");
}

static bool differs(const struct abi_clobber *reg, const struct execmem_port_registers *after)
{
	bool same = true;

	if (!reg->is_vector)
		return capture.seed.general[reg->index] != after->general[reg->index];
	for (unsigned i = 0; i < EXECMEM_PORT_VECTOR_BYTES / 8; i++)
		same &= capture.seed.vector[reg->index][i] == after->vector[reg->index][i];
	return !same;
}

/* Whether, of the registers that `mask` asks for, `changed` (null: none) is the one that differs from the seed. */
static bool only_changed(const struct abi_clobber *changed, const struct execmem_port_registers *after, unsigned mask,
			 const char *what)
{
	for (unsigned i = 0; i < abi_clobber_count; i++) {
		const struct abi_clobber *reg = &abi_clobbers[i];

		if ((reg->classes & SUBJECT_CLASS_RESERVED) || (mask && !(reg->classes & mask)))
			continue;
		if (!CHECK_EQUAL(reg == changed, differs(reg, after), what)) {
			check_note("register", reg->name);
			check_note("clobbered", changed ? changed->name : "none");
			return false;
		}
	}
	return true;
}

static bool stack_as_seeded(void)
{
	for (unsigned i = EXECMEM_PORT_STACK_FIRST; i < EXECMEM_PORT_STACK_WORDS; i++)
		if (!CHECK_EQUAL(capture.seed.stack[i], capture.at_landing.stack[i], "a stack word arrives as seeded"))
			return false;
	return CHECK_EQUAL(capture.seed.stack_pointer, capture.at_landing.stack_pointer,
			   "the stack pointer at the landing is the one at the call") &&
	       CHECK_EQUAL(capture.seed.stack_pointer, capture.at_return.stack_pointer,
			   "the stack pointer after return is the one at the call");
}

CHECK(abi_seed, "ABI-001", "a call of each landing shows its index and every register and stack word as seeded")
{
	for (unsigned landing = 0; landing < EXECMEM_PORT_LANDINGS; landing++)
		for (unsigned seed = 0; seed < SEEDS; seed++)
			if (!call(execmem_port_landing[landing], landing, seed) ||
			    !only_changed(NULL, &capture.at_landing, 0, "a register at the landing is as seeded") ||
			    !only_changed(NULL, &capture.at_return, SUBJECT_CLASS_PRESERVED,
					  "a preserved register after return is as seeded") ||
			    !stack_as_seeded())
				return;
}

CHECK(abi_clobber, "ABI-002", "a function that changes one register shows exactly that change")
{
	unsigned proved = 0;

	for (unsigned i = 0; i < abi_clobber_count; i++) {
		const struct abi_clobber *reg = &abi_clobbers[i];

		for (unsigned seed = 0; reg->function && seed < SEEDS; seed++) {
			if (!call((uintptr_t)reg->function, RIGHT, seed) ||
			    !only_changed(reg, &capture.at_landing, 0, "exactly the clobbered register differs") ||
			    !only_changed(
				    reg, &capture.at_return, SUBJECT_CLASS_PRESERVED,
				    "of the preserved registers exactly the clobbered one differs after return") ||
			    !stack_as_seeded()) {
				check_note("clobbered", reg->name);
				return;
			}
			proved++;
		}
		if (!CHECK_TRUE(!reg->function == !!(reg->classes & SUBJECT_CLASS_RESERVED),
				"every register but the reserved ones is proved"))
			return;
	}
	CHECK_TRUE(proved > 0, "there are registers to prove");
}

static void return_at_once(void) {}

CHECK(abi_return, "ABI-003", "a callee that returns without a landing is shown as having landed nowhere")
{
	call((uintptr_t)return_at_once, EXECMEM_PORT_LANDED_NOWHERE, 0);
}

/* No page is ever mapped at the first byte; the low bits keep any mode bit and alignment. */
#define NOWHERE 64

CHECK(abi_abandon, "ABI-004",
      "a call that faults is abandoned and control is back with the stack and the program whole")
{
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		struct call_signal ended;

		call_seed(&capture, seed);
		capture.entry = NOWHERE;
		ended = call_captured(&capture, NULL, NULL);
		if (!CHECK_TRUE(ended.signal != 0, "a call of an unmapped address ends by a signal") ||
		    !CHECK_EQUAL(call_fault_address(NOWHERE), ended.address, "the signal names the address") ||
		    !CHECK_EQUAL(1, capture.abandoned, "the call is abandoned") ||
		    !CHECK_EQUAL(EXECMEM_PORT_LANDED_NOWHERE, capture.landed, "it landed nowhere") ||
		    !call(execmem_port_landing[RIGHT], RIGHT, seed) || !stack_as_seeded())
			return;
	}
}

/* Scalars, so that the compiler keeps as many as it can in registers; what it spills is compared for nothing. */
static volatile uintptr_t kept[12];

static bool keeps(uintptr_t entry)
{
	const uintptr_t a = kept[0], b = kept[1], c = kept[2], d = kept[3], e = kept[4], f = kept[5];
	const uintptr_t g = kept[6], h = kept[7], i = kept[8], j = kept[9], k = kept[10], l = kept[11];

	capture.entry = entry;
	call_captured(&capture, NULL, NULL);
	return a == kept[0] && b == kept[1] && c == kept[2] && d == kept[3] && e == kept[4] && f == kept[5] &&
	       g == kept[6] && h == kept[7] && i == kept[8] && j == kept[9] && k == kept[10] && l == kept[11];
}

CHECK(abi_caller, "ABI-005", "a captured call, landed or abandoned, leaves alone what its caller keeps in registers")
{
	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		kept[i] = (uintptr_t)call_mix(check_seed, i);
	call_seed(&capture, SEEDS);
	CHECK_TRUE(keeps(execmem_port_landing[RIGHT]), "after a landing the caller's registers are its own");
	CHECK_TRUE(keeps(NOWHERE), "after an abandoned call the caller's registers are its own");
}
