/*
 * Family FT: the k-th call of the system is refused, for every k.
 */
#include "trial.h"

static struct subject_config small(void)
{
	struct subject_config config = alloc_config();

	/* So that growing, and evicting, comes soon. */
	config.grow_bytes = ALLOC_UNIT;
	config.rw_cache = 2;
	config.emulation = SUBJECT_EMULATION_OFF;
	return config;
}

static bool needed(const struct ft_situation *s)
{
	return !s->claims || check_claimed(s->claims);
}

static void every_situation(const struct subject_config *config,
			    bool (*run)(const struct ft_situation *s, const struct subject_config *config))
{
	watch_begin();
	watch.toggling = config->backends[0] == SUBJECT_BACKEND_TOGGLE;
	for (unsigned i = 0; i < ft_situation_count; i++)
		if (needed(&ft_situations[i]) && !run(&ft_situations[i], config))
			return;
}

CHECK(ft_double, "FT-001", "each refused call of each operation is reported and undone; double mapping")
{
	const struct subject_config config = small();

	if (alloc_claims("allocator os-table"))
		every_situation(&config, ft_each_call);
}

CHECK(ft_toggle, "FT-002", "each refused call of each operation is reported and undone; protection toggling")
{
	struct subject_config config = small();

	config.backends[0] = SUBJECT_BACKEND_TOGGLE;
	if (alloc_claims("allocator os-table backends"))
		every_situation(&config, ft_each_call);
}

CHECK(ft_emulation, "FT-003",
      "each refused call of publishing and creating is reported and undone, where code is mapped anew")
{
	struct subject_config config = small();

	if (!alloc_claims("allocator os-table emulation"))
		return;
	watch_begin();
	for (unsigned i = 0; i < ft_situation_count; i++) {
		const char *operation = ft_situations[i].operation;

		/* Probed when it is made, on when it publishes. */
		config.emulation = ft_situations[i].makes ? SUBJECT_EMULATION_PROBE : SUBJECT_EMULATION_ON;
		if (needed(&ft_situations[i]) && (ft_situations[i].makes || operation[0] == 'p' || operation[0] == 'w'))
			MUST(ft_each_call(&ft_situations[i], &config));
	}
}

CHECK(ft_from_then, "FT-005",
      "where the system refuses everything from a call on, the operation says so, and works later")
{
	const struct subject_config config = small();

	if (alloc_claims("allocator os-table"))
		every_situation(&config, ft_from_then_on);
}

/* ---- In a child ---- */

static struct ft child;

static int move_refused(void)
{
	unsigned long moved = 0;
	int error;

	for (unsigned long k = 1;; k++) {
		const unsigned long injected = watch.injected;

		watch_fail(k, 12); /* ENOMEM */
		error = ALLOC(fork_child)(child.allocator);
		watch.fail_at = 0;
		if (error == 0)
			break;
		ALLOC_STEP(watch.injected > injected && ++moved < 100);
		/* Until it has moved it can do nothing. */
		ALLOC_STEP(ALLOC(close)(&child.view) == SUBJECT_ERROR_FORKED);
	}
	ALLOC_STEP(moved >= 2);
	if (watch.injected > moved)
		ALLOC_STEP(ft_ignored("fork_child", &watch.refused) != NULL);
	ALLOC_STEP(alloc_run(child.region.rx) == 4);
	ALLOC_STEP(ALLOC(close)(&child.view) == 0);
	ALLOC_STEP(alloc_put(child.allocator, child.region.rx + 1024, 5) && alloc_run(child.region.rx + 1024) == 5);
	ALLOC_STEP(ALLOC(release)(&child.region) == 0 && ALLOC(destroy)(child.allocator) == 0);
	ALLOC_STEP(space.count == 0);
	return 0;
}

CHECK(ft_child, "FT-004", "a child whose calls are refused while it moves is refused everything, and may try again")
{
	struct subject_config config = small();

	if (!alloc_claims("allocator os-table fork"))
		return;
	config.emulation = SUBJECT_EMULATION_PROBE;
	child.allocator = alloc_make(&config);
	MUST(child.allocator && alloc_region(child.allocator, 3 * ALLOC_UNIT, &child.region));
	MUST(alloc_put(child.allocator, child.region.rx, 4));
	MUST_OK(ALLOC(open)(child.allocator, child.region.rx + ALLOC_UNIT, 8, 0, &child.view));
	MUST_OK(ALLOC(fork_prepare)(child.allocator));
	(void)alloc_apart(move_refused, "the child moves in the end, whatever was refused before");
	MUST_OK(ALLOC(fork_parent)(child.allocator));
	MUST_OK(ALLOC(close)(&child.view));
	MUST_OK(ALLOC(release)(&child.region));
	(void)alloc_end(child.allocator);
}
