#include "model.h"

#include "../alloc/table.h"
#include "os.h"
#include "text.h"

/* ---- Memory ---- */

bool rl_map(struct rl_memory *memory, size_t bytes, bool file)
{
	void *at;

	memory->file = SUBJECT_NO_FILE;
	memory->bytes = bytes;
	if (file && (!ALLOC_OK(watch_os.file_create(NULL, "release", 0, &memory->file)) ||
		     !ALLOC_OK(watch_os.file_grow(NULL, memory->file, bytes))))
		return false;
	if (!ALLOC_OK(watch_os.map(NULL, NULL, bytes, SUBJECT_READ | SUBJECT_WRITE, memory->file, 0, &at)))
		return false;
	memory->at = at;
	return true;
}

bool rl_unmap(const struct rl_memory *memory)
{
	return ALLOC_OK(watch_os.unmap(NULL, memory->at, memory->bytes)) &&
	       (memory->file == SUBJECT_NO_FILE || ALLOC_OK(watch_os.file_close(NULL, memory->file)));
}

uint64_t rl_held(const struct rl_memory *memory)
{
	const int64_t bytes = memory->file == SUBJECT_NO_FILE ? table_resident((uintptr_t)memory->at, memory->bytes)
							      : table_file_blocks(memory->file);

	if (bytes < 0)
		check_broken("the system does not say what memory is in use", (long)bytes);
	return (uint64_t)bytes;
}

/* ---- The model ---- */

static struct {
	const struct rl_sequence *sequence;
	struct rl_memory memory;
	struct subject_class *class_;
	size_t pages;
	bool live[RL_BLOCKS_MOST];
	bool held[RL_PAGES_MOST + 4]; /* by page: has memory */
	bool owed[RL_PAGES_MOST + 4]; /* was used since `exact` gave it back; `scudo` does not count */
	struct subject_release_state state;
} m;

static unsigned char content(size_t block)
{
	return (unsigned char)(block * 5 + 3) | 1;
}

/* Nobody's byte outside is touched, and no live block loses one. */
static bool all_kept(void)
{
	const struct subject_release_layout *l = &m.sequence->layout;
	const unsigned char *at = m.memory.at;

	for (size_t block = 0; block < l->blocks; block++) {
		const unsigned char *first = at + l->first + block * l->block_bytes;

		check_note_number("block", block);
		if (m.live[block] &&
		    !CHECK_TRUE(first[0] == content(block) && first[l->block_bytes - 1] == content(block),
				"a live block keeps its bytes"))
			return false;
	}
	for (size_t i = 0; i < l->first; i++)
		if (!CHECK_EQUAL(0xfe, at[i], "what lies before the region in its first page keeps its bytes"))
			return false;
	for (size_t i = l->end; i < m.memory.bytes; i++)
		if (!CHECK_EQUAL(0xfd, at[i], "what lies behind the region keeps its bytes"))
			return false;
	return true;
}

/* Whether a page lies in the region and no live block touches it; *touched: whether a block does. */
static bool is_free(size_t page, bool *touched)
{
	const struct subject_release_layout *l = &m.sequence->layout;
	const size_t start = page * l->page_bytes, end = start + l->page_bytes;

	*touched = false;
	if (start < l->first || end > l->end)
		return false;
	for (size_t block = 0; block < l->blocks; block++) {
		const size_t from = l->first + block * l->block_bytes;

		if (from >= end || from + l->block_bytes <= start)
			continue;
		*touched = true;
		if (m.live[block])
			return false;
	}
	return true;
}

static void take(size_t block)
{
	const struct subject_release_layout *l = &m.sequence->layout;
	unsigned char *first = m.memory.at + l->first + block * l->block_bytes;
	const size_t page = (size_t)(first - m.memory.at) / l->page_bytes;
	const size_t last = (size_t)(first + l->block_bytes - 1 - m.memory.at) / l->page_bytes;

	m.live[block] = true;
	m.state.popped += l->block_bytes;
	subject.release->class_take(m.class_, block);
	__builtin_memset(first, content(block), l->block_bytes);
	for (size_t i = page; i <= last; i++) {
		m.held[i] = m.owed[i] = true;
		/* All of it has memory, so that a page counts as a whole: an emulator's may be several of the
		 * machine's. */
		for (size_t at = i * l->page_bytes; at < (i + 1) * l->page_bytes; at += 4096) {
			volatile unsigned char *byte = &m.memory.at[at];

			*byte = *byte;
		}
	}
}

