/*
 * The entries of the watched table: each makes the real call between watch_call_begin() and watch_call_end(), keeps the
 * model of space.h, and has the rules looked at.
 */
#include "watch.h"

#include "os.h"
#include "table.h"
#include "text.h"
#include "watch_call.h"

static size_t page_size(void *context)
{
	(void)context;
	__atomic_fetch_add(&watch.asked, 1, __ATOMIC_RELAXED);
	return watch.page;
}

/* As the system would, if its pages were as large as is simulated. */
static int map_aligned(void *hint, size_t bytes, unsigned protection, int file, uint64_t offset, void **address)
{
	uintptr_t start, aligned;
	void *at;
	int error = table_real.map(NULL, hint, bytes, protection, file, offset, &at);

	if (error || ((uintptr_t)at & (watch.page - 1)) == 0) {
		if (!error)
			*address = at;
		return error;
	}
	error = table_real.unmap(NULL, at, bytes);
	if (!error)
		error = table_real.map(NULL, NULL, bytes + watch.page, SUBJECT_NONE, SUBJECT_NO_FILE, 0, &at);
	if (error)
		return error;
	start = (uintptr_t)at;
	aligned = (start + watch.page - 1) & ~(watch.page - 1);
	if (aligned > start)
		os_unmap((void *)start, aligned - start);
	os_unmap((void *)(aligned + bytes), start + watch.page - aligned);
	error = table_real.map_fixed(NULL, (void *)aligned, bytes, protection, file, offset);
	if (error) {
		os_unmap((void *)aligned, bytes);
		return error;
	}
	*address = (void *)aligned;
	return 0;
}

static int map(void *context, void *hint, size_t bytes, unsigned protection, int file, uint64_t offset, void **address)
{
	struct watch_call call = {.kind = WATCH_MAP,
				  .address = (uintptr_t)hint,
				  .bytes = bytes,
				  .offset = offset,
				  .protection = protection,
				  .file = space_file_of(file)};
	int error = watch_call_begin(&call);
	void *at;

	(void)context;
	if (!error)
		error = map_aligned(hint, bytes, protection, file, offset, &at);
	if (!error) {
		call.address = (uintptr_t)at;
		*address = at;
		watch_look_at_protection(&call);
		if (file != SUBJECT_NO_FILE)
			watch_look_at_file(&call);
		if (!space_free(call.address, bytes))
			watch_break(WATCH_FOREIGN, "the system maps where the model has something: unmapped in secret",
				    &call);
		space_map(call.address, bytes, protection, call.file, offset);
	}
	return watch_call_end(call, error);
}

static int map_fixed(void *context, void *address, size_t bytes, unsigned protection, int file, uint64_t offset)
{
	const struct watch_call call = {.kind = WATCH_MAP_FIXED,
					.address = (uintptr_t)address,
					.bytes = bytes,
					.offset = offset,
					.protection = protection,
					.file = space_file_of(file)};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error)
		error = table_real.map_fixed(NULL, address, bytes, protection, file, offset);
	if (!error) {
		watch_look_at_protection(&call);
		watch_look_at_owner(&call);
		if (file != SUBJECT_NO_FILE)
			watch_look_at_file(&call);
		space_map(call.address, bytes, protection, call.file, offset);
	}
	return watch_call_end(call, error);
}

static int protect(void *context, void *address, size_t bytes, unsigned protection)
{
	const struct watch_call call = {.kind = WATCH_PROTECT,
					.address = (uintptr_t)address,
					.bytes = bytes,
					.protection = protection,
					.file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error)
		error = table_real.protect(NULL, address, bytes, protection);
	if (!error) {
		watch_look_at_protect(&call);
		space_protect(call.address, bytes, protection);
	}
	return watch_call_end(call, error);
}

static int unmap(void *context, void *address, size_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_UNMAP, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error) {
		watch_look_at_owner(&call);
		error = table_real.unmap(NULL, address, bytes);
	}
	if (!error)
		space_unmap(call.address, bytes);
	return watch_call_end(call, error);
}

static int discard(void *context, void *address, size_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_DISCARD, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error) {
		watch_look_at_owner(&call);
		error = table_real.discard(NULL, address, bytes);
	}
	return watch_call_end(call, error);
}

static int discard_many(void *context, const struct subject_span *spans, size_t count, size_t *done)
{
	struct watch_call call = {.kind = WATCH_DISCARD_MANY, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	*done = 0;
	for (size_t i = 0; i < count && !error; i++) {
		call.address = (uintptr_t)spans[i].address;
		call.bytes = spans[i].bytes;
		error = watch_check_multiples(&call);
		watch_look_at_owner(&call);
	}
	if (!error)
		error = table_real.discard_many(NULL, spans, count, done);
	return watch_call_end(call, error);
}

static int file_create(void *context, const char *name, int executable, int *file)
{
	struct watch_call call = {.kind = WATCH_FILE_CREATE,
				  .protection = executable != 0,
				  .bytes = text_length(name),
				  .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error)
		error = table_real.file_create(NULL, name, executable, file);
	if (!error)
		call.file = space_file_open(*file);
	return watch_call_end(call, error);
}

static int file_grow(void *context, int file, uint64_t bytes)
{
	const struct watch_call call = {.kind = WATCH_FILE_GROW, .bytes = bytes, .file = space_file_of(file)};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error && watch.file_limit && bytes > watch.file_limit) {
		watch_break(WATCH_BEYOND, "the kernel would send SIGXFSZ", &call);
		error = -TABLE_EFBIG;
	}
	if (!error && call.file == SPACE_NO_FILE)
		watch_break(WATCH_FOREIGN, "a file that the allocator has not made", &call);
	if (!error)
		error = table_real.file_grow(NULL, file, bytes);
	if (!error && call.file != SPACE_NO_FILE)
		space.files[call.file].bytes = bytes;
	return watch_call_end(call, error);
}

