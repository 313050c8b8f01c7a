/*
 * The watched table: struct subject_os over the real one, which records every call in order, keeps the model of
 * space.h, answers with a page size of the suite's choice and holds the allocator to it, and refuses what it is told
 * to. After every call the rules below are looked at; what breaks one is kept, for the check to judge.
 *
 * One watched table in a program. Its entries may be called from any thread: they take turns, except wait and wake.
 * Changing the settings is for one thread, while no other is in the allocator.
 */
#ifndef ALLOC_WATCH_H
#define ALLOC_WATCH_H

#include "space.h"
#include "subject_allocator.h"

/* X(kind, entry of struct subject_os, can it be refused?) */
#define WATCH_KINDS(X)                                                                                                 \
	X(MAP, map, 1)                                                                                                 \
	X(MAP_FIXED, map_fixed, 1)                                                                                     \
	X(PROTECT, protect, 1)                                                                                         \
	X(UNMAP, unmap, 1)                                                                                             \
	X(DISCARD, discard, 1)                                                                                         \
	X(DISCARD_MANY, discard_many, 1)                                                                               \
	X(FILE_CREATE, file_create, 1)                                                                                 \
	X(FILE_GROW, file_grow, 1)                                                                                     \
	X(FILE_SEAL, file_seal, 1)                                                                                     \
	X(FILE_PUNCH, file_punch, 1)                                                                                   \
	X(FILE_CLOSE, file_close, 1)                                                                                   \
	X(LIMIT, limit, 1)                                                                                             \
	X(NAME, name, 1)                                                                                               \
	X(SYNC_CODE, sync_code, 1)                                                                                     \
	X(SERIALIZE, serialize, 1)                                                                                     \
	X(PROBE_CODE, probe_code, 1)                                                                                   \
	X(PROBE_RUN, probe_run, 0)                                                                                     \
	X(IDENTITY, identity, 1)                                                                                       \
	X(WIPE_ON_FORK, wipe_on_fork, 1)                                                                               \
	X(WRITE, write, 1)

enum watch_kind {
#define WATCH_ENUM(kind_, entry_, refusable_) WATCH_##kind_,
	WATCH_KINDS(WATCH_ENUM)
#undef WATCH_ENUM
		WATCH_KIND_COUNT
};
extern const char *const watch_name[WATCH_KIND_COUNT]; /* the entry's */

/* One call. What a kind has no use for is 0. */
struct watch_call {
	uint64_t bytes;    /* of file_grow: the new length */
	uint64_t offset;   /* in the file; of limit: which */
	uintptr_t address; /* of a map: the hint before, the result after */
	enum watch_kind kind;
	int result;
	unsigned protection; /* of file_create: `executable`; of file_seal: the seals */
	int file;            /* index into space.files, or SPACE_NO_FILE */
	bool injected;       /* refused by the suite */
};

/* What the rules are about. */
enum watch_rule {
	WATCH_BOTH,     /* a mapping that is writable and executable */
	WATCH_FRESH,    /* a page made executable by changing its protection (not looked at where `toggling`) */
	WATCH_MULTIPLE, /* an address, a length or a file offset that is no multiple of the page size */
	WATCH_FOREIGN,  /* a range or file that the allocator did not map or make through the table */
	WATCH_BEYOND,   /* a file grown beyond the limit, or mapped or punched beyond its end */
	WATCH_RULE_COUNT
};
struct watch_broken {
	unsigned count;
	const char *what; /* of the first */
	struct watch_call call;
};

#define WATCH_CALLS_KEPT 1024
#define WATCH_TEXT_BYTES 4096

struct watch {
	/* Settings; watch_begin() sets them to nothing. */
	size_t page;                                       /* what page_size answers */
	bool toggling;                                     /* changing protections is allowed */
	bool deny_write_execute;                           /* as PR_SET_MDWE */
	bool alone;                                        /* one thread: who waits would wait for ever, and traps */
	unsigned long fail_at;                             /* the call of this number is refused; 0: none */
	unsigned long fail_from;                           /* and every one from this number on */
	int fail_with;                                     /* errno, positive */
	int (*refuse)(const struct watch_call *call);      /* else: 0, or a negative errno to refuse it with */
	uint64_t file_limit, address_limit, mapping_limit; /* bytes, bytes, extents; 0: the system's own */

	/* What came. */
	unsigned long calls;    /* that can be refused, so far */
	unsigned long recorded; /* all of them; watch_call_at() has the last WATCH_CALLS_KEPT */
	unsigned long injected; /* refused by the suite */
	unsigned long asked;    /* times the page size was asked for */
	unsigned long of_kind[WATCH_KIND_COUNT];
	struct watch_call refused; /* the last one that was */
	struct watch_broken broken[WATCH_RULE_COUNT];
	char text[WATCH_TEXT_BYTES]; /* written to standard error: the last piece, terminated */
};
extern struct watch watch;

extern const struct subject_os watch_os;

/* Unmaps what the model still holds, forgets everything, sets page to check_page, and takes what is mapped now for the
 * suite's own (maps.h). */
void watch_begin(void);
/* Takes the settings that refuse something back. */
void watch_allow(void);
/* The k-th refusable call from now, k from 1, is refused with errno `error`. */
void watch_fail(unsigned long k, int error);

/* A call by its number among `recorded`, from 0; of those that are kept. */
const struct watch_call *watch_call_at(unsigned long number);

/*
 * Asserts that no call has broken a rule so far. For a failure, notes the first call that did. Returns whether none
 * has.
 */
bool watch_kept(enum watch_rule rule, const char *what, const char *file, int line);
#define WATCH_KEPT(rule_, what_) watch_kept((rule_), (what_), __FILE__, __LINE__)

#endif
