/*
 * One operation in one situation, with one system call of it refused: the unit of family FT.
 */
#ifndef FT_TRIAL_H
#define FT_TRIAL_H

#include "../alloc/alloc.h"

/* What a situation works on. */
struct ft {
	struct subject_config config;
	struct subject_allocator *allocator;
	struct subject_region region, other;
	struct subject_view view, second;
};

struct ft_situation {
	const char *name;
	const char *operation;        /* whose refusals ft_ignored knows */
	const char *claims;           /* besides "allocator os-table" */
	bool (*before)(struct ft *f); /* up to the operation; asserted. Null: nothing but the allocator */
	int (*act)(struct ft *f);     /* the operation */
	bool (*after)(struct ft *f);  /* gives everything back but the allocator; asserted. Null: nothing */
	bool caches;                  /* it may leave a view to the cache */
	bool makes;                   /* it makes the allocator */
	bool ends;                    /* it destroys it: where that fails it is left half done, to be called again */
	bool done_anyway;             /* an error tells of trouble, and it is done all the same */
};

extern const struct ft_situation ft_situations[];
extern const unsigned ft_situation_count;

/*
 * Refuses each call of the situation's operation, the first, the second and so on, with every errno that such a call
 * plausibly meets. Asserted of each: it is reported, or ft_ignored says why it need not be; the model is back where it
 * was; the same operation works then; and nothing is left when the allocator is gone. False where not.
 */
bool ft_each_call(const struct ft_situation *situation, const struct subject_config *config);
/* The same with every call refused from one on: reported, W^X kept, and the operation works afterwards. */
bool ft_from_then_on(const struct ft_situation *situation, const struct subject_config *config);

/* Calls whose refusal an operation may keep to itself, as data: ignored.c. Null where there is no such entry. */
const char *ft_ignored(const char *operation, const struct watch_call *call);

/* The errnos, positive, that a call of a kind plausibly meets; ends with 0. */
const int *ft_errors(enum watch_kind kind);

#endif