static void give(size_t block)
{
	m.live[block] = false;
	m.state.pushed += m.sequence->layout.block_bytes;
	subject.release->class_give(m.class_, block);
}

/* Whether a range of bytes is whole pages of the region without a live block. */
static bool may_go(uint64_t from, uint64_t bytes)
{
	const size_t page = m.sequence->layout.page_bytes;
	bool touched;

	for (uint64_t at = from; at < from + bytes; at += page)
		if (!is_free((size_t)at / page, &touched))
			return false;
	return from % page == 0 && bytes % page == 0;
}

/* The calls since number `from`: each is of the right kind, for pages that may go. */
static bool calls_right(unsigned long from)
{
	const bool file = m.memory.file != SUBJECT_NO_FILE;

	for (; from < watch.recorded; from++) {
		const struct watch_call *call = watch_call_at(from);

		if (call->kind == WATCH_DISCARD || call->kind == WATCH_DISCARD_MANY) {
			if (!CHECK_TRUE(!file, "pages of a file are not discarded, which frees nothing"))
				return false;
		}
		if (call->kind == WATCH_DISCARD &&
		    !CHECK_TRUE(may_go(call->address - (uintptr_t)m.memory.at, call->bytes),
				"what is discarded is whole pages without a live block"))
			return false;
		if (call->kind == WATCH_FILE_PUNCH &&
		    !CHECK_TRUE(file && may_go(call->offset, call->bytes),
				"what is punched is whole pages without a live block"))
			return false;
	}
	return WATCH_KEPT(WATCH_MULTIPLE, "ranges are multiples of the page size") &&
	       WATCH_KEPT(WATCH_FOREIGN, "no range but the region's");
}

static bool release(bool exact, bool forced)
{
	const struct subject_release_request request = {exact ? SUBJECT_RELEASE_EXACT : SUBJECT_RELEASE_SCUDO, forced,
							0, 0};
	const size_t page_bytes = m.sequence->layout.page_bytes;
	const unsigned long calls = watch.recorded;
	const uint64_t before = rl_held(&m.memory);
	enum subject_release_verdict verdict = SUBJECT_RELEASE_GO;
	uint64_t pages = 0, ranges = 0, held = 0;
	struct subject_released released;
	bool run = false, touched;

	if (!exact && check_claimed("release-decisions"))
		verdict = subject.release->decide(&m.state, forced, 0, 0);
	for (size_t page = 0; page < m.pages && verdict == SUBJECT_RELEASE_GO; page++) {
		const bool goes = is_free(page, &touched) && (exact ? m.owed[page] : touched);

		pages += goes;
		ranges += goes && !run;
		held += goes && m.held[page];
		run = goes;
		if (goes) {
			m.held[page] = false;
			m.owed[page] = exact ? false : m.owed[page];
		}
	}
	check_note("policy", exact ? "exact" : forced ? "scudo, forced" : "scudo");
	if (!ALLOC_OK(subject.release->class_release(m.class_, &request, &released)) || !calls_right(calls) ||
	    !all_kept() || !CHECK_EQUAL(verdict, released.verdict, "a release does what is decided"))
		return false;
	if (!exact && released.ranges)
		m.state.pushed_at_last = m.state.pushed;
	return CHECK_EQUAL(held * page_bytes, before - rl_held(&m.memory),
			   "every wholly free page goes, and no other: by what the system says") &&
	       CHECK_EQUAL(pages, released.pages, "the count of pages is that of those that went") &&
	       CHECK_EQUAL(pages * page_bytes, released.bytes, "the count of bytes likewise") &&
	       CHECK_EQUAL(ranges, released.ranges, "pages side by side go as one range");
}

