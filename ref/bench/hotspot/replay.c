/*
 * The time and the instructions of an event, allocation or free, when recorded traces are replayed: the library's code
 * heap against the model of HotSpot's list (ref/replay/hotspot/list.h).
 *
 * usage: replay TRACE...             all sides take turns on every trace, BENCH_ROUNDS times; prints a table
 *        replay --once SIDE TRACE    replays it once more after a first time, for a program that counts instructions;
 * SIDE is a number from 0, and the events are printed
 *
 * Memory is committed and touched beforehand, on both sides: what is timed is the search for a place and the
 * bookkeeping. The model keeps its segment map, as that design needs it; it has no lock, and the library takes its own.
 */
#define _GNU_SOURCE
#include "../bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <execmem/code_heap.h>

#include "../../replay/hotspot/list.h"
#include "../../replay/hotspot/trace.h"

#define ARENA     ((size_t)256 << 20)
#define SIDES     5
#define GOAL_FINE 10 /* times the list at 64 x 4 */
#define GOAL_WIDE 3  /* at 128 x 6 */
#define ROUNDS    11 /* odd */

static const struct side {
	const char *name;
	bool list;
	size_t segment, minimum;
} sides[SIDES] = {{"list 64 x 4", true, 64, 4},
		  {"list 128 x 6", true, 128, 6},
		  {"best 64 x 1", false, 64, 1},
		  {"best 32 x 1", false, 32, 1},
		  {"best 16 x 1", false, 16, 1}};

static struct trace trace;
static struct list_heap lists[TRACE_HEAPS];
static struct execmem_allocator *allocator;
static struct execmem_code_heap *heaps[TRACE_HEAPS];
static void **code;

void *bench_must(void *pointer)
{
	if (!pointer || pointer == MAP_FAILED)
		bench_fail("memory");
	return pointer;
}

/* ---- The two sides. Not inlined: a counter of instructions finds them by name ---- */

__attribute__((noinline)) void replay_list(void)
{
	for (size_t i = 0; i < trace.count; i++) {
		const struct trace_event *event = &trace.events[i];
		struct list_heap *heap = &lists[event->heap];

		if (event->kind == TRACE_ALLOCATE)
			code[event->block] = list_allocate(heap, event->bytes);
		else if (event->kind == TRACE_FREE)
			list_free(heap, code[event->block]);
		else
			list_trim(heap, code[event->block], event->bytes);
	}
}

__attribute__((noinline)) void replay_library(void)
{
	for (size_t i = 0; i < trace.count; i++) {
		const struct trace_event *event = &trace.events[i];
		execmem_rx rx = {(uintptr_t)code[event->block]};
		struct execmem_code made;
		int error;

		if (event->kind == TRACE_ALLOCATE) {
			error = execmem_code_allocate(heaps[event->heap], event->bytes, NULL, &made);
			code[event->block] = (void *)made.rx.at;
		} else if (event->kind == TRACE_FREE) {
			error = execmem_code_free(heaps[event->heap], rx);
		} else {
			error = execmem_code_shrink(heaps[event->heap], rx, event->bytes, NULL);
		}
		bench_ok(error, "an event");
	}
}

/* ---- Before and after a round, not timed ---- */

static void free_all(const struct side *side)
{
	for (size_t i = 0; i < trace.count; i++)
		trace.blocks[trace.events[i].block].bytes = trace.events[i].kind != TRACE_FREE;
	for (uint32_t i = 0; !side->list && i < trace.block_count; i++) {
		if (trace.blocks[i].bytes)
			bench_ok(execmem_code_free(heaps[trace.blocks[i].heap], (execmem_rx){(uintptr_t)code[i]}),
				 "free");
	}
	for (unsigned i = 0; side->list && i < trace.heaps; i++)
		lists[i] = (struct list_heap){.arena = lists[i].arena,
					      .map = lists[i].map,
					      .shift = lists[i].shift,
					      .minimum = lists[i].minimum};
}

