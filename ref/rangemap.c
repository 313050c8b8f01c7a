#include <execmem/rangemap.h>

#include "linux_errno.h"

extern inline const struct execmem_rangemap_entry *execmem_rangemap_entry(const struct execmem_rangemap *map,
									  uintptr_t address);
extern inline void *execmem_rangemap_face(const struct execmem_rangemap *map, uintptr_t address);
extern inline int execmem_rangemap_kind(const struct execmem_rangemap *map, uintptr_t address);
extern inline int execmem_rangemap_lookup(const struct execmem_rangemap *map, uintptr_t address,
					  struct execmem_found *found);

static size_t round_up(size_t bytes, size_t page_bytes)
{
	return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

static size_t root_entries(void)
{
	return (size_t)1 << (EXECMEM_RANGEMAP_ADDRESS_BITS - EXECMEM_UNIT_SHIFT - EXECMEM_RANGEMAP_LEAF_BITS);
}

_Static_assert(EXECMEM_RANGEMAP_ROOT_BITS <= EXECMEM_RANGEMAP_GROUP_BITS + 7, "EXECMEM_RANGEMAP_GROUP_WORDS");

static uint32_t *group_word(struct execmem_rangemap *map, size_t leaf)
{
	return &map->groups[(leaf >> EXECMEM_RANGEMAP_GROUP_BITS) / 32];
}

static uint32_t group_bit(size_t leaf)
{
	return (uint32_t)1 << ((leaf >> EXECMEM_RANGEMAP_GROUP_BITS) % 32);
}

static size_t leaf_of(uintptr_t unit)
{
	return unit >> EXECMEM_RANGEMAP_LEAF_BITS;
}

int execmem_rangemap_create(struct execmem_rangemap *map, const struct execmem_os *os)
{
	size_t page_bytes = os->page_size(os->context);
	size_t root_bytes = round_up(root_entries() * sizeof(*map->root), page_bytes);
	void *root;
	int error;

	error = os->map(os->context, NULL, root_bytes, EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0, &root);
	if (error)
		return error;
	*map = (struct execmem_rangemap){
		.root = root,
		.root_bytes = root_bytes,
		.leaf_bytes = round_up(sizeof(**map->root) << EXECMEM_RANGEMAP_LEAF_BITS, page_bytes),
		.bytes = root_bytes,
	};
	return 0;
}

int execmem_rangemap_destroy(struct execmem_rangemap *map, const struct execmem_os *os)
{
	int error;

	if (!map->root)
		return 0;
	for (size_t i = 0; map->bytes > map->root_bytes && i < root_entries(); i++) {
		/* Looking at the entries of a group that was never used would make the system find memory for them. */
		if (!(*group_word(map, i) & group_bit(i))) {
			i |= ((size_t)1 << EXECMEM_RANGEMAP_GROUP_BITS) - 1;
			continue;
		}
		if (!map->root[i])
			continue;
		error = os->unmap(os->context, map->root[i], map->leaf_bytes);
		if (error)
			return error;
		map->root[i] = NULL;
		map->bytes -= map->leaf_bytes;
	}
	error = os->unmap(os->context, map->root, map->root_bytes);
	if (error)
		return error;
	map->root = NULL;
	map->bytes = 0;
	return 0;
}

static struct execmem_rangemap_entry *entry_of(const struct execmem_rangemap *map, uintptr_t unit)
{
	return &map->root[leaf_of(unit)][unit & (((uintptr_t)1 << EXECMEM_RANGEMAP_LEAF_BITS) - 1)];
}

int execmem_rangemap_insert(struct execmem_rangemap *map, const struct execmem_os *os,
			    const struct execmem_found *found, void *face)
{
	uintptr_t first = found->start.at >> EXECMEM_UNIT_SHIFT, units = found->bytes >> EXECMEM_UNIT_SHIFT;
	uintptr_t last = first + (units - 1), extent = first << (sizeof(uintptr_t) * 4) | units;

	if (leaf_of(last) >= root_entries())
		return -ERANGE;
	for (size_t leaf = leaf_of(first); leaf <= leaf_of(last); leaf++) {
		void *table;
		int error;

		if (map->root[leaf])
			continue;
		error = os->map(os->context, NULL, map->leaf_bytes, EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0,
				&table);
		if (error)
			return error;
		map->bytes += map->leaf_bytes;
		*group_word(map, leaf) |= group_bit(leaf);
		__atomic_store_n(&map->root[leaf], table, __ATOMIC_RELEASE);
	}
	for (uintptr_t unit = first; unit <= last; unit++) {
		struct execmem_rangemap_entry *entry = entry_of(map, unit);

		/* Release: who sees one of these sees that the tag before has ended (execmem_rangemap_lookup). */
		__atomic_store_n(&entry->extent, extent, __ATOMIC_RELEASE);
		__atomic_store_n(&entry->owner, found->owner, __ATOMIC_RELEASE);
		__atomic_store_n(&entry->tag, entry->tag + found->kind + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&entry->face, face, __ATOMIC_RELEASE);
	}
	return 0;
}

void execmem_rangemap_remove(struct execmem_rangemap *map, uintptr_t start, size_t bytes)
{
	uintptr_t first = start >> EXECMEM_UNIT_SHIFT, last = (start + (bytes - 1)) >> EXECMEM_UNIT_SHIFT;

	for (uintptr_t unit = first; unit <= last; unit++) {
		struct execmem_rangemap_entry *entry = entry_of(map, unit);

		__atomic_store_n(&entry->face, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&entry->tag, (entry->tag | EXECMEM_RANGEMAP_KINDS) + 1, __ATOMIC_RELEASE);
	}
}
