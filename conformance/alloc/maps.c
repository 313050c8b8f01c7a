#include "maps.h"

#include "check.h"
#include "space.h"
#include "subject.h"
#include "subject_allocator.h"
#include "table.h"
#include "text.h"

#define LINES_MOST 4096
#define OWN_MOST   256
#define AT_FDCWD   (-100)

static struct maps_line lines[LINES_MOST];
unsigned maps_count;
static struct {
	uintptr_t start, end;
} own[OWN_MOST];
static unsigned own_count;

/* ---- Reading ---- */

static struct {
	char room[4096];
	long used, count, file;
} input;

static int next_char(void)
{
	if (input.used == input.count) {
		input.count = TABLE_CALL(READ, input.file, input.room, sizeof(input.room));
		input.used = 0;
		if (input.count <= 0) {
			input.count = 0;
			return -1;
		}
	}
	return input.room[input.used++];
}

/* A hexadecimal number, up to the character behind it, which is returned. */
static int next_number(uint64_t *value)
{
	int c;

	for (*value = 0; (c = next_char()) > 0;) {
		if (c >= '0' && c <= '9')
			*value = *value << 4 | (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value << 4 | (unsigned)(c - 'a' + 10);
		else
			break;
	}
	return c;
}

/* "start-end rwxs offset device inode   name" */
static bool next_line(struct maps_line *line)
{
	uint64_t start, end, ignored;
	struct text name;
	int c = next_number(&start);

	if (c < 0)
		return false;
	next_number(&end);
	*line = (struct maps_line){.start = (uintptr_t)start, .end = (uintptr_t)end};
	line->protection |= next_char() == 'r' ? SUBJECT_READ : 0u;
	line->protection |= next_char() == 'w' ? SUBJECT_WRITE : 0u;
	line->protection |= next_char() == 'x' ? SUBJECT_EXECUTE : 0u;
	line->shared = next_char() == 's';
	next_char();
	next_number(&line->offset);
	while ((c = next_char()) > 0 && c != ' ')
		continue; /* device */
	c = next_number(&ignored);
	while (c == ' ')
		c = next_char();
	name = TEXT(line->name);
	for (; c > 0 && c != '\n'; c = next_char())
		text_add(&name, (char[]){(char)c, '\0'});
	return true;
}

void maps_read(void)
{
	input.file = TABLE_CALL(OPENAT, AT_FDCWD, "/proc/self/maps", 0);
	if (input.file < 0)
		check_broken("/proc/self/maps cannot be read", input.file);
	input.used = input.count = 0;
	for (maps_count = 0; next_line(&lines[maps_count]); maps_count++)
		if (maps_count + 1 == LINES_MOST)
			check_broken("/proc/self/maps is too long", LINES_MOST);
	TABLE_CALL(CLOSE, input.file);
}

const struct maps_line *maps_at(unsigned i)
{
	return &lines[i];
}

const struct maps_line *maps_of(uintptr_t address)
{
	for (unsigned i = 0; i < maps_count; i++)
		if (lines[i].start <= address && address < lines[i].end)
			return &lines[i];
	return NULL;
}

/* ---- The suite's own ---- */

void maps_begin(void)
{
	maps_read();
	own_count = 0;
	for (unsigned i = 0; i < maps_count; i++) {
		if (own_count && own[own_count - 1].end == lines[i].start) {
			own[own_count - 1].end = lines[i].end;
		} else {
			if (own_count == OWN_MOST)
				check_broken("too many mappings of the suite's own", OWN_MOST);
			own[own_count].start = lines[i].start;
			own[own_count++].end = lines[i].end;
		}
	}
}

/* The end of what is the suite's own from the address on; the address itself where it is not. */
static uintptr_t own_until(uintptr_t address)
{
	for (unsigned i = 0; i < own_count; i++)
		if (own[i].start <= address && address < own[i].end)
			return own[i].end;
	return address;
}

/* Where the next of the suite's own begins, at most `limit`. */
static uintptr_t own_from(uintptr_t address, uintptr_t limit)
{
	for (unsigned i = 0; i < own_count; i++)
		if (own[i].start > address && own[i].start < limit)
			return own[i].start;
	return limit;
}

/* Memory that a C library in the program maps for itself: of malloc, and stacks. Never executable, never shared. */
static bool is_library(const struct maps_line *line)
{
	return subject_hosted && !line->shared && !(line->protection & SUBJECT_EXECUTE);
}

uint64_t maps_others(void)
{
	uint64_t bytes = 0;

	maps_read();
	for (unsigned i = 0; i < maps_count; i++) {
		if (text_equal(lines[i].name, "[stack]") || is_library(&lines[i]))
			continue; /* grows */
		for (uintptr_t at = lines[i].start; at < lines[i].end;) {
			const uintptr_t mine = own_until(at), next = own_from(at, lines[i].end);

			if (mine > at) {
				at = mine;
			} else {
				bytes += next - at;
				at = next;
			}
		}
	}
	return bytes;
}

/* ---- Comparing ---- */

static bool differ(const char *when, const char *what, uintptr_t address, unsigned expected, unsigned actual)
{
	check_note("after", when);
	check_note("difference", what);
	check_note_number("address", address);
	check_note_number("in_the_model", expected);
	check_note_number("in_the_system", actual);
	return CHECK_TRUE(false, "the model of what was mapped agrees with /proc/self/maps");
}

/*
 * Reservations that nothing can access may be missing: emulators keep a guest's free address space reserved in the same
 * way, and do not show what lies in it.
 */
static bool extent_agrees(const char *when, const struct space_extent *extent)
{
	for (uintptr_t at = extent->start; at < extent->end;) {
		const struct maps_line *line = maps_of(at);
		const unsigned seen = extent->protection & (SUBJECT_READ | SUBJECT_WRITE | SUBJECT_EXECUTE);

		if (!line && seen)
			return differ(when, "not mapped at all", at, extent->protection, 0);
		if (!line) {
			at += check_os_page;
			continue;
		}
		if (line->protection != seen)
			return differ(when, "another protection", at, extent->protection, line->protection);
		if (extent->file != SPACE_NO_FILE && !line->shared)
			return differ(when, "not shared", at, 1, 0);
		if (extent->file != SPACE_NO_FILE &&
		    line->offset + (at - line->start) != extent->offset + (at - extent->start))
			return differ(when, "another place in the file", at,
				      (unsigned)(extent->offset + (at - extent->start)),
				      (unsigned)(line->offset + (at - line->start)));
		at = line->end;
	}
	return true;
}

static bool line_is_known(const char *when, const struct maps_line *line)
{
	for (uintptr_t at = line->start; at < line->end;) {
		const uintptr_t mine = own_until(at);
		const struct space_extent *extent = space_at(at);

		if (mine > at)
			at = mine;
		else if (extent)
			at = extent->end;
		else
			return differ(when, "mapped, and not in the model", at, 0, line->protection);
	}
	return true;
}

bool maps_agree(const char *when)
{
	maps_read();
	for (unsigned i = 0; i < space.count; i++)
		if (!extent_agrees(when, &space.extents[i]))
			return false;
	for (unsigned i = 0; i < maps_count; i++)
		if (!text_equal(lines[i].name, "[stack]") && !is_library(&lines[i]) && !line_is_known(when, &lines[i]))
			return false;
	return CHECK_TRUE(true, "the model of what was mapped agrees with /proc/self/maps");
}
