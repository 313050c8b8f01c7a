/*
 * Address space for a region: anywhere, or within reach of a target. Takes no lock.
 */
#include "allocator.h"

#define UNIT ((uintptr_t)EXECMEM_UNIT_BYTES)

static int map_none(struct execmem_allocator *allocator, uintptr_t hint, size_t bytes, uintptr_t *start)
{
	const struct execmem_os *os = &allocator->os;
	void *address;
	int error = os->map(os->context, (void *)hint, bytes, EXECMEM_NONE, EXECMEM_NO_FILE, 0, &address);

	if (error)
		return execmem_refuse(allocator, "map", error, bytes);
	*start = (uintptr_t)address;
	return 0;
}

static int unmap(struct execmem_allocator *allocator, uintptr_t start, size_t bytes)
{
	const struct execmem_os *os = &allocator->os;

	if (bytes == 0)
		return 0;
	return execmem_refuse(allocator, "unmap", os->unmap(os->context, (void *)start, bytes), 0);
}

int execmem_reserve_anywhere(struct execmem_allocator *allocator, size_t bytes, uintptr_t *start)
{
	size_t slack = UNIT - allocator->page_bytes;
	uintptr_t got, aligned;
	int error;

	if (bytes > SIZE_MAX - slack)
		return EXECMEM_ERROR_ARGUMENT;
	error = map_none(allocator, 0, bytes + slack, &got);
	if (error)
		return error;
	aligned = (got + UNIT - 1) & ~(UNIT - 1);
	error = unmap(allocator, got, aligned - got);
	if (error) {
		(void)unmap(allocator, got, bytes + slack);
		return error;
	}
	error = unmap(allocator, aligned + bytes, got + slack - aligned);
	if (error) {
		(void)unmap(allocator, aligned, bytes + (got + slack - aligned));
		return error;
	}
	*start = aligned;
	return 0;
}

/* Behind the region that an address lies in (`upwards`), or where a range ends below it; or the address itself. */
static uintptr_t skip_own(const struct execmem_allocator *allocator, uintptr_t at, size_t bytes, bool upwards)
{
	uintptr_t probe = upwards ? at : at + bytes - 1;
	struct execmem_found found;
	uintptr_t start, end;

	/* The region may be gone by now: then a place that has just become free is passed over. */
	if (execmem_rangemap_lookup(&allocator->map, probe, &found))
		return at;
	start = found.start.at;
	end = start + found.bytes;
	if (upwards)
		return end;
	return start >= bytes ? start - bytes : 0;
}

/* Whether [start, start + bytes) lies in [low, high]. */
static bool inside(uintptr_t start, size_t bytes, uintptr_t low, uintptr_t high)
{
	return start >= low && start <= high && bytes - 1 <= high - start;
}

/*
 * Asks for one place. 1: *start is a range inside the window, there or elsewhere; 0: the place is taken. The system
 * treats the place as a wish (MAP_FIXED_NOREPLACE is ignored by some emulators), so the answer is looked at.
 *
 * qemu-user refuses a wish with ENOMEM now and then where its page is larger than the host's. Where the same memory can
 * be had elsewhere the place counts as taken, and *refused keeps the error for the case that no other is found.
 */
static int try_place(struct execmem_allocator *allocator, uintptr_t place, size_t bytes, uintptr_t low, uintptr_t high,
		     uintptr_t *start, int *refused)
{
	uintptr_t got;
	int error = map_none(allocator, place, bytes, &got);

	if (error) {
		if (map_none(allocator, 0, bytes, &got))
			return error;
		*refused = error;
	} else if (got % UNIT == 0 && inside(got, bytes, low, high)) {
		*start = got;
		return 1;
	}
	error = unmap(allocator, got, bytes);
	if (error)
		(void)unmap(allocator, got, bytes);
	return error;
}

int execmem_reserve_near(struct execmem_allocator *allocator, size_t bytes, const struct execmem_near *near,
			 uintptr_t *start, uint64_t *probes)
{
	uintptr_t target = near->target;
	uintptr_t low = target > near->reach ? target - near->reach : 0;
	uintptr_t high = near->reach > UINTPTR_MAX - target ? UINTPTR_MAX : target + near->reach;
	uintptr_t up, down, first, last;
	bool more_up, more_down;
	int result, refused = EXECMEM_ERROR_UNREACHABLE;

	/* Places are the multiples of the unit from first to last; 0 is no place, but "anywhere" to the system. */
	if (low < UNIT)
		low = UNIT;
	if (low > high || high - low < bytes - 1 || low > UINTPTR_MAX - (UNIT - 1))
		return EXECMEM_ERROR_UNREACHABLE;
	first = (low + UNIT - 1) & ~(UNIT - 1);
	if (!inside(first, bytes, low, high))
		return EXECMEM_ERROR_UNREACHABLE;
	last = (high - (bytes - 1)) & ~(UNIT - 1);

	up = target & ~(UNIT - 1);
	up = up < first ? first : up > last ? last : up;
	down = up;
	more_up = true;
	more_down = down > first;
	if (more_down)
		down -= UNIT;
	while (more_up || more_down) {
		if (more_up) {
			uintptr_t next = skip_own(allocator, up, bytes, true);

			if (next == up) {
				++*probes;
				result = try_place(allocator, up, bytes, low, high, start, &refused);
				if (result)
					return result < 0 ? result : 0;
				next = up + UNIT;
			}
			more_up = next > up && next <= last;
			up = next;
		}
		if (more_down) {
			uintptr_t next = skip_own(allocator, down, bytes, false);

			if (next == down) {
				++*probes;
				result = try_place(allocator, down, bytes, low, high, start, &refused);
				if (result)
					return result < 0 ? result : 0;
				next = down - UNIT;
			}
			more_down = next < down && next >= first;
			down = next;
		}
	}
	return refused;
}
