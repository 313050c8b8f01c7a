/*
 * The code heap against asmjit's JitAllocator: blocks of 32 to 1024 bytes that come and go at random, each written, and
 * looking up where an address belongs. Both sides have all of their code mapped for writing all the time, write by
 * copying alone, and are given the same sizes and choices.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <execmem/code_heap.h>
#include <execmem/rwcache.h>

#ifdef BENCH_PEER
#include "peer.h"
#endif

#define LIVE       50000
#define MOST_LIVE  200000
#define LEAST      32
#define MOST       1024
#define OPERATIONS 2000 /* a round */
#define LOOKS      4096
#define REGION     ((size_t)128 << 20)

/* Blocks of one thread, the same on both sides, but for where they are. */
struct set {
	struct execmem_allocator *allocator;
	struct execmem_code_heap *heap;
	size_t live;
	uintptr_t *block;
	uint64_t random, requested;
	uint16_t *bytes;
	struct execmem_view *view; /* of the heap's only region; null: blocks are not written */
	bool publish;
	struct bench_peer *peer;
};

static struct set ours;
static struct execmem_view of_ours;
static unsigned char code[MOST];
static const void *looks[LOOKS];
static volatile uintptr_t sink;

static uint64_t next(struct set *set)
{
	set->random ^= set->random << 13;
	set->random ^= set->random >> 7;
	set->random ^= set->random << 17;
	return set->random;
}

static size_t choose_bytes(struct set *set)
{
	return LEAST + (size_t)(next(set) >> 20) % (MOST - LEAST + 1);
}

static void put(struct set *set, size_t at, uintptr_t block, size_t bytes)
{
	set->block[at] = block;
	set->requested += bytes - set->bytes[at];
	set->bytes[at] = (uint16_t)bytes;
}

/* ---- The code heap ---- */

static struct execmem_allocator *make_allocator(void)
{
	struct execmem_config config = execmem_config_default(execmem_os_linux((size_t)sysconf(_SC_PAGESIZE)));
	struct execmem_allocator *allocator;

	bench_ok(execmem_create(&config, &allocator, NULL), "execmem_create");
	return allocator;
}

static struct execmem_code_heap *make_heap(struct execmem_allocator *allocator)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code_heap *heap;

	config.region_bytes = REGION;
	bench_ok(execmem_code_heap_create(allocator, &config, &heap), "execmem_code_heap_create");
	return heap;
}

static void allocate(struct set *set, size_t at)
{
	size_t bytes = choose_bytes(set);
	struct execmem_code block;

	if (execmem_code_allocate(set->heap, bytes, NULL, &block))
		bench_fail("execmem_code_allocate");
	if (set->view) {
		size_t offset = block.rx.at - set->view->rx.at;

		memcpy(set->view->rw.at + offset, code, bytes);
		if (set->publish && execmem_publish(set->view, offset, bytes, 0))
			bench_fail("execmem_publish");
	}
	put(set, at, block.rx.at, bytes);
}

static void exchange_in(void *argument, size_t count)
{
	struct set *set = argument;

	for (size_t i = 0; i < count; i++) {
		size_t at = (size_t)(next(set) >> 8) % set->live;

		if (execmem_code_free(set->heap, (execmem_rx){set->block[at]}))
			bench_fail("execmem_code_free");
		allocate(set, at);
	}
}

static void exchange(size_t count)
{
	exchange_in(&ours, count);
}

static void grow(struct set *set, size_t live)
{
	for (; set->live < live; set->live++)
		allocate(set, set->live);
}

/* Opens all of a heap's first region for writing. */
static void open_view(struct set *set, struct execmem_view *view)
{
	struct execmem_code all;

	bench_ok(execmem_code_allocate(set->heap, REGION, NULL, &all), "execmem_code_allocate");
	bench_ok(execmem_code_free(set->heap, all.rx), "execmem_code_free");
	bench_ok(execmem_map_rw(set->allocator, all.rx, REGION, 0, view), "execmem_map_rw");
	set->view = view;
}

static void make_set(struct set *set, uint64_t seed)
{
	*set = (struct set){.random = seed};
	set->block = bench_must(calloc(MOST_LIVE, sizeof(*set->block)));
	set->bytes = bench_must(calloc(MOST_LIVE, sizeof(*set->bytes)));
}

static void free_set(struct set *set)
{
	free(set->block);
	free(set->bytes);
}

