/*
 * fork(2): copying for the child, and moving the child to the copy.
 */
#include <execmem/fork.h>

#include "code_heap.h"
#include "linux_errno.h"
#include "stub_heap.h"

/* Bytes of the copy that are mapped writable at a time. */
#define COPY_BYTES ((size_t)1048576)

static void lock_all(struct execmem_allocator *allocator)
{
	const struct execmem_os *os = &allocator->os;

	execmem_lock(os, &allocator->heaps_lock);
	for (struct execmem_code_heap *heap = allocator->heaps; heap; heap = heap->next)
		execmem_lock(os, &heap->lock);
	for (struct execmem_stub_heap *heap = allocator->stub_heaps; heap; heap = heap->next)
		execmem_lock(os, &heap->lock);
	execmem_lock(os, &allocator->lock);
	for (struct execmem_region_record *record = allocator->regions; record; record = record->next)
		execmem_lock(os, &record->lock);
	execmem_lock(os, &allocator->cache.lock);
	execmem_lock(os, &allocator->file.lock);
	execmem_lock(os, &allocator->memory.lock);
	execmem_lock(os, &allocator->refusal_lock);
}

static void unlock_all(struct execmem_allocator *allocator)
{
	const struct execmem_os *os = &allocator->os;

	execmem_unlock(os, &allocator->refusal_lock);
	execmem_unlock(os, &allocator->memory.lock);
	execmem_unlock(os, &allocator->file.lock);
	execmem_unlock(os, &allocator->cache.lock);
	for (struct execmem_region_record *record = allocator->regions; record; record = record->next)
		execmem_unlock(os, &record->lock);
	execmem_unlock(os, &allocator->lock);
	for (struct execmem_stub_heap *heap = allocator->stub_heaps; heap; heap = heap->next)
		execmem_unlock(os, &heap->lock);
	for (struct execmem_code_heap *heap = allocator->heaps; heap; heap = heap->next)
		execmem_unlock(os, &heap->lock);
	execmem_unlock(os, &allocator->heaps_lock);
}

/*
 * The longest run of committed pages from *offset on that is contiguous in the file: its bytes, and *at the file's
 * offset. 0 at the end of the region. *offset moves to its start.
 */
static size_t committed_run(const struct execmem_region_record *record, size_t *offset, uint64_t *at)
{
	size_t page = record->allocator->page_bytes, end, run;

	while (*offset < record->bytes && !execmem_is_committed(record, *offset, page))
		*offset += page;
	if (*offset == record->bytes)
		return 0;
	for (end = *offset; end < record->bytes && execmem_is_committed(record, end, page);)
		end += page;
	*at = 0;
	run = record->allocator->backend == EXECMEM_BACKEND_DOUBLE ? execmem_file_run(record, *offset, end, at)
								   : end - *offset;
	return run;
}

/* ---- In prepare: every lock is held ---- */

struct failure {
	const char *call;
	int error;
	size_t bytes;
};

static int copy_run(struct execmem_allocator *allocator, int file, const unsigned char *from, size_t bytes, uint64_t at,
		    struct failure *failure)
{
	const struct execmem_os *os = &allocator->os;

	while (bytes) {
		size_t count = bytes < COPY_BYTES ? bytes : COPY_BYTES;
		void *to;
		int error = os->map(os->context, NULL, count, EXECMEM_READ | EXECMEM_WRITE, file, at, &to);

		*failure = (struct failure){"map", error, count};
		if (error)
			return error;
		for (size_t i = 0; i < count / sizeof(uintptr_t); i++)
			((uintptr_t *)to)[i] = ((const uintptr_t *)from)[i];
		error = os->unmap(os->context, to, count);
		*failure = (struct failure){"unmap", error, 0};
		if (error) {
			(void)os->unmap(os->context, to, count);
			return error;
		}
		from += count;
		bytes -= count;
		at += count;
	}
	return 0;
}

static void file_refused(void *to, const char *call, int error)
{
	*(struct failure *)to = (struct failure){call, error, 0};
}

static int copy_all(struct execmem_allocator *allocator, int file, struct failure *failure)
{
	const struct execmem_os *os = &allocator->os;
	struct execmem_usage usage;
	uint64_t bytes = (uint64_t)allocator->file.units * EXECMEM_UNIT_BYTES, at;
	int error;

	/* The limit may be lower now than when the file grew. */
	error = os->limit(os->context, EXECMEM_LIMIT_FILE_BYTES, &usage);
	*failure = (struct failure){"limit", error, 0};
	if (!error && usage.limit < bytes) {
		*failure = (struct failure){"limit", -EFBIG, 0};
		return failure->error;
	}
	if (!error) {
		error = os->file_grow(os->context, file, bytes);
		*failure = (struct failure){"file_grow", error, 0};
	}
	for (struct execmem_region_record *record = allocator->regions; record && !error; record = record->next) {
		size_t run;

		for (size_t offset = 0; !error && (run = committed_run(record, &offset, &at)) != 0; offset += run)
			error = copy_run(allocator, file, (const unsigned char *)record->start + offset, run, at,
					 failure);
	}
	return error;
}

