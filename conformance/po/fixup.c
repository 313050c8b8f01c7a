/*
 * A fixup precode, called before and after its Target is patched.
 */
#include "check.h"
#include "page.h"

#define DIRECT 2 /* the landing that the patched Target names */

/* The field that first holds the tail's entry, and the path that jumps through it; -1 where there is none. */
static int tail_field(const struct subject_template *t)
{
	int found = -1;

	for (unsigned i = 0; i < t->field_count; i++)
		found = t->fields[i].role == SUBJECT_TAIL ? (int)i : found;
	return found;
}

static const struct subject_path *path_through(const struct subject_template *t, unsigned field)
{
	for (unsigned i = 0; i < t->path_count; i++)
		if (t->paths[i].lands == field)
			return &t->paths[i];
	return NULL;
}

static bool judge_slot(struct page *page, uint32_t slot, unsigned field)
{
	static struct execmem_port_capture capture;
	const struct page_place call = {page, path_through(page->t, field), slot};
	const struct page_place tail = {page, &page->t->paths[page->t->fields[field].tail], slot};
	bool good;

	page_aim(&tail);
	page_set(page, slot, field, page_entry(page, slot, tail.path));
	good = page_call(&call, &capture, PAGE_RIGHT, "the first call arrives at PrecodeFixupThunk through the tail");
	page_set(page, slot, field, execmem_port_landing[DIRECT]);
	good = good && page_call(&call, &capture, DIRECT, "after Target is patched a call arrives there directly");
	page_clear(page, slot);
	return good;
}

static bool judge(struct page *page)
{
	const int field = tail_field(page->t);

	if (!CHECK_TRUE(field >= 0 && page->t->fields[field].tail >= 0 && path_through(page->t, (unsigned)field),
			"a fixup precode declares a tail and a path through it"))
		return false;
	for (uint32_t slot = 0; slot < page->t->slots; slot++)
		if (!judge_slot(page, slot, (unsigned)field))
			return false;
	return true;
}

CHECK_TEMPLATES(po_fixup_patched, "PO-012", "fixup_precode",
		"the first call arrives at PrecodeFixupThunk through the tail, the call after patching Target directly")
{
	page_used(t, judge, 0);
}
