/*
 * Which pages go: sequences at random, and the patterns that are hard.
 */
#include "model.h"

static unsigned below(uint64_t *state, unsigned bound)
{
	return (unsigned)(alloc_random(state) >> 33) % bound;
}

static void add(struct rl_sequence *s, enum rl_kind kind, unsigned from, unsigned count)
{
	if (s->count < RL_STEPS_MOST)
		s->steps[s->count++] = (struct rl_step){kind, from, count};
}

/* One that fails is reduced, in processes of their own, before it is shown. */
static bool play(struct rl_sequence *s)
{
	unsigned at;

	if (rl_play(s, &at))
		return CHECK_TRUE(true, "a sequence ends as the model says");
	rl_shrink(s);
	return false;
}

static struct rl_sequence random_sequence(uint64_t seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
	struct rl_sequence s = {.layout.page_bytes = check_page, .file = alloc_random(&random) >> 40 & 1};
	struct subject_release_layout *l = &s.layout;
	const unsigned page = (unsigned)check_page;

	/* From a 512th of a page to more than one; with and without a divisor in common. */
	l->block_bytes = page / 512 + 8 + below(&random, (page / 256) << below(&random, 9));
	if (below(&random, 2))
		l->block_bytes = (l->block_bytes + 15) & ~(size_t)15;
	if (!below(&random, 4))
		l->block_bytes = (size_t)16 << below(&random, 8);
	l->first = below(&random, 2) ? 0 : below(&random, 2 * page);
	l->blocks = 1 + below(&random, 10 * page / (unsigned)l->block_bytes + 3);
	if (l->blocks > RL_BLOCKS_MOST)
		l->blocks = RL_BLOCKS_MOST;
	l->end = l->first + l->blocks * l->block_bytes + (below(&random, 2) ? 0 : below(&random, 2 * page));
	add(&s, RL_TAKE, 0, RL_BLOCKS_MOST);
	while (s.count < 20) {
		const unsigned kind = below(&random, 16), blocks = (unsigned)l->blocks;

		if (kind < 9)
			add(&s, kind < 3 ? RL_TAKE : RL_GIVE, below(&random, blocks),
			    1 + below(&random, kind & 1 ? blocks / 2 + 1 : 40));
		else
			add(&s, kind < 13 ? RL_EXACT : RL_SCUDO, below(&random, 2), 0);
	}
	return s;
}

static void at_random(void)
{
	static struct rl_sequence s;

	/* At larger pages there is more to look at in each. */
	const uint64_t count = check_page > 4096 ? 4 : 12;

	for (uint64_t i = 0; i < count * check_rounds; i++) {
		check_note_number("sequence_seed", check_seed + i);
		s = random_sequence(check_seed + i);
		MUST(play(&s));
	}
}

CHECK(rl_random, "RL-001", "no page with a live block goes, and every wholly free one does, in sequences at random")
{
	if (alloc_claims("release-class"))
		at_random();
}

/* A region of blocks that fill `pages` pages, all live. */
static struct rl_sequence full(size_t block, unsigned pages, bool file)
{
	struct rl_sequence s = {.layout = {.page_bytes = check_page, .block_bytes = block}, .file = file};

	s.layout.blocks = pages * check_page / block;
	s.layout.end = pages * check_page;
	add(&s, RL_TAKE, 0, RL_BLOCKS_MOST);
	return s;
}

