#include "list.h"

#define HOP_MOST 254u

struct list_block {
	uint64_t length; /* segments */
	uint64_t used;
	struct list_block *next; /* of a free block: lies where the code was */
};

_Static_assert(offsetof(struct list_block, next) == LIST_HEADER, "a header of 16 bytes");

static struct list_block *block_of(void *code)
{
	return (struct list_block *)((unsigned char *)code - LIST_HEADER);
}

static void *code_of(struct list_block *block)
{
	return (unsigned char *)block + LIST_HEADER;
}

static size_t segment_of(const struct list_heap *heap, const struct list_block *block)
{
	return (size_t)((const unsigned char *)block - heap->arena) >> heap->shift;
}

static struct list_block *at_segment(const struct list_heap *heap, size_t segment)
{
	return (struct list_block *)(heap->arena + (segment << heap->shift));
}

/* Hops of a whole block. */
static void mark(struct list_heap *heap, size_t segment, size_t length)
{
	unsigned char *to = heap->map + segment;
	size_t hop = 0;

	*to++ = 0;
	while (--length) {
		hop = hop < HOP_MOST ? hop + 1 : 1;
		*to++ = (unsigned char)hop;
	}
}

/* The block that begins at `segment` becomes part of the one below: one hop more leads from it. */
static void mark_join(struct list_heap *heap, size_t segment)
{
	unsigned char *at = heap->map + segment;

	*at = at[-1] < HOP_MOST - 1 ? at[-1] + 1 : 1;
}

static struct list_block *make(struct list_heap *heap, size_t segment, size_t length)
{
	struct list_block *block = at_segment(heap, segment);

	mark(heap, segment, length);
	block->length = length;
	block->used = 1;
	return block;
}

/* The block cut off behind the first `length` segments of another. */
static struct list_block *split(struct list_heap *heap, struct list_block *block, size_t length)
{
	struct list_block *behind = make(heap, segment_of(heap, block) + length, block->length - length);

	block->length = length;
	return behind;
}

/* Takes a block off the list, or a part of one. Null where none is large enough. */
static struct list_block *search(struct list_heap *heap, size_t length)
{
	struct list_block *found = NULL, *before = NULL, *previous = NULL;

	for (struct list_block *at = heap->free; at; previous = at, at = at->next) {
		if (at->length < length || (found && at->length >= found->length))
			continue;
		found = at;
		before = previous;
		if (at->length == length || heap->first)
			break;
	}
	if (!found)
		return NULL;
	if (found->length - length >= heap->minimum) {
		heap->free_segments -= length;
		return split(heap, found, found->length - length);
	}
	*(before ? &before->next : &heap->free) = found->next;
	heap->free_count--;
	heap->free_segments -= found->length;
	found->used = 1;
	return found;
}

void *list_allocate(struct list_heap *heap, size_t bytes)
{
	size_t length = (bytes + LIST_HEADER + ((size_t)1 << heap->shift) - 1) >> heap->shift, used;
	struct list_block *block;

	length = length > heap->minimum ? length : heap->minimum;
	block = search(heap, length);
	if (!block) {
		block = make(heap, heap->next, length);
		heap->next += length;
	}
	used = heap->next - heap->free_segments;
	if (used > heap->used_most)
		heap->used_most = used;
	return code_of(block);
}

/* Where the walk to a freed block may begin: the block that the last insertion was made behind, or that swallowed it.
 */
static struct list_block *hint(const struct list_heap *heap)
{
	size_t segment;

	if (heap->free_count <= LIST_HINT_FROM || !heap->last_insert)
		return NULL;
	segment = segment_of(heap, heap->last_insert);
	while (heap->map[segment])
		segment -= heap->map[segment];
	return at_segment(heap, segment);
}

static bool merge(struct list_heap *heap, struct list_block *block)
{
	struct list_block *behind = at_segment(heap, segment_of(heap, block) + (size_t)block->length);

	if (behind != block->next)
		return false;
	mark_join(heap, segment_of(heap, behind));
	block->length += behind->length;
	block->next = behind->next;
	heap->free_count--;
	return true;
}

static void insert(struct list_heap *heap, struct list_block *block)
{
	struct list_block *before = heap->free, *from;

	heap->free_count++;
	heap->free_segments += (size_t)block->length;
	block->used = 0;
	if (!before || block < before) {
		block->next = before;
		heap->free = block;
		(void)merge(heap, block);
		return;
	}
	from = hint(heap);
	if (from && !from->used && from < block)
		before = from;
	while (before->next && before->next < block)
		before = before->next;
	block->next = before->next;
	before->next = block;
	(void)merge(heap, block);
	(void)merge(heap, before);
	heap->last_insert = before;
}

void list_free(struct list_heap *heap, void *code)
{
	insert(heap, block_of(code));
}

void list_trim(struct list_heap *heap, void *code, size_t bytes)
{
	struct list_block *block = block_of(code);
	size_t length = (bytes + LIST_HEADER + ((size_t)1 << heap->shift) - 1) >> heap->shift;

	if (length < block->length)
		insert(heap, split(heap, block, length));
}

size_t list_block_bytes(const struct list_heap *heap, const void *code)
{
	return (size_t)((const struct list_block *)((const unsigned char *)code - LIST_HEADER))->length << heap->shift;
}
