/*
 * Where a path arrives and what it brings. While one slot is called, every other record names a wrong landing.
 *
 * Order of the calls, for an observer outside: the suite's page, then the subject's; within, path by path; within,
 * every slot once, ascending. Without an observer the middle of the suite's page is left out where there are two.
 */
#include "call.h"
#include "check.h"
#include "page.h"

static struct execmem_port_capture capture;

static bool lands(const struct page_place *place)
{
	bool good;

	if (page_doubled(place) && !check_code_at)
		return true;
	page_aim(place);
	good = page_call(place, &capture, PAGE_RIGHT, "a path arrives at the target that its own record names");
	page_clear(place->page, place->slot);
	return good;
}

/* A field may be narrower than the register; what a load puts above it is the template's business. */
static uintptr_t field_mask(const struct subject_field *field)
{
	return field->width < sizeof(uintptr_t) ? ((uintptr_t)1 << field->width * 8) - 1 : UINTPTR_MAX;
}

/* On arrival, in a register or in a word that the path pushed. */
static uintptr_t carried(const struct subject_carry *carry)
{
	const struct execmem_port_registers *at = &capture.at_landing;

	return carry->reg < EXECMEM_PORT_GENERAL ? at->general[carry->reg]
						 : at->stack[carry->reg - EXECMEM_PORT_GENERAL];
}

static bool carries(const struct page_place *place)
{
	const struct subject_path *path = place->path;

	call_seed(&capture, place->slot);
	if (!lands(place))
		return false;
	for (unsigned i = 0; i < path->carry_count; i++) {
		const struct subject_carry *carry = &path->carries[i];
		const uintptr_t mask = field_mask(&place->page->t->fields[carry->field]);

		if (!CHECK_EQUAL(page_aim_value(place, carry->field) & mask, carried(carry) & mask,
				 "a register carries the declared field of the slot's own record")) {
			if (carry->reg < EXECMEM_PORT_GENERAL)
				check_note("register", subject_general_name[carry->reg]);
			else
				check_note_number("stack_word", carry->reg - EXECMEM_PORT_GENERAL);
			check_note("field", place->page->t->fields[carry->field].name);
			return page_explain(place, 0);
		}
	}
	return true;
}

static bool judge_lands(struct page *page)
{
	return page_each_place(page, lands);
}

static bool judge_carries(struct page *page)
{
	return page_each_place(page, carries);
}

CHECK_TEMPLATES(po_path_lands, "PO-010", "*",
		"each path, called on any slot, arrives at the target that its own record names")
{
	page_each(t, judge_lands, 0);
}

CHECK_TEMPLATES(po_path_carries, "PO-011", "*",
		"on arrival the declared registers hold the declared fields of the slot's own record")
{
	page_used(t, judge_carries, 0);
}
