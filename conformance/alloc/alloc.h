/*
 * What the checks of allocators share: making one over the watched table, asserting what its operations answer,
 * writing and running code, and a walk that touches every operation.
 */
#ifndef ALLOC_ALLOC_H
#define ALLOC_ALLOC_H

#include <port.h>

#include "check.h"
#include "subject.h"
#include "subject_allocator.h"
#include "watch.h"

/* What regions, windows and steps of files are multiples of, whatever the page size. */
#define ALLOC_UNIT        ((size_t)65536)

/* The subject's operations: ALLOC(reserve)(allocator, ...). Only behind alloc_claims(). */
#define ALLOC(operation_) (subject.allocator->operation_)

/*
 * Does the subject claim all of these, a space between two? Else the point is not applicable, and false.
 * "allocator os-table" is what a check over the watched table needs.
 */
bool alloc_claims(const char *claims);

/* The defaults: double mapping alone, windows of 64 KiB, three cached views, probed emulation. */
struct subject_config alloc_config(void);

/*
 * Begins to watch anew (watch_begin), and makes an allocator over the watched table: asserted, null where it fails. A
 * null configuration is alloc_config().
 */
struct subject_allocator *alloc_make(const struct subject_config *config);
/* The same without beginning anew: settings of the watched table hold. */
struct subject_allocator *alloc_create(const struct subject_config *config);
/* Destroys it, and asserts that nothing is left: no mapping, no file, in the model and in the system. */
bool alloc_end(struct subject_allocator *allocator);

/* Asserts what an operation answered; notes both errors by name. */
bool alloc_is(int expected, int actual, const char *what, const char *file, int line);
#define ALLOC_IS(expected_, call_) alloc_is((expected_), (call_), #call_, __FILE__, __LINE__)
#define ALLOC_OK(call_)            ALLOC_IS(0, call_)
/* For a check's own function: leaves it where the assertion fails. */
#define MUST(assertion_)                                                                                               \
	do {                                                                                                           \
		if (!(assertion_))                                                                                     \
			return;                                                                                        \
	} while (0)
#define MUST_OK(call_) MUST(ALLOC_OK(call_))

/* "FILE_SIZE", "errno 12" or "no error". */
const char *alloc_error_name(int error);

/* Opens a view, writes a function that returns `value` (0 to 255), publishes, closes. Asserted. */
bool alloc_put(struct subject_allocator *allocator, uintptr_t rx, unsigned value);
/* Runs such a function. A crash is a failure of the point. */
unsigned alloc_run(uintptr_t rx);
/* Asserts that it returns `value`. */
bool alloc_runs(uintptr_t rx, unsigned value, const char *what);

/*
 * Runs a function in a process of its own, for what cannot be taken back: limits, prctl, signals. It returns 0, or the
 * number of the step that failed (ALLOC_STEP below). Asserted: it ends with 0, by no signal; `what` says what is shown.
 * A step of ALLOC_APART_NOT means that the system does not do what is to be shown: no assertion, false.
 */
bool alloc_apart(int (*run)(void), const char *what);
#define ALLOC_APART_NOT 127
/* Asserts that a process of such steps ended with 0 (os_ended); notes how it did. */
bool alloc_ended(int status, const char *what);
#define ALLOC_STEP(condition_)                                                                                         \
	do {                                                                                                           \
		if (!(condition_))                                                                                     \
			return __LINE__ % 100 + 1;                                                                     \
	} while (0)

/* The next of a sequence of numbers at random; its state is never 0 (xorshift64, Marsaglia 2003). */
uint64_t alloc_random(uint64_t *state);

/* A region of `bytes` bytes of which all is committed. Asserted. */
bool alloc_region(struct subject_allocator *allocator, size_t bytes, struct subject_region *region);

/*
 * Every operation that is claimed, in an order that splits, joins and reuses regions, files and views, from creation to
 * destruction. `before` is called when watching has begun, `after` after each operation; both may be null. Asserted:
 * every operation works. False where one does not.
 */
bool alloc_walk(const struct subject_config *config, void (*before)(void), void (*after)(const char *operation));

#endif
