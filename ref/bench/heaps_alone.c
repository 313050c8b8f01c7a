/*
 * The code heap by itself: from few blocks to many, and by two threads.
 */
#include "heaps.h"

static void make_growing(struct execmem_allocator *allocator, struct set *set, struct execmem_view *view)
{
	set_make(set, 7);
	set->allocator = allocator;
	set->heap = set_heap(allocator);
	set_open(set, view);
}

static void free_growing(struct set *set, const struct execmem_view *view)
{
	struct execmem_view open = *view;

	bench_ok(execmem_unmap_rw(&open), "execmem_unmap_rw");
	bench_ok(execmem_code_heap_destroy(set->heap), "execmem_code_heap_destroy");
	set_free(set);
}

/* To so many live blocks, and on, as in the long run. */
static void settle(struct set *set, struct execmem_view *view, size_t live, bool write)
{
	set->view = view;
	set_grow(set, live);
	set_exchange(set, live < 20000 ? 20000 : live);
	set->view = write ? view : NULL;
}

/* A heap of 100 and one of ever more, in turn. */
void bench_heap_growth(struct execmem_allocator *allocator, bool write)
{
	static const size_t steps[] = {1000, 10000, LIVE, MOST_LIVE};
	struct execmem_view view[2];
	struct set few, many;

	make_growing(allocator, &few, &view[0]);
	make_growing(allocator, &many, &view[1]);
	settle(&few, &view[0], 100, write);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		double of_few[BENCH_ROUNDS], of_many[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
		char name[64];

		settle(&many, &view[1], steps[i], write);
		for (int r = 0; r < BENCH_ROUNDS; r++) {
			of_few[r] = bench_threads(set_exchange, (void *[]){&few}, 1, OPERATIONS);
			of_many[r] = bench_threads(set_exchange, (void *[]){&many}, 1, OPERATIONS);
			ratio[r] = of_many[r] / of_few[r];
		}
		snprintf(name, sizeof(name), "release + allocate%s, %zu live / 100", write ? " + write" : "", steps[i]);
		bench_report(name,
			     (struct bench_pair){bench_median(of_few, BENCH_ROUNDS),
						 bench_median(of_many, BENCH_ROUNDS),
						 bench_median(ratio, BENCH_ROUNDS)},
			     "<=", 2);
	}
	free_growing(&few, &view[0]);
	free_growing(&many, &view[1]);
}

double bench_two_threads(void (*work)(void *, size_t), void **both, size_t count)
{
	double ratio[BENCH_ROUNDS];

	for (int i = 0; i < BENCH_ROUNDS; i++) {
		double one = bench_threads(work, both, 1, count);

		ratio[i] = 2 * one / bench_threads(work, both, 2, count);
	}
	return bench_median(ratio, BENCH_ROUNDS);
}

void bench_heap_threads(struct execmem_allocator *allocator, bool apart, bool two_processors)
{
	struct execmem_view view[2];
	struct set sets[2];

	for (int i = 0; i < 2; i++) {
		set_make(&sets[i], 77 + (uint64_t)i);
		sets[i].allocator = allocator;
		if (i == 0 || apart) {
			sets[i].heap = set_heap(allocator);
			set_open(&sets[i], &view[i]);
		} else {
			sets[i].heap = sets[0].heap;
			sets[i].view = sets[0].view;
		}
		set_grow(&sets[i], LIVE / 2);
	}
	bench_report_ratio(apart ? "two threads, a heap each / one thread" : "two threads, one heap / one thread",
			   bench_two_threads(set_exchange, (void *[]){&sets[0], &sets[1]}, OPERATIONS),
			   ">=", two_processors ? 1.5 : 0);
	for (int i = 0; i < 1 + (int)apart; i++) {
		bench_ok(execmem_unmap_rw(&view[i]), "execmem_unmap_rw");
		bench_ok(execmem_code_heap_destroy(sets[i].heap), "execmem_code_heap_destroy");
	}
	set_free(&sets[0]);
	set_free(&sets[1]);
}