static void hard(void)
{
	static struct rl_sequence s;
	const unsigned each = 32, block = (unsigned)check_page / 32;

	for (unsigned file = 0; file < 2; file++) {
		s = full(block, 8, file);
		add(&s, RL_GIVE, 2 * each, each - 1);
		add(&s, RL_GIVE, 4 * each + each / 2, each); /* a page's worth, across two */
		add(&s, RL_EXACT, 0, 0);
		add(&s, RL_SCUDO, 1, 0);
		add(&s, RL_GIVE, 3 * each - 1, 1);
		add(&s, RL_EXACT, 0, 0);
		add(&s, RL_GIVE, 7 * each, each); /* the last page */
		add(&s, RL_EXACT, 0, 0);
		add(&s, RL_TAKE, 7 * each + 5, 1);
		add(&s, RL_EXACT, 0, 0);
		add(&s, RL_GIVE, 0, 8 * each);
		add(&s, RL_SCUDO, 1, 0);
		add(&s, RL_EXACT, 0, 0);
		add(&s, RL_EXACT, 0, 0);
		MUST(play(&s));
		/* A checkerboard in two pages, then its other half. */
		s = full(check_page / 8, 8, file);
		for (unsigned i = 0; i < 16; i += 2)
			add(&s, RL_GIVE, 16 + i, 1);
		add(&s, RL_EXACT, 0, 0);
		for (unsigned i = 1; i < 16; i += 2)
			add(&s, RL_GIVE, 16 + i, 1);
		add(&s, RL_EXACT, 0, 0);
		MUST(play(&s));
		/* What a release that found no page had counted counts for the next one. */
		s = full(check_page / 2, 8, file);
		for (unsigned i = 0; i < 8; i += 2)
			add(&s, RL_GIVE, i, 1);
		add(&s, RL_SCUDO, 1, 0);
		add(&s, RL_GIVE, 1, 1);
		add(&s, RL_SCUDO, 1, 0);
		MUST(play(&s));
	}
}

CHECK(rl_hard, "RL-002",
      "patterns: a span a block short of a page, the last block of a page, a checkerboard and its other half, the last "
      "page of a region, everything")
{
	if (alloc_claims("release-class"))
		hard();
}

static void widths(void)
{
	static const unsigned most[] = {1, 2, 3, 4, 15, 16, 255, 256};
	static struct rl_sequence s;

	for (unsigned i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		const size_t block = check_page / most[i];

		for (unsigned turn = 0; turn < 3; turn++) {
			/* Three pages, so that neighbouring counters are there to be spoilt. */
			s = full(block, block * most[i] == check_page ? 3 : 6, turn == 1);
			/* Where a page begins inside a block, one block more touches it. */
			s.layout.first = turn == 2 ? block / 2 : 0;
			s.layout.blocks = (s.layout.end - s.layout.first) / block;
			add(&s, RL_GIVE, 0, 1);
			add(&s, RL_EXACT, 0, 0);
			add(&s, RL_SCUDO, 1, 0);
			add(&s, RL_GIVE, 0, RL_BLOCKS_MOST);
			add(&s, RL_SCUDO, 1, 0);
			add(&s, RL_TAKE, most[i], most[i]);
			add(&s, RL_SCUDO, 1, 0);
			add(&s, RL_EXACT, 0, 0);
			MUST(play(&s));
		}
	}
}

CHECK(rl_widths, "RL-003", "as many blocks as counters of each width count just so far, and one more, touch a page")
{
	if (alloc_claims("release-class"))
		widths();
}

static void ends(void)
{
	static struct rl_sequence s;
	const unsigned page = (unsigned)check_page;

	for (unsigned file = 0; file < 2; file++) {
		for (unsigned first = 0; first < page; first += page / 4) {
			s = (struct rl_sequence){.file = file, .layout = {page, page / 8, first, 24, 0}};
			/* Up to the middle of a block's worth behind the last, and up to a page's end. */
			for (unsigned behind = 0; behind < page; behind += page / 4) {
				s.count = 0;
				s.layout.end = first + 24 * (size_t)(page / 8) + behind;
				add(&s, RL_TAKE, 0, 24);
				add(&s, RL_GIVE, 0, 24);
				add(&s, RL_SCUDO, 1, 0);
				add(&s, RL_EXACT, 0, 0);
				MUST(play(&s));
			}
		}
	}
}

CHECK(rl_ends, "RL-004", "of a first and a last page that the region shares with others, nothing goes")
{
	if (alloc_claims("release-class"))
		ends();
}
