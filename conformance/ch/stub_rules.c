/*
 * Kinds, misuse, caches, what is given back, refused calls, forks.
 */
#include "../alloc/table.h"
#include "os.h"
#include "stub.h"

#define MOST 400

static struct subject_stub stubs[MOST];
static struct stub it;

/* The stub is of its kind, and says so. */
static bool is_kind(const struct subject_stub *stub, unsigned kind)
{
	struct subject_stub_found found;

	return ALLOC_OK(STUB(find)(it.allocator, stub->rx, &found)) &&
	       CHECK_EQUAL(kind, found.kind, "an address leads to its kind") &&
	       alloc_runs(stub->rx, stub_value(kind), "a stub runs the template of its kind");
}

static bool same_page(uintptr_t a, uintptr_t b)
{
	struct subject_stub_found found;
	uintptr_t start;

	if (STUB(find)(it.allocator, a, &found))
		return true;
	start = a - (uintptr_t)found.slot * stub_kind(&it, found.kind)->pitch;
	return b - start < it.page;
}

CHECK(ch_stub_kinds, "CH-105", "kinds share no page, and a slot keeps its kind when it is used again")
{
	if (!alloc_claims(STUB_CLAIMS))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < 90; i++)
			MUST(stub_take(&it, STUB_SMALL + (i + turn) % STUB_KINDS, &stubs[i], 1));
		for (unsigned i = 0; i < 90; i++)
			MUST(is_kind(&stubs[i], STUB_SMALL + (i + turn) % STUB_KINDS));
		for (unsigned i = 0; i + 1 < 90; i++)
			MUST(CHECK_TRUE(!same_page(stubs[i].rx, stubs[i + 1].rx), "kinds share no page"));
		for (unsigned i = 0; i < 90; i++)
			MUST_OK(STUB(free)(it.heap, stubs[i].rx));
	}
	MUST(ALLOC_IS(SUBJECT_ERROR_ARGUMENT, STUB(allocate)(it.heap, STUB_SMALL - 1, &stubs[0])));
	(void)stub_end(&it);
}

CHECK(ch_stub_cached_kinds, "CH-106", "a slot freed into a cache of another kind keeps its kind")
{
	struct subject_stub_cache cache;

	if (!alloc_claims(STUB_CLAIMS) || !alloc_claims("stub-cache"))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	MUST_OK(STUB(cache_create)(it.heap, STUB_EVEN, &cache));
	for (unsigned i = 0; i < 90; i++)
		MUST(stub_take(&it, STUB_SMALL + i % STUB_KINDS, &stubs[i], 1));
	for (unsigned i = 0; i < 90; i++)
		MUST_OK(STUB(cache_free)(&cache, stubs[i].rx));
	for (unsigned i = 0; i < 90; i++) {
		MUST_OK(STUB(cache_allocate)(&cache, &stubs[i]));
		MUST(is_kind(&stubs[i], STUB_EVEN));
	}
	MUST_OK(STUB(cache_destroy)(&cache));
	(void)stub_end(&it);
}

/* ---- Misuse ---- */

static bool refused(int expected, uintptr_t rx)
{
	struct subject_stub_figures before, after;

	if (!stub_figures(&it, &before) || !ALLOC_IS(expected, STUB(free)(it.heap, rx)) ||
	    !ALLOC_IS(expected, STUB(back_out)(it.heap, rx)) || !stub_figures(&it, &after))
		return false;
	return CHECK_EQUAL(before.live, after.live, "a free that is refused frees nothing");
}

