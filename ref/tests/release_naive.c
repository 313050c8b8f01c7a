#define _GNU_SOURCE
#include "release_naive.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY      ((size_t)1 << 20)
#define BLOCKS_MOST 8192
#define BATCHES     (BLOCKS_MOST / EXECMEM_RELEASE_BATCH + 1)

static struct {
	unsigned char *region; /* what lies behind it is live and somebody else's */
	int file;
	bool live[BLOCKS_MOST];
	bool used[2 * MEMORY / 4096]; /* by page of the system: written since it was given back */
	bool owed[2 * MEMORY / 4096]; /* by page: since `exact` gave it back, which does not see what `scudo` does */
	struct execmem_release_batch batch[BATCHES];
	struct execmem_releaser releaser;
	struct execmem_release_pages pages;
	struct execmem_release_class size_class;
	uintptr_t memory[MEMORY / 8];
	uint64_t released;
} t;

static jmp_buf failed;
static const char *what;
static size_t at_step;

#define CHECK(condition_)                                                                                              \
	do {                                                                                                           \
		if (!(condition_)) {                                                                                   \
			what = #condition_;                                                                            \
			longjmp(failed, __LINE__);                                                                     \
		}                                                                                                      \
	} while (0)

static size_t resident(const struct release_sequence *s)
{
	size_t pages = execmem_release_page_count(&s->layout) + 2, count = 0;
	size_t os_pages = pages * s->layout.page_bytes / 4096;
	static unsigned char seen[2 * MEMORY / 4096];
	struct stat status;

	if (s->file) {
		EXPECT(fstat(t.file, &status) == 0);
		return (size_t)status.st_blocks * 512;
	}
	EXPECT(mincore(t.region, os_pages * 4096, seen) == 0);
	for (size_t i = 0; i < os_pages; i++)
		count += seen[i] & 1;
	return count * 4096;
}

static unsigned char content(size_t block)
{
	return (unsigned char)(block * 7 + 1) | 1;
}

/* Whether a page is one to be given back, by looking at every block. */
static bool is_free(const struct release_sequence *s, size_t page, bool *touched)
{
	const struct execmem_release_layout *l = &s->layout;
	size_t start = page * l->page_bytes, end = start + l->page_bytes;

	*touched = false;
	if (start < l->first || end > l->end)
		return false;
	for (size_t block = 0; block < l->blocks; block++) {
		size_t from = l->first + block * l->block_bytes;

		if (from >= end || from + l->block_bytes <= start)
			continue;
		*touched = true;
		if (t.live[block])
			return false;
	}
	return true;
}

/* How many pages of the system in a page are in use. With `gone`, none are from now on. */
static size_t in_use(const struct release_sequence *s, size_t page, bool gone)
{
	size_t each = s->layout.page_bytes / 4096, count = 0;

	for (size_t i = page * each; i < (page + 1) * each; i++) {
		count += t.used[i];
		t.used[i] &= !gone;
	}
	return count;
}

static void check_content(const struct release_sequence *s)
{
	const struct execmem_release_layout *l = &s->layout;
	size_t end = execmem_release_page_count(l) * l->page_bytes;

	for (size_t block = 0; block < l->blocks; block++) {
		const unsigned char *at = t.region + l->first + block * l->block_bytes;

		CHECK(!t.live[block] || (at[0] == content(block) && at[l->block_bytes - 1] == content(block)));
	}
	for (size_t i = 0; i < l->first; i++)
		CHECK(t.region[i] == 0xfe);
	for (size_t i = l->end; i < end + 2 * l->page_bytes; i++)
		CHECK(t.region[i] == 0xfd);
}

static void take(const struct release_sequence *s, size_t block)
{
	unsigned char *at = t.region + s->layout.first + block * s->layout.block_bytes;
	size_t page, count = execmem_release_touched(&s->layout, block, &page);

	t.live[block] = true;
	execmem_release_take(&t.pages, block);
	t.size_class.popped_bytes += s->layout.block_bytes;
	memset(at, content(block), s->layout.block_bytes);
	while (count--)
		t.owed[page++] = true;
	for (size_t i = (size_t)(at - t.region) / 4096; i <= (size_t)(at + s->layout.block_bytes - 1 - t.region) / 4096;
	     i++)
		t.used[i] = true;
}

static void give(const struct release_sequence *s, size_t block)
{
	t.live[block] = false;
	execmem_release_give(&t.pages, block);
	t.size_class.pushed_bytes += s->layout.block_bytes;
}

static struct execmem_release_batch *free_list(const struct release_sequence *s)
{
	struct execmem_release_batch *list = NULL;
	size_t batches = 0;

