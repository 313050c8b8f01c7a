/*
 * Committing and decommitting pages of a region.
 */
#include "allocator.h"

#define UNIT ((size_t)EXECMEM_UNIT_BYTES)

/* The pages of unit `index` that [offset, offset + bytes) touches. */
static uint16_t unit_mask(const struct execmem_region_record *record, size_t index, size_t offset, size_t bytes)
{
	unsigned shift = record->allocator->page_shift;
	size_t start = index * UNIT, from = offset > start ? offset - start : 0;
	size_t to = offset + bytes - start < UNIT ? offset + bytes - start : UNIT;
	unsigned first = (unsigned)(from >> shift), last = (unsigned)((to - 1) >> shift);

	return (uint16_t)((2u << last) - (1u << first));
}

static size_t first_unit(size_t offset)
{
	return offset / UNIT;
}

static size_t last_unit(size_t offset, size_t bytes)
{
	return (offset + bytes - 1) / UNIT;
}

static bool any_committed(const struct execmem_region_record *record, size_t offset, size_t bytes)
{
	for (size_t i = first_unit(offset); i <= last_unit(offset, bytes); i++) {
		if (record->units[i].committed & unit_mask(record, i, offset, bytes))
			return true;
	}
	return false;
}

size_t execmem_file_run(const struct execmem_region_record *record, size_t offset, size_t end, uint64_t *at)
{
	size_t index = offset / UNIT, stop = index;
	uint32_t first = record->units[index].file_unit;

	if (first == EXECMEM_UNIT_NONE)
		return 0;
	while (stop * UNIT < end && record->units[stop].file_unit == first + (stop - index))
		stop++;
	*at = (uint64_t)first * UNIT + offset % UNIT;
	return (stop * UNIT < end ? stop * UNIT : end) - offset;
}

/* Checks that are the same for commit and decommit. On success the region is locked. */
static int begin(const struct execmem_region *region, size_t offset, size_t bytes)
{
	size_t mask;
	int error;

	if (!region || !region->record)
		return EXECMEM_ERROR_ARGUMENT;
	mask = region->record->allocator->page_bytes - 1;
	if (bytes == 0 || (offset & mask) || (bytes & mask))
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_region_lock(region);
	if (error)
		return error;
	if (offset <= region->record->bytes && bytes <= region->record->bytes - offset)
		return 0;
	execmem_region_unlock(region->record);
	return EXECMEM_ERROR_OUTSIDE;
}

/* Gives back the places in the file of units of the range that hold nothing any more. */
static void give_empty(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	size_t last = last_unit(offset, bytes);

	for (size_t i = first_unit(offset); i <= last; i++) {
		uint32_t first = record->units[i].file_unit, count = 0;

		while (i + count <= last && first != EXECMEM_UNIT_NONE &&
		       !(record->units[i + count].committed | record->units[i + count].dirty) &&
		       record->units[i + count].file_unit == first + count) {
			record->units[i + count].file_unit = EXECMEM_UNIT_NONE;
			count++;
		}
		if (count == 0)
			continue;
		execmem_file_give(record->allocator, first, count);
		i += count - 1;
	}
}

/* Gives every unit of the range a place in the file. On an error some have one, and hold nothing. */
static int take_units(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	size_t last = last_unit(offset, bytes);

	for (size_t i = first_unit(offset); i <= last;) {
		uint32_t wanted = 0, first, count;
		int error;

		if (record->units[i].file_unit != EXECMEM_UNIT_NONE) {
			i++;
			continue;
		}
		while (i + wanted <= last && wanted < UINT32_MAX - 1 &&
		       record->units[i + wanted].file_unit == EXECMEM_UNIT_NONE)
			wanted++;
		error = execmem_file_take(record->allocator, wanted, &first, &count);
		if (error)
			return error;
		for (uint32_t k = 0; k < count; k++)
			record->units[i + k].file_unit = first + k;
		i += count;
	}
	return 0;
}

/* Punches the pages of a mask out of a unit that stays. What the system refuses is dirty. */
static int punch_pages(struct execmem_region_record *record, size_t index, uint16_t mask)
{
	struct execmem_allocator *allocator = record->allocator;
	struct execmem_unit *unit = &record->units[index];
	unsigned shift = allocator->page_shift;
	int error = 0;

	for (unsigned page = 0; mask >> page && !error; page++) {
		unsigned end = page;

		while (end < 16 && (mask >> end & 1))
			end++;
		if (end == page)
			continue;
		error = execmem_refuse(
			allocator, "file_punch",
			allocator->os.file_punch(allocator->os.context, allocator->file.file,
						 (uint64_t)unit->file_unit * UNIT + ((uint64_t)page << shift),
						 (uint64_t)(end - page) << shift),
			0);
		if (!error) {
			uint16_t done = (uint16_t)((1u << end) - (1u << page));

			mask &= (uint16_t)~done;
			unit->dirty &= (uint16_t)~done;
			page = end - 1;
		}
	}
	unit->dirty |= mask;
	return error;
}