CHECK(ch_stub_misuse, "CH-107", "frees of what is no live stub are refused, each by its own error, and change nothing")
{
	struct subject_stub_heap *mine, *second;
	struct subject_stub other;

	if (!alloc_claims(STUB_CLAIMS))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	mine = it.heap;
	MUST_OK(STUB(create)(it.allocator, it.kinds, STUB_KINDS, it.page, &it.heap));
	MUST(stub_take(&it, STUB_SMALL, &other, 1));
	second = it.heap;
	it.heap = mine;
	MUST(refused(SUBJECT_ERROR_NOT_FOUND, other.rx)); /* another heap's */
	MUST_OK(STUB(free)(second, other.rx));
	MUST_OK(STUB(destroy)(second));
	for (unsigned kind = STUB_SMALL; kind <= STUB_WIDE; kind++) {
		const struct subject_stub_kind *k = stub_kind(&it, kind);

		MUST(stub_take(&it, kind, stubs, 3));
		for (unsigned i = 0; i < 3; i++)
			stub_fill(&it, kind, &stubs[i], i);
		MUST(refused(SUBJECT_ERROR_INTERIOR, stubs[1].rx + 1));
		MUST(refused(SUBJECT_ERROR_INTERIOR, stubs[1].rx + k->code_bytes - 1));
		MUST(refused(SUBJECT_ERROR_INTERIOR, (uintptr_t)stubs[1].record));
		if (k->code_bytes < k->pitch)
			MUST(refused(SUBJECT_ERROR_PADDING, stubs[1].rx + k->code_bytes));
		if (k->record_bytes < k->pitch)
			MUST(refused(SUBJECT_ERROR_PADDING, (uintptr_t)stubs[1].record + k->record_bytes));
		MUST(refused(SUBJECT_ERROR_NOT_FOUND, (uintptr_t)&it));
		MUST(refused(SUBJECT_ERROR_NOT_FOUND, 0));
		MUST_OK(STUB(free)(it.heap, stubs[1].rx));
		MUST(refused(SUBJECT_ERROR_FREED, stubs[1].rx));
		for (unsigned i = 0; i < 3; i += 2)
			MUST(stub_filled(&it, kind, &stubs[i], i, "a free that is refused clears nothing"));
		/* The slot was not given away twice. */
		MUST(stub_take(&it, kind, &stubs[1], 1) && stub_take(&it, kind, &other, 1));
		MUST(CHECK_TRUE(other.rx != stubs[1].rx, "a slot freed twice is issued once"));
	}
	(void)stub_end(&it);
}

CHECK(ch_stub_cached_misuse, "CH-108",
      "of two frees through a cache the second is refused, and nothing is issued twice")
{
	struct subject_stub_cache cache;
	struct subject_stub_found found;

	if (!alloc_claims(STUB_CLAIMS) || !alloc_claims("stub-cache"))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	MUST_OK(STUB(cache_create)(it.heap, STUB_WIDE, &cache));
	for (unsigned i = 0; i < 100; i++)
		MUST_OK(STUB(cache_allocate)(&cache, &stubs[i]));
	MUST_OK(STUB(cache_free)(&cache, stubs[7].rx));
	MUST(ALLOC_IS(SUBJECT_ERROR_FREED, STUB(cache_free)(&cache, stubs[7].rx)));
	MUST(ALLOC_IS(SUBJECT_ERROR_FREED, STUB(free)(it.heap, stubs[7].rx)));
	MUST_OK(STUB(find)(it.allocator, stubs[7].rx, &found));
	MUST(CHECK_TRUE(!found.live, "a slot in a cache does not live"));
	MUST(ALLOC_IS(SUBJECT_ERROR_INTERIOR, STUB(cache_free)(&cache, stubs[8].rx + 1)));
	MUST_OK(STUB(cache_allocate)(&cache, &stubs[7]));
	/* The heap issues what is left, none of which the cache holds or lives. */
	MUST(stub_take(&it, STUB_WIDE, stubs + 100, 200));
	for (unsigned i = 0; i < 300; i++)
		stub_fill(&it, STUB_WIDE, &stubs[i], i);
	for (unsigned i = 0; i < 300; i++)
		MUST(stub_filled(&it, STUB_WIDE, &stubs[i], i, "no slot is issued twice"));
	MUST_OK(STUB(cache_destroy)(&cache));
	(void)stub_end(&it);
}

