/*
 * The reference, libexecmem, as a subject. Only the files of this folder see its headers.
 */
#include <execmem/stub_page.h>

#include <subject.h>

#include "allocator.h"

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
	return execmem_stub_page_fill(&own, (execmem_rw){writable}, (execmem_rx){executable}, stub_page);
}

const struct subject subject = {
	.version = SUBJECT_VERSION,
	.fill_stub_page = fill_stub_page,
	.stub_page_size = execmem_stub_page_size,
	.allocator = &ref_allocator,
	.stub_heap = &ref_stub_heap,
};
