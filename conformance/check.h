/*
 * What a conformance program is made of: checks, their points, and how they are reported.
 *
 * A check tests one behaviour for one requirement. It is declared with CHECK() anywhere in a family's folder and found
 * through its section, never listed by hand. A check reports one or more *points* (one a template in family PO).
 *
 * Program usage: PROGRAM [--list] [--each] [--only CHECK[.POINT]]... [--seed N] [--nonce TEXT]
 *   [--code-at ADDRESS [--code-step BYTES]] [--page BYTES] [--rounds N]
 *   --list prints one line a check: id TAB requirement TAB point,point,... TAB text
 *   --only may be repeated; without it every check runs
 *   --each runs every check in a process of its own that it forks, and prints between `# each begin CHECK status=0` and
 *     `# each end CHECK status=N` (or signal=N) what the program would print for that check alone: an emulator starts
 *     once
 *   --code-at asks the page builder for fixed addresses, so that an observer outside knows where the code is: template
 *     number k has its code page at ADDRESS + k * BYTES
 *   --page is the page size that the allocator families simulate; one below the system's own has no effect
 *   --rounds is how often checks that try sequences at random do so, 1 unless given
 * Output: KTAP version 1 with YAML diagnostics, then `# seen os_page=N stub_page=N` and
 * `# complete nonce=TEXT points=N assertions=N`. Exit status: 0 all ok, 1 a point failed, 2 usage, 3 the suite's own
 * fault (out of memory, a mapping refused). A point that asserts nothing is a failure.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct subject_template;

struct check {
	const char *id;          /* po_fault_address */
	const char *requirement; /* PO-001 */
	const char *text;        /* the behaviour in one sentence */
	/*
	 * "": the single point "all", run(NULL). "*": one point a template of the subject. Else: one point a template
	 * of that kind; where the subject has none, the single point "all" is NA.
	 */
	const char *kind;
	void (*run)(const struct subject_template *t);
};

#define CHECK_DECLARE(id_, requirement_, kind_, text_)                                                                 \
	static void id_(const struct subject_template *t);                                                             \
	static const struct check check_##id_                                                                          \
		__attribute__((used, section("execmem_checks"), aligned(sizeof(void *)))) = {#id_, requirement_,       \
											     text_, kind_, id_};       \
	static void id_(const struct subject_template *t __attribute__((unused)))

/* CHECK(id, "PO-050", "text") { body }: one point, "all". */
#define CHECK(id_, requirement_, text_)                  CHECK_DECLARE(id_, requirement_, "", text_)
/* CHECK_TEMPLATES(id, "PO-001", "*", "text") { body }: the body is one point, for template t. */
#define CHECK_TEMPLATES(id_, requirement_, kind_, text_) CHECK_DECLARE(id_, requirement_, kind_, text_)

/* Assertions. A failed one records expected and actual, ends the point (returns false) and is reported once. */
bool check_true(bool condition, const char *what, const char *file, int line);
bool check_equal(uint64_t expected, uint64_t actual, const char *what, const char *file, int line);
#define CHECK_TRUE(condition_, what_)          check_true((condition_), (what_), __FILE__, __LINE__)
#define CHECK_EQUAL(expected_, actual_, what_) check_equal((expected_), (actual_), (what_), __FILE__, __LINE__)

/* Diagnostics kept for the failure block of the current point; the latest value of a key wins. */
void check_note(const char *key, const char *value);
void check_note_number(const char *key, uint64_t value); /* printed as 0x... */
void check_note_signed(const char *key, int64_t value);  /* printed as 0x... or -0x... */
/* Forgets those of the current point, where what they spoke of is over. */
void check_note_clear(void);
/* Bytes around a place, printed as `bytes: hex`, `bytes_at: address`, `bytes_mark: address`, to be disassembled
 * outside. */
void check_note_code(const void *bytes, size_t count, uintptr_t address, uintptr_t mark);

/* The point cannot be judged: not claimed by the subject (NA), or this emulator cannot show it (EMU). */
void check_not_claimed(const char *reason);
void check_emulator(const char *reason);

/*
 * A signal outside a captured call: prints what was under way as a failed point, and lets the signal end the program.
 * From a signal handler.
 */
void check_crash(int signal, uintptr_t pc, uintptr_t address);

/* The suite itself cannot go on (a mapping refused, a builder out of memory): prints why, exit status 3. */
_Noreturn void check_broken(const char *why, long error);

/* What the command line and the start-up gave. */
extern uint64_t check_seed;
extern uintptr_t check_code_at, check_code_step;
extern size_t check_os_page;           /* from AT_PAGESZ */
extern size_t check_page;              /* of --page, and at least check_os_page */
extern uint64_t check_rounds;          /* of --rounds; at least 1 */
extern char *const *check_environment; /* null-terminated */

/* Does the subject's manifest make this claim? */
bool check_claimed(const char *claim);

#endif
