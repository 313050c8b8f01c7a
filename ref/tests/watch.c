#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct watch watch = {.page_bytes = 4096, .fail_with = ENOMEM};

static struct execmem_os real;

/* Counts a call; the negative errno with which to refuse it, or 0. */
static int enter(const char *name)
{
	unsigned long call = __atomic_add_fetch(&watch.calls, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&watch.last, name, __ATOMIC_RELAXED);
	if (call != watch.fail_at && !(watch.fail_from && call >= watch.fail_from) &&
	    !(watch.fail_name && strcmp(watch.fail_name, name) == 0))
		return 0;
	__atomic_store_n(&watch.failed, name, __ATOMIC_RELAXED);
	return -watch.fail_with;
}

/* ---- Writable mappings of files; only where watch.track asks for it, and there are no threads ---- */

#define TRACKED 64

static struct tracked {
	void *address;
	size_t bytes;
} tracked[TRACKED], reservation;

static void track(void *address, size_t bytes)
{
	EXPECT(watch.rw_mappings < TRACKED);
	tracked[watch.rw_mappings++] = (struct tracked){address, bytes};
}

/* Writable by mapping a file over a part of what was mapped last, without access. */
static void track_fixed(void *address)
{
	if (!reservation.address)
		return;
	EXPECT((size_t)((char *)address - (char *)reservation.address) < reservation.bytes);
	track(reservation.address, reservation.bytes);
	reservation.address = NULL;
}

static void untrack(const void *address, size_t bytes)
{
	for (unsigned i = 0; i < watch.rw_mappings; i++) {
		if (tracked[i].address != address)
			continue;
		EXPECT_EQUAL(tracked[i].bytes, bytes);
		tracked[i] = tracked[--watch.rw_mappings];
		return;
	}
}

#define ENTER(name_)                                                                                                   \
	do {                                                                                                           \
		int refused_ = enter(name_);                                                                           \
		if (refused_)                                                                                          \
			return refused_;                                                                               \
	} while (0)

static void multiple(uint64_t value)
{
	EXPECT(value % watch.page_bytes == 0);
}

static void range(const void *address, size_t bytes)
{
	multiple((uintptr_t)address);
	multiple(bytes);
	EXPECT(bytes != 0);
}

static size_t page_size(void *context)
{
	(void)context;
	return watch.page_bytes;
}

static int map(void *context, void *hint, size_t bytes, unsigned protection, int file, uint64_t offset, void **address)
{
	bool reserved;
	int error;

	(void)context;
	range(hint, bytes);
	multiple(offset);
	EXPECT((protection & (EXECMEM_WRITE | EXECMEM_EXECUTE)) != (EXECMEM_WRITE | EXECMEM_EXECUTE));
	ENTER("map");
	/*
	 * A larger page: the system aligns to it. And a reservation lies just behind a unit's start, wherever the
	 * system would have it: how many calls it takes to trim it must not differ from run to run.
	 */
	reserved = watch.track && protection == EXECMEM_NONE && !hint;
	if (watch.page_bytes > 4096 || reserved) {
		size_t align = reserved ? EXECMEM_UNIT_BYTES : watch.page_bytes, slack = align + watch.page_bytes;
		void *large;

		if (hint)
			error = real.map(real.context, hint, bytes + slack, EXECMEM_NONE, EXECMEM_NO_FILE, 0, &large);
		else
			error = place_anywhere(&real, bytes + slack, EXECMEM_NONE, EXECMEM_NO_FILE, 0, &large);
		if (error)
			return error;
		EXPECT_EQUAL(0, real.unmap(real.context, large, bytes + slack));
		hint = (void *)(((uintptr_t)large + align - 1) & ~(align - 1));
		if (reserved && watch.page_bytes < align)
			hint = (char *)hint + watch.page_bytes;
		error = real.map_fixed(real.context, hint, bytes, protection, file, offset);
		if (!error)
			*address = hint;
	} else if (hint) {
		error = real.map(real.context, hint, bytes, protection, file, offset, address);
	} else {
		error = place_anywhere(&real, bytes, protection, file, offset, address);
	}
	if (!error && file != EXECMEM_NO_FILE && protection & EXECMEM_WRITE)
		__atomic_add_fetch(&watch.writable, (long)bytes, __ATOMIC_RELAXED);
	if (!error)
		__atomic_add_fetch(&watch.mapped, (long)bytes, __ATOMIC_RELAXED);
	if (!error && watch.track) {
		reservation.address = NULL;
		if (file != EXECMEM_NO_FILE && protection & EXECMEM_WRITE)
			track(*address, bytes);
		else if (protection == EXECMEM_NONE)
			reservation = (struct tracked){*address, bytes};
	}
	return error;
}

static int map_fixed(void *context, void *address, size_t bytes, unsigned protection, int file, uint64_t offset)
{
	int error;

	(void)context;
	range(address, bytes);
	multiple(offset);
	EXPECT((protection & (EXECMEM_WRITE | EXECMEM_EXECUTE)) != (EXECMEM_WRITE | EXECMEM_EXECUTE));
	ENTER("map_fixed");
	if (protection & EXECMEM_EXECUTE)
		__atomic_add_fetch(&watch.remaps, 1, __ATOMIC_RELAXED);
	error = real.map_fixed(real.context, address, bytes, protection, file, offset);
	if (!error && watch.track && file != EXECMEM_NO_FILE && protection & EXECMEM_WRITE)
		track_fixed(address);
	return error;
}

