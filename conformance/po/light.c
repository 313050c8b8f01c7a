#include "light.h"

#include "call.h"
#include "check.h"

volatile int32_t light_hits[LIGHT_LANDINGS];

/* One thread calls, so an addition need not be atomic; others read. */
static void count(unsigned index)
{
	__atomic_store_n(&light_hits[index], light_hits[index] + 1, __ATOMIC_RELEASE);
}

static void land_first(void)
{
	count(0);
}

static void land_second(void)
{
	count(1);
}

bool light_safe(const struct page_place *place, unsigned landing)
{
	static struct execmem_port_capture capture;
	bool kept;

	if (place->path->pushed) {
		check_not_claimed("the path leaves words on the stack, which a C function does not take off");
		return false;
	}
	call_seed(&capture, place->slot);
	if (!page_call(place, &capture, landing, "a call arrives at its target"))
		return false;
	kept = !capture.abandoned && capture.at_return.stack_pointer == capture.seed.stack_pointer;
	for (unsigned i = 0; i < EXECMEM_PORT_GENERAL; i++)
		if ((subject_general_class[i] & (SUBJECT_CLASS_PRESERVED | SUBJECT_CLASS_RESERVED)) ==
		    SUBJECT_CLASS_PRESERVED)
			kept &= capture.at_return.general[i] == capture.seed.general[i];
	return CHECK_TRUE(kept, "a call preserves what its caller keeps in registers (see po_preserved)") ||
	       page_explain(place, 0);
}

void light_clear(void)
{
	for (unsigned i = 0; i < LIGHT_LANDINGS; i++)
		light_hits[i] = 0;
}

uintptr_t light_landing(unsigned index)
{
	return (uintptr_t)(index ? land_second : land_first);
}

void light_call(uintptr_t entry)
{
	((void (*)(void))entry)();
}
