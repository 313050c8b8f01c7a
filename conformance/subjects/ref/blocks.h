/*
 * libexecmem's code heap as an allocator of blocks: blocks.c.
 */
#ifndef REF_BLOCKS_H
#define REF_BLOCKS_H

#include <subject_blocks.h>

extern const struct subject_blocks_operations ref_blocks;

#endif
