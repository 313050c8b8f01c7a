/*
 * libexecmem as an allocator of blocks: a code heap in an allocator of its own.
 */
#include "blocks.h"

#include <execmem/code_heap.h>
#include <execmem/os.h>
#include <execmem/rwcache.h>

#include <check.h>
#include <port.h>

#include "allocator.h"

#define POOL 8 /* that live at the same time */

struct subject_blocks {
	struct execmem_allocator *allocator;
	struct execmem_code_heap *heap;
};
static struct subject_blocks pool[POOL];

static int create_on(struct execmem_os os, struct subject_blocks **blocks)
{
	const struct execmem_config config = execmem_config_default(os);
	const struct execmem_code_config heap = execmem_code_config_default();
	struct subject_blocks *made = pool;
	int error;

	while (made < pool + POOL && made->heap)
		made++;
	if (made == pool + POOL)
		return SUBJECT_ERROR_FULL;
	error = execmem_create(&config, &made->allocator, NULL);
	if (error)
		return ref_error(error);
	error = execmem_code_heap_create(made->allocator, &heap, &made->heap);
	if (error) {
		made->heap = NULL;
		(void)execmem_destroy(made->allocator);
		return ref_error(error);
	}
	*blocks = made;
	return 0;
}

static int create(struct subject_blocks **blocks)
{
	return create_on(execmem_os_linux(check_os_page), blocks);
}

static int create_over(const struct subject_os *os, struct subject_blocks **blocks)
{
	return create_on(ref_table(os), blocks);
}

static int destroy(struct subject_blocks *blocks)
{
	int error = blocks->heap ? execmem_code_heap_destroy(blocks->heap) : 0;

	if (!error) {
		blocks->heap = NULL;
		error = execmem_destroy(blocks->allocator);
	}
	return ref_error(error);
}

static int allocate(struct subject_blocks *blocks, size_t bytes, struct subject_block *block)
{
	struct execmem_code made;
	const int error = execmem_code_allocate(blocks->heap, bytes, NULL, &made);

	if (!error)
		*block = (struct subject_block){made.rx.at, made.bytes, {0, 0}};
	return ref_error(error);
}

static int release(struct subject_blocks *blocks, const struct subject_block *block)
{
	return ref_error(execmem_code_free(blocks->heap, (execmem_rx){block->rx}));
}

static int write(struct subject_blocks *blocks, const struct subject_block *block, size_t offset, const void *code,
		 size_t bytes)
{
	return ref_error(execmem_write(blocks->allocator, (execmem_rx){block->rx + offset}, code, bytes, 0));
}

static int make(struct subject_blocks *blocks, unsigned value, struct subject_block *block)
{
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	const size_t bytes = execmem_port_probe_code(value, code);
	int error = allocate(blocks, bytes, block);

	if (error)
		return error;
	error = write(blocks, block, 0, code, bytes);
	if (error)
		(void)release(blocks, block);
	return error;
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name */
#define OPERATION(name_, claim_) .name_ = name_,
const struct subject_blocks_operations ref_blocks = {SUBJECT_BLOCKS_CLAIMS(OPERATION)};
