/*
 * Making and destroying allocators.
 */
#include "allocator.h"

#define PAGE_BYTES_MIN 4096
#define ENVIRONMENT    EXECMEM_RW_CACHE_ENVIRONMENT

struct execmem_config execmem_config_default(struct execmem_os os)
{
	return (struct execmem_config){
		.os = os,
		.backends = {EXECMEM_BACKEND_DOUBLE, EXECMEM_BACKEND_END, EXECMEM_BACKEND_END},
		.window_bytes = EXECMEM_UNIT_BYTES,
		.rw_cache = EXECMEM_RW_CACHE_DEFAULT,
		.grow_bytes = EXECMEM_GROW_BYTES_DEFAULT,
	};
}

/* ---- Messages ---- */

struct message {
	char text[160];
	size_t bytes;
};

static void append(struct message *message, const char *text)
{
	while (*text && message->bytes < sizeof(message->text) - 1)
		message->text[message->bytes++] = *text++;
}

static void say(const struct execmem_os *os, const char *before, const char *what, const char *after)
{
	struct message message = {.bytes = 0};

	if (!os->write)
		return;
	append(&message, "execmem: ");
	append(&message, before);
	append(&message, what);
	append(&message, after);
	message.text[message.bytes++] = '\n';
	(void)os->write(os->context, message.text, message.bytes);
}

/* ---- Configuration ---- */

/* The value of a variable of the environment, or null. */
static const char *find_variable(char *const *environment, const char *variable)
{
	for (; environment && *environment; environment++) {
		const char *entry = *environment, *expected = variable;

		while (*expected && *entry == *expected) {
			entry++;
			expected++;
		}
		if (!*expected && *entry == '=')
			return entry + 1;
	}
	return NULL;
}

/* A decimal number from 0 to EXECMEM_RW_CACHE_MAX, of one or two digits and nothing else. */
static bool parse_cache(const char *text, unsigned *value)
{
	unsigned result = 0, digits = 0;

	for (; text[digits]; digits++) {
		if (text[digits] < '0' || text[digits] > '9' || digits == 2)
			return false;
		result = result * 10 + (unsigned)(text[digits] - '0');
	}
	if (digits == 0 || result > EXECMEM_RW_CACHE_MAX)
		return false;
	*value = result;
	return true;
}