/* Of a heap whose memory is had as it is needed. */
static double memory(void)
{
	struct execmem_code_figures figures;
	struct set set;

	make_set(&set, 99);
	set.allocator = ours.allocator;
	set.heap = make_heap(ours.allocator);
	grow(&set, LIVE);
	exchange_in(&set, 4 * LIVE);
	bench_ok(execmem_code_figures(set.heap, &figures), "execmem_code_figures");
	bench_ok(execmem_code_heap_destroy(set.heap), "execmem_code_heap_destroy");
	free_set(&set);
	return (double)(figures.committed_bytes + figures.metadata_bytes) / (double)set.requested;
}

/* ---- Looking up ---- */

static void choose_looks(struct set *set)
{
	for (size_t i = 0; i < LOOKS; i++) {
		size_t at = (size_t)(next(set) >> 8) % set->live;

		looks[i] = (const void *)(set->block[at] + (next(set) >> 8) % set->bytes[at]);
	}
}

static void choose_ours(size_t count)
{
	(void)count;
	choose_looks(&ours);
}

static void find(size_t count)
{
	struct execmem_code block;
	uintptr_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (execmem_code_find(ours.allocator, looks[i % LOOKS], &block))
			bench_fail("execmem_code_find");
		sum += block.rx.at + block.bytes;
	}
	sink = sum;
}

static void look_up(size_t count)
{
	struct execmem_found found;
	uintptr_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (execmem_lookup(ours.allocator, looks[i % LOOKS], &found))
			bench_fail("execmem_lookup");
		sum += (uintptr_t)found.owner + found.kind;
	}
	sink = sum;
}

static void find_kind(size_t count)
{
	uintptr_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (uintptr_t)execmem_code_kind(ours.allocator, looks[i % LOOKS]);
	sink = sum;
}

/* ---- By itself ---- */

static void measure_growth(bool write)
{
	static const size_t steps[] = {100, 1000, 10000, LIVE, MOST_LIVE};
	double few = 0;
	struct execmem_view view;
	struct set set;

	make_set(&set, 7);
	set.allocator = ours.allocator;
	set.heap = make_heap(ours.allocator);
	open_view(&set, &view);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		double rounds[BENCH_ROUNDS], now;
		char name[64];

		set.view = &view;
		grow(&set, steps[i]);
		set.view = write ? &view : NULL;
		exchange_in(&set, steps[i] < 20000 ? 20000 : steps[i]); /* as in the long run */
		for (int r = 0; r < BENCH_ROUNDS; r++)
			rounds[r] = bench_threads(exchange_in, (void *[]){&set}, 1, OPERATIONS);
		now = bench_median(rounds, BENCH_ROUNDS);
		few = i ? few : now;
		snprintf(name, sizeof(name), "release + allocate%s, %zu live / 100", write ? " + write" : "", steps[i]);
		if (i)
			bench_report(name, (struct bench_pair){few, now, now / few}, "<=", 2);
	}
	bench_ok(execmem_unmap_rw(&view), "execmem_unmap_rw");
	bench_ok(execmem_code_heap_destroy(set.heap), "execmem_code_heap_destroy");
	free_set(&set);
}

static double measure_two(void (*work)(void *, size_t), void **both, size_t count)
{
	double ratio[BENCH_ROUNDS];

	for (int i = 0; i < BENCH_ROUNDS; i++) {
		double one = bench_threads(work, both, 1, count);

		ratio[i] = 2 * one / bench_threads(work, both, 2, count);
	}
	return bench_median(ratio, BENCH_ROUNDS);
}

static void measure_threads(bool apart, bool two_processors)
{
	struct execmem_view view[2];
	struct set sets[2];

	for (int i = 0; i < 2; i++) {
		make_set(&sets[i], 77 + (uint64_t)i);
		sets[i].allocator = ours.allocator;
		if (i == 0 || apart) {
			sets[i].heap = make_heap(ours.allocator);
			open_view(&sets[i], &view[i]);
		} else {
			sets[i].heap = sets[0].heap;
			sets[i].view = sets[0].view;
		}
		grow(&sets[i], LIVE / 2);
	}
	bench_report_ratio(apart ? "two threads, a heap each / one thread" : "two threads, one heap / one thread",
			   measure_two(exchange_in, (void *[]){&sets[0], &sets[1]}, OPERATIONS),
			   ">=", two_processors ? 1.5 : 0);
	for (int i = 0; i < 1 + (int)apart; i++) {
		bench_ok(execmem_unmap_rw(&view[i]), "execmem_unmap_rw");
		bench_ok(execmem_code_heap_destroy(sets[i].heap), "execmem_code_heap_destroy");
	}
	free_set(&sets[0]);
	free_set(&sets[1]);
}

/* ---- Beside the peer ---- */

#ifdef BENCH_PEER
static struct set theirs;