CHECK(ch_stub_flush, "CH-109", "a cache that is flushed or destroyed has given all its slots back, and keeps no page")
{
	struct subject_stub_cache cache;
	struct subject_stub_figures figures;

	if (!alloc_claims(STUB_CLAIMS) || !alloc_claims("stub-cache"))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	for (unsigned turn = 0; turn < 4; turn++) {
		const unsigned kind = STUB_SMALL + turn % STUB_KINDS;
		size_t given = 0;

		MUST_OK(STUB(cache_create)(it.heap, kind, &cache));
		for (unsigned i = 0; i < 150; i++)
			MUST_OK(STUB(cache_allocate)(&cache, &stubs[i]));
		MUST(stub_figures(&it, &figures) && CHECK_EQUAL(150, figures.live, "stubs of a cache live"));
		for (unsigned i = 0; i < 150; i++)
			MUST_OK(STUB(cache_free)(&cache, stubs[i].rx));
		MUST(stub_figures(&it, &figures));
		MUST(CHECK_EQUAL(0, figures.live, "freed stubs do not live") &&
		     CHECK_TRUE(figures.cached > 0, "a cache keeps free slots"));
		if (turn % 2)
			MUST_OK(STUB(cache_flush)(&cache));
		else
			MUST_OK(STUB(cache_destroy)(&cache));
		MUST(stub_figures(&it, &figures) && CHECK_EQUAL(0, figures.cached, "an empty cache keeps no slot"));
		if (check_claimed("stub-trim")) {
			MUST_OK(STUB(trim)(it.heap, &given));
			MUST(CHECK_TRUE(given > 0, "pages that only a cache held can be given back"));
			MUST(stub_figures(&it, &figures) && CHECK_EQUAL(0, figures.pages, "no page is left"));
		}
		if (turn % 2)
			MUST_OK(STUB(cache_destroy)(&cache));
	}
	(void)stub_end(&it);
}

/* ---- What is given back ---- */

CHECK(ch_stub_gone, "CH-110", "an address of pages given back leads to no stub, whatever lies there next")
{
	struct subject_region region[8];
	struct subject_stub_found found;
	struct subject_stub kept;
	unsigned count = 0;
	uintptr_t gone;
	size_t bytes;

	if (!alloc_claims(STUB_CLAIMS) || !alloc_claims("stub-trim"))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	MUST(stub_take(&it, STUB_EVEN, &kept, 1) && stub_take(&it, STUB_WIDE, stubs, MOST));
	stub_fill(&it, STUB_EVEN, &kept, 3);
	gone = stubs[1].rx;
	for (unsigned i = 0; i < MOST; i++)
		MUST_OK(STUB(free)(it.heap, stubs[i].rx));
	MUST_OK(STUB(trim)(it.heap, &bytes));
	MUST(CHECK_TRUE(bytes > 0, "pages without a live stub are given back"));
	MUST(ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, STUB(find)(it.allocator, gone, &found)));
	MUST(ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, STUB(free)(it.heap, gone)));
	/* Other regions take the place: the first lies just there, if it can be asked to. */
	for (; count < 8; count++) {
		if (count == 0 && check_claimed("near"))
			MUST_OK(ALLOC(reserve_near)(it.allocator, ALLOC_UNIT, gone, 4 * ALLOC_UNIT, &region[count]));
		else
			MUST_OK(ALLOC(reserve)(it.allocator, bytes, &region[count]));
		MUST(ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, STUB(find)(it.allocator, gone, &found)));
		MUST(ALLOC_IS(SUBJECT_ERROR_NOT_FOUND, STUB(find)(it.allocator, region[count].rx, &found)));
	}
	while (count)
		MUST_OK(ALLOC(release)(&region[--count]));
	MUST(stub_filled(&it, STUB_EVEN, &kept, 3, "the page of a live stub stays"));
	MUST(is_kind(&kept, STUB_EVEN));
	(void)stub_end(&it);
}

/* So many stubs that the pages of one kind take several regions, if the subject has such: MANY are three. */
#define MANY 4200u

