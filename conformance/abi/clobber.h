/*
 * What the capturing call stub is proved with: for each register a function that changes exactly that one.
 *
 * The table and the functions are generated from the port's manifest (registers, clobber_general, clobber_vector). It
 * has one entry for each general register, in the order of registers.general, then one for each vector register. All
 * members are words of pointer size, so that assembly can spell it as easily as C.
 */
#ifndef CLOBBER_H
#define CLOBBER_H

#include <stdint.h>

struct abi_clobber {
	const char *name;    /* as in port.toml */
	uintptr_t index;     /* in the capture's general or vector registers */
	uintptr_t is_vector; /* 0 or 1 */
	uintptr_t classes;   /* SUBJECT_CLASS_* of subject.h */
	/*
	 * Begins with a landing pad where the port has them, changes the register, and jumps to execmem_port_landing[0]
	 * without changing another. Null for a register of SUBJECT_CLASS_RESERVED.
	 */
	void (*function)(void);
};

extern const struct abi_clobber abi_clobbers[];
extern const uintptr_t abi_clobber_count;

#endif
