#include "watch.h"

#include "check.h"
#include "maps.h"
#include "os.h"
#include "table.h"
#include "text.h"

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

static void broken(enum watch_rule rule, const char *what, const struct watch_call *call)
{
	if (!watch.broken[rule].count++) {
		watch.broken[rule].what = what;
		watch.broken[rule].call = *call;
	}
}

/* The three arguments that must be multiples. */
static int check_multiples(const struct watch_call *call)
{
	if (((call->address | call->bytes | call->offset) & (watch.page - 1)) == 0)
		return 0;
	broken(WATCH_MULTIPLE, "no multiple of the page size", call);
	return -TABLE_EINVAL;
}

static bool is_ranged(enum watch_kind kind)
{
	return kind <= WATCH_DISCARD || kind == WATCH_FILE_GROW || kind == WATCH_FILE_PUNCH || kind == WATCH_NAME ||
	       kind == WATCH_WIPE_ON_FORK;
}

static uint64_t mapped_bytes(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < space.count; i++)
		bytes += space.extents[i].end - space.extents[i].start;
	return bytes;
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
	    (mapped_bytes() > watch.address_limit || call->bytes > watch.address_limit - mapped_bytes()))
		return -TABLE_ENOMEM;
	if (watch.deny_write_execute && (maps || call->kind == WATCH_PROTECT) && call->protection & SUBJECT_EXECUTE) {
		const struct space_extent *now = space_at(call->address);

		if (call->protection & SUBJECT_WRITE ||
		    (call->kind == WATCH_PROTECT && now && !(now->protection & SUBJECT_EXECUTE)))
			return -TABLE_EACCES;
	}
	return 0;
}

/* Counts a call; 0, or the negative errno with which it is not made. Takes the turn, which end() gives back. */
static int begin(const struct watch_call *call)
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
		error = check_multiples(call);
	return error ? error : meet_limits(call);
}

static int end(struct watch_call call, int result)
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

static void look_at_protection(const struct watch_call *call)
{
	if ((call->protection & (SUBJECT_WRITE | SUBJECT_EXECUTE)) == (SUBJECT_WRITE | SUBJECT_EXECUTE))
		broken(WATCH_BOTH, "writable and executable at once", call);
}

static void look_at_owner(const struct watch_call *call)
{
	if (!space_holds(call->address, (size_t)call->bytes))
		broken(WATCH_FOREIGN, "a range that the allocator has not mapped", call);
}

/* A file and a place in it. */
static void look_at_file(const struct watch_call *call)
{
	if (call->file == SPACE_NO_FILE)
		broken(WATCH_FOREIGN, "a file that the allocator has not made", call);
	else if (call->bytes > space.files[call->file].bytes ||
		 call->offset > space.files[call->file].bytes - call->bytes)
		broken(WATCH_BEYOND, "beyond the end of the file", call);
}

static void look_at_protect(const struct watch_call *call)
{
	look_at_protection(call);
	look_at_owner(call);
	if (watch.toggling || !(call->protection & SUBJECT_EXECUTE))
		return;
	for (uintptr_t at = call->address; at - call->address < call->bytes;) {
		const struct space_extent *extent = space_at(at);

		if (!extent)
			return;
		if (!(extent->protection & SUBJECT_EXECUTE) || extent->ever & SUBJECT_WRITE) {
			broken(WATCH_FRESH, "made executable where it lies", call);
			return;
		}
		at = extent->end;
	}
}

/* ---- Entries ---- */

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
	int error = begin(&call);
	void *at;

	(void)context;
	if (!error)
		error = map_aligned(hint, bytes, protection, file, offset, &at);
	if (!error) {
		call.address = (uintptr_t)at;
		*address = at;
		look_at_protection(&call);
		if (file != SUBJECT_NO_FILE)
			look_at_file(&call);
		if (!space_free(call.address, bytes))
			broken(WATCH_FOREIGN, "the system maps where the model has something: unmapped in secret",
			       &call);
		space_map(call.address, bytes, protection, call.file, offset);
	}
	return end(call, error);
}