CHECK(ch_stub_regions, "CH-110",
      "where pages in the middle of very many are given back, the others stay, and all can be had again")
{
	static struct subject_stub many[MANY];
	struct subject_stub_figures first, now;
	struct subject_stub_found found;
	size_t bytes;

	if (!alloc_claims(STUB_CLAIMS) || !alloc_claims("stub-trim"))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], false));
	MUST(stub_take(&it, STUB_WIDE, many, MANY) && stub_figures(&it, &first));
	for (unsigned i = 0; i < MANY; i += 100)
		stub_fill(&it, STUB_WIDE, &many[i], i);
	for (unsigned turn = 0; turn < 3; turn++) {
		/* The middle, then what is below it or above, then the middle again. */
		const unsigned low = turn == 1 ? 0 : MANY / 3 - 50,
			       high = turn == 1 ? MANY / 3 - 50 : 2 * MANY / 3 + 50;

		check_note_number("turn", turn);
		for (unsigned i = low; i < high; i++)
			MUST_OK(STUB(free)(it.heap, many[i].rx));
		MUST_OK(STUB(trim)(it.heap, &bytes));
		MUST(stub_figures(&it, &now) &&
		     CHECK_EQUAL(MANY - (high - low), now.live, "as many live as were not freed"));
		for (unsigned i = low; i < high; i += 7)
			MUST(CHECK_TRUE(STUB(find)(it.allocator, many[i].rx, &found) || !found.live,
					"no stub lives that was freed"));
		for (unsigned i = low; i < high; i++)
			MUST_OK(STUB(allocate)(it.heap, STUB_WIDE, &many[i]));
		for (unsigned i = low / 100 * 100; i < high; i += 100)
			stub_fill(&it, STUB_WIDE, &many[i], i);
		for (unsigned i = 0; i < MANY; i += 100)
			MUST(stub_filled(&it, STUB_WIDE, &many[i], i, "the others keep their records") &&
			     is_kind(&many[i], STUB_WIDE));
		MUST(stub_figures(&it, &now) && CHECK_EQUAL(MANY, now.live, "all can be had again") &&
		     CHECK_EQUAL(first.pages, now.pages, "on as many pages"));
	}
	/* One stub on pages whose tables were another's: its neighbours do not live. */
	for (unsigned i = 0; i < MANY; i++)
		MUST_OK(STUB(free)(it.heap, many[i].rx));
	MUST_OK(STUB(trim)(it.heap, &bytes));
	MUST(stub_figures(&it, &now) && CHECK_EQUAL(0, now.pages, "no page is left"));
	MUST(stub_take(&it, STUB_WIDE, many, 1));
	for (unsigned i = 1; i < stub_slots(&it, STUB_WIDE); i++) {
		const uintptr_t rx = many[0].rx + (uintptr_t)i * stub_kind(&it, STUB_WIDE)->pitch;

		if (!STUB(find)(it.allocator, rx, &found) && found.stub.rx == rx)
			MUST(CHECK_TRUE(!found.live, "a slot that was not issued does not live") &&
			     ALLOC_IS(SUBJECT_ERROR_FREED, STUB(free)(it.heap, rx)));
	}
	/* Behind the pages that were made there are none. */
	MUST(CHECK_TRUE(STUB(find)(it.allocator, many[0].rx / it.page * it.page + 2 * it.page, &found) != 0,
			"pages that were not made have no stubs"));
	(void)stub_end(&it);
}

/* ---- Refused calls of the system ---- */

/*
 * A refusal that an operation need not report: of a name; of a seal before the one that matters; of what can be put off
 * or tried again: an unmap or a punch, or who this process is, as is asked for each of them (that nothing is left is
 * asserted at the end).
 */
static bool harmless(const struct watch_call *call)
{
	if (call->kind == WATCH_NAME || call->kind == WATCH_UNMAP || call->kind == WATCH_FILE_PUNCH ||
	    call->kind == WATCH_IDENTITY || (call->kind == WATCH_FILE_SEAL && !(call->protection & SUBJECT_SEAL_WRITE)))
		return true;
	check_note("refused", watch_name[call->kind]);
	return false;
}

