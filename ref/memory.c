#include "memory.h"

#include "linux_errno.h"

#define CLASS_SHIFT 6 /* the smallest class: 64 bytes, a cache line on most processors */
#define CLASS_MAX   ((size_t)1 << (CLASS_SHIFT + EXECMEM_MEMORY_CLASSES - 1))
#define CHUNK_BYTES ((size_t)131072)

static void clear(void *object, size_t bytes)
{
	uintptr_t *word = object;

	for (size_t i = 0; i < bytes / sizeof(*word); i++)
		word[i] = 0;
}

static unsigned class_of(size_t bytes)
{
	unsigned class = 0;

	while (((size_t)1 << (CLASS_SHIFT + class)) < bytes)
		class ++;
	return class;
}

void execmem_memory_create(struct execmem_memory *memory, size_t page_bytes)
{
	*memory = (struct execmem_memory){.page_bytes = page_bytes};
}

static int unmap_list(struct execmem_memory *memory, const struct execmem_os *os, struct execmem_memory_free **list)
{
	int error = 0;

	while (*list) {
		struct execmem_memory_free *first = *list, *next = first->next;
		size_t bytes = first->bytes;

		error = os->unmap(os->context, first, bytes);
		if (error)
			break;
		*list = next;
		memory->bytes -= bytes;
	}
	return error;
}

int execmem_memory_destroy(struct execmem_memory *memory, const struct execmem_os *os)
{
	int error = unmap_list(memory, os, &memory->large);

	return error ? error : unmap_list(memory, os, &memory->chunks);
}

static int map(struct execmem_memory *memory, const struct execmem_os *os, size_t bytes, void **object)
{
	int error = os->map(os->context, NULL, bytes, EXECMEM_READ | EXECMEM_WRITE, EXECMEM_NO_FILE, 0, object);

	if (!error)
		memory->bytes += bytes;
	return error;
}

/* What is left of the chunk before is cut into the classes it still has room for. */
static void use_up(struct execmem_memory *memory)
{
	for (unsigned class = EXECMEM_MEMORY_CLASSES; class --> 0;) {
		size_t bytes = (size_t)1 << (CLASS_SHIFT + class);

		while (memory->fresh_bytes >= bytes) {
			struct execmem_memory_free *piece = (void *)memory->fresh;

			piece->next = memory->free[class];
			memory->free[class] = piece;
			memory->fresh += bytes;
			memory->fresh_bytes -= bytes;
		}
	}
}

static int get_small(struct execmem_memory *memory, const struct execmem_os *os, size_t bytes, void **object)
{
	unsigned class = class_of(bytes);
	struct execmem_memory_free *first = memory->free[class];
	int error;

	bytes = (size_t)1 << (CLASS_SHIFT + class);
	if (first) {
		memory->free[class] = first->next;
		clear(first, bytes);
		*object = first;
		return 0;
	}
	if (memory->fresh_bytes < bytes) {
		void *chunk;

		error = map(memory, os, CHUNK_BYTES, &chunk);
		if (error)
			return error;
		use_up(memory);
		*(struct execmem_memory_free *)chunk = (struct execmem_memory_free){memory->chunks, CHUNK_BYTES};
		memory->chunks = chunk;
		memory->fresh = (unsigned char *)chunk + ((size_t)1 << CLASS_SHIFT);
		memory->fresh_bytes = CHUNK_BYTES - ((size_t)1 << CLASS_SHIFT);
	}
	*object = memory->fresh;
	memory->fresh += bytes;
	memory->fresh_bytes -= bytes;
	return 0;
}

static size_t large_bytes(const struct execmem_memory *memory, size_t bytes)
{
	return (bytes + memory->page_bytes - 1) & ~(memory->page_bytes - 1);
}

static int get_large(struct execmem_memory *memory, const struct execmem_os *os, size_t bytes, void **object)
{
	if (bytes > SIZE_MAX - memory->page_bytes)
		return -ENOMEM;
	bytes = large_bytes(memory, bytes);
	for (struct execmem_memory_free **at = &memory->large; *at; at = &(*at)->next) {
		if ((*at)->bytes == bytes) {
			*object = *at;
			*at = (*at)->next;
			clear(*object, bytes);
			return 0;
		}
	}
	return map(memory, os, bytes, object);
}

int execmem_memory_get(struct execmem_memory *memory, const struct execmem_os *os, size_t bytes, void **object)
{
	int error;

	execmem_lock(os, &memory->lock);
	error = bytes <= CLASS_MAX ? get_small(memory, os, bytes, object) : get_large(memory, os, bytes, object);
	execmem_unlock(os, &memory->lock);
	return error;
}

void execmem_memory_put(struct execmem_memory *memory, const struct execmem_os *os, void *object, size_t bytes)
{
	struct execmem_memory_free *piece = object;

	if (!piece)
		return;
	execmem_lock(os, &memory->lock);
	if (bytes <= CLASS_MAX) {
		unsigned class = class_of(bytes);

		piece->next = memory->free[class];
		memory->free[class] = piece;
	} else {
		bytes = large_bytes(memory, bytes);
		if (os->unmap(os->context, piece, bytes) == 0) {
			memory->bytes -= bytes;
		} else {
			*piece = (struct execmem_memory_free){memory->large, bytes};
			memory->large = piece;
		}
	}
	execmem_unlock(os, &memory->lock);
}