/* Pages to be committed again read as zero. */
static int clean(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	int error = 0;

	for (size_t i = first_unit(offset); i <= last_unit(offset, bytes) && !error; i++) {
		uint16_t dirty = record->units[i].dirty & unit_mask(record, i, offset, bytes);

		if (dirty)
			error = punch_pages(record, i, dirty);
	}
	return error;
}

/* Maps the range, piece by piece where the file's units are not contiguous. On an error *done bytes are mapped. */
static int map_executable(struct execmem_region_record *record, size_t offset, size_t bytes, size_t *done)
{
	struct execmem_allocator *allocator = record->allocator;
	const struct execmem_os *os = &allocator->os;
	bool has_file = allocator->backend == EXECMEM_BACKEND_DOUBLE;

	while (*done < bytes) {
		uint64_t at = 0;
		size_t run = bytes;
		int error;

		if (has_file)
			run = execmem_file_run(record, offset + *done, offset + bytes, &at);
		error = os->map_fixed(os->context, (void *)(record->start + offset + *done), run, allocator->executable,
				      has_file ? allocator->file.file : EXECMEM_NO_FILE, at);
		if (error)
			return execmem_refuse(allocator, "map_fixed", error, 0);
		record->counters.rx_maps++;
		*done += run;
	}
	return 0;
}

static int map_nothing(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	struct execmem_allocator *allocator = record->allocator;

	return execmem_refuse(allocator, "map_fixed",
			      allocator->os.map_fixed(allocator->os.context, (void *)(record->start + offset), bytes,
						      EXECMEM_NONE, EXECMEM_NO_FILE, 0),
			      0);
}

static void set_committed(struct execmem_region_record *record, size_t offset, size_t bytes, bool value)
{
	for (size_t i = first_unit(offset); i <= last_unit(offset, bytes); i++) {
		uint16_t mask = unit_mask(record, i, offset, bytes);

		if (value)
			record->units[i].committed |= mask;
		else
			record->units[i].committed &= (uint16_t)~mask;
	}
	if (value)
		record->committed_bytes += bytes;
	else
		record->committed_bytes -= bytes;
}

int execmem_commit(const struct execmem_region *region, size_t offset, size_t bytes)
{
	struct execmem_region_record *record;
	bool has_file;
	size_t done = 0;
	int error = begin(region, offset, bytes);

	if (error)
		return error;
	record = region->record;
	has_file = record->allocator->backend == EXECMEM_BACKEND_DOUBLE;
	if (any_committed(record, offset, bytes)) {
		execmem_region_unlock(record);
		return EXECMEM_ERROR_COMMITTED;
	}
	if (has_file) {
		error = take_units(record, offset, bytes);
		if (!error)
			error = clean(record, offset, bytes);
	}
	if (!error)
		error = map_executable(record, offset, bytes, &done);
	if (!error) {
		execmem_published_clear(record, offset, bytes);
		set_committed(record, offset, bytes, true);
		record->counters.commits++;
	} else if (has_file) {
		/* Pages that cannot be unmapped again must keep their place in the file: dirty pages do. */
		if (done && map_nothing(record, offset, done)) {
			for (size_t i = first_unit(offset); i <= last_unit(offset, done); i++)
				record->units[i].dirty |= unit_mask(record, i, offset, done);
		}
		give_empty(record, offset, bytes);
	}
	execmem_region_unlock(record);
	return error;
}

/* Units of the range that would hold nothing more if it went: their mappings must go, and nobody may have one open. */
static int drop_emptied(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	for (size_t i = first_unit(offset); i <= last_unit(offset, bytes); i++) {
		int error;

		if (record->units[i].committed & ~unit_mask(record, i, offset, bytes))
			continue;
		if (execmem_pinned_in(record, i * UNIT, UNIT))
			return EXECMEM_ERROR_BUSY;
		error = execmem_drop_mappings(record, i * UNIT, UNIT);
		if (error)
			return error;
	}
	return 0;
}

int execmem_decommit(const struct execmem_region *region, size_t offset, size_t bytes)
{
	struct execmem_region_record *record;
	int error = begin(region, offset, bytes);

	if (error)
		return error;
	record = region->record;
	if (!execmem_is_committed(record, offset, bytes))
		error = EXECMEM_ERROR_NOT_COMMITTED;
	else if (execmem_view_in(record, offset, bytes))
		error = EXECMEM_ERROR_BUSY;
	if (!error)
		error = drop_emptied(record, offset, bytes);
	if (!error)
		error = map_nothing(record, offset, bytes);
	if (!error) {
		set_committed(record, offset, bytes, false);
		record->counters.decommits++;
		if (record->allocator->backend == EXECMEM_BACKEND_DOUBLE) {
			for (size_t i = first_unit(offset); i <= last_unit(offset, bytes); i++) {
				if (record->units[i].committed)
					(void)punch_pages(record, i, unit_mask(record, i, offset, bytes));
				else
					record->units[i].dirty =
						0; /* all of it is punched now, or is the file's to keep */
			}
			give_empty(record, offset, bytes);
		}
	}
	execmem_region_unlock(record);
	return error;
}
