/*
 * Trouble: calls that are refused, sizes that make no sense, threads.
 */
#include "../ft/trial.h"
#include "blocks.h"
#include "os.h"

#define FUNCTION 77 /* what code returns */

/* ---- Refused calls ---- */

/* What a child learns for the check: how many calls of each kind a life makes. */
struct lesson {
	unsigned of_kind[WATCH_KIND_COUNT];
	unsigned met; /* how many were refused, of all that were to be */
};
static struct lesson *lesson; /* shared with children */

/* What is to be refused: the call of this number among those of its kind, from creation on. 0: none. */
static enum watch_kind refused_kind;
static unsigned refused_call, calls;
static int refused_with;

static int refuse(const struct watch_call *call)
{
	if (call->kind != refused_kind || ++calls != refused_call)
		return 0;
	lesson->met++;
	return -refused_with;
}

enum step { CREATE = 1, ALLOCATE, WRITE, RUN, RELEASE, DESTROY, LEFT };

/* An operation that fails once the call was refused is done again, and works then; else that step has failed. */
#define AGAIN(step_, call_)                                                                                            \
	do {                                                                                                           \
		if ((call_) && (!watch.injected || (call_)))                                                           \
			return step_;                                                                                  \
	} while (0)

/* One life of an allocator: 0, or the step that failed. */
static int live(void)
{
	static const size_t sizes[] = {100, 20000, 300000};
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	const size_t count = execmem_port_probe_code(FUNCTION, code);
	struct subject_blocks *blocks = NULL;
	struct subject_block block;

	watch_begin();
	calls = 0;
	watch.refuse = refuse;
	AGAIN(CREATE, blocks_create(&blocks));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		AGAIN(ALLOCATE, BLOCKS(allocate)(blocks, sizes[i], &block));
		AGAIN(WRITE, BLOCKS(write)(blocks, &block, 0, code, count));
		if (alloc_run(block.rx) != FUNCTION)
			return RUN;
		AGAIN(RELEASE, BLOCKS(release)(blocks, &block));
	}
	if (!check_claimed("blocks-destroy"))
		return 0;
	AGAIN(DESTROY, BLOCKS(destroy)(blocks));
	return space.count || space_open_files() ? LEFT : 0;
}

/*
 * Asserts that a life ends well. An allocator that cannot be destroyed may keep memory from one life to the next: each
 * is a process of its own then.
 */
static bool lives(int (*life)(void), const char *what)
{
	return check_claimed("blocks-destroy") ? CHECK_EQUAL(0, (uint64_t)(int64_t)life(), what)
					       : alloc_apart(life, what);
}

static int learn(void)
{
	const int step = live();

	for (unsigned kind = 0; kind < WATCH_KIND_COUNT; kind++)
		lesson->of_kind[kind] = (unsigned)watch.of_kind[kind];
	return step;
}

/* Refuses each call of a kind, with each errno. *tried: how many. */
static bool refuse_each(enum watch_kind kind, unsigned *tried)
{
	refused_kind = kind;
	for (refused_call = 1; refused_call <= lesson->of_kind[kind]; refused_call++)
		for (const int *error = ft_errors(kind); *error; error++) {
			refused_with = *error;
			check_note("refused", watch_name[kind]);
			check_note_number("refused_call", refused_call);
			check_note_number("with_errno", (uint64_t)*error);
			check_note("steps",
				   "1 create, 2 allocate, 3 write, 4 run, 5 release, 6 destroy, 7 nothing is left");
			if (!lives(live, "an allocator lives through a refused call"))
				return false;
			++*tried;
		}
	return true;
}

CHECK(ja_refused, "JA-011", "a call that the system refuses is reported or made up for, and what was asked works again")
{
	unsigned tried = 0;

	if (!alloc_claims("blocks blocks-os-table"))
		return;
	if (!lesson)
		lesson = (struct lesson *)(void *)os_share(sizeof(*lesson));
	*lesson = (struct lesson){.met = 0};
	refused_call = 0;
	/* What it does once in a process is done then. */
	MUST(!check_claimed("blocks-destroy") || lives(live, "an allocator lives where nothing is refused"));
	MUST(lives(learn, "an allocator lives where nothing is refused"));
	for (unsigned kind = 0; kind < WATCH_KIND_COUNT; kind++) {
		/* close(2): Linux frees the descriptor whatever it answers, so that nothing can be made good. */
		if (kind != WATCH_FILE_CLOSE)
			MUST(refuse_each((enum watch_kind)kind, &tried));
	}
	/* Where the system puts things decides whether a call is needed: a few may be missed. */
	(void)CHECK_TRUE(lesson->met > tried / 2, "calls are refused");
}

