/*
 * When to release: the rules of D82031, written down here as published, and what must hold of them at larger pages.
 */
#include "../alloc/alloc.h"
#include "subject_release.h"

#define PAGE     ((size_t)4096)
#define MEBIBYTE ((uint64_t)1048576)
#define SECOND   ((uint64_t)1000000000)
#define DAYS     (INT32_MAX * (uint64_t)1000000) /* the longest interval */

/* Whether a hundredth of `all` goes more than `percent` times into `part`: part * 100 / all < percent, in integers. */
static bool is_below(uint64_t part, uint64_t all, uint64_t percent)
{
	return part * 100 < percent * all;
}

/* In the order and with the arithmetic of the source; pages of 4 KiB. */
static enum subject_release_verdict published(const struct subject_release_state *s, bool forced, int32_t interval_ms,
					      uint64_t now_ns)
{
	const uint64_t in_list = s->allocated - (s->popped - s->pushed), pushed = s->pushed - s->pushed_at_last;

	if (in_list < PAGE)
		return SUBJECT_RELEASE_FEW_FREE;
	if (pushed < PAGE)
		return SUBJECT_RELEASE_FEW_NEW;
	if (s->block_bytes < PAGE / 16) {
		if (!forced && pushed < s->allocated / 16)
			return SUBJECT_RELEASE_FEW_PUSHED;
		if (is_below(in_list, s->allocated, 100 - 1 - s->block_bytes / 16))
			return SUBJECT_RELEASE_DENSE;
	}
	if (forced)
		return SUBJECT_RELEASE_GO;
	if (interval_ms < 0)
		return SUBJECT_RELEASE_NEVER;
	return s->last_ns + (uint64_t)interval_ms * 1000000 > now_ns ? SUBJECT_RELEASE_EARLY : SUBJECT_RELEASE_GO;
}

static bool decides(const struct subject_release_state *s, enum subject_release_verdict expected, bool forced,
		    int32_t interval_ms, uint64_t now_ns, const char *what)
{
	check_note_number("page_bytes", s->page_bytes);
	check_note_number("block_bytes", s->block_bytes);
	check_note_number("allocated", s->allocated);
	check_note_number("live", s->popped - s->pushed);
	check_note_number("pushed_since", s->pushed - s->pushed_at_last);
	check_note_number("forced", forced);
	check_note_signed("interval_ms", interval_ms);
	return CHECK_EQUAL(expected, subject.release->decide(s, forced, interval_ms, now_ns), what);
}

/* A MiB, of which so much is free, and so much was freed since the last release, at second 7. */
static struct subject_release_state mebibyte(size_t block, uint64_t free, uint64_t since)
{
	return (struct subject_release_state){
		.page_bytes = PAGE,
		.block_bytes = block,
		.allocated = MEBIBYTE,
		.popped = 3 * MEBIBYTE,
		.pushed = 2 * MEBIBYTE + free,
		.pushed_at_last = 2 * MEBIBYTE + free - since,
		.last_ns = 7 * SECOND,
	};
}

static const struct {
	const char *what;
	size_t block;
	uint64_t free, since;
	bool forced;
	int32_t interval_ms;
	uint64_t now_ns;
	enum subject_release_verdict verdict;
} rules[] = {
	{"less than a page is free", 512, PAGE - 1, PAGE - 1, true, 0, 0, SUBJECT_RELEASE_FEW_FREE},
	{"a page is free", 512, PAGE, PAGE, true, 0, 0, SUBJECT_RELEASE_GO},
	{"less than a page is new, though forced", 512, MEBIBYTE, PAGE - 1, true, 0, 0, SUBJECT_RELEASE_FEW_NEW},
	{"small blocks, less than 1/16 is new", 32, MEBIBYTE, 65535, false, 0, 7 * SECOND, SUBJECT_RELEASE_FEW_PUSHED},
	{"small blocks, 1/16 is new", 32, MEBIBYTE, 65536, false, 0, 7 * SECOND, SUBJECT_RELEASE_GO},
	{"forced, 1/16 is not asked for", 32, MEBIBYTE, PAGE, true, 0, 0, SUBJECT_RELEASE_GO},
	{"blocks of 240 are small", 240, MEBIBYTE, 65535, false, 0, 7 * SECOND, SUBJECT_RELEASE_FEW_PUSHED},
	{"blocks of 256 are not", 256, MEBIBYTE, PAGE, false, 0, 7 * SECOND, SUBJECT_RELEASE_GO},
	{"blocks of 16 ask for 98 percent, though forced", 16, 1027604, 1027604, true, 0, 0, SUBJECT_RELEASE_DENSE},
	{"blocks of 16, 98 percent", 16, 1027605, 1027605, true, 0, 0, SUBJECT_RELEASE_GO},
	{"blocks of 240 ask for 84 percent, though forced", 240, 880803, 880803, true, 0, 0, SUBJECT_RELEASE_DENSE},
	{"and so not forced", 240, 880803, 880803, false, 0, 7 * SECOND, SUBJECT_RELEASE_DENSE},
	{"blocks of 240, 84 percent", 240, 880804, 880804, true, 0, 0, SUBJECT_RELEASE_GO},
	{"a negative interval", 512, MEBIBYTE, MEBIBYTE, false, -1, 99 * SECOND, SUBJECT_RELEASE_NEVER},
	{"a negative interval, forced", 512, MEBIBYTE, MEBIBYTE, true, -1, 0, SUBJECT_RELEASE_GO},
	{"a nanosecond too early", 512, MEBIBYTE, MEBIBYTE, false, 1000, 8 * SECOND - 1, SUBJECT_RELEASE_EARLY},
	{"just not too early", 512, MEBIBYTE, MEBIBYTE, false, 1000, 8 * SECOND, SUBJECT_RELEASE_GO},
	{"a nanosecond short of 24 days", 512, MEBIBYTE, MEBIBYTE, false, INT32_MAX, 7 * SECOND + DAYS - 1,
	 SUBJECT_RELEASE_EARLY},
	{"after 24 days", 512, MEBIBYTE, MEBIBYTE, false, INT32_MAX, 7 * SECOND + DAYS, SUBJECT_RELEASE_GO},
	{"too early, forced", 512, MEBIBYTE, MEBIBYTE, true, 1000, 7 * SECOND, SUBJECT_RELEASE_GO},
};

