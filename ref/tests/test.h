/*
 * What the hosted tests of libexecmem share: one behaviour a file, each a program of its own, silent on success, exit
 * status 1 with a line on standard error where something is wrong.
 */
#ifndef EXECMEM_TEST_H
#define EXECMEM_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <execmem/allocator.h>
#include <execmem/fork.h>
#include <execmem/region.h>
#include <execmem/rwcache.h>
#include <execmem/stats.h>

#define EXPECT(condition_)                                                                                             \
	do {                                                                                                           \
		if (!(condition_))                                                                                     \
			test_failed(__FILE__, __LINE__, #condition_, 1, 0);                                            \
	} while (0)

#define EXPECT_EQUAL(expected_, actual_)                                                                               \
	do {                                                                                                           \
		long long e_ = (long long)(expected_), a_ = (long long)(actual_);                                      \
		if (e_ != a_)                                                                                          \
			test_failed(__FILE__, __LINE__, #actual_, e_, a_);                                             \
	} while (0)

#define OK(call_) EXPECT_EQUAL(0, call_)

extern unsigned long long test_seed; /* of a random test, printed with its failure */
_Noreturn void test_failed(const char *file, int line, const char *what, long long expected, long long actual);

/* The real table, watched: see watch.c. All counts are of the whole process. */
struct watch {
	size_t page_bytes;       /* what page_size answers; smaller arguments are an error of the library */
	unsigned long calls;     /* system calls that can fail, so far */
	unsigned long fail_at;   /* this one is refused with fail_with; 0: none */
	unsigned long fail_from; /* and these, from here on */
	const char *fail_name;   /* and every call of this name */
	int fail_with;
	bool stale; /* probe_run answers what ran there first, as an emulator does */
	long syncs; /* sync_code calls, and the last one's arguments */
	uintptr_t sync_at;
	size_t sync_bytes;
	long remaps;        /* map_fixed calls for executable memory */
	long files;         /* memory files of the library that are open now */
	long mapped;        /* bytes mapped by the library now */
	long writable;      /* bytes mapped writable from files now */
	const char *last;   /* name of the last call */
	const char *failed; /* name of the last call that was refused */
	char text[8192];    /* what was written to standard error */
	size_t text_bytes;
	bool track;           /* keep rw_mappings; not with threads */
	unsigned rw_mappings; /* writable mappings of files, or ranges that protect made writable, now */
	bool abort;           /* a failure aborts the program, for a fuzzer to see */
	uint64_t file_limit;  /* answered for EXECMEM_LIMIT_FILE_BYTES where not 0 */
	uintptr_t place;      /* of the next mapping that may lie anywhere; 0: where the system likes */
};
extern struct watch watch;

struct execmem_os watch_os(void);

/*
 * From here on what is mapped anywhere lies where it would in any process that makes the same calls: what depends on
 * addresses can be played again. Not with threads.
 */
void watch_place_alike(void);
/* Maps where the system has room; from watch.place up if that is set, one behind the other. For watch.c. */
int place_anywhere(const struct execmem_os *real, size_t bytes, unsigned protection, int file, uint64_t offset,
		   void **address);

/* An allocator over watch_os() with the defaults, changed by `change` where it is not null. */
struct execmem_allocator *make(void (*change)(struct execmem_config *config));

unsigned long count_mappings(void); /* lines of /proc/self/maps */
unsigned long count_files(void);    /* open descriptors */
unsigned long watch_blocks(void);   /* the same of the newest alone, quicker */
unsigned long file_blocks(void);    /* st_blocks of the memory files that are open, in bytes */

/* A region of `bytes` bytes, all of it committed. */
struct execmem_region committed(struct execmem_allocator *allocator, size_t bytes);

struct execmem_stats stats_of(struct execmem_allocator *allocator);

/* xorshift64: the same sequence on every machine. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