static int map_fixed(void *context, void *address, size_t bytes, unsigned protection, int file, uint64_t offset)
{
	const struct watch_call call = {.kind = WATCH_MAP_FIXED,
					.address = (uintptr_t)address,
					.bytes = bytes,
					.offset = offset,
					.protection = protection,
					.file = space_file_of(file)};
	int error = begin(&call);

	(void)context;
	if (!error)
		error = table_real.map_fixed(NULL, address, bytes, protection, file, offset);
	if (!error) {
		look_at_protection(&call);
		look_at_owner(&call);
		if (file != SUBJECT_NO_FILE)
			look_at_file(&call);
		space_map(call.address, bytes, protection, call.file, offset);
	}
	return end(call, error);
}

static int protect(void *context, void *address, size_t bytes, unsigned protection)
{
	const struct watch_call call = {.kind = WATCH_PROTECT,
					.address = (uintptr_t)address,
					.bytes = bytes,
					.protection = protection,
					.file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error)
		error = table_real.protect(NULL, address, bytes, protection);
	if (!error) {
		look_at_protect(&call);
		space_protect(call.address, bytes, protection);
	}
	return end(call, error);
}

static int unmap(void *context, void *address, size_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_UNMAP, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error) {
		look_at_owner(&call);
		error = table_real.unmap(NULL, address, bytes);
	}
	if (!error)
		space_unmap(call.address, bytes);
	return end(call, error);
}

static int discard(void *context, void *address, size_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_DISCARD, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error) {
		look_at_owner(&call);
		error = table_real.discard(NULL, address, bytes);
	}
	return end(call, error);
}

static int discard_many(void *context, const struct subject_span *spans, size_t count, size_t *done)
{
	struct watch_call call = {.kind = WATCH_DISCARD_MANY, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	*done = 0;
	for (size_t i = 0; i < count && !error; i++) {
		call.address = (uintptr_t)spans[i].address;
		call.bytes = spans[i].bytes;
		error = check_multiples(&call);
		look_at_owner(&call);
	}
	if (!error)
		error = table_real.discard_many(NULL, spans, count, done);
	return end(call, error);
}

static int file_create(void *context, const char *name, int executable, int *file)
{
	struct watch_call call = {.kind = WATCH_FILE_CREATE,
				  .protection = executable != 0,
				  .bytes = text_length(name),
				  .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error)
		error = table_real.file_create(NULL, name, executable, file);
	if (!error)
		call.file = space_file_open(*file);
	return end(call, error);
}

static int file_grow(void *context, int file, uint64_t bytes)
{
	const struct watch_call call = {.kind = WATCH_FILE_GROW, .bytes = bytes, .file = space_file_of(file)};
	int error = begin(&call);

	(void)context;
	if (!error && watch.file_limit && bytes > watch.file_limit) {
		broken(WATCH_BEYOND, "the kernel would send SIGXFSZ", &call);
		error = -TABLE_EFBIG;
	}
	if (!error && call.file == SPACE_NO_FILE)
		broken(WATCH_FOREIGN, "a file that the allocator has not made", &call);
	if (!error)
		error = table_real.file_grow(NULL, file, bytes);
	if (!error && call.file != SPACE_NO_FILE)
		space.files[call.file].bytes = bytes;
	return end(call, error);
}

static int file_seal(void *context, int file, unsigned seals)
{
	const struct watch_call call = {.kind = WATCH_FILE_SEAL, .protection = seals, .file = space_file_of(file)};
	int error = begin(&call);

	(void)context;
	if (!error)
		error = table_real.file_seal(NULL, file, seals);
	if (!error && call.file != SPACE_NO_FILE)
		space.files[call.file].seals |= seals;
	return end(call, error);
}

static int file_punch(void *context, int file, uint64_t offset, uint64_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_FILE_PUNCH, .offset = offset, .bytes = bytes, .file = space_file_of(file)};
	int error = begin(&call);

	(void)context;
	if (!error) {
		look_at_file(&call);
		error = table_real.file_punch(NULL, file, offset, bytes);
	}
	return end(call, error);
}

