/*
 * A model of what an allocator has mapped: extents in the order of their addresses, and the memory files behind them.
 *
 * An extent knows the mapping that made it (a generation: mapping anew at the same address makes another one) and
 * everything that its pages could be used for in that generation. One model in a program; its callers see to it that
 * one thread at a time changes it. No system call is made here.
 */
#ifndef ALLOC_SPACE_H
#define ALLOC_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPACE_EXTENTS_MOST 4096
#define SPACE_FILES_MOST   256
#define SPACE_NO_FILE      (-1)

struct space_extent {
	uintptr_t start, end;
	uint64_t offset;    /* in the file of the first byte */
	uint32_t mapping;   /* number of the call that mapped it; a fixed mapping within another one takes that one's */
	int16_t file;       /* index into space.files, or SPACE_NO_FILE */
	uint8_t protection; /* SUBJECT_* now */
	uint8_t ever;       /* and all that it was in this generation */
};

struct space_file {
	int descriptor; /* -1: closed */
	uint64_t bytes;
	unsigned seals;
};

struct space {
	struct space_extent extents[SPACE_EXTENTS_MOST];
	unsigned count;
	struct space_file files[SPACE_FILES_MOST]; /* the closed ones stay as long as pages of them are mapped */
	unsigned file_count;
	uint32_t mappings; /* made so far */
};
extern struct space space;

void space_clear(void);

/* What the model does not hold. It has no room left: the suite's own trouble, ends the program. */
void space_map(uintptr_t start, size_t bytes, unsigned protection, int file, uint64_t offset);
void space_unmap(uintptr_t start, size_t bytes);
void space_protect(uintptr_t start, size_t bytes, unsigned protection);

/* The extent that holds an address, or null. */
const struct space_extent *space_at(uintptr_t address);
/* Is every byte of the range mapped? Is none? */
bool space_holds(uintptr_t start, size_t bytes);
bool space_free(uintptr_t start, size_t bytes);

int space_file_open(int descriptor); /* an index */
int space_file_of(int descriptor);   /* an index, or SPACE_NO_FILE */
void space_file_close(int index);

/* Writable mappings of files that are alive, as mappings that were made: the pieces of one count once. */
unsigned space_views(void);
unsigned space_open_files(void);
/* Bytes mapped, and bytes mapped executable. */
uint64_t space_bytes(void);
uint64_t space_executable(void);

/*
 * What must be as before when a call has failed: executable mappings, reservations, open files. Pages of the
 * allocator's own bookkeeping (private and writable) are left out, as are writable views of files, which may be fewer.
 */
struct space_state {
	uint64_t digest;
	unsigned files, views;
};
struct space_state space_state(void);

#endif
