/*
 * The reference, libexecmem, as a subject. Only the files of this folder see its headers.
 */
#include <execmem/allocator.h>
#include <execmem/stub_heap.h>
#include <execmem/stub_page.h>

#include <check.h>
#include <subject.h>

#include "allocator.h"
#include "blocks.h"
#include "code_heap.h"
#include "release.h"

/*
 * The code page that a stub heap hands out for a template without patches, copied: such code is the same wherever it
 * runs, so that what is judged of the copy is true of every page of the heap.
 */
static int copy_heap_page(const struct execmem_stub_kind *kind, unsigned char *writable, size_t stub_page)
{
	static struct execmem_allocator *allocator;
	const struct execmem_stub_config config = {.kinds = kind, .kind_count = 1, .stub_page = stub_page};
	struct execmem_stub_heap *heap;
	struct execmem_stub stub;
	int error = 0;

	if (!allocator) {
		struct execmem_config wanted = execmem_config_default(execmem_os_linux(check_os_page));

		wanted.emulation = EXECMEM_EMULATION_OFF;
		error = execmem_create(&wanted, &allocator, NULL);
	}
	if (!error)
		error = execmem_stub_heap_create(allocator, &config, &heap);
	if (error)
		return error;
	error = execmem_stub_allocate(heap, kind->kind, &stub);
	if (!error) {
		/* The first stub of a new heap is in the first slot. */
		__builtin_memcpy(writable, (const void *)stub.rx.at, stub_page);
		error = execmem_stub_free(heap, stub.rx);
	}
	return error ? error : execmem_stub_heap_destroy(heap);
}

static int fill_stub_page(const struct subject_template *t, unsigned char *writable, uintptr_t executable,
			  size_t stub_page)
{
	struct execmem_patch patches[UINT8_MAX]; /* patch_count is 8 bits wide */
	const struct execmem_template own = {
		.code = t->code,
		.code_end = t->code_end,
		.pitch = t->pitch,
		.patches = patches,
		.patch_count = t->patch_count,
	};

	for (unsigned i = 0; i < t->patch_count; i++)
		patches[i] = (struct execmem_patch){t->patches[i].offset, t->patches[i].width};
	if (t->patch_count == 0) {
		const struct execmem_stub_kind kind = {
			own, t->record_size && t->record_size < t->pitch ? t->record_size : t->pitch, 1};

		return copy_heap_page(&kind, writable, stub_page);
	}
	return execmem_stub_page_fill(&own, (execmem_rw){writable}, (execmem_rx){executable}, stub_page);
}

const struct subject subject = {
	.version = SUBJECT_VERSION,
	.fill_stub_page = fill_stub_page,
	.stub_page_size = execmem_stub_page_size,
	.allocator = &ref_allocator,
	.code_heap = &ref_code_heap,
	.stub_heap = &ref_stub_heap,
	.release = &ref_release,
	.blocks = &ref_blocks,
};