static int protect(void *context, void *address, size_t bytes, unsigned protection)
{
	int error;

	(void)context;
	range(address, bytes);
	EXPECT((protection & (EXECMEM_WRITE | EXECMEM_EXECUTE)) != (EXECMEM_WRITE | EXECMEM_EXECUTE));
	ENTER("protect");
	error = real.protect(real.context, address, bytes, protection);
	if (!error && watch.track) {
		if (protection & EXECMEM_WRITE)
			track(address, bytes);
		else
			untrack(address, bytes);
	}
	return error;
}

static int unmap(void *context, void *address, size_t bytes)
{
	int error;

	(void)context;
	range(address, bytes);
	ENTER("unmap");
	if (watch.track)
		untrack(address, bytes);
	error = real.unmap(real.context, address, bytes);
	if (!error)
		__atomic_sub_fetch(&watch.mapped, (long)bytes, __ATOMIC_RELAXED);
	return error;
}

static int discard(void *context, void *address, size_t bytes)
{
	(void)context;
	range(address, bytes);
	ENTER("discard");
	return real.discard(real.context, address, bytes);
}

static int discard_many(void *context, const struct execmem_span *spans, size_t count, size_t *done)
{
	(void)context;
	*done = 0;
	ENTER("discard_many");
	return real.discard_many(real.context, spans, count, done);
}

static int newest_file;

static int file_create(void *context, const char *name, int executable, int *file)
{
	int error;

	(void)context;
	ENTER("file_create");
	error = real.file_create(real.context, name, executable, file);
	if (!error) {
		__atomic_add_fetch(&watch.files, 1, __ATOMIC_RELAXED);
		newest_file = *file;
	}
	return error;
}

static int file_grow(void *context, int file, uint64_t bytes)
{
	(void)context;
	multiple(bytes);
	EXPECT(!watch.file_limit || bytes <= watch.file_limit);
	ENTER("file_grow");
	return real.file_grow(real.context, file, bytes);
}

static int file_seal(void *context, int file, unsigned seals)
{
	(void)context;
	ENTER("file_seal");
	return real.file_seal(real.context, file, seals);
}

static int file_punch(void *context, int file, uint64_t offset, uint64_t bytes)
{
	(void)context;
	multiple(offset);
	multiple(bytes);
	ENTER("file_punch");
	return real.file_punch(real.context, file, offset, bytes);
}

static int file_close(void *context, int file)
{
	int error;

	(void)context;
	ENTER("file_close");
	error = real.file_close(real.context, file);
	if (!error)
		__atomic_sub_fetch(&watch.files, 1, __ATOMIC_RELAXED);
	return error;
}

static int limit(void *context, enum execmem_limit which, struct execmem_usage *usage)
{
	(void)context;
	ENTER("limit");
	if (which == EXECMEM_LIMIT_FILE_BYTES && watch.file_limit) {
		*usage = (struct execmem_usage){0, watch.file_limit};
		return 0;
	}
	return real.limit(real.context, which, usage);
}

static int name(void *context, void *address, size_t bytes, const char *text)
{
	(void)context;
	ENTER("name");
	return real.name(real.context, address, bytes, text);
}

static int sync_code(void *context, const void *address, size_t bytes)
{
	(void)context;
	ENTER("sync_code");
	__atomic_add_fetch(&watch.syncs, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&watch.sync_at, (uintptr_t)address, __ATOMIC_RELAXED);
	__atomic_store_n(&watch.sync_bytes, bytes, __ATOMIC_RELAXED);
	return real.sync_code(real.context, address, bytes);
}

static int serialize(void *context)
{
	(void)context;
	ENTER("serialize");
	return real.serialize(real.context);
}

static int probe_code(void *context, unsigned value, unsigned char *code, size_t *bytes)
{
	(void)context;
	ENTER("probe_code");
	return real.probe_code(real.context, value, code, bytes);
}

static unsigned probe_run(void *context, const void *code)
{
	static unsigned first;
	unsigned value = real.probe_run(real.context, code);

	(void)context;
	if (!watch.stale)
		return value;
	if (!first)
		first = value;
	return first;
}

static void wait(void *context, const uint32_t *word, uint32_t value)
{
	(void)context;
	real.wait(real.context, word, value);
}

static void wake(void *context, const uint32_t *word, unsigned count)
{
	(void)context;
	real.wake(real.context, word, count);
}

static int identity(void *context, uint64_t *process)
{
	(void)context;
	ENTER("identity");
	return real.identity(real.context, process);
}

static int wipe_on_fork(void *context, void *address, size_t bytes)
{
	(void)context;
	range(address, bytes);
	ENTER("wipe_on_fork");
	return real.wipe_on_fork(real.context, address, bytes);
}

static int write_text(void *context, const char *text, size_t bytes)
{
	(void)context;
	ENTER("write");
	if (bytes > sizeof(watch.text) - 1)
		bytes = sizeof(watch.text) - 1;
	memcpy(watch.text, text, bytes);
	watch.text[bytes] = 0;
	watch.text_bytes = bytes;
	return 0;
}

struct execmem_os watch_os(void)
{
	real = execmem_os_linux(4096);
	return (struct execmem_os){
		.page_size = page_size,
		.map = map,
		.map_fixed = map_fixed,
		.protect = protect,
		.unmap = unmap,
		.discard = discard,
		.discard_many = discard_many,
		.file_create = file_create,
		.file_grow = file_grow,
		.file_seal = file_seal,
		.file_punch = file_punch,
		.file_close = file_close,
		.limit = limit,
		.name = name,
		.sync_code = sync_code,
		.serialize = serialize,
		.probe_code = probe_code,
		.probe_run = probe_run,
		.wait = wait,
		.wake = wake,
		.identity = identity,
		.wipe_on_fork = wipe_on_fork,
		.write = write_text,
	};
}

unsigned long watch_blocks(void)
{
	struct stat status;

	EXPECT(fstat(newest_file, &status) == 0);
	return (unsigned long)status.st_blocks * 512;
}
