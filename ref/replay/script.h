/*
 * The steps that the replayer takes: what a trace comes to once every block has its place.
 *
 * Text, one step a line, numbers in decimal, bytes everywhere:
 *
 *   reserve REGION BYTES             REGION counts from 0, each next by one
 *   commit REGION OFFSET BYTES
 *   write REGION OFFSET BYTES ONCE   opens a view, writes, publishes, closes; ONCE is 1 for a single-use mapping, else
 * 0 open VIEW REGION OFFSET BYTES    opens a view and writes; VIEW is a number below SCRIPT_VIEWS that is not open
 *   close VIEW                       publishes and closes it
 *   release REGION
 *
 * execmem-cts writes it; people write traces (ref/replay/README.md).
 */
#ifndef EXECMEM_REPLAY_SCRIPT_H
#define EXECMEM_REPLAY_SCRIPT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SCRIPT_VIEWS 1024u

enum script_kind { SCRIPT_RESERVE, SCRIPT_COMMIT, SCRIPT_WRITE, SCRIPT_OPEN, SCRIPT_CLOSE, SCRIPT_RELEASE };

struct script_step {
	enum script_kind kind;
	uint32_t region, view;
	uint64_t offset, bytes;
	unsigned once;
};

struct script {
	struct script_step *steps;
	size_t count;
	uint32_t regions; /* numbers of regions are below it */
};

/*
 * Reads all of `file`. On a line that is not understood, says so on standard error, with its number and what was
 * expected, and ends the program with status 2; with 3 where memory is short.
 */
struct script script_read(FILE *file, const char *name);

#endif
