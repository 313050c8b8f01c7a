/*
 * A heap of stubs whose data pages go while some of their stubs live, and a model of both: which stubs live, with which
 * bytes in their records; which pages of the system have held a record since they were zero.
 */
#include "../alloc/table.h"
#include "../ch/stub.h"

#define MOST   2000u /* more of the widest than one region has, on the smallest pages */
#define ROUNDS 3u
#define PARTS  4096u /* pages of the system that are known */

static struct {
	struct subject_stub at;
	unsigned kind, salt;
	bool live;
} stubs[MOST];

static struct {
	uintptr_t page;
	unsigned records; /* live */
	bool touched;
} parts[PARTS];

static struct stub it;
static unsigned part_count, salt;
static uint64_t random;

static unsigned part_of(uintptr_t address)
{
	const uintptr_t page = address & ~(uintptr_t)(check_page - 1);

	/* The newest first: stubs lie side by side. */
	for (unsigned i = part_count; i--;)
		if (parts[i].page == page)
			return i;
	if (part_count == PARTS)
		check_broken("more pages than the model has room for", (long)PARTS);
	parts[part_count].page = page;
	parts[part_count].records = 0;
	parts[part_count].touched = false;
	return part_count++;
}

/* A record is there, or not any more. */
static void count(unsigned i, bool lives)
{
	const uintptr_t record = (uintptr_t)stubs[i].at.record;
	const uintptr_t last = record + stub_kind(&it, stubs[i].kind)->record_bytes - 1;

	for (uintptr_t at = record & ~(uintptr_t)(check_page - 1); at <= last; at += check_page) {
		const unsigned part = part_of(at);

		parts[part].records = lives ? parts[part].records + 1 : parts[part].records - 1;
		parts[part].touched |= lives;
	}
}

static bool put(unsigned i, struct subject_stub_cache *cache)
{
	stubs[i].kind = i % 8 == 0 ? STUB_SMALL : i % 8 == 4 ? STUB_EVEN : STUB_WIDE;
	if (!ALLOC_OK(cache && stubs[i].kind == STUB_WIDE ? STUB(cache_allocate)(cache, &stubs[i].at)
							  : STUB(allocate)(it.heap, stubs[i].kind, &stubs[i].at)))
		return false;
	stubs[i].live = true;
	stubs[i].salt = ++salt;
	stub_fill(&it, stubs[i].kind, &stubs[i].at, salt);
	count(i, true);
	return true;
}

static bool drop(unsigned i, struct subject_stub_cache *cache)
{
	const uintptr_t rx = stubs[i].at.rx;

	stubs[i].live = false;
	count(i, false);
	if (cache && stubs[i].kind == STUB_WIDE)
		return ALLOC_OK(STUB(cache_free)(cache, rx));
	return ALLOC_OK(i % 2 ? STUB(free)(it.heap, rx) : STUB(back_out)(it.heap, rx));
}

static bool all_kept(void)
{
	struct subject_stub_figures figures;
	struct subject_stub_found found;
	unsigned live = 0;

	for (unsigned i = 0; i < MOST; i++) {
		live += stubs[i].live;
		if (stubs[i].live &&
		    (!stub_filled(&it, stubs[i].kind, &stubs[i].at, stubs[i].salt, "a live stub's record is its own") ||
		     !ALLOC_OK(STUB(find)(it.allocator, stubs[i].at.rx, &found)) ||
		     !CHECK_TRUE(found.live && found.kind == stubs[i].kind, "a live stub is found, with its kind")))
			return false;
	}
	return stub_figures(&it, &figures) && CHECK_EQUAL(live, figures.live, "as many stubs live as were not freed");
}

/* Of a data page, without slots in caches: what is to go goes, and nothing else. */
static bool releases(void)
{
	struct subject_released released;
	uint64_t free = 0;

	if (!ALLOC_OK(STUB(release)(it.heap, &released)) ||
	    !WATCH_KEPT(WATCH_MULTIPLE, "ranges are multiples of the page size"))
		return false;
	for (unsigned i = 0; i < part_count; i++) {
		const volatile unsigned char *at = (const unsigned char *)parts[i].page;

		if (parts[i].records || !parts[i].touched)
			continue;
		free++;
		parts[i].touched = false;
		check_note_number("page_at", parts[i].page);
		for (size_t k = 0; k < check_page; k += k % 512 < 64 ? 1 : 7)
			if (at[k])
				return CHECK_EQUAL(0, at[k], "a page of records that went reads as zero");
	}
	if (!CHECK_EQUAL(free, released.pages, "every page without a live record goes, of those that had one") ||
	    !CHECK_EQUAL(free * check_page, released.bytes, "the count of bytes is that of the pages") || !all_kept())
		return false;
	return ALLOC_OK(STUB(release)(it.heap, &released)) &&
	       CHECK_EQUAL(0, released.pages, "what went does not go again before it is used");
}

/* Pages that were given back as a whole have touched nothing, wherever they come again. */
static bool begins_anew(void)
{
	size_t bytes;

	for (unsigned i = 0; i < MOST; i++)
		if (stubs[i].live && !drop(i, NULL))
			return false;
	if (check_claimed("stub-trim") && !ALLOC_OK(STUB(trim)(it.heap, &bytes)))
		return false;
	for (unsigned i = 0; i < part_count && check_claimed("stub-trim"); i++)
		parts[i].touched = false;
	for (unsigned i = 0; i < MOST; i += 20)
		if (!put(i, NULL))
			return false;
	for (unsigned i = 0; i < MOST; i += 20)
		if (!drop(i, NULL))
			return false;
	return releases();
}

static bool play(size_t page)
{
	const bool has_cache = check_claimed("stub-cache");
	struct subject_stub_cache cache;

	part_count = salt = 0;
	__builtin_memset(stubs, 0, sizeof(stubs));
	if (!stub_make(&it, page, true) || (has_cache && !ALLOC_OK(STUB(cache_create)(it.heap, STUB_WIDE, &cache))))
		return false;
	for (unsigned round = 0; round < ROUNDS; round++) {
		/* Of 64 stubs one stays, and in the next round 32. */
		const unsigned mask = round % 2 ? 1 : 63;

		check_note_number("round", round);
		for (unsigned i = 0; i < MOST; i++)
			if (!stubs[i].live && !put(i, has_cache ? &cache : NULL))
				return false;
		if (!all_kept())
			return false;
		for (unsigned i = 0; i < MOST; i++)
			if (alloc_random(&random) >> 33 & mask && !drop(i, has_cache ? &cache : NULL))
				return false;
		if (!all_kept() || (has_cache && !ALLOC_OK(STUB(cache_flush)(&cache))) || !releases())
			return false;
	}
	return begins_anew() && (!has_cache || ALLOC_OK(STUB(cache_destroy)(&cache))) && stub_end(&it);
}

CHECK(rl_stubs, "RL-022", "of stubs that come and go at random, every page without a live record goes, and no other")
{
	if (!alloc_claims(STUB_CLAIMS) || !alloc_claims("stub-release"))
		return;
	random = check_seed * 0x9e3779b97f4a7c15u + 0x3c6ef372fe94f82bu;
	for (size_t p = stub_page_first(); stub_pages[p]; p++)
		MUST(play(stub_pages[p]));
}
