/*
 * What family IC sees of publishing: the calls of sync_code and serialize, in order, with what was so at the time; and
 * whether this machine, or this emulator, shows rewritten code.
 */
#ifndef IC_OBSERVE_H
#define IC_OBSERVE_H

#include "../alloc/alloc.h"

#define OBSERVE_SYNCS_MOST 32

struct observe_sync {
	uintptr_t address;
	size_t bytes;
	unsigned views; /* writable mappings alive */
};

struct observe {
	unsigned count; /* of syncs made or tried; further ones are counted, not kept */
	struct observe_sync syncs[OBSERVE_SYNCS_MOST];
	unsigned serializes;
	unsigned serialized_after; /* syncs before the first serialize */
	/* Where not null: what must lie at `address` when it is synchronised, from `at` on. Counts what differs. */
	const unsigned char *expected;
	uintptr_t at;
	size_t bytes;
	unsigned early;
	/* The sync of this number, from 1, is refused with this errno; 0: none. */
	unsigned refuse_at;
	int refuse_with;
};
extern struct observe observe;

/* Begins to observe, through watch.refuse. */
void observe_begin(void);

struct observe_range {
	uintptr_t address;
	size_t bytes;
};
/*
 * Asserts that the syncs so far are these ranges, each byte once and no other; they may be cut or joined. The ranges do
 * not touch and are in the order of their addresses.
 */
bool observe_exactly(const struct observe_range *ranges, unsigned count);

/* Does code that was executed, rewritten through another mapping and synchronised go on running as it was? Probed once
 * in a process, over the real system, without the subject. */
bool observe_stale(void);

/* Can this system serialise threads? Probed once in a process. */
bool observe_serializes(void);

#endif
