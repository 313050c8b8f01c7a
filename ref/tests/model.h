/*
 * Sequences of calls against a model of what is reserved, committed, open and written: results, bytes, statistics,
 * writable mappings and what is left at the end agree. Used with random numbers (random_model.c) and with the bytes
 * that a fuzzer makes (ref/fuzz/api.c).
 */
#ifndef EXECMEM_TEST_MODEL_H
#define EXECMEM_TEST_MODEL_H

#include "test.h"

/* Where choices come from: the bytes from `at` to `end`, then random numbers, which depend on these bytes. */
struct model_input {
	const unsigned char *at, *end;
	uint64_t random;
};

/*
 * Makes an allocator and `most` calls, and ends with everything given back. Returns how many calls were made, those of
 * the end included. Fails as tests do.
 */
unsigned long model_run(struct model_input *input, unsigned long most);

/* ---- Between model.c, model_regions.c and model_calls.c ---- */

#define UNIT           ((size_t)EXECMEM_UNIT_BYTES)
#define MODEL_REGIONS  5
#define MODEL_VIEWS    8
#define MODEL_UNITS    4 /* at most, a region */
#define MODEL_PAGE_MIN 4096

struct model_region {
	bool live;
	struct execmem_region region;
	unsigned kind;
	unsigned char *bytes;                                              /* what each byte holds */
	bool committed[MODEL_UNITS * EXECMEM_UNIT_BYTES / MODEL_PAGE_MIN]; /* by page */
	bool written[MODEL_UNITS * EXECMEM_UNIT_BYTES / MODEL_PAGE_MIN];
};

struct model_view {
	bool open;
	int region;
	size_t offset;
	struct execmem_view view, closed; /* closed: a copy of one that is no more, if it was ever open */
};

struct model {
	struct model_input *input;
	struct execmem_allocator *allocator;
	struct execmem_config config;
	unsigned rw_cache; /* what the environment makes of it */
	size_t page;
	struct model_region region[MODEL_REGIONS];
	struct model_view view[MODEL_VIEWS];
	struct execmem_region stale; /* a copy of one that was released */
	/* Since creation. */
	unsigned long reserves, releases, commits, decommits, maps, publishes;
	bool refused; /* a system call was */
	unsigned long calls;
	bool no_toggling; /* the system refuses it: set before the first run */
};

extern struct model model;

unsigned model_pick(unsigned below); /* a choice from 0 to below - 1 */
/*
 * Whether a call did its work. `expected` is its result where the system refuses nothing; where a refusal was armed and
 * came, the call may have failed for it instead, but for nothing else.
 */
bool model_done(int expected, int error);
void model_create(void);
void model_destroy(void);                  /* everything given back first */
void model_check_page_at(int r, size_t p); /* that page of a region, where it is committed */
void model_check_page(int r);              /* one of them, chosen */
void model_check_books(void);              /* statistics, and the writable mappings that there are */
void model_recount(void);                  /* takes over what the statistics count of views and publishing */
bool model_all(const struct model_region *r, size_t offset, size_t bytes, bool value);
bool model_open_in(int r, size_t offset, size_t bytes);
/* One of the regions, chosen; some of its pages; whether a view of it is open. */
struct model_region *model_some_region(int *r);
void model_some_pages(const struct model_region *m, size_t *offset, size_t *bytes);
bool model_open_anywhere(int r);
void model_reserve_anywhere(void);
void model_reserve_near(void);
void model_commit(void);
void model_decommit(void);
void model_release(void);
void model_call(void); /* one call, chosen */

#endif