	for (size_t block = s->layout.blocks; block--;) {
		if (t.live[block])
			continue;
		if (!list || list->count == EXECMEM_RELEASE_BATCH) {
			t.batch[batches] = (struct execmem_release_batch){.next = list};
			list = &t.batch[batches++];
		}
		list->block[list->count++] = (uint32_t)block;
	}
	return list;
}

static void release(const struct release_sequence *s, bool exact, bool forced, bool may_fail)
{
	struct execmem_release_area area = {t.region, s->file ? t.file : EXECMEM_NO_FILE, 0};
	size_t expected = 0, pages = 0, before = resident(s), count = execmem_release_page_count(&s->layout), runs = 0;
	struct execmem_release_stats stats = t.releaser.stats;
	enum execmem_release_verdict verdict = EXECMEM_RELEASE_GO, wanted = verdict;
	bool touched, run = false;
	int error;

	for (size_t page = 0; page < count; page++) {
		bool free = is_free(s, page, &touched) && (exact ? t.owed[page] : touched);

		expected += free ? in_use(s, page, false) : 0;
		pages += free;
		runs += free && !run;
		run = free;
	}
	if (exact) {
		CHECK(t.pages.pending_count == pages);
		error = execmem_release_exact(&t.releaser, &t.pages, &area);
	} else {
		wanted = execmem_release_decide(&t.size_class, forced, 0, 0);
		error = execmem_release_scudo(&t.releaser, &s->layout, &area, free_list(s), &t.size_class, forced, 0, 0,
					      &verdict);
		if (wanted != EXECMEM_RELEASE_GO)
			expected = pages = runs = 0;
	}
	CHECK(verdict == wanted);
	CHECK(t.releaser.stats.attempts == stats.attempts + 1);
	if (may_fail && error) {
		/* Some went, and the books say how many; the rest goes next time. */
		CHECK(error == -ENXIO);
		CHECK(t.releaser.stats.pages - stats.pages < pages * (s->layout.page_bytes / 4096) + (pages == 0));
		CHECK(exact ? before - resident(s) <= t.releaser.stats.bytes - stats.bytes : true);
		for (size_t page = 0; page < count; page++) {
			if (!is_free(s, page, &touched))
				continue;
			if (exact && execmem_release_counter_get(&(struct execmem_release_counters){t.pages.pending, 0},
								 page) == 0) {
				t.owed[page] = false;
				(void)in_use(s, page, true);
			}
			/* What of `scudo` went is not known here: it is written once more. */
			for (size_t i = page * (s->layout.page_bytes / 4096);
			     i < (page + 1) * (s->layout.page_bytes / 4096); i++) {
				if (t.used[i])
					t.region[i * 4096] = 0;
			}
		}
		check_content(s);
		return;
	}
	CHECK(error == 0);
	CHECK(before - resident(s) == expected * 4096);
	CHECK(t.releaser.stats.bytes - stats.bytes == pages * s->layout.page_bytes);
	CHECK(t.releaser.stats.pages - stats.pages == pages * s->layout.page_bytes / 4096);
	CHECK(t.releaser.stats.ranges - stats.ranges == runs);
	/* Calls: none where there is nothing; one a range of a file; one for all that is private, unless it is refused.
	 */
	if (s->file)
		CHECK(t.releaser.stats.calls - stats.calls == runs);
	else if (watch.fail_name && strcmp(watch.fail_name, "discard_many") == 0)
		CHECK(t.releaser.stats.calls - stats.calls == runs + (runs > 1));
	else
		CHECK(t.releaser.stats.calls - stats.calls == (runs > 0));
	t.released += expected;
	for (size_t page = 0; page < count; page++) {
		if (verdict != EXECMEM_RELEASE_GO || !is_free(s, page, &touched))
			continue;
		if (!exact || t.owed[page])
			(void)in_use(s, page, true);
		if (exact)
			t.owed[page] = false;
	}
	if (exact)
		CHECK(t.pages.pending_count == 0);
	check_content(s);
}