static void peer_exchange_in(void *argument, size_t count)
{
	struct set *set = argument;

	for (size_t i = 0; i < count; i++) {
		size_t at = (size_t)(next(set) >> 8) % set->live, bytes;

		bench_peer_release(set->peer, (void *)set->block[at]);
		bytes = choose_bytes(set);
		put(set, at, (uintptr_t)bench_peer_put(set->peer, code, bytes), bytes);
	}
}

static void peer_exchange(size_t count)
{
	peer_exchange_in(&theirs, count);
}

static void peer_grow(struct set *set, size_t live)
{
	for (; set->live < live; set->live++) {
		size_t bytes = choose_bytes(set);

		put(set, set->live, (uintptr_t)bench_peer_put(set->peer, code, bytes), bytes);
	}
}

static void choose_theirs(size_t count)
{
	(void)count;
	choose_looks(&theirs);
}

static void query(size_t count)
{
	uintptr_t sum = 0;
	size_t bytes;

	for (size_t i = 0; i < count; i++) {
		sum += bench_peer_find(theirs.peer, looks[i % LOOKS], &bytes);
		sum += bytes;
	}
	sink = sum;
}

static void measure_peer_threads(int several)
{
	struct set sets[2];
	void *both[2] = {&sets[0], &sets[1]};

	for (int i = 0; i < 2; i++) {
		make_set(&sets[i], 77 + (uint64_t)i);
		sets[i].peer = i ? sets[0].peer : bench_peer_create(several);
		peer_grow(&sets[i], LIVE / 2);
	}
	bench_report_ratio(several ? "  asmjit, several pools: two threads / one" : "  asmjit: two threads / one",
			   measure_two(peer_exchange_in, both, 50), ">=", 0);
	bench_peer_destroy(sets[0].peer);
	free_set(&sets[0]);
	free_set(&sets[1]);
}

static void measure_peer(int several)
{
	double instructions;
	struct bench_pair pair;

	make_set(&theirs, 99);
	theirs.peer = bench_peer_create(several);
	peer_grow(&theirs, LIVE);
	peer_exchange(LIVE); /* as on our side */
	pair = bench_compare(exchange, OPERATIONS, NULL, peer_exchange, 20, NULL);
	bench_report(several ? "asmjit, several pools / code heap, time" : "asmjit / code heap, time", pair,
		     ">=", several ? 20 : 60);
	instructions = (double)bench_instructions_in(peer_exchange, 4, 24);
	bench_report_ratio(several ? "asmjit, several pools / code heap, instructions"
				   : "asmjit / code heap, instructions",
			   instructions / (double)bench_instructions(exchange), ">=", several ? 0 : 200);
	bench_report_ratio(several ? "  asmjit, several pools: memory / requested" : "  asmjit: memory / requested",
			   (double)bench_peer_memory(theirs.peer) / (double)theirs.requested, "<=", 0);
	pair = bench_compare(find, 20000, choose_ours, query, 2000, choose_theirs);
	bench_report("asmjit's query / execmem_code_find", pair, ">=", 8);
	pair = bench_compare(look_up, 20000, choose_ours, query, 2000, choose_theirs);
	bench_report("asmjit's query / owner and kind by execmem_lookup", pair, ">=", 25);
	pair = bench_compare(find_kind, 20000, choose_ours, query, 2000, choose_theirs);
	bench_report("asmjit's query / execmem_code_kind", pair, ">=", 0);
	bench_peer_destroy(theirs.peer);
	free_set(&theirs);
	measure_peer_threads(several);
}
#endif

void bench_heaps(bool two_processors)
{
	make_set(&ours, 99);
	ours.allocator = make_allocator();
	ours.heap = make_heap(ours.allocator);
	open_view(&ours, &of_ours);
	grow(&ours, LIVE);
	exchange(LIVE);
	bench_report_count("  instructions of release + allocate + write", bench_instructions(exchange));
	ours.publish = true;
	bench_report_count("  the same with publishing", bench_instructions(exchange));
	ours.publish = false;
	ours.view = NULL;
	bench_report_count("  instructions of release + allocate", bench_instructions(exchange));
	ours.view = &of_ours;
	bench_report_ratio("committed and bookkeeping / requested", memory(), "<=", 1.06);
#ifdef BENCH_PEER
	measure_peer(0);
	measure_peer(1);
#else
	printf("asmjit is not there (Debian: libasmjit-dev, g++): the code heap is not held against it\n");
#endif
	measure_growth(false);
	measure_growth(true);
	measure_threads(false, two_processors);
	measure_threads(true, two_processors);
	bench_ok(execmem_unmap_rw(&of_ours), "execmem_unmap_rw");
	bench_ok(execmem_code_heap_destroy(ours.heap), "execmem_code_heap_destroy");
	free_set(&ours);
	bench_ok(execmem_destroy(ours.allocator), "execmem_destroy");
}
