/*
 * Address to owner and kind in constant time: a table of tables with one word a unit of EXECMEM_UNIT_BYTES.
 *
 * Reading takes no lock and makes two dependent loads; it may be done in any thread and in a signal handler, while
 * another thread changes the map. Tables stay until the map is destroyed. Changing must be serialised by the caller.
 */
#ifndef EXECMEM_RANGEMAP_H
#define EXECMEM_RANGEMAP_H

#include <execmem/allocator.h>

#define EXECMEM_UNIT_SHIFT            16

/* 48 bits are what Linux hands out on a 64-bit port unless asked for more. */
#define EXECMEM_RANGEMAP_ADDRESS_BITS (sizeof(void *) > 4 ? 48 : 32)
/* A leaf covers 4 GiB and is 512 KiB, of which what is used is touched; or 64 MiB, and 4 KiB. */
#define EXECMEM_RANGEMAP_LEAF_BITS    (sizeof(void *) > 4 ? 16 : 10)
#define EXECMEM_RANGEMAP_ROOT_BITS    (EXECMEM_RANGEMAP_ADDRESS_BITS - EXECMEM_UNIT_SHIFT - EXECMEM_RANGEMAP_LEAF_BITS)

/* The root is sparse: so many of its entries share a bit that says whether one of them was ever used. */
#define EXECMEM_RANGEMAP_GROUP_BITS   9
#define EXECMEM_RANGEMAP_GROUP_WORDS  4 /* of 32 groups: enough for 16 bits of root */

/* Words carry the kind plus one in the low bits of a pointer to an object with this alignment. */
#define EXECMEM_RANGEMAP_OWNER_ALIGN  64

struct execmem_rangemap {
	uintptr_t **root;  /* null or the leaf's table */
	size_t leaf_bytes; /* mapped for a leaf: a multiple of the page size */
	size_t root_bytes;
	size_t bytes; /* mapped in all, address space rather than memory */
	uint32_t groups[EXECMEM_RANGEMAP_GROUP_WORDS];
};

/* An empty map. Errors of os->map, as negative errno. */
EXECMEM_MUST_CHECK int execmem_rangemap_create(struct execmem_rangemap *map, const struct execmem_os *os);

/*
 * Takes the tables back. Negative errno where the system refuses: what is left can be taken by calling again. No reader
 * may be under way.
 */
EXECMEM_MUST_CHECK int execmem_rangemap_destroy(struct execmem_rangemap *map, const struct execmem_os *os);

/*
 * Maps the units of [start, start + bytes), both multiples of the unit, to an owner (a multiple of
 * EXECMEM_RANGEMAP_OWNER_ALIGN) and a kind (0 to 62). Negative errno where a table cannot be had (-ENOMEM, or -ERANGE
 * (34) for an address outside the map); nothing is mapped then.
 */
EXECMEM_MUST_CHECK int execmem_rangemap_insert(struct execmem_rangemap *map, const struct execmem_os *os,
					       uintptr_t start, size_t bytes, void *owner, unsigned kind);

/* Maps them to nothing. They must have been inserted. Never fails. */
void execmem_rangemap_remove(struct execmem_rangemap *map, uintptr_t start, size_t bytes);

/* The word of an address: 0 for none. Any thread, signal handlers included. */
static inline uintptr_t execmem_rangemap_find(const struct execmem_rangemap *map, uintptr_t address)
{
	uintptr_t unit = address >> EXECMEM_UNIT_SHIFT;
	uintptr_t *leaf;

	if (unit >> (EXECMEM_RANGEMAP_ADDRESS_BITS - EXECMEM_UNIT_SHIFT))
		return 0;
	leaf = __atomic_load_n(&map->root[unit >> EXECMEM_RANGEMAP_LEAF_BITS], __ATOMIC_ACQUIRE);
	if (!leaf)
		return 0;
	return __atomic_load_n(&leaf[unit & (((uintptr_t)1 << EXECMEM_RANGEMAP_LEAF_BITS) - 1)], __ATOMIC_ACQUIRE);
}

static inline void *execmem_rangemap_owner(uintptr_t word)
{
	return (void *)(word & ~(uintptr_t)(EXECMEM_RANGEMAP_OWNER_ALIGN - 1));
}

/* -1 for the word of no owner. */
static inline int execmem_rangemap_kind(uintptr_t word)
{
	return (int)(word & (EXECMEM_RANGEMAP_OWNER_ALIGN - 1)) - 1;
}

#endif
