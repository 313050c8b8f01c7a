/*
 * The naive model of the stub heap: every slot of every page, and what each byte of data is.
 *
 * stub_naive.c has slots and records, stub_naive_check.c compares with the heap, stub_naive_calls.c makes the calls.
 * Used with random numbers (stub_model.c) and with the bytes of a fuzzer (ref/fuzz/stub_heap.c).
 */
#ifndef EXECMEM_TEST_STUB_MODEL_H
#define EXECMEM_TEST_STUB_MODEL_H

#include "sequence.h"
#include "stubs.h"

#include "../stub_heap.h"

#define STUB_MODEL_STEPS  300
#define STUB_MODEL_PAGES  256
#define STUB_MODEL_CACHES 3

enum stub_model_state { STUB_FREE, STUB_LIVE, STUB_CACHED };

struct stub_model_page {
	uintptr_t code;
	uintptr_t region;
	const struct execmem_stub_kind *kind;
	unsigned char *state; /* a slot */
	unsigned char *data;  /* what the data page holds */
	bool touched[16];     /* its OS pages */
};

struct stub_model {
	struct stub_model_page page[STUB_MODEL_PAGES];
	unsigned pages;
	struct execmem_stub_kind kinds[STUB_KINDS + 1];
	struct execmem_stub_cache cache[STUB_MODEL_CACHES];
	struct execmem_allocator *allocator;
	struct execmem_stub_heap *heap;
	size_t stub_page, os_page;
	unsigned partly; /* of a run, one page at a time is given back */
};

extern struct stub_model stub_model;

uint32_t stub_model_slots_of(const struct stub_model_page *p);
struct stub_model_page *stub_model_page_of(uintptr_t address); /* or null */
execmem_rx stub_model_address_of(const struct stub_model_page *p, uint32_t slot);
size_t stub_model_count_state(unsigned kind, enum stub_model_state state); /* 0: of all kinds */
/* A slot that the heap gave out, for an allocation or to a cache. */
void stub_model_issue(uintptr_t rx, unsigned kind, enum stub_model_state from, enum stub_model_state to);
/* What a cache holds now, where it held `before` slots of `old`. */
void stub_model_know_cache(const struct execmem_stub_cache *c, const struct execmem_stub_cache *old);
/* Fills record and padding of a slot that was just allocated. */
void stub_model_fill(const struct execmem_stub *stub, uint64_t random);
/* One of those in a state. False where there is none. */
bool stub_model_pick(uint64_t random, enum stub_model_state state, struct stub_model_page **p, uint32_t *slot);

/* How many taken slots have a record in an OS page of data. */
unsigned stub_model_taken_in(const struct stub_model_page *p, size_t part);
void stub_model_check_data(void);
void stub_model_check_counters(void);
void stub_model_check_figures(void);
void stub_model_check_find(uintptr_t address);

/* Plays a sequence on a heap of its own. */
void stub_model_play(const struct sequence *sequence);

#endif
