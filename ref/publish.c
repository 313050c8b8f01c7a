/*
 * Publishing what was written through a view.
 */
#include "allocator.h"
#include "linux_errno.h"

/* Maps the pages of [offset, offset + bytes) anew where they are: an emulator drops what it translated from them. */
static int remap(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	struct execmem_allocator *allocator = record->allocator;
	const struct execmem_os *os = &allocator->os;
	size_t mask = allocator->page_bytes - 1, from = offset & ~mask, to = (offset + bytes + mask) & ~mask;

	while (from < to) {
		uint64_t at = 0;
		size_t run = execmem_file_run(record, from, to, &at);
		int error = os->map_fixed(os->context, (void *)(record->start + from), run, allocator->executable,
					  allocator->file.file, at);

		if (error)
			return execmem_refuse(allocator, "map_fixed", error, 0);
		record->counters.remaps++;
		from += run;
	}
	return 0;
}

/* Where rewritten code would be stale. A toggling backend's protection changes have the same effect. */
static int refresh(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	struct execmem_allocator *allocator = record->allocator;
	int error = 0;

	if (!execmem_emulation(allocator) || allocator->backend != EXECMEM_BACKEND_DOUBLE)
		return 0;
	execmem_lock(&allocator->os, &record->lock);
	if (execmem_published_set(record, offset, bytes))
		error = remap(record, offset, bytes);
	execmem_region_unlock(record);
	return error;
}

static int sync(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	struct execmem_allocator *allocator = record->allocator;
	const struct execmem_os *os = &allocator->os;
	int error = os->sync_code(os->context, (const void *)(record->start + offset), bytes);

	if (error) {
		(void)execmem_refuse(allocator, "sync_code", error, 0);
		return EXECMEM_ERROR_SYNC;
	}
	return refresh(record, offset, bytes);
}

static int check_view(const struct execmem_view *view, unsigned flags)
{
	int error;

	if (!view || flags & ~EXECMEM_PUBLISH_SERIALIZE)
		return EXECMEM_ERROR_ARGUMENT;
	if (!view->handle)
		return EXECMEM_ERROR_NOT_OPEN;
	error = execmem_check_process(view->handle->region->allocator);
	if (error)
		return error;
	return __atomic_load_n(&view->handle->generation, __ATOMIC_ACQUIRE) == view->generation
		       ? 0
		       : EXECMEM_ERROR_NOT_OPEN;
}

static int check_range(const struct execmem_view *view, size_t offset, size_t bytes)
{
	if (bytes == 0)
		return EXECMEM_ERROR_ARGUMENT;
	return offset <= view->bytes && bytes <= view->bytes - offset ? 0 : EXECMEM_ERROR_OUTSIDE;
}

/* What follows synchronising: the view is open, and the caller sees to it that it stays so. */
static int finish(const struct execmem_view *view, unsigned flags)
{
	struct execmem_allocator *allocator = view->handle->region->allocator;

	if (flags & EXECMEM_PUBLISH_SERIALIZE) {
		int error = allocator->os.serialize(allocator->os.context);

		if (error) {
			int translated = execmem_refuse(allocator, "serialize", error, 0);

			return error == -ENOSYS ? EXECMEM_ERROR_UNSUPPORTED : translated;
		}
	}
	__atomic_fetch_add(&view->handle->publishes, 1, __ATOMIC_RELAXED);
	return 0;
}

int execmem_publish(const struct execmem_view *view, size_t offset, size_t bytes, unsigned flags)
{
	int error = check_view(view, flags);

	if (!error)
		error = check_range(view, offset, bytes);
	if (!error)
		error = sync(view->handle->region, view->handle->offset + offset, bytes);
	return error ? error : finish(view, flags);
}

int execmem_publish_many(const struct execmem_view *view, const struct execmem_range *ranges, size_t count,
			 unsigned flags)
{
	int error = ranges && count ? check_view(view, flags) : EXECMEM_ERROR_ARGUMENT;

	for (size_t i = 0; i < count && !error; i++)
		error = check_range(view, ranges[i].offset, ranges[i].bytes);
	for (size_t i = 0; i < count && !error;) {
		size_t from = ranges[i].offset, to = from + ranges[i].bytes;

		for (i++; i < count && ranges[i].offset >= from && ranges[i].offset <= to; i++) {
			if (ranges[i].offset + ranges[i].bytes > to)
				to = ranges[i].offset + ranges[i].bytes;
		}
		error = sync(view->handle->region, view->handle->offset + from, to - from);
	}
	return error ? error : finish(view, flags);
}

int execmem_write(struct execmem_allocator *allocator, execmem_rx rx, const void *code, size_t bytes, unsigned flags)
{
	struct execmem_view view;
	int error, closed;

	if (!code || flags & ~EXECMEM_PUBLISH_SERIALIZE)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_map_rw(allocator, rx, bytes, 0, &view);
	if (error)
		return error;
	__builtin_memcpy(view.rw.at, code, bytes);
	error = execmem_publish(&view, 0, bytes, flags);
	closed = execmem_unmap_rw(&view);
	if (closed)
		execmem_abandon_view(&view);
	return error ? error : closed;
}
