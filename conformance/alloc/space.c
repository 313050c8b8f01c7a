#include "space.h"

#include "check.h"
#include "subject_allocator.h"

struct space space;

void space_clear(void)
{
	space.count = 0;
	space.file_count = 0;
	space.mappings = 0;
}

/* The first extent that ends behind an address. */
static unsigned first_behind(uintptr_t address)
{
	unsigned low = 0, high = space.count;

	while (low < high) {
		const unsigned middle = low + (high - low) / 2;

		if (space.extents[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void insert(unsigned at, struct space_extent extent)
{
	if (space.count == SPACE_EXTENTS_MOST)
		check_broken("the model of the address space is full", SPACE_EXTENTS_MOST);
	__builtin_memmove(&space.extents[at + 1], &space.extents[at], (space.count - at) * sizeof(extent));
	space.extents[at] = extent;
	space.count++;
}

/* Makes an extent begin at the address, where one lies across it. Returns the first that does not begin before it. */
static unsigned split(uintptr_t address)
{
	const unsigned at = first_behind(address);
	struct space_extent upper;

	if (at == space.count || space.extents[at].start >= address)
		return at;
	upper = space.extents[at];
	upper.offset += address - upper.start;
	upper.start = address;
	space.extents[at].end = address;
	insert(at + 1, upper);
	return at + 1;
}

static void forget_files(void)
{
	while (space.file_count && space.files[space.file_count - 1].descriptor < 0) {
		for (unsigned i = 0; i < space.count; i++)
			if (space.extents[i].file == (int)space.file_count - 1)
				return;
		space.file_count--;
	}
}

void space_unmap(uintptr_t start, size_t bytes)
{
	const unsigned first = split(start), last = split(start + bytes);

	__builtin_memmove(&space.extents[first], &space.extents[last], (space.count - last) * sizeof(space.extents[0]));
	space.count -= last - first;
}

static bool goes_on(const struct space_extent *a, const struct space_extent *b)
{
	return a->end == b->start && a->protection == b->protection && a->file == b->file &&
	       (a->file == SPACE_NO_FILE || a->offset + (a->end - a->start) == b->offset);
}

/* Makes one of an extent and the next, where they are of one mapping and of one kind. */
static void merge(unsigned at)
{
	struct space_extent *first = &space.extents[at], *next = first + 1;

	if (at + 1 >= space.count || first->mapping != next->mapping || first->ever != next->ever ||
	    !goes_on(first, next))
		return;
	first->end = next->end;
	__builtin_memmove(next, next + 1, (space.count - at - 2) * sizeof(*next));
	space.count--;
}

void space_map(uintptr_t start, size_t bytes, unsigned protection, int file, uint64_t offset)
{
	const struct space_extent *around = space_at(start);
	const uint32_t mapping = around ? around->mapping : ++space.mappings;
	unsigned at;

	space_unmap(start, bytes);
	at = first_behind(start);
	insert(at, (struct space_extent){start, start + bytes, file == SPACE_NO_FILE ? 0 : offset, mapping,
					 (int16_t)file, (uint8_t)protection, (uint8_t)protection});
	merge(at);
	if (at)
		merge(at - 1);
}

void space_protect(uintptr_t start, size_t bytes, unsigned protection)
{
	const unsigned first = split(start), last = split(start + bytes);

	for (unsigned i = first; i < last; i++) {
		space.extents[i].protection = (uint8_t)protection;
		space.extents[i].ever |= (uint8_t)protection;
	}
}

const struct space_extent *space_at(uintptr_t address)
{
	const unsigned at = first_behind(address);

	return at < space.count && space.extents[at].start <= address ? &space.extents[at] : NULL;
}

bool space_holds(uintptr_t start, size_t bytes)
{
	uintptr_t at = start;

	for (unsigned i = first_behind(start); i < space.count && at - start < bytes; i++) {
		if (space.extents[i].start > at)
			return false;
		at = space.extents[i].end;
	}
	return at - start >= bytes;
}

bool space_free(uintptr_t start, size_t bytes)
{
	const unsigned at = first_behind(start);

	return at == space.count || space.extents[at].start - start >= bytes;
}

/* ---- Files ---- */

static bool is_mapped(int file)
{
	for (unsigned i = 0; i < space.count; i++)
		if (space.extents[i].file == file)
			return true;
	return false;
}

/* One that is closed and of which nothing is mapped; else there is no room. */
static int space_file_forgotten(void)
{
	for (int i = 0; i < SPACE_FILES_MOST; i++)
		if (space.files[i].descriptor < 0 && !is_mapped(i))
			return i;
	check_broken("the model has no room for another file", SPACE_FILES_MOST);
}

int space_file_open(int descriptor)
{
	int index;

	forget_files();
	index = space.file_count < SPACE_FILES_MOST ? (int)space.file_count++ : space_file_forgotten();
	space.files[index] = (struct space_file){descriptor, 0, 0};
	return index;
}

int space_file_of(int descriptor)
{
	for (unsigned i = 0; i < space.file_count; i++)
		if (descriptor >= 0 && space.files[i].descriptor == descriptor)
			return (int)i;
	return SPACE_NO_FILE;
}

void space_file_close(int index)
{
	space.files[index].descriptor = -1;
	forget_files();
}

/* ---- Figures ---- */

static bool is_view(const struct space_extent *extent)
{
	return extent->file != SPACE_NO_FILE && extent->protection & SUBJECT_WRITE;
}

unsigned space_views(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < space.count; i++) {
		bool seen = !is_view(&space.extents[i]);

		for (unsigned k = i; k-- && !seen;)
			seen = is_view(&space.extents[k]) && space.extents[k].mapping == space.extents[i].mapping;
		count += !seen;
	}
	return count;
}

unsigned space_open_files(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < space.file_count; i++)
		count += space.files[i].descriptor >= 0;
	return count;
}

uint64_t space_bytes(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < space.count; i++)
		bytes += space.extents[i].end - space.extents[i].start;
	return bytes;
}

uint64_t space_executable(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < space.count; i++)
		if (space.extents[i].protection & SUBJECT_EXECUTE)
			bytes += space.extents[i].end - space.extents[i].start;
	return bytes;
}

/* FNV-1a, over words. */
static uint64_t mixed(uint64_t digest, uint64_t word)
{
	return (digest ^ word) * UINT64_C(0x100000001b3);
}

struct space_state space_state(void)
{
	struct space_state state = {UINT64_C(0xcbf29ce484222325), space_open_files(), space_views()};

	for (unsigned i = 0; i < space.count; i++) {
		const struct space_extent *first = &space.extents[i];

		if (first->protection & SUBJECT_WRITE)
			continue;
		/* However it was pieced together. */
		while (i + 1 < space.count && goes_on(&space.extents[i], &space.extents[i + 1]))
			i++;
		state.digest = mixed(state.digest, first->start);
		state.digest = mixed(state.digest, space.extents[i].end);
		state.digest = mixed(state.digest, first->protection);
		state.digest = mixed(state.digest, (uint64_t)first->file);
		state.digest = mixed(state.digest, first->offset);
	}
	return state;
}
