#include "watch.h"

#include "check.h"
#include "maps.h"
#include "os.h"
#include "table.h"
#include "watch_call.h"

struct watch watch;

#define NAME(kind_, entry_, refusable_) #entry_,
const char *const watch_name[WATCH_KIND_COUNT] = {WATCH_KINDS(NAME)};
#define REFUSABLE(kind_, entry_, refusable_) refusable_,
static const bool refusable[WATCH_KIND_COUNT] = {WATCH_KINDS(REFUSABLE)};

static struct watch_call kept[WATCH_CALLS_KEPT];

/* ---- Turns ---- */

/* 0: nobody's; 1: taken; 2: taken, and waited for. */
static uint32_t turn;

static void take_turn(void)
{
	uint32_t nobody = 0;

	if (__atomic_compare_exchange_n(&turn, &nobody, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&turn, 2, __ATOMIC_ACQUIRE))
		table_real.wait(NULL, &turn, 2);
}

static void end_turn(void)
{
	if (__atomic_exchange_n(&turn, 0, __ATOMIC_RELEASE) == 2)
		table_real.wake(NULL, &turn, 1);
}

/* ---- Calls ---- */

void watch_break(enum watch_rule rule, const char *what, const struct watch_call *call)
{
	if (!watch.broken[rule].count++) {
		watch.broken[rule].what = what;
		watch.broken[rule].call = *call;
	}
}

int watch_check_multiples(const struct watch_call *call)
{
	if (((call->address | call->bytes | call->offset) & (watch.page - 1)) == 0)
		return 0;
	watch_break(WATCH_MULTIPLE, "no multiple of the page size", call);
	return -TABLE_EINVAL;
}

static bool is_ranged(enum watch_kind kind)
{
	return kind <= WATCH_DISCARD || kind == WATCH_FILE_GROW || kind == WATCH_FILE_PUNCH || kind == WATCH_NAME ||
	       kind == WATCH_WIPE_ON_FORK;
}

/* Would it cut an extent in two? */
static bool splits(const struct watch_call *call)
{
	const struct space_extent *first = space_at(call->address);

	return first && first->start < call->address && first->end > call->address + call->bytes;
}

/* The limits that are simulated, as the kernel looks at them: mmap(2), munmap(2), prctl(2). */
static int meet_limits(const struct watch_call *call)
{
	const bool maps = call->kind == WATCH_MAP || call->kind == WATCH_MAP_FIXED;

	if (watch.mapping_limit && space.count >= watch.mapping_limit &&
	    (maps || ((call->kind == WATCH_UNMAP || call->kind == WATCH_PROTECT) && splits(call))))
		return -TABLE_ENOMEM;
	if (watch.address_limit && call->kind == WATCH_MAP &&
	    (space_bytes() > watch.address_limit || call->bytes > watch.address_limit - space_bytes()))
		return -TABLE_ENOMEM;
	if (watch.deny_write_execute && (maps || call->kind == WATCH_PROTECT) && call->protection & SUBJECT_EXECUTE) {
		const struct space_extent *now = space_at(call->address);

		if (call->protection & SUBJECT_WRITE ||
		    (call->kind == WATCH_PROTECT && now && !(now->protection & SUBJECT_EXECUTE)))
			return -TABLE_EACCES;
	}
	return 0;
}

int watch_call_begin(const struct watch_call *call)
{
	int error = 0;

	take_turn();
	watch.of_kind[call->kind]++;
	if (!refusable[call->kind])
		return 0;
	watch.calls++;
	if (watch.calls == watch.fail_at || (watch.fail_from && watch.calls >= watch.fail_from))
		error = -watch.fail_with;
	else if (watch.refuse)
		error = watch.refuse(call);
	if (error) {
		watch.injected++;
		watch.refused = *call;
		watch.refused.injected = true;
		watch.refused.result = error;
		return error;
	}
	if (is_ranged(call->kind))
		error = watch_check_multiples(call);
	return error ? error : meet_limits(call);
}

int watch_call_end(struct watch_call call, int result)
{
	call.result = result;
	call.injected = watch.injected && watch.refused.kind == call.kind && watch.refused.result == result;
	kept[watch.recorded++ % WATCH_CALLS_KEPT] = call;
	os_note(watch_name[call.kind], (const void *)call.address, (size_t)call.bytes,
		call.kind <= WATCH_PROTECT ? (int)call.protection : -1, result);
	end_turn();
	return result;
}

const struct watch_call *watch_call_at(unsigned long number)
{
	return &kept[number % WATCH_CALLS_KEPT];
}

/* ---- Rules ---- */

void watch_look_at_protection(const struct watch_call *call)
{
	if ((call->protection & (SUBJECT_WRITE | SUBJECT_EXECUTE)) == (SUBJECT_WRITE | SUBJECT_EXECUTE))
		watch_break(WATCH_BOTH, "writable and executable at once", call);
}

void watch_look_at_owner(const struct watch_call *call)
{
	if (!space_holds(call->address, (size_t)call->bytes))
		watch_break(WATCH_FOREIGN, "a range that the allocator has not mapped", call);
}

void watch_look_at_file(const struct watch_call *call)
{
	if (call->file == SPACE_NO_FILE)
		watch_break(WATCH_FOREIGN, "a file that the allocator has not made", call);
	else if (call->bytes > space.files[call->file].bytes ||
		 call->offset > space.files[call->file].bytes - call->bytes)
		watch_break(WATCH_BEYOND, "beyond the end of the file", call);
}

void watch_look_at_protect(const struct watch_call *call)
{
	watch_look_at_protection(call);
	watch_look_at_owner(call);
	if (watch.toggling || !(call->protection & SUBJECT_EXECUTE))
		return;
	for (uintptr_t at = call->address; at - call->address < call->bytes;) {
		const struct space_extent *extent = space_at(at);

		if (!extent)
			return;
		if (!(extent->protection & SUBJECT_EXECUTE) || extent->ever & SUBJECT_WRITE) {
			watch_break(WATCH_FRESH, "made executable where it lies", call);
			return;
		}
		at = extent->end;
	}
}

/* ---- For checks ---- */

/* What an allocator that could not end left mapped and open: else every later list of mappings would hold it. */
static void sweep(void)
{
	for (unsigned i = 0; i < space.count; i++)
		table_real.unmap(NULL, (void *)space.extents[i].start, space.extents[i].end - space.extents[i].start);
	for (unsigned i = 0; i < space.file_count; i++)
		if (space.files[i].descriptor >= 0)
			table_real.file_close(NULL, space.files[i].descriptor);
}

void watch_begin(void)
{
	sweep();
	watch = (struct watch){.page = check_page};
	space_clear();
	maps_begin();
}

void watch_allow(void)
{
	watch.fail_at = watch.fail_from = 0;
	watch.refuse = NULL;
	watch.file_limit = watch.address_limit = watch.mapping_limit = 0;
	watch.deny_write_execute = false;
}

void watch_fail(unsigned long k, int error)
{
	watch.fail_at = watch.calls + k;
	watch.fail_with = error;
}

bool watch_kept(enum watch_rule rule, const char *what, const char *file, int line)
{
	const struct watch_broken *first = &watch.broken[rule];

	if (first->count) {
		check_note("broken_by", watch_name[first->call.kind]);
		check_note("because", first->what);
		check_note_number("address", first->call.address);
		check_note_number("bytes", first->call.bytes);
		check_note_number("file_offset", first->call.offset);
		check_note_number("protection", first->call.protection);
		check_note_number("page", watch.page);
	}
	return check_equal(0, first->count, what, file, line);
}