int execmem_fork_prepare(struct execmem_allocator *allocator)
{
	struct failure failure = {"", 0, 0};
	int error = execmem_check_process(allocator);
	int file = EXECMEM_NO_FILE;

	if (error)
		return error;
	lock_all(allocator);
	if (allocator->dying) {
		unlock_all(allocator);
		return EXECMEM_ERROR_STATE;
	}
	if (allocator->backend == EXECMEM_BACKEND_DOUBLE) {
		error = execmem_file_create(allocator, &file, file_refused, &failure);
		if (!error)
			error = copy_all(allocator, file, &failure);
	}
	if (!error) {
		allocator->fork_file = file;
		allocator->fork_state = EXECMEM_FORK_PREPARED;
		return 0;
	}
	if (file != EXECMEM_NO_FILE)
		(void)allocator->os.file_close(allocator->os.context, file);
	unlock_all(allocator);
	return execmem_refuse(allocator, failure.call, error, failure.bytes);
}

int execmem_fork_parent(struct execmem_allocator *allocator)
{
	int error = execmem_check_process(allocator), file = allocator->fork_file;

	/* Where the system does not say which process this is, the caller is believed: nothing else can give the locks
	 * back. */
	if (error == EXECMEM_ERROR_FORKED)
		return error;
	if (allocator->fork_state != EXECMEM_FORK_PREPARED)
		return EXECMEM_ERROR_STATE;
	allocator->fork_state = EXECMEM_FORK_NONE;
	error = file == EXECMEM_NO_FILE ? 0 : allocator->os.file_close(allocator->os.context, file);
	if (error)
		(void)allocator->os.file_close(allocator->os.context, file);
	unlock_all(allocator);
	return execmem_refuse(allocator, "file_close", error, 0);
}

/* ---- In the child ---- */

static int move_region(struct execmem_region_record *record, struct failure *failure)
{
	struct execmem_allocator *allocator = record->allocator;
	const struct execmem_os *os = &allocator->os;
	uint64_t at;
	size_t run;
	int error;

	*failure = (struct failure){"map_fixed", 0, 0};
	for (size_t offset = 0; (run = committed_run(record, &offset, &at)) != 0; offset += run) {
		error = os->map_fixed(os->context, (void *)(record->start + offset), run, allocator->executable,
				      allocator->fork_file, at);
		if (error)
			return error;
	}
	for (const struct execmem_mapping *mapping = record->mappings; mapping; mapping = mapping->next) {
		for (size_t done = 0; done < mapping->bytes; done += run) {
			run = execmem_file_run(record, mapping->offset + done, mapping->offset + mapping->bytes, &at);
			error = os->map_fixed(os->context, mapping->rw + done, run, EXECMEM_READ | EXECMEM_WRITE,
					      allocator->fork_file, at);
			if (error)
				return error;
		}
	}
	return 0;
}

int execmem_fork_child(struct execmem_allocator *allocator)
{
	const struct execmem_os *os = &allocator->os;
	struct failure failure = {"identity", 0, 0};
	uint64_t process;
	int error;

	error = execmem_check_process(allocator);
	if (error != EXECMEM_ERROR_FORKED && error != 0)
		return error;
	if (error == 0 || allocator->fork_state != EXECMEM_FORK_PREPARED)
		return EXECMEM_ERROR_STATE;
	error = os->identity(os->context, &process);
	if (!error && allocator->backend == EXECMEM_BACKEND_DOUBLE) {
		for (struct execmem_region_record *record = allocator->regions; record && !error; record = record->next)
			error = move_region(record, &failure);
	}
	if (error) {
		/* Its lock is held, as all are: nothing else may be using it. */
		allocator->refusal = (struct execmem_refusal){"", failure.call, -error};
		return error;
	}
	if (allocator->backend == EXECMEM_BACKEND_DOUBLE) {
		/* The parent's file is of no more use here; a descriptor that cannot be closed does no harm. */
		(void)os->file_close(os->context, allocator->file.file);
		allocator->file.file = allocator->fork_file;
	}
	allocator->fork_state = EXECMEM_FORK_NONE;
	allocator->process = process;
	if (allocator->same)
		__atomic_store_n(allocator->same, 1, __ATOMIC_RELAXED);
	unlock_all(allocator);
	return 0;
}