/* Works, or is refused and works when called again. */
#define AGAIN(call_)                                                                                                   \
	do {                                                                                                           \
		const unsigned long before_ = watch.injected;                                                          \
		const int error_ = (call_);                                                                            \
		MUST(CHECK_TRUE(!error_ || watch.injected > before_, "nothing fails but for the system"));             \
		if (watch.injected > before_ && !error_)                                                               \
			MUST(CHECK_TRUE(harmless(&watch.refused), "a refusal is reported"));                           \
		if (error_)                                                                                            \
			MUST_OK(call_);                                                                                \
	} while (0)

CHECK(ch_stub_refused, "CH-111",
      "each call of the system refused in turn: it is reported, and the operation works again")
{
	if (!alloc_claims(STUB_CLAIMS))
		return;
	for (unsigned long k = 1; k < 200; k++) {
		struct subject_allocator *allocator = alloc_make(NULL);
		unsigned long met;

		MUST(CHECK_TRUE(allocator != NULL, "an allocator is made"));
		check_note_number("refused_call", k);
		watch_fail(k, TABLE_ENOMEM);
		AGAIN(stub_create(&it, allocator, stub_pages[stub_page_first()], true));
		for (unsigned kind = STUB_EVEN; kind <= STUB_WIDE; kind++) {
			AGAIN(STUB(allocate)(it.heap, kind, &stubs[kind]));
			MUST(is_kind(&stubs[kind], kind));
		}
		AGAIN(STUB(destroy)(it.heap));
		met = watch.injected;
		watch_allow();
		MUST(alloc_end(allocator));
		if (!met) {
			(void)CHECK_TRUE(k > 5, "calls of the system were refused");
			return;
		}
	}
	(void)CHECK_TRUE(false, "an end of the calls");
}

/* ---- Forks ---- */

static int child(void)
{
	struct subject_stub other;

	ALLOC_STEP(STUB(allocate)(it.heap, STUB_EVEN, &other) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(STUB(free)(it.heap, stubs[0].rx) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(STUB(back_out)(it.heap, stubs[0].rx) == SUBJECT_ERROR_FORKED);
	ALLOC_STEP(ALLOC(fork_child)(it.allocator) == 0);
	for (unsigned i = 0; i < STUB_KINDS; i++) {
		ALLOC_STEP(alloc_run(stubs[i].rx) == stub_value(STUB_SMALL + i));
		stub_fill(&it, STUB_SMALL + i, &stubs[i], 50 + i);
	}
	ALLOC_STEP(STUB(allocate)(it.heap, STUB_EVEN, &other) == 0 && other.rx != stubs[1].rx);
	ALLOC_STEP(STUB(back_out)(it.heap, stubs[0].rx) == 0 && STUB(destroy)(it.heap) == 0);
	return 0;
}

CHECK(ch_stub_fork, "CH-112", "a fork has its own stubs: what it writes and frees is not its parent's")
{
	int status;

	if (!alloc_claims(STUB_CLAIMS) || !alloc_claims("fork"))
		return;
	MUST(stub_make(&it, stub_pages[stub_page_first()], true));
	for (unsigned i = 0; i < STUB_KINDS; i++) {
		MUST(stub_take(&it, STUB_SMALL + i, &stubs[i], 1));
		stub_fill(&it, STUB_SMALL + i, &stubs[i], i);
	}
	MUST_OK(ALLOC(fork_prepare)(it.allocator));
	status = os_apart(child);
	MUST_OK(ALLOC(fork_parent)(it.allocator));
	MUST(alloc_ended(status, "stubs are used in a fork"));
	for (unsigned i = 0; i < STUB_KINDS; i++)
		MUST(is_kind(&stubs[i], STUB_SMALL + i) &&
		     stub_filled(&it, STUB_SMALL + i, &stubs[i], i, "a fork writes its own records"));
	(void)stub_end(&it);
}