/* Everything is mapped, and every page was touched. */
static void open_side(const struct side *side)
{
	struct execmem_config config = execmem_config_default(execmem_os_linux((size_t)sysconf(_SC_PAGESIZE)));
	struct execmem_code_config heap = execmem_code_config_default();
	struct execmem_code all;

	for (unsigned i = 0; side->list && i < trace.heaps; i++) {
		lists[i].shift = (unsigned)__builtin_ctzll(side->segment);
		lists[i].minimum = side->minimum;
		if (lists[i].arena)
			continue;
		lists[i].arena = bench_must(
			mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
		lists[i].map = bench_must(calloc(ARENA / 64, 1));
	}
	if (side->list)
		return;
	bench_ok(execmem_create(&config, &allocator, NULL), "execmem_create");
	heap.segment_bytes = side->segment;
	heap.minimum = (unsigned)side->minimum;
	heap.region_bytes = ARENA;
	for (unsigned i = 0; i < trace.heaps; i++) {
		bench_ok(execmem_code_heap_create(allocator, &heap, &heaps[i]), "execmem_code_heap_create");
		bench_ok(execmem_code_allocate(heaps[i], ARENA, NULL, &all), "execmem_code_allocate");
		bench_ok(execmem_code_free(heaps[i], all.rx), "execmem_code_free");
	}
}

static void close_side(const struct side *side)
{
	if (side->list)
		return;
	for (unsigned i = 0; i < trace.heaps; i++)
		bench_ok(execmem_code_heap_destroy(heaps[i]), "execmem_code_heap_destroy");
	bench_ok(execmem_destroy(allocator), "execmem_destroy");
}

static void play(size_t count)
{
	for (size_t i = 0; i < count; i++)
		replay_library();
}

static void play_list(size_t count)
{
	for (size_t i = 0; i < count; i++)
		replay_list();
}

/* Nanoseconds of an event; the medians of rounds in which the sides take turns, and the ratios' medians. */
static void measure(double *ns, double ratio[SIDES][2])
{
	static double time[SIDES][ROUNDS], ratios[2][ROUNDS];

	for (int round = -1; round < ROUNDS; round++) {
		for (int i = 0; i < SIDES; i++) {
			const struct side *side = &sides[i];

			open_side(side);
			if (!side->list) { /* once for the tables of the heap: they were never touched */
				play(1);
				free_all(side);
			}
			time[i][round < 0 ? 0 : round] =
				bench_time(side->list ? play_list : play, 1) / (double)trace.count;
			free_all(side);
			close_side(side);
		}
	}
	for (int i = 2; i < SIDES; i++) {
		for (int list = 0; list < 2; list++) {
			for (int round = 0; round < ROUNDS; round++)
				ratios[list][round] = time[list][round] / time[i][round];
			ratio[i][list] = bench_median(ratios[list], ROUNDS);
		}
	}
	for (int i = 0; i < SIDES; i++)
		ns[i] = bench_median(time[i], ROUNDS);
}

static void load(const char *path)
{
	FILE *file = bench_must(fopen(path, "r"));
	const char *expected;
	size_t bytes, line;
	char *text;

	fseek(file, 0, SEEK_END);
	bytes = (size_t)ftell(file);
	rewind(file);
	text = bench_must(malloc(bytes + 1));
	if (fread(text, 1, bytes, file) != bytes)
		bench_fail(path);
	fclose(file);
	free(trace.events);
	free(trace.blocks);
	free(code);
	trace.events = bench_must(calloc(bytes / TRACE_LINE_LEAST + 1, sizeof(*trace.events)));
	trace.blocks = bench_must(calloc(bytes / TRACE_LINE_LEAST + 1, sizeof(*trace.blocks)));
	expected = trace_read(text, bytes, &trace, &line);
	if (expected) {
		fprintf(stderr, "%s:%zu: expected %s\n", path, line, expected);
		exit(2);
	}
	free(text);
	code = bench_must(calloc(trace.block_count, sizeof(*code)));
}

static int once(int argc, char **argv)
{
	char *end;
	unsigned long number = argc == 4 ? strtoul(argv[2], &end, 10) : SIDES;

	if (number >= SIDES || *end) {
		fprintf(stderr, "replay: expected --once SIDE TRACE, SIDE from 0 to %d\n", SIDES - 1);
		return 2;
	}
	load(argv[3]);
	open_side(&sides[number]);
	(sides[number].list ? play_list : play)(1);
	free_all(&sides[number]);
	printf("%zu %s\n", trace.count, sides[number].name);
	return 0;
}

int main(int argc, char **argv)
{
	double logs[SIDES][2] = {{0}};
	char name[64];

	if (argc > 1 && strcmp(argv[1], "--once") == 0)
		return once(argc, argv);
	if (argc < 2) {
		fprintf(stderr, "usage: replay TRACE... | replay --once SIDE TRACE\n");
		return 2;
	}
	printf("nanoseconds of an event; median times less than the list at 64 x 4 / at 128 x 6\n| %-22s", "trace");
	for (int i = 0; i < SIDES; i++)
		printf(i < 2 ? " | %12s" : " | %-26s", sides[i].name);
	printf(" |\n");
	for (int t = 1; t < argc; t++) {
		double ns[SIDES], ratio[SIDES][2];
		const char *base = strrchr(argv[t], '/');

		load(argv[t]);
		measure(ns, ratio);
		printf("| %-22s | %12.1f | %12.1f", base ? base + 1 : argv[t], ns[0], ns[1]);
		for (int i = 2; i < SIDES; i++) {
			printf(" | %6.1f  %7.2f / %7.2f", ns[i], ratio[i][0], ratio[i][1]);
			logs[i][0] += log(ratio[i][0]);
			logs[i][1] += log(ratio[i][1]);
		}
		printf(" |\n");
		fflush(stdout);
	}
	printf("\ngeometric means over %d traces\n", argc - 1);
	bench_header();
	for (int i = 2; i < SIDES; i++) {
		snprintf(name, sizeof(name), "list at 64 x 4 / %s, an event", sides[i].name);
		bench_report_ratio(name, exp(logs[i][0] / (argc - 1)), ">=", GOAL_FINE);
		snprintf(name, sizeof(name), "list at 128 x 6 / %s, an event", sides[i].name);
		bench_report_ratio(name, exp(logs[i][1] / (argc - 1)), ">=", GOAL_WIDE);
	}
	return bench_missed() ? 1 : 0;
}