static bool is_power(size_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

static bool order_is_right(const enum execmem_backend *order)
{
	bool seen[EXECMEM_BACKEND_TOGGLE + 1] = {false};

	if (order[0] == EXECMEM_BACKEND_END || order[2] != EXECMEM_BACKEND_END)
		return false;
	for (unsigned i = 0; order[i] != EXECMEM_BACKEND_END; i++) {
		if ((unsigned)order[i] > EXECMEM_BACKEND_TOGGLE || seen[order[i]])
			return false;
		seen[order[i]] = true;
	}
	return true;
}

/* Checks everything that can be checked without a system call. *rw_cache is what the environment says of it. */
static int check_config(const struct execmem_config *config, unsigned *rw_cache, struct execmem_refusals *refusals)
{
	const struct execmem_os *os = &config->os;
	const char *missing = execmem_os_missing(os), *value;
	size_t page_bytes;

	if (missing) {
		refusals->list[refusals->count++] = (struct execmem_refusal){"", missing, 0};
		say(os, "the table of system operations lacks ", missing, "");
		return EXECMEM_ERROR_OPERATION;
	}
	page_bytes = os->page_size(os->context);
	if (!is_power(page_bytes) || page_bytes < PAGE_BYTES_MIN || page_bytes > EXECMEM_UNIT_BYTES)
		return EXECMEM_ERROR_UNSUPPORTED;
	*rw_cache = config->rw_cache;
	value = find_variable(config->environment, ENVIRONMENT);
	if (value && !parse_cache(value, rw_cache)) {
		say(os, ENVIRONMENT "=", value, " is not a number from 0 to 16");
		return EXECMEM_ERROR_ENVIRONMENT;
	}
	if (!is_power(config->window_bytes) || config->window_bytes < page_bytes ||
	    config->window_bytes > EXECMEM_WINDOW_BYTES_MAX || *rw_cache > EXECMEM_RW_CACHE_MAX ||
	    config->grow_bytes == 0 || config->grow_bytes % EXECMEM_UNIT_BYTES ||
	    config->grow_bytes / EXECMEM_UNIT_BYTES > UINT32_MAX / 2 ||
	    (unsigned)config->emulation > EXECMEM_EMULATION_OFF || !order_is_right(config->backends))
		return EXECMEM_ERROR_ARGUMENT;
	return 0;
}

/* ---- Backends ---- */

static void note(struct execmem_refusals *refusals, const char *backend, const char *call, int error)
{
	if (refusals->count < EXECMEM_REFUSALS_MAX)
		refusals->list[refusals->count++] = (struct execmem_refusal){backend, call, -error};
}

static void file_refused(void *to, const char *call, int error)
{
	note(to, "double mapping", call, error);
}

static int try_double(struct execmem_allocator *allocator, enum execmem_emulation emulation,
		      struct execmem_refusals *refusals)
{
	bool stale = emulation == EXECMEM_EMULATION_ON;
	int error;

	error = execmem_file_create(allocator, &allocator->file.file, file_refused, refusals);
	if (error)
		return EXECMEM_ERROR_REFUSED;
	allocator->file.exists = true;
	error = execmem_probe_double(allocator, emulation == EXECMEM_EMULATION_PROBE, &stale, refusals);
	if (error)
		return error;
	allocator->emulation = stale;
	return 0;
}

/* PR_SET_MDWE and others refuse to make a page executable that was writable. */
static int try_toggle(struct execmem_allocator *allocator, struct execmem_refusals *refusals)
{
	const struct execmem_os *os = &allocator->os;
	const char *call = "map";
	void *page;
	int error, undone;

	error = os->map(os->context, NULL, allocator->page_bytes, EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0,
			&page);
	if (!error) {
		call = "protect";
		error = os->protect(os->context, page, allocator->page_bytes, allocator->executable);
		undone = os->unmap(os->context, page, allocator->page_bytes);
		if (undone)
			(void)os->unmap(os->context, page, allocator->page_bytes);
		if (!error && undone) {
			call = "unmap";
			error = undone;
		}
	}
	if (!error)
		return 0;
	note(refusals, "protection toggling", call, error);
	return execmem_refuse(allocator, call, error, allocator->page_bytes);
}

static int choose_backend(struct execmem_allocator *allocator, const struct execmem_config *config,
			  struct execmem_refusals *refusals)
{
	for (const enum execmem_backend *at = config->backends; *at != EXECMEM_BACKEND_END; at++) {
		int error;

		allocator->backend = *at;
		if (*at == EXECMEM_BACKEND_DOUBLE)
			error = try_double(allocator, config->emulation, refusals);
		else
			error = try_toggle(allocator, refusals);
		if (error == 0 || error == EXECMEM_ERROR_SYNC)
			return error;
		/* A file that is of no use is not kept; where closing it is refused, destroying tries again. */
		(void)execmem_file_close(allocator);
	}
	return EXECMEM_ERROR_REFUSED;
}

/* ---- Creation ---- */

static int know_process(struct execmem_allocator *allocator)
{
	const struct execmem_os *os = &allocator->os;
	void *page;
	int error = os->identity(os->context, &allocator->process);

	if (error)
		return execmem_refuse(allocator, "identity", error, 0);
	error = os->map(os->context, NULL, allocator->page_bytes, EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0,
			&page);
	if (error)
		return execmem_refuse(allocator, "map", error, allocator->page_bytes);
	if (os->wipe_on_fork(os->context, page, allocator->page_bytes)) {
		error = os->unmap(os->context, page, allocator->page_bytes);
		if (error)
			(void)os->unmap(os->context, page, allocator->page_bytes);
		return execmem_refuse(allocator, "unmap", error, 0);
	}
	allocator->same = page;
	*allocator->same = 1;
	return 0;
}

static size_t allocator_bytes(size_t page_bytes)
{
	return (sizeof(struct execmem_allocator) + page_bytes - 1) & ~(page_bytes - 1);
}

static int start(struct execmem_allocator *allocator, const struct execmem_config *config, unsigned rw_cache,
		 struct execmem_refusals *refusals)
{
	size_t page_bytes = config->os.page_size(config->os.context);
	int error;

	allocator->os = config->os;
	allocator->page_bytes = page_bytes;
	while (((size_t)1 << allocator->page_shift) < page_bytes)
		allocator->page_shift++;
	allocator->window_bytes = config->window_bytes;
	allocator->executable = EXECMEM_READ | EXECMEM_EXECUTE | (config->pads ? EXECMEM_PADS : 0);
	allocator->cache.capacity = rw_cache;
	allocator->cache.keep_order = config->keep_order;
	allocator->file.step = (uint32_t)(config->grow_bytes / EXECMEM_UNIT_BYTES);
	execmem_memory_create(&allocator->memory, page_bytes);
	error = execmem_rangemap_create(&allocator->map, &allocator->os);
	if (error)
		return execmem_refuse(allocator, "map", error, page_bytes);
	error = know_process(allocator);
	if (error)
		return error;
	return choose_backend(allocator, config, refusals);
}

/* Takes down what there is; calling again goes on where the system refused. */
static int finish(struct execmem_allocator *allocator)
{
	struct execmem_os os = allocator->os;
	size_t bytes = allocator_bytes(allocator->page_bytes);
	int error;

	error = execmem_file_close(allocator);
	if (error)
		return execmem_refuse(allocator, "file_close", error, 0);
	error = execmem_rangemap_destroy(&allocator->map, &os);
	if (!error)
		error = execmem_memory_destroy(&allocator->memory, &os);
	if (!error && allocator->same) {
		error = os.unmap(os.context, allocator->same, allocator->page_bytes);
		if (!error)
			allocator->same = NULL;
	}
	if (!error)
		error = os.unmap(os.context, allocator, bytes);
	return error;
}

int execmem_create(const struct execmem_config *config, struct execmem_allocator **allocator,
		   struct execmem_refusals *refusals)
{
	struct execmem_refusals own;
	struct execmem_allocator *made;
	unsigned rw_cache;
	void *memory;
	int error;

	if (!config || !allocator)
		return EXECMEM_ERROR_ARGUMENT;
	if (!refusals)
		refusals = &own;
	refusals->count = 0;
	error = check_config(config, &rw_cache, refusals);
	if (error)
		return error;
	error = config->os.map(config->os.context, NULL, allocator_bytes(config->os.page_size(config->os.context)),
			       EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0, &memory);
	if (error) {
		note(refusals, "", "map", error);
		return error;
	}
	made = memory;
	error = start(made, config, rw_cache, refusals);
	if (error) {
		if (refusals->count == 0 && made->refusal.call)
			refusals->list[refusals->count++] = made->refusal;
		(void)finish(made);
		return error;
	}
	*allocator = made;
	return 0;
}

int execmem_destroy(struct execmem_allocator *allocator)
{
	int error;

	if (!allocator)
		return EXECMEM_ERROR_ARGUMENT;
	/* What a destruction that was refused has left cannot tell any more. */
	error = allocator->dying ? 0 : execmem_check_process(allocator);
	if (error)
		return error;
	execmem_lock(&allocator->os, &allocator->lock);
	if (allocator->region_count)
		error = EXECMEM_ERROR_BUSY;
	else
		allocator->dying = true;
	execmem_unlock(&allocator->os, &allocator->lock);
	return error ? error : finish(allocator);
}

enum execmem_backend execmem_backend(const struct execmem_allocator *allocator)
{
	return allocator->backend;
}