static int file_seal(void *context, int file, unsigned seals)
{
	const struct watch_call call = {.kind = WATCH_FILE_SEAL, .protection = seals, .file = space_file_of(file)};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error)
		error = table_real.file_seal(NULL, file, seals);
	if (!error && call.file != SPACE_NO_FILE)
		space.files[call.file].seals |= seals;
	return watch_call_end(call, error);
}

static int file_punch(void *context, int file, uint64_t offset, uint64_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_FILE_PUNCH, .offset = offset, .bytes = bytes, .file = space_file_of(file)};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error) {
		watch_look_at_file(&call);
		error = table_real.file_punch(NULL, file, offset, bytes);
	}
	return watch_call_end(call, error);
}

static int file_close(void *context, int file)
{
	const struct watch_call call = {.kind = WATCH_FILE_CLOSE, .file = space_file_of(file)};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error) {
		if (call.file == SPACE_NO_FILE)
			watch_break(WATCH_FOREIGN, "a file that the allocator has not made", &call);
		error = table_real.file_close(NULL, file);
	}
	if (!error && call.file != SPACE_NO_FILE)
		space_file_close(call.file);
	return watch_call_end(call, error);
}

static int limit(void *context, unsigned which, uint64_t *used, uint64_t *most)
{
	const struct watch_call call = {.kind = WATCH_LIMIT, .offset = which, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error && which == SUBJECT_LIMIT_FILE_BYTES && watch.file_limit) {
		*used = 0;
		*most = watch.file_limit;
	} else if (!error && which == SUBJECT_LIMIT_ADDRESS_BYTES && watch.address_limit) {
		*used = space_bytes();
		*most = watch.address_limit;
	} else if (!error && which == SUBJECT_LIMIT_MAPPINGS && watch.mapping_limit) {
		*used = space.count;
		*most = watch.mapping_limit;
	} else if (!error) {
		error = table_real.limit(NULL, which, used, most);
	}
	return watch_call_end(call, error);
}

static int name(void *context, void *address, size_t bytes, const char *text)
{
	const struct watch_call call = {
		.kind = WATCH_NAME, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error) {
		watch_look_at_owner(&call);
		error = table_real.name(NULL, address, bytes, text);
	}
	return watch_call_end(call, error);
}

static int sync_code(void *context, const void *address, size_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_SYNC_CODE, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error)
		error = table_real.sync_code(NULL, address, bytes);
	return watch_call_end(call, error);
}

static int serialize(void *context)
{
	const struct watch_call call = {.kind = WATCH_SERIALIZE, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error)
		error = table_real.serialize(NULL);
	return watch_call_end(call, error);
}

static int probe_code(void *context, unsigned value, unsigned char *code, size_t *bytes)
{
	const struct watch_call call = {.kind = WATCH_PROBE_CODE, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error)
		error = table_real.probe_code(NULL, value, code, bytes);
	return watch_call_end(call, error);
}

static unsigned probe_run(void *context, const void *code)
{
	const struct watch_call call = {.kind = WATCH_PROBE_RUN, .address = (uintptr_t)code, .file = SPACE_NO_FILE};

	(void)context;
	(void)watch_call_begin(&call);
	(void)watch_call_end(call, 0);
	return table_real.probe_run(NULL, code);
}

static void wait(void *context, const uint32_t *word, uint32_t value)
{
	(void)context;
	if (watch.alone && __atomic_load_n(word, __ATOMIC_SEQ_CST) == value)
		__builtin_trap();
	table_real.wait(NULL, word, value);
}

static void wake(void *context, const uint32_t *word, unsigned count)
{
	(void)context;
	table_real.wake(NULL, word, count);
}

static int identity(void *context, uint64_t *process)
{
	const struct watch_call call = {.kind = WATCH_IDENTITY, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error)
		error = table_real.identity(NULL, process);
	return watch_call_end(call, error);
}

static int wipe_on_fork(void *context, void *address, size_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_WIPE_ON_FORK, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error) {
		watch_look_at_owner(&call);
		error = table_real.wipe_on_fork(NULL, address, bytes);
	}
	return watch_call_end(call, error);
}

/* Kept instead of written: a program's standard error belongs to its user. */
static int write(void *context, const char *text, size_t bytes)
{
	const struct watch_call call = {.kind = WATCH_WRITE, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = watch_call_begin(&call);

	(void)context;
	if (!error) {
		const size_t count = bytes < WATCH_TEXT_BYTES ? bytes : WATCH_TEXT_BYTES - 1;

		__builtin_memcpy(watch.text, text, count);
		watch.text[count] = '\0';
	}
	return watch_call_end(call, error);
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a designator */
#define ENTRY(kind_, entry_, refusable_) .entry_ = entry_,
const struct subject_os watch_os = {WATCH_KINDS(ENTRY).page_size = page_size, .wait = wait, .wake = wake};
