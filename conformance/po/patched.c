/*
 * A record patched while another thread calls the stub.
 *
 * What is claimed: the one patched word, read by a stub on another thread, is the old value or the new one, and the new
 * one is seen in the end. Nothing is claimed of two words together: a secret stored with a new target may be seen with
 * the old one. One thread calls a slot without pause; the other changes the target that it lands by, a single
 * pointer-sized store a patch. The two targets differ in both halves of the address (one is in the program's image, the
 * other on the stub page), so that a target read in two parts would lead nowhere.
 */
#include <port.h>

#include "check.h"
#include "light.h"
#include "os.h"
#include "page.h"

#define PLACES   4         /* slots of a page that are called in turn */
#define PATCHES  512       /* of a slot at least, in one burst, */
#define CALLS    4096      /* and as many more as the caller needs for so many calls */
#define PATIENCE (1 << 20) /* calls in which a patch must be seen */
#define OLD      0
#define NEW      1

static struct {
	struct page_place place;
	uint32_t via; /* a slot that the calls may pass through on their way */
	volatile int32_t stop, asleep, calls;
} shared;

static void call_in_loop(void *argument)
{
	const uintptr_t entry = page_entry(shared.place.page, shared.place.slot, shared.place.path);

	(void)argument;
	while (!__atomic_load_n(&shared.stop, __ATOMIC_ACQUIRE)) {
		/* With a count that keeps to this path. */
		*page_cell(shared.place.page, shared.place.slot) = shared.place.path->count;
		*page_cell(shared.place.page, shared.via) = shared.place.path->count;
		light_call(entry);
		__atomic_store_n(&shared.calls, shared.calls + 1, __ATOMIC_RELEASE);
		if (__atomic_load_n(&shared.asleep, __ATOMIC_SEQ_CST)) {
			os_wake(&light_hits[OLD]);
			os_wake(&light_hits[NEW]);
		}
	}
}

/* Sleeps until the caller arrives at landing `index` once more; false where it makes PATIENCE calls and does not. */
static bool wait_for(unsigned index)
{
	const int32_t before = __atomic_load_n(&light_hits[index], __ATOMIC_ACQUIRE);
	const int32_t calls = __atomic_load_n(&shared.calls, __ATOMIC_ACQUIRE);
	bool patient = true;

	__atomic_store_n(&shared.asleep, 1, __ATOMIC_SEQ_CST);
	while (patient && __atomic_load_n(&light_hits[index], __ATOMIC_ACQUIRE) == before) {
		os_wait(&light_hits[index], before);
		patient = __atomic_load_n(&shared.calls, __ATOMIC_ACQUIRE) - calls < PATIENCE;
	}
	__atomic_store_n(&shared.asleep, 0, __ATOMIC_SEQ_CST);
	return patient;
}

/*
 * Where a way round by the stub page leads through: the tail's entry for a tail, else another slot, whose own record
 * names the landing. False where the target is one for all slots, or there is one slot.
 */
static bool way_round(const struct page_place *place, struct page_place *round)
{
	const struct subject_template *t = place->page->t;
	const struct subject_field *lands = &t->fields[place->path->lands];

	*round = *place;
	if (lands->role == SUBJECT_TAIL)
		round->path = &t->paths[lands->tail];
	else
		round->slot = shared.via;
	return !lands->in_page && (round->slot != place->slot || round->path != place->path);
}

static void patch(volatile uintptr_t *target, uintptr_t value)
{
	__atomic_store_n(target, value, __ATOMIC_RELEASE);
}

/*
 * A read in two parts goes wrong only where a patch falls between them, so this patches as fast as can be while calls
 * are made. Chance decides whether it is caught here; how often a path reads the word, po_fault_address judges.
 */
static void patch_burst(volatile uintptr_t *target, uintptr_t old, uintptr_t new)
{
	const int32_t before = __atomic_load_n(&shared.calls, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < PATCHES || __atomic_load_n(&shared.calls, __ATOMIC_ACQUIRE) - before < CALLS; i += 2) {
		patch(target, new);
		patch(target, old);
	}
}

/* False where a patch is never seen. */
static bool patch_all(volatile uintptr_t *target, uintptr_t old, uintptr_t new)
{
	bool seen = wait_for(OLD);

	patch_burst(target, old, new);
	patch(target, new);
	seen = seen && wait_for(NEW);
	patch(target, old);
	return seen && wait_for(OLD);
}

