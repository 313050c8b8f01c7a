/*
 * The code heap against asmjit's JitAllocator: blocks of 32 to 1024 bytes that come and go at random, each written, and
 * looking up where an address belongs. Both sides have all of their code mapped for writing all the time, write by
 * copying alone, and are given the same sizes and choices.
 */
#define _GNU_SOURCE
#include "heaps.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef BENCH_PEER
#include "peer.h"
#endif

#define LEAST 32
#define MOST  1024
#define LOOKS 4096

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

struct execmem_code_heap *set_heap(struct execmem_allocator *allocator)
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

void set_exchange(void *argument, size_t count)
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
	set_exchange(&ours, count);
}

void set_grow(struct set *set, size_t live)
{
	for (; set->live < live; set->live++)
		allocate(set, set->live);
}

/* Opens all of a heap's first region for writing. */
void set_open(struct set *set, struct execmem_view *view)
{
	struct execmem_code all;

	bench_ok(execmem_code_allocate(set->heap, REGION, NULL, &all), "execmem_code_allocate");
	bench_ok(execmem_code_free(set->heap, all.rx), "execmem_code_free");
	bench_ok(execmem_map_rw(set->allocator, all.rx, REGION, 0, view), "execmem_map_rw");
	set->view = view;
}

void set_make(struct set *set, uint64_t seed)
{
	*set = (struct set){.random = seed};
	set->block = bench_must(calloc(MOST_LIVE, sizeof(*set->block)));
	set->bytes = bench_must(calloc(MOST_LIVE, sizeof(*set->bytes)));
}

void set_free(struct set *set)
{
	free(set->block);
	free(set->bytes);
}

/* Of a heap whose memory is had as it is needed. */
static double memory(void)
{
	struct execmem_code_figures figures;
	struct set set;

	set_make(&set, 99);
	set.allocator = ours.allocator;
	set.heap = set_heap(ours.allocator);
	set_grow(&set, LIVE);
	set_exchange(&set, 4 * LIVE);
	bench_ok(execmem_code_figures(set.heap, &figures), "execmem_code_figures");
	bench_ok(execmem_code_heap_destroy(set.heap), "execmem_code_heap_destroy");
	set_free(&set);
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
		set_make(&sets[i], 77 + (uint64_t)i);
		sets[i].peer = i ? sets[0].peer : bench_peer_create(several);
		peer_grow(&sets[i], LIVE / 2);
	}
	bench_report_ratio(several ? "  asmjit, several pools: two threads / one" : "  asmjit: two threads / one",
			   bench_two_threads(peer_exchange_in, both, 50), ">=", 0);
	bench_peer_destroy(sets[0].peer);
	set_free(&sets[0]);
	set_free(&sets[1]);
}

static void measure_peer(int several)
{
	double instructions;
	struct bench_pair pair;

	set_make(&theirs, 99);
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
	set_free(&theirs);
	measure_peer_threads(several);
}
#endif

void bench_heaps(bool two_processors)
{
	set_make(&ours, 99);
	ours.allocator = make_allocator();
	ours.heap = set_heap(ours.allocator);
	set_open(&ours, &of_ours);
	set_grow(&ours, LIVE);
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
	bench_heap_growth(ours.allocator, false);
	bench_heap_growth(ours.allocator, true);
	bench_heap_threads(ours.allocator, false, two_processors);
	bench_heap_threads(ours.allocator, true, two_processors);
	bench_ok(execmem_unmap_rw(&of_ours), "execmem_unmap_rw");
	bench_ok(execmem_code_heap_destroy(ours.heap), "execmem_code_heap_destroy");
	set_free(&ours);
	bench_ok(execmem_destroy(ours.allocator), "execmem_destroy");
}
