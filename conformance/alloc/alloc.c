#include "alloc.h"

#include "maps.h"
#include "os.h"
#include "table.h"
#include "text.h"

bool alloc_claims(const char *claims)
{
	char room[64];

	while (*claims) {
		struct text claim = TEXT(room);

		while (*claims == ' ')
			claims++;
		for (; *claims && *claims != ' '; claims++)
			text_add(&claim, (char[]){*claims, '\0'});
		if (!check_claimed(room)) {
			check_not_claimed("the subject does not claim what this needs");
			return false;
		}
	}
	return true;
}

struct subject_config alloc_config(void)
{
	return (struct subject_config){
		.backends = {SUBJECT_BACKEND_DOUBLE, SUBJECT_BACKEND_END, SUBJECT_BACKEND_END},
		.window_bytes = ALLOC_UNIT,
		.rw_cache = 3,
		.grow_bytes = 16 * ALLOC_UNIT,
		.emulation = SUBJECT_EMULATION_PROBE,
	};
}

/* ---- Assertions ---- */

const char *alloc_error_name(int error)
{
	static char room[2][32];
	static unsigned next;
	struct text text;

	switch (error) {
	case 0:
		return "no error";
#define NAME(name_, number_, text_)                                                                                    \
	case SUBJECT_ERROR_##name_:                                                                                    \
		return #name_;
		SUBJECT_ERRORS(NAME)
#undef NAME
	default:
		next = !next;
		text = TEXT(room[next]);
		text_add(&text, error < 0 ? "errno " : "positive: ");
		text_add_decimal(&text, (uint64_t)(error < 0 ? -(int64_t)error : error));
		return room[next];
	}
}

bool alloc_is(int expected, int actual, const char *what, const char *file, int line)
{
	if (expected != actual) {
		check_note("operation", what);
		check_note("error_expected", alloc_error_name(expected));
		check_note("error_actual", alloc_error_name(actual));
		check_note_number("page", watch.page);
	}
	return check_equal((uint64_t)(int64_t)expected, (uint64_t)(int64_t)actual,
			   expected ? "an operation is refused with its own error" : "an operation works", file, line);
}

/* ---- Allocators ---- */

struct subject_allocator *alloc_create(const struct subject_config *config)
{
	const struct subject_config defaults = alloc_config();
	struct subject_allocator *allocator = NULL;
	struct subject_refusals refusals;

	if (!ALLOC_OK(ALLOC(create_over)(&watch_os, config ? config : &defaults, &allocator, &refusals)))
		return NULL;
	return allocator;
}

struct subject_allocator *alloc_make(const struct subject_config *config)
{
	watch_begin();
	return alloc_create(config);
}

bool alloc_apart(int (*run)(void), const char *what)
{
	const int status = os_apart(run);

	return status != ALLOC_APART_NOT && alloc_ended(status, what);
}

bool alloc_ended(int status, const char *what)
{
	if (status)
		check_note_signed(status < 0 ? "ended_by_signal" : "line_modulo_100",
				  status < 0 ? -status : status - 1);
	return check_equal(0, (uint64_t)(int64_t)status, what, __FILE__, __LINE__);
}

bool alloc_end(struct subject_allocator *allocator)
{
	return ALLOC_OK(ALLOC(destroy)(allocator)) &&
	       CHECK_EQUAL(0, space.count, "nothing is mapped once the allocator is gone") &&
	       CHECK_EQUAL(0, space_open_files(), "no file is open once the allocator is gone") &&
	       maps_agree("destroy");
}

bool alloc_region(struct subject_allocator *allocator, size_t bytes, struct subject_region *region)
{
	return ALLOC_OK(ALLOC(reserve)(allocator, bytes, region)) && ALLOC_OK(ALLOC(commit)(region, 0, bytes));
}

/* ---- Code ---- */

bool alloc_put(struct subject_allocator *allocator, uintptr_t rx, unsigned value)
{
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	const size_t bytes = execmem_port_probe_code(value, code);
	struct subject_view view;

	if (!ALLOC_OK(ALLOC(open)(allocator, rx, bytes, 0, &view)))
		return false;
	__builtin_memcpy(view.rw, code, bytes);
	return ALLOC_OK(ALLOC(publish)(&view, 0, bytes, 0)) && ALLOC_OK(ALLOC(close)(&view));
}

unsigned alloc_run(uintptr_t rx)
{
	return table_real.probe_run(NULL, (const void *)rx);
}

bool alloc_runs(uintptr_t rx, unsigned value, const char *what)
{
	check_note_number("code_at", rx);
	return check_equal(value, alloc_run(rx), what, __FILE__, __LINE__);
}

uint64_t alloc_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
