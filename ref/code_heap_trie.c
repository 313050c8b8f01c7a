/*
 * Larger free blocks of a region by size, then address: a crit-bit tree whose leaves are the blocks themselves, so
 * that its depth is bounded by the bits of the key, and nothing is ever balanced.
 */
#include "code_heap.h"

#define LEAF 1u

static uint64_t make_key(size_t i, size_t count)
{
	return (uint64_t)count << 32 | i;
}

static size_t leaf_block(uint32_t leaf)
{
	return leaf >> 1;
}

static uint64_t leaf_key(const struct execmem_code_region *region, uint32_t leaf)
{
	size_t i = leaf_block(leaf);

	return make_key(i, execmem_code_segments(region, i));
}

static unsigned side(const struct execmem_code_trie_node *node, uint64_t key)
{
	return (unsigned)(key >> node->bit & 1);
}

static struct execmem_code_trie_node *node_of(const struct execmem_code_trie *trie, uint32_t inner)
{
	return &trie->nodes[inner >> 1];
}

/* The leaf that a key leads to, which agrees with it as far as any does. The tree is not empty. */
static uint32_t descend(const struct execmem_code_trie *trie, uint64_t key, size_t *steps)
{
	uint32_t at = trie->root;

	while (!(at & LEAF)) {
		const struct execmem_code_trie_node *node = node_of(trie, at);

		++*steps;
		at = node->child[side(node, key)];
	}
	return at;
}

static unsigned critical_bit(uint64_t a, uint64_t b)
{
	return 63 - (unsigned)__builtin_clzll(a ^ b);
}

void execmem_code_trie_insert(struct execmem_code_region *region, size_t i, size_t count)
{
	struct execmem_code_trie *trie = &region->trie;
	uint64_t key = make_key(i, count);
	uint32_t leaf = (uint32_t)i << 1 | LEAF, made, *link = &trie->root;
	struct execmem_code_trie_node *node;
	size_t steps = 0;
	unsigned bit;

	if (!trie->root) {
		trie->root = leaf;
		return;
	}
	bit = critical_bit(key, leaf_key(region, descend(trie, key, &steps)));
	while (!(*link & LEAF) && node_of(trie, *link)->bit > bit)
		link = &node_of(trie, *link)->child[side(node_of(trie, *link), key)];
	/* There is a node for every large block that a region can have. */
	made = trie->free;
	if (made)
		trie->free = trie->nodes[made].child[0];
	else
		made = trie->fresh++;
	node = &trie->nodes[made];
	node->bit = bit;
	node->child[side(node, key)] = leaf;
	node->child[!side(node, key)] = *link;
	*link = made << 1;
}

void execmem_code_trie_remove(struct execmem_code_region *region, size_t i, size_t count)
{
	struct execmem_code_trie *trie = &region->trie;
	uint64_t key = make_key(i, count);
	uint32_t *link = &trie->root, *parent = NULL, inner;

	while (!(*link & LEAF)) {
		struct execmem_code_trie_node *node = node_of(trie, *link);

		parent = link;
		link = &node->child[side(node, key)];
	}
	if (!parent) {
		trie->root = 0;
		return;
	}
	inner = *parent;
	*parent = node_of(trie, inner)->child[!side(node_of(trie, inner), key)];
	node_of(trie, inner)->child[0] = trie->free;
	trie->free = inner >> 1;
}

bool execmem_code_trie_next(const struct execmem_code_region *region, size_t *i, size_t *count, size_t *steps)
{
	const struct execmem_code_trie *trie = &region->trie;
	uint64_t key = make_key(*i, *count), other;
	uint32_t at = trie->root, right = 0;

	if (!at)
		return false;
	other = leaf_key(region, descend(trie, key, steps));
	if (other != key) {
		unsigned bit = critical_bit(key, other);

		/* Down to the part of the tree whose keys first differ from this one in `bit`, all in the same way. */
		while (!(at & LEAF) && node_of(trie, at)->bit > bit) {
			const struct execmem_code_trie_node *node = node_of(trie, at);

			++*steps;
			if (!side(node, key))
				right = node->child[1];
			at = node->child[side(node, key)];
		}
		if (!(other >> bit & 1))
			at = right;
		if (!at)
			return false;
		while (!(at & LEAF)) {
			++*steps;
			at = node_of(trie, at)->child[0];
		}
		other = leaf_key(region, at);
	}
	*count = (size_t)(other >> 32);
	*i = (size_t)(uint32_t)other;
	return true;
}

size_t execmem_code_trie_largest(const struct execmem_code_region *region)
{
	uint32_t at = region->trie.root;

	while (at && !(at & LEAF))
		at = node_of(&region->trie, at)->child[1];
	return at ? (size_t)(leaf_key(region, at) >> 32) : 0;
}
