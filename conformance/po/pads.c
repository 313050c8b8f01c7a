/*
 * Landing pads under enforcement: the code page and the landings are guarded, so an entry without a pad faults, and so
 * does a jump out that the target's pad does not accept.
 *
 * Enforcement is probed first: a jump to an instruction that is no pad, the path's first access, must go otherwise on a
 * guarded page than on an unguarded one.
 */
#include <port.h>

#include "call.h"
#include "check.h"
#include "page.h"

static struct execmem_port_capture capture;

/* What came of the probe; compared between a guarded and an unguarded page. */
struct probe {
	int signal;
	uint32_t landed;
};

static struct probe probed;

static bool probe_page(struct page *page)
{
	for (unsigned i = 0; i < page->t->path_count; i++) {
		const struct page_place place = {page, &page->t->paths[i], 0};

		if (!place.path->access_count || !place.path->accesses[0].length)
			continue;
		page_aim(&place);
		capture.entry = page_slot(page, 0) + place.path->accesses[0].at + page->t->mode_bit;
		probed.signal = call_captured(&capture, NULL, NULL).signal;
		probed.landed = capture.landed;
		page_clear(page, 0);
		return true;
	}
	return false;
}

/* Whether this system enforces pads, now; where it does not, or it cannot be told, the point is EMU. */
static bool enforced(const struct subject_template *t)
{
	struct probe unguarded;

	if (!page_with(t, PAGE_SUITE, probe_page, 0))
		return false;
	unguarded = probed;
	if (!page_with(t, PAGE_SUITE, probe_page, EXECMEM_PORT_PROT_PADS))
		return false;
	return probed.signal && (probed.signal != unguarded.signal || probed.landed != unguarded.landed);
}

/* A signal in the slot is an entry refused; one elsewhere is the jump out, refused by the landing. */
static bool accepts(const struct page_place *place)
{
	return page_call(place, &capture, PAGE_RIGHT,
			 "pads accept the indirect call of an entry, and its jump out at the target");
}

/* A field that first holds a tail is jumped through as well: the tail is an entry to the slot's own jump. */
static bool accepts_tail(const struct page_place *place)
{
	const struct subject_template *t = place->page->t;
	const uint8_t lands = place->path->lands;
	const struct page_place tail = {place->page, &t->paths[t->fields[lands].tail], place->slot};

	page_aim(&tail);
	page_set(place->page, place->slot, lands, page_entry(place->page, place->slot, tail.path));
	return accepts(place);
}

static bool judge_place(const struct page_place *place)
{
	bool good;

	page_aim(place);
	good = accepts(place);
	if (good && place->page->t->fields[place->path->lands].role == SUBJECT_TAIL)
		good = accepts_tail(place);
	page_clear(place->page, place->slot);
	return good;
}

static bool judge(struct page *page)
{
	return page_each_place(page, judge_place);
}

CHECK_TEMPLATES(
	po_pads_enforced, "PO-041", "*",
	"under enforcement every entry accepts an indirect call and its jump out is accepted by a guarded target")
{
	if (!t->landing_pads) {
		check_not_claimed("the variant claims no landing pads");
	} else if (!EXECMEM_PORT_PROT_PADS) {
		check_emulator("the port has no enforcement that a process can ask for");
	} else if (!enforced(t)) {
		check_emulator("a jump to a place without a pad on a guarded page is not refused here");
	} else if (execmem_port_guard_landings()) {
		check_emulator("the landings cannot be guarded here");
	} else {
		page_used(t, judge, EXECMEM_PORT_PROT_PADS);
	}
}
