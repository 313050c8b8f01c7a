/*
 * Data of family FT: each operation, in the situations in which it makes other calls.
 */
#include "trial.h"

#define U ALLOC_UNIT

static int create(struct ft *f)
{
	struct subject_refusals refusals;

	return ALLOC(create_over)(&watch_os, &f->config, &f->allocator, &refusals);
}

static int destroy(struct ft *f)
{
	return ALLOC(destroy)(f->allocator);
}

/* ---- Regions ---- */

static int reserve(struct ft *f)
{
	return ALLOC(reserve)(f->allocator, 5 * U, &f->region);
}

static int reserve_near(struct ft *f)
{
	return ALLOC(reserve_near)(f->allocator, U, f->region.rx, 1024 * U, &f->other);
}

static int release(struct ft *f)
{
	return ALLOC(release)(&f->region);
}

static bool released(struct ft *f)
{
	return ALLOC_OK(release(f));
}

static bool both_released(struct ft *f)
{
	return ALLOC_OK(ALLOC(release)(&f->other)) && ALLOC_OK(release(f));
}

static bool reserved(struct ft *f)
{
	return ALLOC_OK(reserve(f));
}

static int commit_first(struct ft *f)
{
	return ALLOC(commit)(&f->region, 0, U);
}

static bool committed(struct ft *f)
{
	return reserved(f) && ALLOC_OK(commit_first(f));
}

/* Beyond what the file has, next to what is there. */
static int commit_more(struct ft *f)
{
	return ALLOC(commit)(&f->region, U, 4 * U);
}

static bool all_committed(struct ft *f)
{
	return committed(f) && ALLOC_OK(commit_more(f));
}

/* Apart in the file, so that one commit takes several mappings. */
static bool in_pieces(struct ft *f)
{
	return all_committed(f) && ALLOC_OK(ALLOC(reserve)(f->allocator, 3 * U, &f->other)) &&
	       ALLOC_OK(ALLOC(decommit)(&f->region, U, U)) && ALLOC_OK(ALLOC(decommit)(&f->region, 3 * U, U));
}

static int commit_pieces(struct ft *f)
{
	return ALLOC(commit)(&f->other, 0, 3 * U);
}

static int decommit_whole(struct ft *f)
{
	return ALLOC(decommit)(&f->region, 0, 2 * U);
}

static int decommit_page(struct ft *f)
{
	return ALLOC(decommit)(&f->region, watch.page < U ? watch.page : 0, watch.page);
}

static int commit_page(struct ft *f)
{
	return ALLOC(commit)(&f->region, watch.page < U ? watch.page : 0, watch.page);
}

static bool page_given_back(struct ft *f)
{
	return all_committed(f) && ALLOC_OK(decommit_page(f));
}

static int refuse_punch(const struct watch_call *call)
{
	return call->kind == WATCH_FILE_PUNCH ? -1 : 0; /* EPERM */
}

/* The system would not take the blocks back. */
static bool page_deferred(struct ft *f)
{
	bool good = all_committed(f);

	watch.refuse = refuse_punch;
	good = good && ALLOC_OK(decommit_page(f)) && ALLOC_OK(ALLOC(decommit)(&f->region, 4 * U, U));
	watch.refuse = NULL;
	return good;
}

/* ---- Views ---- */

static int open_first(struct ft *f)
{
	return ALLOC(open)(f->allocator, f->region.rx + 100, 50, 0, &f->view);
}

static int open_across(struct ft *f)
{
	return ALLOC(open)(f->allocator, f->other.rx + U - 20, U, 0, &f->view);
}

static int open_once(struct ft *f)
{
	return ALLOC(open)(f->allocator, f->region.rx + 3, 5, SUBJECT_OPEN_SINGLE_USE, &f->view);
}

static int close_view(struct ft *f)
{
	return ALLOC(close)(&f->view);
}

static bool closed(struct ft *f)
{
	return ALLOC_OK(close_view(f)) && released(f);
}

static bool closed_both_released(struct ft *f)
{
	return ALLOC_OK(close_view(f)) && both_released(f);
}

static bool pieces_committed(struct ft *f)
{
	return in_pieces(f) && ALLOC_OK(commit_pieces(f));
}

static bool opened(struct ft *f)
{
	return all_committed(f) && ALLOC_OK(open_first(f));
}

static bool opened_once(struct ft *f)
{
	return all_committed(f) && ALLOC_OK(open_once(f));
}

/* As many as the cache holds, of other windows. */
static bool cache_filled(struct ft *f)
{
	if (!all_committed(f))
		return false;
	for (unsigned i = 0; i < f->config.rw_cache; i++)
		if (!ALLOC_OK(ALLOC(open)(f->allocator, f->region.rx + (1 + i) * U, 1, 0, &f->view)) ||
		    !ALLOC_OK(close_view(f)))
			return false;
	return true;
}

static bool all_released(struct ft *f)
{
	return cache_filled(f) && released(f);
}

/* ---- Publishing ---- */

static int publish(struct ft *f)
{
	return ALLOC(publish)(&f->view, 0, 10, 0);
}

