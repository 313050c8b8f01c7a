/*
 * The fault oracle: with data page and moats inaccessible, the fault address of an access is its effective address,
 * whatever the instruction; the page of it, on a port whose signals name no more (EXECMEM_PORT_FAULT_BYTES). The
 * handler stands in for the access and lets the path go on to the next one.
 */
#include <port.h>

#include "call.h"
#include "check.h"
#include "os.h"
#include "page.h"

static struct execmem_port_capture capture;

/* One call under observation. */
struct watch {
	const struct page_place *place;
	unsigned seen; /* accesses that were as declared */
	bool failed;   /* one was not; it has been reported */
	bool blind;    /* what the last access does to the registers is not known: the rest is not judged */
};

/* Distances count from the slot: they are the same in every slot, and what the template's author wrote. */
static bool judge_address(const struct page_place *place, uintptr_t field, uintptr_t actual)
{
	const uintptr_t expected = call_fault_address(field);
	const uintptr_t slot = page_slot(place->page, place->slot);
	const bool good = CHECK_EQUAL(expected, actual, "an access addresses its field of the slot's own record");

	if (!good) {
		check_note_signed("expected", (intptr_t)(expected - slot));
		check_note_signed("actual", (intptr_t)(actual - slot));
	}
	return good;
}

static bool judge_access(struct watch *watch, const struct call_signal *signal)
{
	const struct page_place *place = watch->place;
	const struct subject_path *path = place->path;
	const struct subject_access *access = &path->accesses[watch->seen];
	const uintptr_t at = signal->pc - page_slot(place->page, place->slot);

	return CHECK_EQUAL(OS_SIGSEGV, (uint64_t)signal->signal, "an access to the data page faults by SIGSEGV") &&
	       CHECK_TRUE(at < place->page->t->pitch, "the fault is in the slot that was called") &&
	       CHECK_TRUE(watch->seen < path->access_count, "a path makes no access that is not declared") &&
	       (!access->length || CHECK_EQUAL(access->at, at, "the access is made by the declared instruction")) &&
	       judge_address(place, page_field(place->page, place->slot, access->field), signal->address);
}

/* Does what the faulting instruction would have done, with the value that page_aim would have written. */
static void stand_in(struct watch *watch, const struct call_signal *signal, void *context)
{
	const struct subject_access *access = &watch->place->path->accesses[watch->seen];
	const uintptr_t value = page_aim_value(watch->place, access->field);

	if (access->direction == SUBJECT_LOAD && access->destination == -1) {
		execmem_port_context_jump(context, value);
		return;
	}
	if (access->direction == SUBJECT_LOAD)
		execmem_port_context_set(context, (unsigned)access->destination, value);
	execmem_port_context_jump(context, signal->pc + access->length + watch->place->page->t->mode_bit);
}

static bool on_fault(const struct call_signal *signal, void *context, void *argument)
{
	struct watch *watch = argument;
	const struct subject_access *access = &watch->place->path->accesses[watch->seen];

	if (capture.landed != EXECMEM_PORT_LANDED_NOWHERE)
		return false; /* the path is over; what its stack has become is another check's matter */
	if (!judge_access(watch, signal)) {
		check_note_number("signal", (uint64_t)signal->signal);
		watch->failed = true;
		page_explain(watch->place, signal->pc);
		return false;
	}
	watch->blind = !access->length || access->destination < -1 || access->direction == SUBJECT_UPDATE;
	if (!watch->blind)
		stand_in(watch, signal, context);
	watch->seen++;
	return !watch->blind;
}

static bool faults_at_record(const struct page_place *place)
{
	struct watch watch = {.place = place};

	if (page_doubled(place))
		return true;
	*page_cell(place->page, place->slot) = place->path->count;
	capture.entry = page_entry(place->page, place->slot, place->path);
	call_captured(&capture, on_fault, &watch);
	if (watch.failed)
		return false;
	if (watch.blind)
		return true;
	if (!CHECK_EQUAL(place->path->access_count, watch.seen, "a path makes every declared access") ||
	    !CHECK_EQUAL(PAGE_RIGHT, capture.landed, "after its accesses a path arrives at its target"))
		return page_explain(place, 0);
	return true;
}

/*
 * Landings lie low in the address space, so a target that is loaded in part may still arrive. One in the moat, high in
 * the address space and without a mode bit, cannot: the fetch faults at the whole of it. What follows from the bytes of
 * the template is the same in every slot; the first and the last are tried.
 */
static bool loads_whole_target(const struct page_place *place)
{
	const uint8_t lands = place->path->lands;
	const uintptr_t nowhere = (uintptr_t)place->page->reserved + 0x340;
	struct call_signal ended;

	if (place->slot && place->slot + 1 != place->page->t->slots)
		return true;
	page_aim(place);
	page_set(place->page, place->slot, lands, nowhere + place->page->t->mode_bit);
	capture.entry = page_entry(place->page, place->slot, place->path);
	ended = call_captured(&capture, NULL, NULL);
	page_clear(place->page, place->slot);
	if (!CHECK_EQUAL(OS_SIGSEGV, (uint64_t)ended.signal, "a jump to an inaccessible target faults") ||
	    !CHECK_EQUAL(call_fault_address(nowhere), ended.address, "a target is loaded in its whole width"))
		return page_explain(place, 0);
	return true;
}

static bool judge(struct page *page)
{
	bool good;

	os_protect(page->data, subject_stub_page, 0);
	good = page_each_place(page, faults_at_record);
	os_protect(page->data, subject_stub_page, OS_READ | OS_WRITE);
	return good && page_each_place(page, loads_whole_target);
}

CHECK_TEMPLATES(po_fault_address, "PO-001", "*",
		"every access of every slot on every path faults at its own record's field while data and moat are "
		"inaccessible")
{
	page_each(t, judge, 0);
	/* Fields of one page look alike: what was judged may fail, and proves no field. */
	if (EXECMEM_PORT_FAULT_BYTES > 1)
		check_emulator("a signal of this machine names the page of a fault alone");
}