static bool begin(const struct rl_sequence *s)
{
	const struct subject_release_layout *l = &s->layout;
	struct subject_release_place place;

	m.sequence = s;
	m.pages = (l->end + l->page_bytes - 1) / l->page_bytes;
	__builtin_memset(m.live, 0, sizeof(m.live));
	__builtin_memset(m.held, 0, sizeof(m.held));
	__builtin_memset(m.owed, 0, sizeof(m.owed));
	m.state = (struct subject_release_state){.page_bytes = l->page_bytes,
						 .block_bytes = l->block_bytes,
						 .allocated = (uint64_t)l->blocks * l->block_bytes};
	watch_begin();
	if (!rl_map(&m.memory, (m.pages + 2) * l->page_bytes, s->file))
		return false;
	__builtin_memset(m.memory.at, 0xfe, l->first);
	__builtin_memset(m.memory.at + l->end, 0xfd, m.memory.bytes - l->end);
	place = (struct subject_release_place){m.memory.at, m.memory.file, 0};
	return ALLOC_OK(subject.release->class_create(&watch_os, l, &place, &m.class_));
}

static void note(const struct rl_sequence *s, unsigned at)
{
	static const char *const names[] = {"take ", "give ", "exact", "scudo "};
	static char room[1024];
	struct text text = TEXT(room);

	for (unsigned i = 0; i < s->count; i++) {
		const struct rl_step *step = &s->steps[i];

		text_add(&text, i ? ", " : "");
		text_add(&text, names[step->kind]);
		if (step->kind == RL_EXACT)
			continue;
		text_add_decimal(&text, step->from);
		text_add(&text, step->kind == RL_SCUDO ? "" : "+");
		if (step->kind != RL_SCUDO)
			text_add_decimal(&text, step->count);
	}
	check_note("steps", room);
	check_note_number("failed_step", at);
	check_note("memory", s->file ? "file" : "private");
	check_note_number("page_bytes", s->layout.page_bytes);
	check_note_number("block_bytes", s->layout.block_bytes);
	check_note_number("first", s->layout.first);
	check_note_number("blocks", s->layout.blocks);
	check_note_number("end", s->layout.end);
}

bool rl_play(const struct rl_sequence *s, unsigned *at)
{
	*at = 0;
	note(s, 0); /* for one that crashes */
	if (!begin(s))
		return false;
	for (; *at < s->count; ++*at) {
		const struct rl_step *step = &s->steps[*at];

		for (size_t i = step->from; step->kind <= RL_GIVE && i < step->from + step->count; i++) {
			if (i >= s->layout.blocks)
				break;
			if (step->kind == RL_TAKE && !m.live[i])
				take(i);
			else if (step->kind == RL_GIVE && m.live[i])
				give(i);
		}
		if (step->kind > RL_GIVE && !release(step->kind == RL_EXACT, step->from & 1))
			return false;
	}
	return ALLOC_OK(subject.release->class_destroy(m.class_)) && rl_unmap(&m.memory) &&
	       CHECK_EQUAL(0, space.count, "nothing stays mapped");
}

/* ---- Shrinking ---- */

static const struct rl_sequence *trial;

static int try(void)
{
	unsigned at;

	return rl_play(trial, &at) ? 0 : 1;
}

static bool fails(const struct rl_sequence *s)
{
	trial = s;
	return os_apart(try) != 0;
}

void rl_shrink(struct rl_sequence *s)
{
	static struct rl_sequence less;
	unsigned at;

	for (bool any = true; any;) {
		any = false;
		for (unsigned i = s->count; i--;) {
			less = *s;
			for (unsigned k = i; k + 1 < less.count; k++)
				less.steps[k] = less.steps[k + 1];
			less.count--;
			if (fails(&less)) {
				*s = less;
				any = true;
			}
		}
	}
	note(s, s->count - 1);
	(void)rl_play(s, &at);
}
