/*
 * libffi's closures as an allocator of blocks. There is one allocator in a process, and no way to end it. A block is
 * the memory of a closure, of any size; what it makes itself are closures.
 */
#include <ffi.h>
#include <string.h>

#include <hosted/hosted.h>
#include <subject.h>
#include <subject_blocks.h>

static ffi_cif takes_nothing;
static struct subject_blocks *const the_one = (struct subject_blocks *)&takes_nothing;

static int create_on(const struct subject_os *os, struct subject_blocks **blocks)
{
	hosted_over(os);
	if (ffi_prep_cif(&takes_nothing, FFI_DEFAULT_ABI, 0, &ffi_type_uint, NULL) != FFI_OK)
		return SUBJECT_ERROR_OTHER;
	*blocks = the_one;
	return 0;
}

static int create(struct subject_blocks **blocks)
{
	return create_on(NULL, blocks);
}

static int create_over(const struct subject_os *os, struct subject_blocks **blocks)
{
	return create_on(os, blocks);
}

/* libffi answers null, for whatever reason. */
static int allocate(struct subject_blocks *blocks, size_t bytes, struct subject_block *block)
{
	void *rx, *rw = ffi_closure_alloc(bytes, &rx);

	(void)blocks;
	if (!rw)
		return SUBJECT_ERROR_OTHER;
	*block = (struct subject_block){(uintptr_t)rx, bytes, {(uintptr_t)rw, 0}};
	return 0;
}

static int release(struct subject_blocks *blocks, const struct subject_block *block)
{
	(void)blocks;
	ffi_closure_free((void *)block->own[0]);
	return 0;
}

/* For code that libffi knows nothing of: synchronised here, as its own is by ffi_prep_closure_loc. */
static int write(struct subject_blocks *blocks, const struct subject_block *block, size_t offset, const void *code,
		 size_t bytes)
{
	char *rx = (char *)block->rx + offset;

	(void)blocks;
	memcpy((char *)block->own[0] + offset, code, bytes);
	__builtin___clear_cache(rx, rx + bytes);
	return 0;
}

static void answer(ffi_cif *cif, void *result, void **arguments, void *value)
{
	(void)cif;
	(void)arguments;
	*(ffi_arg *)result = (ffi_arg)(uintptr_t)value;
}

static int make(struct subject_blocks *blocks, unsigned value, struct subject_block *block)
{
	const int error = allocate(blocks, sizeof(ffi_closure), block);

	if (error)
		return error;
	if (ffi_prep_closure_loc((ffi_closure *)block->own[0], &takes_nothing, answer, (void *)(uintptr_t)value,
				 (void *)block->rx) == FFI_OK)
		return 0;
	(void)release(blocks, block);
	return SUBJECT_ERROR_OTHER;
}

static const struct subject_blocks_operations blocks = {
	.create = create,
	.allocate = allocate,
	.release = release,
	.write = write,
	.create_over = create_over,
	.make = make,
};

const struct subject subject = {.version = SUBJECT_VERSION, .blocks = &blocks};
