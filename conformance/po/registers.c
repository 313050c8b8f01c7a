/*
 * What a path leaves alone. Every register is seeded at random before the call and compared at the landing; three
 * requirements share the registers out by their part in the calling convention, so that each mistake shows in one.
 *
 * What the call itself changes (a pushed return address, the stack pointer with it) is learnt from a call of the
 * landing without a stub between. What a path pushes by declaration is the target's to take off: no landing does, so
 * that such a path is judged on arrival alone.
 */
#include "call.h"
#include "check.h"
#include "page.h"

static struct execmem_port_capture capture, direct;

/* A captured call of the place, seeded by its slot and path, and of the landing alone with the same seed. */
static bool arrive(const struct page_place *place)
{
	bool good;

	call_seed(&capture, (uint64_t)(place->path - place->page->t->paths) << 32 | place->slot);
	page_aim(place);
	good = page_call(place, &capture, PAGE_RIGHT, "a seeded call arrives at its target");
	page_clear(place->page, place->slot);
	return good;
}

static bool arrive_directly(void)
{
	direct.seed = capture.seed;
	direct.entry = execmem_port_landing[PAGE_RIGHT];
	call_captured(&direct, NULL, NULL);
	return CHECK_EQUAL(PAGE_RIGHT, direct.landed, "the landing can be called without a stub");
}

static bool carried(const struct subject_path *path, unsigned reg)
{
	for (unsigned i = 0; i < path->carry_count; i++)
		if (path->carries[i].reg == reg)
			return true;
	return false;
}

static bool clobbered(const struct subject_path *path, unsigned reg)
{
	for (unsigned i = 0; i < path->clobber_count; i++)
		if (path->clobbers[i] == reg)
			return true;
	return false;
}

static bool same_general(const struct page_place *place, const struct execmem_port_registers *after, unsigned reg,
			 const char *what)
{
	if (CHECK_EQUAL(capture.seed.general[reg], after->general[reg], what))
		return true;
	check_note("register", subject_general_name[reg]);
	return page_explain(place, 0);
}

static bool same_vector(const struct page_place *place, const struct execmem_port_registers *after, unsigned reg,
			const char *what)
{
	for (unsigned i = 0; i < EXECMEM_PORT_VECTOR_BYTES / 8; i++)
		if (!CHECK_EQUAL(capture.seed.vector[reg][i], after->vector[reg][i], what)) {
			check_note("register", subject_vector_name[reg]);
			return page_explain(place, 0);
		}
	return true;
}

/* Registers whose class has, of the bits of `mask`, exactly those of `wanted`. */
static bool same_class(const struct page_place *place, const struct execmem_port_registers *after, unsigned mask,
		       unsigned wanted, const char *what)
{
	for (unsigned i = 0; i < EXECMEM_PORT_GENERAL; i++) {
		const bool scratch = !wanted && clobbered(place->path, i);

		if ((subject_general_class[i] & mask) == wanted && !scratch && !carried(place->path, i) &&
		    !same_general(place, after, i, what))
			return false;
	}
	for (unsigned i = 0; i < EXECMEM_PORT_VECTORS; i++)
		if ((subject_vector_class[i] & mask) == wanted && !same_vector(place, after, i, what))
			return false;
	return true;
}

static bool same_stack(const struct page_place *place)
{
	const unsigned pushed = place->path->pushed / sizeof(uintptr_t);

	for (unsigned i = 0; i + pushed < EXECMEM_PORT_STACK_WORDS; i++)
		if (!CHECK_EQUAL(direct.at_landing.stack[i], capture.at_landing.stack[i + pushed],
				 "the words on the stack arrive untouched")) {
			check_note_number("stack_word", i);
			return page_explain(place, 0);
		}
	return true;
}

static bool same_stack_pointer(const struct page_place *place, uintptr_t expected, uintptr_t actual, const char *what)
{
	return CHECK_EQUAL(expected - direct.seed.stack_pointer, actual - capture.seed.stack_pointer, what) ||
	       page_explain(place, 0);
}

static bool arguments(const struct page_place *place)
{
	return arrive(place) && arrive_directly() &&
	       same_class(place, &capture.at_landing, SUBJECT_CLASS_ARGUMENT | SUBJECT_CLASS_RESERVED,
			  SUBJECT_CLASS_ARGUMENT, "an argument register arrives untouched") &&
	       same_stack(place);
}

static bool returned(const struct page_place *place)
{
	return CHECK_EQUAL(0, capture.abandoned, "the target returns to the caller") || page_explain(place, 0);
}

static bool preserved(const struct page_place *place)
{
	const unsigned mask = SUBJECT_CLASS_PRESERVED | SUBJECT_CLASS_RESERVED;

	return arrive(place) && arrive_directly() &&
	       same_class(place, &capture.at_landing, mask, SUBJECT_CLASS_PRESERVED,
			  "a callee-saved register is preserved on arrival") &&
	       same_stack_pointer(place, direct.at_landing.stack_pointer - place->path->pushed,
				  capture.at_landing.stack_pointer, "the stack pointer is preserved on arrival") &&
	       (place->path->pushed ||
		(returned(place) &&
		 same_class(place, &capture.at_return, mask, SUBJECT_CLASS_PRESERVED,
			    "a callee-saved register is preserved after return") &&
		 same_stack_pointer(place, direct.at_return.stack_pointer, capture.at_return.stack_pointer,
				    "the stack pointer is preserved after return")));
}

static bool scratch(const struct page_place *place)
{
	return arrive(place) && same_class(place, &capture.at_landing,
					   SUBJECT_CLASS_ARGUMENT | SUBJECT_CLASS_PRESERVED | SUBJECT_CLASS_RESERVED, 0,
					   "no register changes that the path does not declare");
}

static bool judge_arguments(struct page *page)
{
	return page_each_place(page, arguments);
}

static bool judge_preserved(struct page *page)
{
	return page_each_place(page, preserved);
}

static bool judge_scratch(struct page *page)
{
	return page_each_place(page, scratch);
}

CHECK_TEMPLATES(po_arguments, "PO-020", "*",
		"argument registers, integer, floating-point and vector, and words on the stack arrive untouched")
{
	page_used(t, judge_arguments, 0);
}

CHECK_TEMPLATES(po_preserved, "PO-021", "*",
		"callee-saved registers and the stack pointer are preserved, on arrival and after return")
{
	page_used(t, judge_preserved, 0);
}

CHECK_TEMPLATES(po_scratch, "PO-022", "*", "no register changes but those that the path declares")
{
	page_used(t, judge_scratch, 0);
}