static int file_close(void *context, int file)
{
	const struct watch_call call = {.kind = WATCH_FILE_CLOSE, .file = space_file_of(file)};
	int error = begin(&call);

	(void)context;
	if (!error) {
		if (call.file == SPACE_NO_FILE)
			broken(WATCH_FOREIGN, "a file that the allocator has not made", &call);
		error = table_real.file_close(NULL, file);
	}
	if (!error && call.file != SPACE_NO_FILE)
		space_file_close(call.file);
	return end(call, error);
}

static int limit(void *context, unsigned which, uint64_t *used, uint64_t *most)
{
	const struct watch_call call = {.kind = WATCH_LIMIT, .offset = which, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error && which == SUBJECT_LIMIT_FILE_BYTES && watch.file_limit) {
		*used = 0;
		*most = watch.file_limit;
	} else if (!error && which == SUBJECT_LIMIT_ADDRESS_BYTES && watch.address_limit) {
		*used = mapped_bytes();
		*most = watch.address_limit;
	} else if (!error && which == SUBJECT_LIMIT_MAPPINGS && watch.mapping_limit) {
		*used = space.count;
		*most = watch.mapping_limit;
	} else if (!error) {
		error = table_real.limit(NULL, which, used, most);
	}
	return end(call, error);
}

static int name(void *context, void *address, size_t bytes, const char *text)
{
	const struct watch_call call = {
		.kind = WATCH_NAME, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error) {
		look_at_owner(&call);
		error = table_real.name(NULL, address, bytes, text);
	}
	return end(call, error);
}

static int sync_code(void *context, const void *address, size_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_SYNC_CODE, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error)
		error = table_real.sync_code(NULL, address, bytes);
	return end(call, error);
}

static int serialize(void *context)
{
	const struct watch_call call = {.kind = WATCH_SERIALIZE, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error)
		error = table_real.serialize(NULL);
	return end(call, error);
}

static int probe_code(void *context, unsigned value, unsigned char *code, size_t *bytes)
{
	const struct watch_call call = {.kind = WATCH_PROBE_CODE, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error)
		error = table_real.probe_code(NULL, value, code, bytes);
	return end(call, error);
}

static unsigned probe_run(void *context, const void *code)
{
	const struct watch_call call = {.kind = WATCH_PROBE_RUN, .address = (uintptr_t)code, .file = SPACE_NO_FILE};

	(void)context;
	(void)begin(&call);
	(void)end(call, 0);
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
	int error = begin(&call);

	(void)context;
	if (!error)
		error = table_real.identity(NULL, process);
	return end(call, error);
}

static int wipe_on_fork(void *context, void *address, size_t bytes)
{
	const struct watch_call call = {
		.kind = WATCH_WIPE_ON_FORK, .address = (uintptr_t)address, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error) {
		look_at_owner(&call);
		error = table_real.wipe_on_fork(NULL, address, bytes);
	}
	return end(call, error);
}

/* Kept instead of written: a program's standard error belongs to its user. */
static int write_text(void *context, const char *text, size_t bytes)
{
	const struct watch_call call = {.kind = WATCH_WRITE, .bytes = bytes, .file = SPACE_NO_FILE};
	int error = begin(&call);

	(void)context;
	if (!error) {
		const size_t count = bytes < WATCH_TEXT_BYTES ? bytes : WATCH_TEXT_BYTES - 1;

		__builtin_memcpy(watch.text, text, count);
		watch.text[count] = '\0';
	}
	return end(call, error);
}

const struct subject_os watch_os = {
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