static int live_denied(void)
{
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	const size_t count = execmem_port_probe_code(FUNCTION, code);
	struct subject_blocks *blocks = NULL;
	struct subject_block block;

	watch_begin();
	watch.deny_write_execute = true;
	if (blocks_create(&blocks) || BLOCKS(allocate)(blocks, 100, &block) ||
	    BLOCKS(write)(blocks, &block, 0, code, count))
		return 0; /* it says so */
	return alloc_run(block.rx) == FUNCTION ? 0 : RUN;
}

CHECK(ja_denied, "JA-012", "where memory may not be writable and executable, blocks work all the same or are refused")
{
	if (!alloc_claims("blocks blocks-os-table"))
		return;
	(void)alloc_apart(live_denied, "a block is refused, or what is written to it runs");
}

/* ---- Sizes ---- */

CHECK(ja_sizes, "JA-013", "sizes that cannot be are refused, and leave the allocator as it was")
{
	static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 4095, SIZE_MAX - 65535, SIZE_MAX - 16777215};
	struct subject_blocks *blocks;
	struct subject_block block;

	if (!alloc_claims("blocks"))
		return;
	blocks = blocks_make();
	MUST(blocks);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_note_number("asked", sizes[i]);
		MUST(CHECK_TRUE(BLOCKS(allocate)(blocks, sizes[i], &block) < 0, "it is refused"));
	}
	/* Nothing at all may be asked for, or not; then it can be given back. */
	if (BLOCKS(allocate)(blocks, 0, &block) == 0)
		MUST_OK(BLOCKS(release)(blocks, &block));
	MUST(blocks_put(blocks, 100, 9, &block) && alloc_runs(block.rx, 9, "a block taken afterwards runs"));
	MUST_OK(BLOCKS(release)(blocks, &block));
	(void)blocks_end(blocks);
}

/* ---- Threads ---- */

#define WORKERS 3
#define OWN     8 /* blocks that a worker holds at a time */

struct worker {
	struct execmem_port_thread thread;
	struct subject_blocks *blocks;
	unsigned turns;
	unsigned char number;
	int error;
	bool spoiled;
};

static void work(void *argument)
{
	struct worker *self = argument;
	struct subject_block block[OWN];
	unsigned char bytes[512];

	__builtin_memset(bytes, self->number, sizeof(bytes));
	for (unsigned turn = 0; turn < self->turns && !self->error && !self->spoiled; turn++) {
		unsigned held = 0;

		for (; held < OWN && !self->error; held += !self->error) {
			self->error = BLOCKS(allocate)(self->blocks, sizeof(bytes), &block[held]);
			if (!self->error)
				self->error = BLOCKS(write)(self->blocks, &block[held], 0, bytes, sizeof(bytes));
		}
		while (held--) {
			const unsigned char *at = (const unsigned char *)block[held].rx;

			for (size_t i = 0; i < sizeof(bytes); i++)
				self->spoiled |= at[i] != self->number;
			if (!self->error)
				self->error = BLOCKS(release)(self->blocks, &block[held]);
		}
	}
}

CHECK(ja_threads, "JA-014", "threads that take, write and give back blocks at the same time do not meet in one")
{
	static struct worker workers[WORKERS];
	struct subject_blocks *blocks;

	if (!alloc_claims("blocks"))
		return;
	blocks = blocks_make();
	MUST(blocks);
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.thread = {.run = work, .argument = &workers[i]},
					     .blocks = blocks,
					     .turns = 60 * (unsigned)check_rounds,
					     .number = (unsigned char)(i + 1)};
		MUST_OK(execmem_port_thread_start(&workers[i].thread));
	}
	for (unsigned i = 0; i < WORKERS; i++)
		execmem_port_thread_join(&workers[i].thread);
	for (unsigned i = 0; i < WORKERS; i++) {
		check_note_number("worker", i);
		MUST(ALLOC_OK(workers[i].error) &&
		     CHECK_TRUE(!workers[i].spoiled, "a block holds what its own thread wrote"));
	}
	(void)blocks_end(blocks);
}
