/*
 * The two views of the same bytes of code, as different types: an address to write at is never one to call.
 */
#ifndef EXECMEM_VIEW_H
#define EXECMEM_VIEW_H

#include <stdint.h>

/* RW: where bytes are written. */
typedef struct {
	unsigned char *at;
} execmem_rw;

/* RX: where the same bytes run. An address, without a mode bit; not to be dereferenced. */
typedef struct {
	uintptr_t at;
} execmem_rx;

#endif