static int publish_serialized(struct ft *f)
{
	return ALLOC(publish)(&f->view, 0, 10, SUBJECT_PUBLISH_SERIALIZE);
}

static bool published(struct ft *f)
{
	return opened(f) && ALLOC_OK(publish(f));
}

static int publish_many(struct ft *f)
{
	static const struct subject_range ranges[] = {{0, 4}, {20, 4}};

	return ALLOC(publish_many)(&f->view, ranges, 2, 0);
}

static int write(struct ft *f)
{
	return ALLOC(write)(f->allocator, f->region.rx + 7, "abcd", 4, 0);
}

/* ---- Figures, forks ---- */

static int stats(struct ft *f)
{
	struct subject_stats figures;

	return ALLOC(stats)(f->allocator, &figures);
}

static int dump(struct ft *f)
{
	return ALLOC(dump)(f->allocator);
}

static int prepare(struct ft *f)
{
	return ALLOC(fork_prepare)(f->allocator);
}

static int parent(struct ft *f)
{
	return ALLOC(fork_parent)(f->allocator);
}

static bool prepared(struct ft *f)
{
	return opened(f) && ALLOC_OK(prepare(f));
}

static bool unprepared(struct ft *f)
{
	return ALLOC_OK(parent(f)) && closed(f);
}

const struct ft_situation ft_situations[] = {
	{.name = "create", .operation = "create", .act = create, .makes = true},
	{.name = "destroy", .operation = "destroy", .before = all_released, .act = destroy, .ends = true},
	{.name = "reserve", .operation = "reserve", .act = reserve, .after = released},
	{.name = "reserve near",
	 .operation = "reserve_near",
	 .claims = "near",
	 .before = reserved,
	 .act = reserve_near,
	 .after = both_released},
	{.name = "commit, the first",
	 .operation = "commit",
	 .before = reserved,
	 .act = commit_first,
	 .after = released},
	{.name = "commit, the file grows",
	 .operation = "commit",
	 .before = committed,
	 .act = commit_more,
	 .after = released},
	{.name = "commit, in pieces",
	 .operation = "commit",
	 .before = in_pieces,
	 .act = commit_pieces,
	 .after = both_released},
	{.name = "commit a page again",
	 .operation = "commit",
	 .before = page_given_back,
	 .act = commit_page,
	 .after = released},
	{.name = "commit what was deferred",
	 .operation = "commit",
	 .before = page_deferred,
	 .act = commit_page,
	 .after = released},
	{.name = "decommit",
	 .operation = "decommit",
	 .before = all_committed,
	 .act = decommit_whole,
	 .after = released},
	{.name = "decommit a page",
	 .operation = "decommit",
	 .before = all_committed,
	 .act = decommit_page,
	 .after = released},
	{.name = "decommit under a cached view",
	 .operation = "decommit",
	 .before = cache_filled,
	 .act = decommit_whole,
	 .after = released},
	{.name = "release", .operation = "release", .before = all_committed, .act = release},
	{.name = "release with cached views", .operation = "release", .before = cache_filled, .act = release},
	{.name = "open", .operation = "open", .before = all_committed, .act = open_first, .after = closed},
	{.name = "open, evicting", .operation = "open", .before = cache_filled, .act = open_first, .after = closed},
	{.name = "open, in pieces",
	 .operation = "open",
	 .before = pieces_committed,
	 .act = open_across,
	 .after = closed_both_released},
	{.name = "open, of single use",
	 .operation = "open",
	 .before = all_committed,
	 .act = open_once,
	 .after = closed},
	{.name = "close", .operation = "close", .before = opened, .act = close_view, .after = released},
	{.name = "close, of single use",
	 .operation = "close",
	 .before = opened_once,
	 .act = close_view,
	 .after = released},
	{.name = "publish", .operation = "publish", .before = opened, .act = publish, .after = closed},
	{.name = "publish again", .operation = "publish", .before = published, .act = publish, .after = closed},
	{.name = "publish, serialized",
	 .operation = "publish",
	 .before = opened,
	 .act = publish_serialized,
	 .after = closed},
	{.name = "publish several",
	 .operation = "publish",
	 .claims = "publish-many",
	 .before = published,
	 .act = publish_many,
	 .after = closed},
	{.name = "write",
	 .operation = "write",
	 .claims = "publish-many",
	 .before = all_committed,
	 .act = write,
	 .caches = true,
	 .after = released},
	{.name = "stats",
	 .operation = "stats",
	 .claims = "stats",
	 .before = committed,
	 .act = stats,
	 .after = released},
	{.name = "dump", .operation = "dump", .claims = "stats", .before = committed, .act = dump, .after = released},
	{.name = "fork, before",
	 .operation = "fork_prepare",
	 .claims = "fork",
	 .before = opened,
	 .act = prepare,
	 .after = unprepared},
	{.name = "fork, in the parent",
	 .operation = "fork_parent",
	 .claims = "fork",
	 .before = prepared,
	 .act = parent,
	 .after = closed,
	 .done_anyway = true},
};
const unsigned ft_situation_count = sizeof(ft_situations) / sizeof(ft_situations[0]);
