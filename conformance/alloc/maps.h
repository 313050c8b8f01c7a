/*
 * What the system itself says is mapped, /proc/self/maps, and whether the model of space.h agrees.
 */
#ifndef ALLOC_MAPS_H
#define ALLOC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAPS_NAME_BYTES 48

struct maps_line {
	uintptr_t start, end;
	uint64_t offset;
	unsigned protection; /* SUBJECT_* */
	bool shared;
	char name[MAPS_NAME_BYTES]; /* cut where it is longer */
};

/* Reads all of it anew; maps_count lines then. */
void maps_read(void);
extern unsigned maps_count;
const struct maps_line *maps_at(unsigned i);
/* The line that holds an address, of those read last, or null. */
const struct maps_line *maps_of(uintptr_t address);

/* What is mapped now is the suite's own from now on. */
void maps_begin(void);

/*
 * Reads anew and compares with the model, extent by extent: protection, sharing, place in the file; and whether
 * anything is mapped that is neither in the model nor the suite's own. Asserts that nothing differs; notes the first
 * difference otherwise. `when` says after what.
 */
bool maps_agree(const char *when);

/* Bytes mapped that are not the suite's own. Reads anew. */
uint64_t maps_others(void);

#endif