static void play(const struct release_sequence *s)
{
	const struct execmem_release_layout *l = &s->layout;
	size_t end = execmem_release_page_count(l) * l->page_bytes + 2 * l->page_bytes;
	int refuse = 0;

	watch.fail_name = NULL;
	EXPECT(ftruncate(t.file, 0) == 0 && ftruncate(t.file, 4 * MEMORY) == 0);
	EXPECT(mmap(t.region, 4 * MEMORY, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_NORESERVE | (s->file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS),
		    s->file ? t.file : -1, 0) == t.region);
	(void)madvise(t.region, 4 * MEMORY, MADV_NOHUGEPAGE);
	memset(t.region, 0xfe, l->first);
	memset(t.region + l->end, 0xfd, end - l->end);
	memset(t.live, 0, sizeof(t.live));
	memset(t.used, 0, sizeof(t.used));
	memset(t.owed, 0, sizeof(t.owed));
	memset(t.memory, 0, sizeof(t.memory));
	EXPECT(execmem_release_pages_bytes(l) <= sizeof(t.memory));
	OK(execmem_release_pages_init(&t.pages, l, t.memory));
	t.size_class =
		(struct execmem_release_class){l->page_bytes, l->block_bytes, l->blocks * l->block_bytes, 0, 0, 0, 0};
	for (at_step = 0; at_step < s->count; at_step++) {
		const struct release_step *step = &s->step[at_step];
		static const char *const names[] = {"discard_many", "discard", "file_punch", "discard_many"};

		switch (step->kind) {
		case TAKE:
		case GIVE:
			for (size_t i = step->a; i < step->a + step->b && i < l->blocks; i++) {
				if (step->kind == TAKE && !t.live[i])
					take(s, i);
				else if (step->kind == GIVE && t.live[i])
					give(s, i);
			}
			break;
		case REFUSE:
			refuse = (int)step->a % 4 + 1;
			break;
		default:
			if (refuse) {
				watch.fail_name = names[refuse - 1];
				watch.fail_with = refuse == 4 ? EPERM : ENXIO;
			}
			release(s, step->kind == EXACT, step->a & 1, refuse == 2 || refuse == 3);
			watch.fail_name = NULL;
			t.releaser.one_by_one = false;
			refuse = 0;
		}
	}
}

static void once(void)
{
	static struct execmem_os os;

	if (t.region)
		return;
	os = watch_os();
	t.releaser.os = &os;
	t.file = memfd_create("release", MFD_CLOEXEC);
	t.region = mmap(NULL, 4 * MEMORY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	EXPECT(t.file >= 0 && t.region != MAP_FAILED);
}

struct release_failure release_play(const struct release_sequence *s, uint64_t *released)
{
	int line;

	once();
	t.released = 0;
	execmem_releaser_init(&t.releaser, t.releaser.os);
	line = setjmp(failed);
	if (line)
		return (struct release_failure){line, what, at_step};
	play(s);
	*released += t.released;
	return (struct release_failure){0};
}

/* ---- Making one ---- */

void release_make(struct release_sequence *s, uint64_t seed, const unsigned char *bytes, size_t byte_count)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15u + 1, r = (next_random(&random), next_random(&random));
	struct execmem_release_layout *l = &s->layout;

	*s = (struct release_sequence){.seed = seed, .file = r >> 40 & 1};
	l->page_bytes = (size_t)4096 << (r >> 8 & 1) * (r >> 9 & 3);
	l->block_bytes = 16 + next_random(&random) % ((size_t)32 << (r >> 12) % 9);
	if (r >> 16 & 1)
		l->block_bytes = (l->block_bytes + 15) & ~(size_t)15;
	l->first = r >> 17 & 1 ? 0 : next_random(&random) % (2 * l->page_bytes);
	l->blocks = 1 + next_random(&random) % (16 * l->page_bytes / l->block_bytes + 4);
	if (l->blocks > BLOCKS_MOST)
		l->blocks = BLOCKS_MOST;
	l->end = l->first + l->blocks * l->block_bytes;
	if (r >> 18 & 1)
		l->end += next_random(&random) % (2 * l->page_bytes);
	/* All, and then some steps. */
	s->step[s->count++] = (struct release_step){TAKE, 0, BLOCKS_MOST};
	while (s->count < RELEASE_STEPS) {
		uint64_t k = next_random(&random) % 16;
		struct release_step *step = &s->step[s->count++];

		if (byte_count >= 6) {
			/* What is chosen below depends on nothing else. */
			uint64_t chosen = 0;

			memcpy(&chosen, bytes, 6);
			random = chosen << 8 | 1;
			k = bytes[0] % 16;
			bytes += 6;
			byte_count -= 6;
		}
		step->kind = k < 4 ? TAKE : k < 10 ? GIVE : k < 13 ? EXACT : k < 15 ? SCUDO : REFUSE;
		step->a = (unsigned)(next_random(&random) % (step->kind == TAKE || step->kind == GIVE ? l->blocks : 4));
		step->b = (unsigned)(1 + next_random(&random) % (k & 1 ? l->blocks / 2 + 1 : 40));
	}
}