/* Calls in one thread, patches in this one. */
static bool race(uintptr_t target, uintptr_t old, uintptr_t new)
{
	struct execmem_port_thread thread = {.run = call_in_loop};
	int error;
	bool seen;

	light_clear();
	shared.stop = shared.asleep = shared.calls = 0;
	error = execmem_port_thread_start(&thread);
	if (error)
		check_broken("the system refuses a thread", error);
	seen = patch_all((volatile uintptr_t *)target, old, new);
	__atomic_store_n(&shared.stop, 1, __ATOMIC_RELEASE);
	execmem_port_thread_join(&thread);
	return seen;
}

static bool safe_alone(const struct page_place *place)
{
	bool good;

	page_aim(place);
	good = light_safe(place, PAGE_RIGHT);
	page_clear(place->page, place->slot);
	return good;
}

static bool judge_place(const struct page_place *place, uint32_t via)
{
	const uintptr_t target = page_field(place->page, place->slot, place->path->lands);
	const uintptr_t old = light_landing(OLD);
	uintptr_t new = light_landing(NEW);
	struct page_place round;
	bool seen;

	shared.place = *place;
	shared.via = via;
	/* Each alone, while no other record names a right landing: a stub that reads another's would call in a ring. */
	if (!CHECK_EQUAL(0, target % sizeof(uintptr_t),
			 "a target is naturally aligned, so that one store patches it") ||
	    !safe_alone(place))
		return page_explain(place, 0);
	if (way_round(place, &round)) {
		if (!safe_alone(&round))
			return false;
		page_set(round.page, round.slot, round.path->lands, new);
		new = page_entry(round.page, round.slot, round.path);
	}
	page_explain(place, 0); /* for a signal in the other thread */
	page_set(place->page, place->slot, place->path->lands, old);
	seen = race(target, old, new);
	page_clear(place->page, place->slot);
	page_clear(place->page, via);
	return CHECK_TRUE(seen, "a patched target is seen by the thread that calls") &&
	       CHECK_TRUE(light_hits[OLD] && light_hits[NEW], "calls arrive at the old and at the new target") &&
	       CHECK_EQUAL((uint64_t)shared.calls, (uint64_t)light_hits[OLD] + (uint64_t)light_hits[NEW],
			   "every call arrives at the old or the new target");
}

/* The path that is patched: the first that lands by a tail, else the first of all. */
static const struct subject_path *patched_path(const struct subject_template *t)
{
	for (unsigned i = 0; i < t->path_count; i++)
		if (t->fields[t->paths[i].lands].role == SUBJECT_TAIL)
			return &t->paths[i];
	return &t->paths[0];
}

/* What needs no luck: every target that a path lands by is aligned in every slot, and read by one load of its width. */
static bool readable_whole(const struct page_place *place)
{
	const struct subject_path *path = place->path;
	unsigned loads = 0;

	for (unsigned i = 0; i < path->access_count; i++)
		if (path->accesses[i].field == path->lands) {
			loads++;
			if (!CHECK_TRUE(path->accesses[i].length != 0,
					"the disassembly shows the load of the target, in one piece") ||
			    !CHECK_EQUAL(sizeof(uintptr_t), path->accesses[i].width, "it is as wide as a pointer"))
				return page_explain(place, 0);
		}
	if (!CHECK_EQUAL(1, loads, "a path loads its target once") ||
	    !CHECK_EQUAL(0, page_field(place->page, place->slot, path->lands) % sizeof(uintptr_t),
			 "a target is naturally aligned, so that one store patches it"))
		return page_explain(place, 0);
	return true;
}

static bool judge(struct page *page)
{
	const uint32_t slots = page->t->slots;

	if (!page_each_place(page, readable_whole))
		return false;
	for (uint32_t i = 0; i < PLACES; i++) {
		const struct page_place place = {page, patched_path(page->t), (slots - 1) * i / (PLACES - 1)};

		if (!judge_place(&place, place.slot ? place.slot - 1 : slots - 1))
			return false;
	}
	return true;
}

CHECK_TEMPLATES(po_patched_whole, "PO-023", "*",
		"a target patched while another thread calls the stub is seen whole, old or new")
{
	page_used(t, judge, 0);
}
