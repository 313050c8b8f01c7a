/*
 * Plain calls of stubs, for loops and for other threads: landings that only count, and nothing is captured. A stub that
 * goes wild, or destroys what its caller keeps in registers, ends the program, so ask light_safe first.
 */
#ifndef LIGHT_H
#define LIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "page.h"

#define LIGHT_LANDINGS 2

/* Arrivals at each landing; also a word to sleep on, see os_wait. */
extern volatile int32_t light_hits[LIGHT_LANDINGS];

/*
 * Whether a captured call of the place, its record and cell as they are, arrives at landing `landing` and leaves what a
 * plain call relies on. A failed assertion otherwise.
 */
bool light_safe(const struct page_place *place, unsigned landing);

void light_clear(void);
/* Address, with mode bit, of one. */
uintptr_t light_landing(unsigned index);
void light_call(uintptr_t entry);

#endif
