/*
 * One point of a check: its assertions and diagnostics, and the report of it. See check.h.
 */
#include "check.h"

#include <port.h>

#include "os.h"
#include "report.h"
#include "text.h"

#define NOTES_MOST     20
#define KEY_BYTES      20
#define VALUE_BYTES    256
#define NOTE_CODE_MOST 96

uint64_t report_points, report_assertions;

/* The point under way. */
static struct {
	const struct check *check; /* null: none */
	const char *point;
	uint64_t assertions;
	bool failed;
	const char *skip_kind, *skip_reason;
	const char *message, *file;
	int line;
	struct note {
		char key[KEY_BYTES], value[VALUE_BYTES];
	} notes[NOTES_MOST];
	unsigned note_count;
} now;

/* ---- Output ---- */

void report_put(const char *string)
{
	size_t left = text_length(string);

	while (left) {
		const long count = execmem_port_write(1, string, left);

		if (count <= 0)
			execmem_port_exit(STATUS_BROKEN);
		string += count;
		left -= (size_t)count;
	}
}

static void put_pair(const char *key, const char *value)
{
	char room[KEY_BYTES + VALUE_BYTES * 4];
	struct text line = TEXT(room);

	text_add(&line, "  ");
	text_add(&line, key);
	text_add(&line, ": ");
	text_add(&line, value);
	/* One line a key, whatever the value. */
	for (size_t i = 0; i < line.used; i++)
		if (room[i] == '\n')
			room[i] = ' ';
	report_put(room);
	report_put("\n");
}

static void put_number(const char *key, uint64_t value)
{
	char room[32];
	struct text text = TEXT(room);

	text_add_decimal(&text, value);
	put_pair(key, room);
}

static void put_block(void)
{
	char room[VALUE_BYTES * 3];
	struct text calls = TEXT(room);

	report_put("  ---\n");
	put_pair("requirement", now.check->requirement);
	put_pair("text", now.check->text);
	put_pair("message", now.message);
	if (now.file) {
		put_pair("file", now.file);
		put_number("line", (uint64_t)now.line);
	}
	for (unsigned i = 0; i < now.note_count; i++)
		put_pair(now.notes[i].key, now.notes[i].value);
	put_number("seed", check_seed);
	os_describe(&calls);
	put_pair("os_calls", room);
	report_put("  ...\n");
}

static void put_result(void)
{
	char room[512];
	struct text line = TEXT(room);

	text_add(&line, now.failed ? "not ok " : "ok ");
	text_add_decimal(&line, report_points);
	text_add(&line, " - ");
	text_add(&line, now.check->id);
	text_add(&line, ".");
	text_add(&line, now.point);
	if (!now.failed && now.skip_kind) {
		text_add(&line, " # SKIP ");
		text_add(&line, now.skip_kind);
		text_add(&line, ": ");
		text_add(&line, now.skip_reason);
	}
	text_add(&line, "\n");
	report_put(room);
	if (now.failed)
		put_block();
}

/* ---- What checks call ---- */

void check_note(const char *key, const char *value)
{
	unsigned i = 0;
	struct text text;

	while (i < now.note_count && !text_equal(now.notes[i].key, key))
		i++;
	if (i == NOTES_MOST)
		check_broken("too many diagnostics in one point", NOTES_MOST);
	if (i == now.note_count)
		now.note_count++;
	text = TEXT(now.notes[i].key);
	text_add(&text, key);
	text = TEXT(now.notes[i].value);
	text_add(&text, value);
}

void check_note_clear(void)
{
	if (!now.failed)
		now.note_count = 0;
}

void check_note_number(const char *key, uint64_t value)
{
	char room[32];
	struct text text = TEXT(room);

	text_add_hex(&text, value);
	check_note(key, room);
}

void check_note_signed(const char *key, int64_t value)
{
	char room[32];
	struct text text = TEXT(room);

	text_add_signed_hex(&text, value);
	check_note(key, room);
}

void check_note_code(const void *bytes, size_t count, uintptr_t address, uintptr_t mark)
{
	char room[VALUE_BYTES];
	struct text text = TEXT(room);

	for (size_t i = 0; i < count && i < NOTE_CODE_MOST; i++)
		text_add_byte(&text, ((const unsigned char *)bytes)[i]);
	check_note("bytes", room);
	check_note_number("bytes_at", address);
	check_note_number("bytes_mark", mark);
}

/* The first failure of a point is the one that is reported. */
static void fail(const char *what, const char *file, int line)
{
	now.failed = true;
	now.message = what;
	now.file = file;
	now.line = line;
}

bool check_true(bool condition, const char *what, const char *file, int line)
{
	now.assertions++;
	if (!condition && !now.failed) {
		fail(what, file, line);
		check_note("expected", "true");
		check_note("actual", "false");
	}
	return condition;
}

bool check_equal(uint64_t expected, uint64_t actual, const char *what, const char *file, int line)
{
	now.assertions++;
	if (expected != actual && !now.failed) {
		fail(what, file, line);
		check_note_number("expected", expected);
		check_note_number("actual", actual);
	}
	return expected == actual;
}

static void skip(const char *kind, const char *reason)
{
	if (now.skip_kind)
		return;
	now.skip_kind = kind;
	now.skip_reason = reason;
}

void check_not_claimed(const char *reason)
{
	skip("NA", reason);
}

void check_emulator(const char *reason)
{
	skip("EMU", reason);
}

_Noreturn void check_broken(const char *why, long error)
{
	char room[VALUE_BYTES * 4];
	struct text line = TEXT(room);

	text_add(&line, "# broken ");
	if (now.check) {
		text_add(&line, now.check->id);
		text_add(&line, ".");
		text_add(&line, now.point);
		text_add(&line, " ");
	}
	text_add(&line, why);
	text_add(&line, " (");
	text_add_signed_hex(&line, error);
	text_add(&line, ")\n# os_calls ");
	os_describe(&line);
	text_add(&line, "\n");
	report_put(room);
	execmem_port_exit(STATUS_BROKEN);
}

void check_crash(int signal, uintptr_t pc, uintptr_t address)
{
	static bool crashed;

	if (!crashed && now.check) {
		crashed = true;
		check_note_number("signal", (uint64_t)signal);
		check_note_number("signal_pc", pc);
		check_note_number("signal_address", address);
		fail("a signal outside a captured call ends the program", NULL, 0);
		put_result();
	}
	os_default_signal(signal);
}

void report_begin(const struct check *check, const char *point)
{
	report_points++;
	now.check = check;
	now.point = point;
	now.assertions = 0;
	now.failed = false;
	now.skip_kind = NULL;
	now.note_count = 0;
}

bool report_end(void)
{
	if (!now.failed && !now.skip_kind && !now.assertions)
		fail("the point asserted nothing", NULL, 0);
	put_result();
	report_assertions += now.assertions;
	now.check = NULL;
	return now.failed;
}
