#include "file.h"

#include "allocator.h"
#include "linux_errno.h"

#define WORD_BITS ((uint32_t)(8 * sizeof(uintptr_t)))

static bool get_bit(const uintptr_t *bits, uint32_t i)
{
	return bits[i / WORD_BITS] >> (i % WORD_BITS) & 1;
}

static void set_bits(uintptr_t *bits, uint32_t first, uint32_t count, bool value)
{
	for (uint32_t i = first; i < first + count; i++) {
		uintptr_t bit = (uintptr_t)1 << (i % WORD_BITS);

		bits[i / WORD_BITS] = value ? bits[i / WORD_BITS] | bit : bits[i / WORD_BITS] & ~bit;
	}
}

int execmem_file_create(struct execmem_allocator *allocator, int *file,
			void (*refused)(void *to, const char *call, int error), void *to)
{
	const struct execmem_os *os = &allocator->os;
	int error = os->file_create(os->context, "execmem", true, file);

	if (error == -EINVAL || error == -EPERM || error == -EACCES) {
		/*
		 * A kernel before 6.3 does not know the flag; vm.memfd_noexec = 2 refuses it, but not the executable
		 * mapping of a file made without it.
		 */
		refused(to, "file_create", error);
		error = os->file_create(os->context, "execmem", false, file);
	}
	if (error) {
		refused(to, "file_create", error);
		return error;
	}
	/* A file that shrank would turn code into bus errors. Nothing depends on the seal. */
	error = os->file_seal(os->context, *file, EXECMEM_SEAL_SHRINK);
	if (error)
		refused(to, "file_seal", error);
	return 0;
}

/* Makes the tables hold `units` units. */
static int hold(struct execmem_allocator *allocator, uint32_t units)
{
	struct execmem_file *file = &allocator->file;
	uint32_t capacity = file->capacity ? file->capacity : 8 * WORD_BITS;
	void *used, *dirty;
	size_t old_bytes = file->capacity / 8, bytes;
	int error;

	while (capacity < units)
		capacity = capacity > UINT32_MAX / 2 ? UINT32_MAX / WORD_BITS * WORD_BITS : capacity * 2;
	if (capacity == file->capacity)
		return 0;
	bytes = capacity / 8;
	error = execmem_memory_get(&allocator->memory, &allocator->os, bytes, &used);
	if (error)
		return error;
	error = execmem_memory_get(&allocator->memory, &allocator->os, bytes, &dirty);
	if (error) {
		execmem_memory_put(&allocator->memory, &allocator->os, used, bytes);
		return error;
	}
	for (size_t i = 0; i < old_bytes / sizeof(uintptr_t); i++) {
		((uintptr_t *)used)[i] = file->used[i];
		((uintptr_t *)dirty)[i] = file->dirty[i];
	}
	execmem_memory_put(&allocator->memory, &allocator->os, file->used, old_bytes);
	execmem_memory_put(&allocator->memory, &allocator->os, file->dirty, old_bytes);
	file->used = used;
	file->dirty = dirty;
	file->capacity = capacity;
	return 0;
}

/* Makes the file at least `units` units long, by whole steps where the limit allows them. */
static int grow(struct execmem_allocator *allocator, uint32_t units)
{
	struct execmem_file *file = &allocator->file;
	const struct execmem_os *os = &allocator->os;
	struct execmem_usage usage;
	uint32_t length = file->units;
	int error;

	while (length < units)
		length = length > UINT32_MAX - 1 - file->step ? UINT32_MAX - 1 : length + file->step;
	error = os->limit(os->context, EXECMEM_LIMIT_FILE_BYTES, &usage);
	if (error)
		return execmem_refuse(allocator, "limit", error, 0);
	/* Growing beyond the limit would raise SIGXFSZ. */
	if (usage.limit / EXECMEM_UNIT_BYTES < length)
		length = (uint32_t)(usage.limit / EXECMEM_UNIT_BYTES);
	if (length < units)
		return execmem_refuse(allocator, "limit", -EFBIG, 0);
	error = hold(allocator, length);
	if (error)
		return execmem_refuse(allocator, "map", error, EXECMEM_UNIT_BYTES);
	error = os->file_grow(os->context, file->file, (uint64_t)length * EXECMEM_UNIT_BYTES);
	if (error)
		return execmem_refuse(allocator, "file_grow", error, 0);
	file->units = length;
	return 0;
}

