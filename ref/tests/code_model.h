/*
 * The naive model of the code heap: every block of every region in a list, every policy a search of all of them.
 *
 * code_model.c has blocks and the policies `first` and `best`, code_model_near.c the policy `near`, code_model_check.c
 * compares with the heap, code_model_calls.c makes the calls. Used with random numbers (code_heap_model.c) and with the
 * bytes of a fuzzer (ref/fuzz/code_heap.c).
 */
#ifndef EXECMEM_TEST_CODE_MODEL_H
#define EXECMEM_TEST_CODE_MODEL_H

#include "sequence.h"

#include "../code_heap.h"

#define CODE_MODEL_STEPS   500
#define CODE_MODEL_REGIONS 64
#define CODE_MODEL_BLOCKS  65536 /* of a region */
#define UNIT               ((size_t)EXECMEM_UNIT_BYTES)

struct code_model_block {
	size_t count; /* segments */
	size_t code;  /* bytes asked for; 0: free */
	unsigned kind;
};

struct code_model_region {
	uintptr_t start;
	size_t segments, top, blocks;
	struct code_model_block *block;
};

struct code_model {
	struct code_model_region region[CODE_MODEL_REGIONS]; /* by address */
	size_t regions;
	struct execmem_allocator *allocator;
	struct execmem_code_heap *heap;
	struct execmem_code_config config;
	size_t segment, used, largest_used, live;
	size_t window_bytes;
	uintptr_t chosen; /* near: a window, or 0 */
	unsigned cached;
	unsigned long warned_full, warned_list;
};

extern struct code_model code_model;

/* Where a block goes: the free block, and the address in it. */
struct code_model_choice {
	size_t region, block;
	uintptr_t at;
};

size_t code_model_up(size_t value, size_t to); /* to a multiple */
/* The lowest place in a free block at `start`, with `low` to `high` allowed, or 0. All are addresses. */
uintptr_t code_model_place(uintptr_t start, size_t bytes, size_t need, size_t align, uintptr_t low, uintptr_t high);
/* Whether there is a place: by size or address; by the heap's policy. `all`: however many tries it takes. */
bool code_model_choose(size_t need, size_t align, const struct execmem_near *near, bool all,
		       struct code_model_choice *choice);
bool code_model_choose_near(size_t need, size_t align, const struct execmem_near *near, bool all,
			    struct code_model_choice *choice);

void code_model_insert(struct code_model_region *r, size_t at, struct code_model_block block);
void code_model_merge(struct code_model_region *r, size_t b); /* with the next one, where both are free */
void code_model_give(struct code_model_region *r, size_t b);  /* is free now */
uintptr_t code_model_address(const struct code_model_region *r, size_t b);
size_t code_model_count(size_t bytes); /* segments of a block for so many bytes */

/* Compares all blocks and figures; what is known of an address. */
void code_model_check(void);
void code_model_check_find(const struct code_model_region *r, size_t b, size_t offset);

/* Plays a sequence on a heap of its own. */
void code_model_play(const struct sequence *sequence);

#endif
