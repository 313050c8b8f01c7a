/*
 * Call counting: a 16-bit cell, counted down by the stub, that decides between two targets.
 */
#include "check.h"
#include "light.h"
#include "page.h"

#define METHOD    0
#define THRESHOLD 1

/* The manifest names the count before a call: 1 is the path to the threshold, anything else the one to the method. */
struct counting {
	const struct subject_path *method, *threshold;
};

static bool counting_of(const struct subject_template *t, struct counting *c)
{
	bool has_cell = false;

	c->method = c->threshold = NULL;
	for (unsigned i = 0; i < t->path_count; i++)
		*(t->paths[i].count == 1 ? &c->threshold : &c->method) = &t->paths[i];
	for (unsigned i = 0; i < t->field_count; i++)
		has_cell |= t->fields[i].role == SUBJECT_CELL;
	CHECK_TRUE(has_cell && c->method && c->threshold,
		   "a call-counting template declares its cell, a path to the method and one to the threshold");
	return has_cell && c->method && c->threshold;
}

/* One call on `place`, its cell holding `before`. */
static bool count_one(const struct page_place *place, uint16_t before)
{
	static struct execmem_port_capture capture;
	const uint16_t after = (uint16_t)(before - 1);
	uint16_t *cell = page_cell(place->page, place->slot);

	if (!page_call(place, &capture, after ? METHOD : THRESHOLD,
		       "a call goes to the threshold exactly when the cell becomes zero") ||
	    !CHECK_EQUAL(after, *cell, "a call takes one from the 16-bit cell") ||
	    !CHECK_TRUE(page_cell_canaries(place->page, place->slot), "the bytes around the cell are untouched")) {
		check_note_number("count_before", before);
		return page_explain(place, 0);
	}
	return true;
}

static void name_targets(const struct page_place *place, const struct counting *c, uintptr_t method,
			 uintptr_t threshold)
{
	page_set(place->page, place->slot, c->method->lands, method);
	page_set(place->page, place->slot, c->threshold->lands, threshold);
}

static bool judge_counts(struct page *page)
{
	struct counting c;
	bool good = counting_of(page->t, &c);

	page_guard_cells(page);
	for (uint32_t slot = 0; good && slot < page->t->slots; slot++) {
		const struct page_place place = {page, c.method, slot};

		name_targets(&place, &c, execmem_port_landing[METHOD], execmem_port_landing[THRESHOLD]);
		for (uint16_t count = 1; good && count <= 3; count++) {
			*page_cell(page, slot) = count;
			for (uint16_t left = count; good && left; left--)
				good = count_one(&place, left);
		}
		*page_cell(page, slot) = 0;
		good = good && count_one(&place, 0);
		page_clear(page, slot);
	}
	/* A call may also have reached another slot's cell. */
	for (uint32_t slot = 0; good && slot < page->t->slots; slot++)
		if (!CHECK_TRUE(page_cell_canaries(page, slot), "no call touches the bytes around another slot's cell"))
			good = page_explain_slot(page, slot);
	return good;
}

/* 65535 calls, plain ones, of the last slot of the page. */
static bool judge_full(struct page *page)
{
	struct counting c;
	struct page_place place = {.page = page, .slot = page->t->slots - 1};
	uint32_t calls = 0;

	if (!counting_of(page->t, &c))
		return false;
	page_guard_cells(page);
	place.path = c.method;
	name_targets(&place, &c, execmem_port_landing[METHOD], execmem_port_landing[THRESHOLD]);
	*page_cell(page, place.slot) = 2;
	if (!light_safe(&place, METHOD))
		return false;
	name_targets(&place, &c, light_landing(METHOD), light_landing(THRESHOLD));
	*page_cell(page, place.slot) = UINT16_MAX;
	light_clear();
	page_explain(&place, 0);
	while (!light_hits[THRESHOLD] && calls <= UINT16_MAX) {
		light_call(page_entry(page, place.slot, c.method));
		calls++;
	}
	return CHECK_EQUAL(UINT16_MAX, calls, "a count of 65535 reaches the threshold on the 65535th call") &&
	       CHECK_EQUAL(UINT16_MAX - 1, (uint64_t)light_hits[METHOD], "each call before goes to the method") &&
	       CHECK_EQUAL(0, *page_cell(page, place.slot), "the cell then holds zero") &&
	       CHECK_TRUE(page_cell_canaries(page, place.slot), "the bytes around the cell are untouched");
}

CHECK_TEMPLATES(
	po_counting, "PO-013", "call_counting",
	"counts of 1, 2 and 3 reach the threshold at the last call, 0 wraps, and no byte around the cell changes")
{
	page_used(t, judge_counts, 0);
}

CHECK_TEMPLATES(po_counting_full, "PO-014", "call_counting",
		"a count of 65535 reaches the threshold on the 65535th call and not before")
{
	page_used(t, judge_full, 0);
}