static int punch(struct execmem_allocator *allocator, uint32_t first, uint32_t count)
{
	const struct execmem_os *os = &allocator->os;
	int error = os->file_punch(os->context, allocator->file.file, (uint64_t)first * EXECMEM_UNIT_BYTES,
				   (uint64_t)count * EXECMEM_UNIT_BYTES);

	return execmem_refuse(allocator, "file_punch", error, 0);
}

static void freed(struct execmem_file *file, uint32_t first, uint32_t count)
{
	set_bits(file->used, first, count, false);
	file->used_count -= count;
	if (first < file->lowest)
		file->lowest = first;
}

/* Offers the system once more what it would not take. */
static void retry_punches(struct execmem_allocator *allocator)
{
	struct execmem_file *file = &allocator->file;

	for (uint32_t i = 0; file->dirty_count && i < file->units; i++) {
		uint32_t end = i;

		while (end < file->units && get_bit(file->dirty, end))
			end++;
		if (end == i)
			continue;
		if (punch(allocator, i, end - i))
			return;
		set_bits(file->dirty, i, end - i, false);
		file->dirty_count -= end - i;
		freed(file, i, end - i);
		i = end;
	}
}

/* The first run of at least `wanted` free units, else the longest. Its length, 0 where nothing is free. */
static uint32_t find_run(const struct execmem_file *file, uint32_t wanted, uint32_t *first)
{
	uint32_t best = 0, run = 0;

	for (uint32_t i = file->lowest; i < file->units && best < wanted; i++) {
		if (i % WORD_BITS == 0 && file->used[i / WORD_BITS] == UINTPTR_MAX) {
			run = 0;
			i += WORD_BITS - 1;
			continue;
		}
		run = get_bit(file->used, i) ? 0 : run + 1;
		if (run > best) {
			best = run;
			*first = i + 1 - run;
		}
	}
	return best;
}

int execmem_file_take(struct execmem_allocator *allocator, uint32_t wanted, uint32_t *first, uint32_t *count)
{
	struct execmem_file *file = &allocator->file;
	uint32_t at = 0, found;
	int error = 0;

	execmem_lock(&allocator->os, &file->lock);
	retry_punches(allocator);
	found = find_run(file, wanted, &at);
	if (found < wanted) {
		uint32_t tail = file->units;

		while (tail > file->lowest && !get_bit(file->used, tail - 1))
			tail--;
		error = wanted > UINT32_MAX - 1 - tail ? EXECMEM_ERROR_FILE_SIZE : grow(allocator, tail + wanted);
		if (!error) {
			at = tail;
			found = wanted;
		} else if (found) {
			error = 0; /* in pieces */
		}
	}
	if (!error) {
		set_bits(file->used, at, found, true);
		file->used_count += found;
		if (at == file->lowest)
			file->lowest = at + found;
		*first = at;
		*count = found;
	}
	execmem_unlock(&allocator->os, &file->lock);
	return error;
}

void execmem_file_give(struct execmem_allocator *allocator, uint32_t first, uint32_t count)
{
	struct execmem_file *file = &allocator->file;
	/* Until they are marked nobody else can be given them: no need to hold up other threads. */
	int error = punch(allocator, first, count);

	execmem_lock(&allocator->os, &file->lock);
	if (error) {
		set_bits(file->dirty, first, count, true);
		file->dirty_count += count;
	} else {
		freed(file, first, count);
	}
	execmem_unlock(&allocator->os, &file->lock);
}

int execmem_file_close(struct execmem_allocator *allocator)
{
	int error;

	if (!allocator->file.exists)
		return 0;
	error = allocator->os.file_close(allocator->os.context, allocator->file.file);
	if (!error)
		allocator->file.exists = false;
	return error;
}
