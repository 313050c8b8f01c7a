#include "trial.h"

/* What is under way, for a failure. */
static void note(const struct ft_situation *situation, unsigned long k, int error)
{
	check_note("situation", situation->name);
	check_note_number("refused_call", k);
	check_note_number("with_errno", (uint64_t)error);
}

static void note_refused(const char *result)
{
	check_note("refused", watch_name[watch.refused.kind]);
	check_note_number("refused_address", watch.refused.address);
	check_note("answer", result);
}

static bool make(struct ft *f, const struct ft_situation *s)
{
	struct subject_refusals refusals;

	if (!s->makes && !(ALLOC_OK(ALLOC(create_over)(&watch_os, &f->config, &f->allocator, &refusals)) &&
			   (!s->before || s->before(f))))
		return false;
	watch.injected = 0;
	return true;
}

static bool nothing_left(void)
{
	return CHECK_EQUAL(0, space.count, "nothing is mapped once the allocator is gone") &&
	       CHECK_EQUAL(0, space_open_files(), "no file is open once the allocator is gone");
}

/* Everything given back. Where something was left by the suite's own fault of a check before, it is not told twice. */
static bool unmake(struct ft *f, const struct ft_situation *s)
{
	if (s->after && !s->after(f))
		return false;
	if (s->ends)
		return nothing_left();
	return ALLOC_OK(ALLOC(destroy)(f->allocator)) && nothing_left();
}

static bool is_back(const struct ft_situation *s, const struct subject_config *config, struct space_state before)
{
	const struct space_state after = space_state();
	const unsigned views = s->caches ? before.views + config->rw_cache : before.views;

	if (s->ends || s->done_anyway)
		return true;
	return CHECK_EQUAL(before.digest, after.digest, "a call that fails leaves what was mapped as it was") &&
	       CHECK_EQUAL(before.files, after.files, "and the files that were open") &&
	       CHECK_TRUE(after.views <= views, "and no writable view more");
}

/* One trial. *reached: the operation makes that many calls. */
static bool trial(const struct ft_situation *s, const struct subject_config *config, unsigned long k, int number,
		  bool *reached)
{
	struct ft f = {.config = *config};
	struct space_state before;
	int error;

	note(s, k, number);
	if (!make(&f, s))
		return false;
	before = space_state();
	watch_fail(k, number);
	error = s->act(&f);
	watch.fail_at = 0;
	*reached = watch.injected != 0;
	note_refused(alloc_error_name(error));
	if (!*reached)
		return ALLOC_OK(error) && unmake(&f, s);
	if (!error) {
		if (!CHECK_TRUE(ft_ignored(s->operation, &watch.refused), "the refused call is reported"))
			return false;
	} else if (!is_back(s, config, before) || (!s->done_anyway && !ALLOC_OK(s->act(&f)))) {
		return false;
	}
	return unmake(&f, s) && WATCH_KEPT(WATCH_BOTH, "nothing becomes writable and executable");
}

#define CALLS_MOST 64

/* The kinds of the calls that the operation makes when nothing is refused; how many. */
static bool learn(const struct ft_situation *s, const struct subject_config *config, enum watch_kind *kinds,
		  unsigned long *count)
{
	struct ft f = {.config = *config};
	unsigned long first;

	note(s, 0, 0);
	if (!make(&f, s))
		return false;
	first = watch.recorded;
	if (!ALLOC_OK(s->act(&f)))
		return false;
	*count = 0;
	for (unsigned long i = first; i < watch.recorded; i++) {
		if (watch_call_at(i)->kind == WATCH_PROBE_RUN)
			continue;
		if (*count == CALLS_MOST)
			check_broken("an operation makes more calls than this family has room for", CALLS_MOST);
		kinds[(*count)++] = watch_call_at(i)->kind;
	}
	return unmake(&f, s);
}

bool ft_each_call(const struct ft_situation *s, const struct subject_config *config)
{
	enum watch_kind kinds[CALLS_MOST];
	unsigned long count, met = 0;
	bool reached;

	if (!learn(s, config, kinds, &count))
		return false;
	for (unsigned long k = 1; k <= count; k++)
		for (const int *error = ft_errors(kinds[k - 1]); *error; error++) {
			/* Not reached: where the system put things, fewer calls were needed than the first time. */
			if (!trial(s, config, k, *error, &reached))
				return false;
			met += reached;
		}
	return CHECK_TRUE(met >= count, "calls are refused");
}

bool ft_from_then_on(const struct ft_situation *s, const struct subject_config *config)
{
	bool reached = true;

	for (unsigned long k = 1; reached; k++) {
		struct ft f = {.config = *config};
		int error;

		note(s, k, 0);
		if (!make(&f, s))
			return false;
		watch.fail_from = watch.calls + k;
		watch.fail_with = 12; /* ENOMEM */
		error = s->act(&f);
		watch.fail_from = 0;
		reached = watch.injected != 0;
		note_refused(alloc_error_name(error));
		if (!error && reached && watch.injected == 1 &&
		    !CHECK_TRUE(ft_ignored(s->operation, &watch.refused), "the refused call is reported"))
			return false;
		if (error && !s->done_anyway && !ALLOC_OK(s->act(&f)))
			return false;
		if (s->after && !s->after(&f))
			return false;
		if (!s->ends && !ALLOC_OK(ALLOC(destroy)(f.allocator)))
			return false;
		if (!WATCH_KEPT(WATCH_BOTH, "nothing becomes writable and executable"))
			return false;
	}
	return true;
}
