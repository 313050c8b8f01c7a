/*
 * Making and destroying stub heaps; the sealed file of their code.
 */
#include "stub_heap.h"

#include "linux_errno.h"

static bool is_power(size_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

int execmem_stub_page_choose(size_t os_page, const size_t *assembled, size_t count, size_t *stub_page)
{
	size_t wanted, best = 0;

	if (!is_power(os_page) || !assembled || count == 0 || !stub_page)
		return EXECMEM_ERROR_ARGUMENT;
	/* A port whose templates do not reach across the OS page has no size that would be preferred. */
	if (execmem_stub_page_size(os_page, &wanted))
		wanted = os_page;
	for (size_t i = 0; i < count; i++) {
		size_t size = assembled[i];

		if (size < os_page)
			continue;
		if (!best || (best < wanted ? size > best : size >= wanted && size < best))
			best = size;
	}
	if (!best)
		return EXECMEM_ERROR_STUB_PAGE_REACH;
	*stub_page = best;
	return 0;
}

/* ---- Configuration ---- */

static bool fits(const struct execmem_stub_kind *kind, size_t stub_page)
{
	const struct execmem_template *t = &kind->template;
	size_t code_bytes = (size_t)(t->code_end - t->code);

	if (t->pitch < EXECMEM_STUB_PITCH_MIN || code_bytes == 0 || code_bytes > t->pitch || t->pitch > stub_page ||
	    kind->record_bytes == 0 || kind->record_bytes > t->pitch)
		return false;
	/* As execmem_stub_page_fill. */
	for (unsigned i = 0; i < t->patch_count; i++) {
		const struct execmem_patch *patch = &t->patches[i];

		if ((patch->width != 2 && patch->width != 4 && patch->width != 8) || patch->width > code_bytes ||
		    patch->offset > code_bytes - patch->width)
			return false;
	}
	return true;
}

static int check_config(const struct execmem_allocator *allocator, const struct execmem_stub_config *config)
{
	if (!config->kinds || config->kind_count == 0 || config->kind_count > EXECMEM_KIND_MAX + 1 ||
	    !is_power(config->stub_page) || config->stub_page > EXECMEM_UNIT_BYTES)
		return EXECMEM_ERROR_ARGUMENT;
	if (config->stub_page < allocator->page_bytes)
		return EXECMEM_ERROR_STUB_PAGE_REACH;
	for (unsigned i = 0; i < config->kind_count; i++) {
		if (config->kinds[i].kind > EXECMEM_KIND_MAX)
			return EXECMEM_ERROR_ARGUMENT;
		for (unsigned k = 0; k < i; k++) {
			if (config->kinds[k].kind == config->kinds[i].kind)
				return EXECMEM_ERROR_ARGUMENT;
		}
		if (!fits(&config->kinds[i], config->stub_page))
			return EXECMEM_ERROR_TEMPLATE_SIZE;
	}
	return 0;
}

static void set_type(const struct execmem_stub_heap *heap, struct execmem_stub_type *type,
		     const struct execmem_stub_kind *kind)
{
	size_t words, tables;

	type->template = kind->template;
	type->pitch = kind->template.pitch;
	type->code_bytes = (uint32_t)(kind->template.code_end - kind->template.code);
	type->record_bytes = kind->record_bytes;
	type->slots = (uint32_t)heap->stub_page / type->pitch;
	type->reciprocal = UINT32_MAX / type->pitch + 1;
	type->kind = kind->kind;
	type->shared = kind->template.patch_count == 0 && heap->allocator->backend == EXECMEM_BACKEND_DOUBLE;
	words = (type->slots + EXECMEM_STUB_WORD_BITS - 1) / EXECMEM_STUB_WORD_BITS;
	type->words = (unsigned)words;
	type->region_bytes = ((size_t)EXECMEM_STUB_REGION_PAGES * 2 * heap->stub_page + EXECMEM_UNIT_BYTES - 1) &
			     ~(size_t)(EXECMEM_UNIT_BYTES - 1);
	tables = 2 * words * sizeof(uintptr_t) + heap->parts * sizeof(uint16_t);
	type->table_bytes = sizeof(struct execmem_stub_region) + EXECMEM_STUB_REGION_PAGES * tables;
}

/* ---- The file ---- */

static void file_refused(void *to, const char *call, int error)
{
	(void)execmem_note_refusal(to, call, error, 0);
}

/* Writes the pages through a mapping that is gone when this returns. */
static int write_templates(struct execmem_stub_heap *heap, size_t bytes)
{
	struct execmem_allocator *allocator = heap->allocator;
	const struct execmem_os *os = &allocator->os;
	void *pages;
	int error = execmem_refuse(
		allocator, "map",
		os->map(os->context, NULL, bytes, EXECMEM_READ | EXECMEM_WRITE, heap->file, 0, &pages), bytes);
	int closing;

	if (error)
		return error;
	for (unsigned i = 0; i < heap->type_count && !error; i++) {
		const struct execmem_stub_type *type = &heap->types[i];

		if (type->shared)
			error = execmem_stub_page_fill(&type->template,
						       (execmem_rw){(unsigned char *)pages + type->file_offset},
						       (execmem_rx){0}, heap->stub_page);
	}
	closing = os->unmap(os->context, pages, bytes);
	if (closing)
		(void)os->unmap(os->context, pages, bytes);
	return error ? error : execmem_refuse(allocator, "unmap", closing, 0);
}

static int grow_file(struct execmem_stub_heap *heap, size_t bytes)
{
	struct execmem_allocator *allocator = heap->allocator;
	const struct execmem_os *os = &allocator->os;
	struct execmem_usage usage;
	int error = execmem_refuse(allocator, "limit", os->limit(os->context, EXECMEM_LIMIT_FILE_BYTES, &usage), 0);

	/* Growing beyond the limit would raise SIGXFSZ. */
	if (!error && usage.limit < bytes)
		error = execmem_refuse(allocator, "limit", -EFBIG, 0);
	if (!error)
		error = execmem_refuse(allocator, "file_grow", os->file_grow(os->context, heap->file, bytes), 0);
	return error;
}

static int make_file(struct execmem_stub_heap *heap)
{
	struct execmem_allocator *allocator = heap->allocator;
	const struct execmem_os *os = &allocator->os;
	size_t bytes = 0;
	int error;

	for (unsigned i = 0; i < heap->type_count; i++) {
		if (!heap->types[i].shared)
			continue;
		heap->types[i].file_offset = bytes;
		bytes += heap->stub_page;
	}
	if (bytes == 0)
		return 0;
	error = execmem_file_create(allocator, &heap->file, file_refused, allocator);
	if (error)
		return execmem_refuse(allocator, "file_create", error, 0);
	heap->has_file = true;
	error = grow_file(heap, bytes);
	if (!error)
		error = write_templates(heap, bytes);
	if (!error)
		error = execmem_refuse(
			allocator, "file_seal",
			os->file_seal(os->context, heap->file,
				      EXECMEM_SEAL_WRITE | EXECMEM_SEAL_GROW | EXECMEM_SEAL_SHRINK | EXECMEM_SEAL_SEAL),
			0);
	return error;
}

static int close_file(struct execmem_stub_heap *heap)
{
	struct execmem_allocator *allocator = heap->allocator;
	int error;

	if (!heap->has_file)
		return 0;
	error = execmem_refuse(allocator, "file_close", allocator->os.file_close(allocator->os.context, heap->file), 0);
	if (!error)
		heap->has_file = false;
	return error;
}

/* ---- Heaps ---- */

static void put_heap(struct execmem_stub_heap *heap)
{
	struct execmem_allocator *allocator = heap->allocator;

	for (unsigned i = 0; i < heap->type_count && heap->types; i++) {
		struct execmem_stub_region *spare = heap->types[i].spare, *next;

		for (; spare; spare = next) {
			next = spare->next;
			execmem_memory_put(&allocator->memory, &allocator->os, spare, heap->types[i].table_bytes);
		}
	}
	execmem_memory_put(&allocator->memory, &allocator->os, heap->types, heap->type_count * sizeof(*heap->types));
	execmem_stub_put_releaser(heap);
	execmem_memory_put(&allocator->memory, &allocator->os, heap, sizeof(*heap));
}

static int make_heap(struct execmem_allocator *allocator, const struct execmem_stub_config *config,
		     struct execmem_stub_heap **heap)
{
	struct execmem_stub_heap *made;
	void *memory;
	int error = execmem_memory_get(&allocator->memory, &allocator->os, sizeof(*made), &memory);

	if (error)
		return execmem_refuse(allocator, "map", error, sizeof(*made));
	made = memory;
	made->allocator = allocator;
	made->stub_page = config->stub_page;
	made->maximum_bytes = config->maximum_bytes;
	while ((size_t)1 << made->shift < made->stub_page)
		made->shift++;
	made->parts = (unsigned)(made->stub_page >> allocator->page_shift);
	made->type_count = config->kind_count;
	error = execmem_memory_get(&allocator->memory, &allocator->os, made->type_count * sizeof(*made->types),
				   &memory);
	if (error) {
		put_heap(made);
		return execmem_refuse(allocator, "map", error, config->kind_count * sizeof(*made->types));
	}
	made->types = memory;
	for (unsigned i = 0; i < made->type_count; i++) {
		set_type(made, &made->types[i], &config->kinds[i]);
		made->type_of[config->kinds[i].kind] = (unsigned char)(i + 1);
	}
	*heap = made;
	return 0;
}

int execmem_stub_heap_create(struct execmem_allocator *allocator, const struct execmem_stub_config *config,
			     struct execmem_stub_heap **heap)
{
	struct execmem_stub_heap *made;
	int error;

	if (!allocator || !config || !heap)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_check_process(allocator);
	if (!error)
		error = check_config(allocator, config);
	if (!error)
		error = make_heap(allocator, config, &made);
	if (error)
		return error;
	/* A fork between writing and sealing would keep the file writable; with the lock, none that is prepared is. */
	execmem_lock(&allocator->os, &allocator->heaps_lock);
	error = allocator->dying ? EXECMEM_ERROR_STATE : make_file(made);
	if (!error) {
		made->next = allocator->stub_heaps;
		if (made->next)
			made->next->previous = made;
		allocator->stub_heaps = made;
	}
	execmem_unlock(&allocator->os, &allocator->heaps_lock);
	if (error) {
		if (close_file(made))
			(void)close_file(made);
		put_heap(made);
		return error;
	}
	*heap = made;
	return 0;
}

/* heap->lock is held. */
static int release_all(struct execmem_stub_heap *heap)
{
	for (unsigned i = 0; i < heap->type_count; i++) {
		while (heap->types[i].regions) {
			int error = execmem_stub_release_region(heap->types[i].regions);

			if (error)
				return error;
			heap->dying = true;
		}
	}
	return 0;
}

int execmem_stub_heap_destroy(struct execmem_stub_heap *heap)
{
	struct execmem_allocator *allocator;
	int error;

	if (!heap)
		return EXECMEM_ERROR_ARGUMENT;
	allocator = heap->allocator;
	error = execmem_check_process(allocator);
	if (error)
		return error;
	execmem_lock(&allocator->os, &allocator->heaps_lock);
	execmem_lock(&allocator->os, &heap->lock);
	error = heap->caches ? EXECMEM_ERROR_BUSY : release_all(heap);
	if (!error)
		error = close_file(heap);
	execmem_unlock(&allocator->os, &heap->lock);
	if (!error) {
		if (heap->previous)
			heap->previous->next = heap->next;
		else
			allocator->stub_heaps = heap->next;
		if (heap->next)
			heap->next->previous = heap->previous;
		put_heap(heap);
	}
	execmem_unlock(&allocator->os, &allocator->heaps_lock);
	return error;
}