/* A number below 2^bits. */
static uint64_t some(uint64_t *state, unsigned bits)
{
	return alloc_random(state) & (((uint64_t)1 << bits) - 1);
}

/* As likely near a bound as anywhere. */
static struct subject_release_state random_state(uint64_t *random)
{
	const uint64_t r = alloc_random(random);
	struct subject_release_state s = {.page_bytes = PAGE, .block_bytes = 16 * (1 + (size_t)(r & 31) % 20)};

	s.allocated = s.popped = 65536 + 16 * some(random, 8 + (unsigned)(r >> 8 & 15));
	s.pushed = s.allocated - some(random, 10 + (unsigned)(r >> 12 & 7));
	if (s.pushed > s.allocated || r >> 16 & 1)
		s.pushed = s.allocated - (s.allocated >> 6) * (r >> 20 & 15) + (r >> 24 & 1);
	if (s.pushed > s.allocated)
		s.pushed = s.allocated;
	s.pushed_at_last =
		s.pushed - (r >> 25 & 1 ? s.allocated / 16 - (r >> 26 & 1) : (s.pushed >> 8) * (r >> 28 & 63));
	s.last_ns = some(random, 30);
	return s;
}

CHECK(rl_decisions, "RL-010", "each rule of D82031 stops a release at its bound, forced and not, in its order")
{
	uint64_t random = check_seed * 0x9e3779b97f4a7c15u + 0x5851f42d4c957f2du;

	if (!alloc_claims("release-decisions"))
		return;
	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct subject_release_state s = mebibyte(rules[i].block, rules[i].free, rules[i].since);

		check_note("case", rules[i].what);
		MUST(decides(&s, rules[i].verdict, rules[i].forced, rules[i].interval_ms, rules[i].now_ns,
			     "the verdict is the rule's"));
	}
	check_note("case", "at random");
	for (unsigned i = 0; i < 20000 * check_rounds; i++) {
		const struct subject_release_state s = random_state(&random);
		const uint64_t r = alloc_random(&random), now = s.last_ns + some(&random, 24);
		const bool forced = r & 1;
		const int32_t interval = (int32_t)(r >> 1 & 15) - 2;

		MUST(decides(&s, published(&s, forced, interval, now), forced, interval, now,
			     "the verdict is that of the published rules"));
	}
}

CHECK(rl_page_sizes, "RL-011", "with everything as many times larger as the page is, the verdict is the same")
{
	uint64_t random = check_seed * 0x9e3779b97f4a7c15u + 0x14057b7ef767814fu;

	if (!alloc_claims("release-decisions"))
		return;
	for (unsigned i = 0; i < 20000 * check_rounds; i++) {
		struct subject_release_state s = random_state(&random);
		const uint64_t r = alloc_random(&random), now = s.last_ns + some(&random, 24);
		const enum subject_release_verdict expected = published(&s, r & 1, (int32_t)(r >> 1 & 15) - 2, now);
		const unsigned shift = r >> 8 & 1 ? 2 : 4; /* 16 or 64 KiB */

		s.page_bytes <<= shift;
		s.block_bytes <<= shift;
		s.allocated <<= shift;
		s.pushed <<= shift;
		s.popped <<= shift;
		s.pushed_at_last <<= shift;
		MUST(decides(&s, expected, r & 1, (int32_t)(r >> 1 & 15) - 2, now,
			     "the verdict does not depend on the page size"));
	}
	/* Blocks between those: the share falls with the block, and stays between 84 and 99 percent. */
	for (size_t block = 16; block < 4096; block += 16) {
		struct subject_release_state s = mebibyte(block, 0, 0);

		s.page_bytes = 65536;
		s.pushed_at_last = 0;
		s.pushed = s.popped - MEBIBYTE / 100 * 17;
		MUST(decides(&s, SUBJECT_RELEASE_DENSE, true, 0, 0, "83 percent are never enough for a small block"));
		s.pushed = s.popped;
		MUST(decides(&s, SUBJECT_RELEASE_GO, true, 0, 0, "all free is always enough"));
	}
}
