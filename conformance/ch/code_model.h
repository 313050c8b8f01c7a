/*
 * A code heap of the suite's own: a sorted list of blocks, walked from end to end for everything. It knows which places
 * are allowed, and which one a policy with an exact meaning chooses; it makes no system call and knows no subject.
 */
#ifndef CH_CODE_MODEL_H
#define CH_CODE_MODEL_H

#include "code_heap.h"

#define CODE_MODEL_BLOCKS  512
#define CODE_MODEL_REGIONS 16
#define CODE_MODEL_NONE    UINT32_MAX

struct code_model_block {
	uintptr_t at;
	size_t bytes, code; /* no code: free */
	unsigned kind;
	unsigned region; /* its number, by age */
};

struct code_model_region {
	uintptr_t start;
	size_t bytes;
	size_t top; /* bytes up to the end of the highest block ever */
};

struct code_model {
	size_t segment, minimum; /* bytes */
	unsigned count, region_count;
	struct code_model_block blocks[CODE_MODEL_BLOCKS]; /* by address */
	struct code_model_region regions[CODE_MODEL_REGIONS];
	size_t used, largest_used, reserved;
	uint64_t allocations, frees;
};

/* What a block must be like: every byte of its `bytes` in [low, high], both included. */
struct code_model_wish {
	size_t bytes; /* whole segments */
	size_t align; /* at least a segment */
	uintptr_t low, high;
};

void code_model_make(struct code_model *model, size_t segment, unsigned minimum);
/* A further region, all of it free. */
void code_model_region(struct code_model *model, uintptr_t start, size_t bytes);
/* Bytes of the block for so much code, before a remainder stays with it. */
size_t code_model_bytes(const struct code_model *model, size_t code);

/* The free block, and where in it, of a policy: CODE_MODEL_NONE where nothing fits. */
uint32_t code_model_choose(const struct code_model *model, bool first, const struct code_model_wish *wish,
			   uintptr_t *at);
/* The free block in which a place is allowed, or CODE_MODEL_NONE. */
uint32_t code_model_allowed(const struct code_model *model, const struct code_model_wish *wish, uintptr_t at);

/* Each changes the list; the answer is the bytes of the block afterwards. */
size_t code_model_take(struct code_model *model, uint32_t block, uintptr_t at, size_t code, unsigned kind);
size_t code_model_cut(struct code_model *model, uint32_t block, size_t code);
void code_model_give(struct code_model *model, uint32_t block);

/* The nth live block, modulo their number, or CODE_MODEL_NONE; the block of an address, likewise. */
uint32_t code_model_live(const struct code_model *model, uint64_t nth);
uint32_t code_model_find(const struct code_model *model, uintptr_t address);

/* Those that can be counted: metadata and searches are 0. */
struct subject_code_figures code_model_figures(const struct code_model *model);

#endif
