/*
 * Address to region in constant time: a table of tables with one entry a unit of EXECMEM_UNIT_BYTES, which holds all
 * that execmem_lookup answers.
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
/* A leaf covers 4 GiB and is 2 MiB, of which what is used is touched; or 64 MiB, and 16 KiB. */
#define EXECMEM_RANGEMAP_LEAF_BITS    (sizeof(void *) > 4 ? 16 : 10)
#define EXECMEM_RANGEMAP_ROOT_BITS    (EXECMEM_RANGEMAP_ADDRESS_BITS - EXECMEM_UNIT_SHIFT - EXECMEM_RANGEMAP_LEAF_BITS)

/* The root is sparse: so many of its entries share a bit that says whether one of them was ever used. */
#define EXECMEM_RANGEMAP_GROUP_BITS   9
#define EXECMEM_RANGEMAP_GROUP_WORDS  4 /* of 32 groups: enough for 16 bits of root */

/* A tag holds the kind plus one, or 0 for no region, and above it how often its entry was used: it never comes back. */
#define EXECMEM_RANGEMAP_KIND_BITS    6
#define EXECMEM_RANGEMAP_KINDS        (((uintptr_t)1 << EXECMEM_RANGEMAP_KIND_BITS) - 1)

/* What the map knows of a unit. Every field is atomic; between two equal readings of the tag, the others belong to it.
 */
struct execmem_rangemap_entry {
	uintptr_t tag;
	uintptr_t extent; /* the region's first unit in the upper half of the bits, how many there are in the lower */
	void *owner;
	void *face; /* the library's own, or null: changes with the tag */
};

/* What is known of an address. */
struct execmem_found {
	execmem_rx start; /* of the region */
	size_t bytes;     /* of the region */
	void *owner;
	unsigned kind;
};

struct execmem_rangemap {
	struct execmem_rangemap_entry **root; /* null or the leaf's table */
	size_t leaf_bytes;                    /* mapped for a leaf: a multiple of the page size */
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
 * Maps the units of [start, start + bytes), both multiples of the unit and of no region now, to what is in `found`,
 * where a kind is 0 to 62, and to a face. Negative errno where a table cannot be had (-ENOMEM, or -ERANGE (34) for an
 * address outside the map); nothing is mapped then.
 */
EXECMEM_MUST_CHECK int execmem_rangemap_insert(struct execmem_rangemap *map, const struct execmem_os *os,
					       const struct execmem_found *found, void *face);

/* Maps them to nothing. They must have been inserted. Never fails. */
void execmem_rangemap_remove(struct execmem_rangemap *map, uintptr_t start, size_t bytes);

/* What follows is compiled in place; the library has it as functions as well. */

/* The entry of an address, or null where no region was ever near. Any thread, signal handlers included. */
inline const struct execmem_rangemap_entry *execmem_rangemap_entry(const struct execmem_rangemap *map,
								   uintptr_t address)
{
	uintptr_t unit = address >> EXECMEM_UNIT_SHIFT;
	const struct execmem_rangemap_entry *leaf;

	if (__builtin_expect(unit >> (EXECMEM_RANGEMAP_ADDRESS_BITS - EXECMEM_UNIT_SHIFT) != 0, 0))
		return NULL;
	leaf = __atomic_load_n(&map->root[unit >> EXECMEM_RANGEMAP_LEAF_BITS], __ATOMIC_ACQUIRE);
	if (__builtin_expect(!leaf, 0))
		return NULL;
	return &leaf[unit & (((uintptr_t)1 << EXECMEM_RANGEMAP_LEAF_BITS) - 1)];
}

/* The face of an address, or null. Likewise. */
inline void *execmem_rangemap_face(const struct execmem_rangemap *map, uintptr_t address)
{
	const struct execmem_rangemap_entry *entry = execmem_rangemap_entry(map, address);

	return entry ? __atomic_load_n(&entry->face, __ATOMIC_ACQUIRE) : NULL;
}

/* The kind of an address, -1 for none. Likewise. */
inline int execmem_rangemap_kind(const struct execmem_rangemap *map, uintptr_t address)
{
	const struct execmem_rangemap_entry *entry = execmem_rangemap_entry(map, address);

	return entry ? (int)(__atomic_load_n(&entry->tag, __ATOMIC_ACQUIRE) & EXECMEM_RANGEMAP_KINDS) - 1 : -1;
}

/* All that is known of an address, as it was at one moment. EXECMEM_ERROR_NOT_FOUND. Likewise. */
inline int execmem_rangemap_lookup(const struct execmem_rangemap *map, uintptr_t address, struct execmem_found *found)
{
	const struct execmem_rangemap_entry *entry = execmem_rangemap_entry(map, address);
	const unsigned half = sizeof(uintptr_t) * 4;
	uintptr_t tag, extent;
	void *owner;

	if (__builtin_expect(!entry, 0))
		return EXECMEM_ERROR_NOT_FOUND;
	do {
		tag = __atomic_load_n(&entry->tag, __ATOMIC_ACQUIRE);
		if (__builtin_expect((tag & EXECMEM_RANGEMAP_KINDS) == 0, 0))
			return EXECMEM_ERROR_NOT_FOUND;
		/* Acquire: the tag is read again after both of them. */
		extent = __atomic_load_n(&entry->extent, __ATOMIC_ACQUIRE);
		owner = __atomic_load_n(&entry->owner, __ATOMIC_ACQUIRE);
	} while (__builtin_expect(__atomic_load_n(&entry->tag, __ATOMIC_RELAXED) != tag, 0));
	found->start.at = extent >> half << EXECMEM_UNIT_SHIFT;
	found->bytes = (extent & (((uintptr_t)1 << half) - 1)) << EXECMEM_UNIT_SHIFT;
	found->owner = owner;
	found->kind = (unsigned)(tag & EXECMEM_RANGEMAP_KINDS) - 1;
	return 0;
}

#endif
