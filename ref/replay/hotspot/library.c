/*
 * The replay of a trace on the library.
 */
#include <execmem/error.h>
#include <execmem/rwcache.h>

#include <port.h>

#include "replay.h"

#define REGION          ((size_t)128 << 20) /* address space of a heap at first */
#define SAMPLE_EVERY    64                  /* events */
#define LINE            64                  /* bytes: one of them is written, and looked at */

/* include/uapi: linux/fcntl.h, linux/stat.h. The same on every port so far. */
#define AT_EMPTY_PATH   0x1000
#define STATX_BLOCKS    0x400
#define STATX_AT_BLOCKS 6 /* stx_blocks in words of 64 bits */
#define BLOCK_BYTES     512

/* Where no kernel puts anything on its own with 64-bit addresses. */
#define PAPER           ((uintptr_t)(sizeof(uintptr_t) > 4 ? UINT64_C(1) << 45 : 0))

static struct execmem_os real;
static int file = EXECMEM_NO_FILE; /* the allocator's */

struct replay {
	const struct replay_config *config;
	struct trace *trace;
	struct execmem_allocator *allocator;
	struct execmem_code_heap *heaps[TRACE_HEAPS];
	unsigned count;
	execmem_rx *rx; /* by block */
	size_t frees;
	struct replay_result *result;
};

static int seeing_create(void *context, const char *name, int executable, int *made)
{
	int error = real.file_create(context, name, executable, made);

	if (!error)
		file = *made;
	return error;
}

/* ---- Mappings on paper: those for writing, which nothing is written to ---- */

static uintptr_t paper = PAPER;

static bool is_paper(unsigned protection, int of)
{
	return of != EXECMEM_NO_FILE && protection & EXECMEM_WRITE;
}

static int paper_map(void *context, void *hint, size_t bytes, unsigned protection, int of, uint64_t offset,
		     void **address)
{
	if (!is_paper(protection, of))
		return real.map(context, hint, bytes, protection, of, offset, address);
	*address = (void *)paper;
	paper += bytes;
	return 0;
}

static int paper_map_fixed(void *context, void *address, size_t bytes, unsigned protection, int of, uint64_t offset)
{
	return is_paper(protection, of) ? 0 : real.map_fixed(context, address, bytes, protection, of, offset);
}

static int paper_unmap(void *context, void *address, size_t bytes)
{
	return (uintptr_t)address >= PAPER && (uintptr_t)address < paper ? 0 : real.unmap(context, address, bytes);
}

/* ---- The replay ---- */

static void must(size_t event, const char *what, int error)
{
	if (error)
		replay_failed(event, what, error);
}

/* Memory that the file of the code holds. */
static uint64_t resident(size_t event)
{
	uint64_t status[32] = {0};

	must(event, "statx",
	     (int)execmem_port_syscall(EXECMEM_SYS_STATX, file, (long)"", AT_EMPTY_PATH, STATX_BLOCKS, (long)status,
				       0));
	return status[STATX_AT_BLOCKS] * BLOCK_BYTES;
}

static void sample(struct replay *r, size_t event)
{
	struct replay_memory *memory = &r->result->memory;

	memory->last = resident(event);
	memory->samples++;
	memory->sum += memory->last;
	if (memory->last > memory->most)
		memory->most = memory->last;
}

static unsigned char byte_of(uint32_t block)
{
	return (unsigned char)(1 + block % 255);
}

static void write_block(const struct replay *r, size_t event, const struct trace_event *e)
{
	struct execmem_view view;

	must(event, "execmem_map_rw", execmem_map_rw(r->allocator, r->rx[e->block], e->bytes, 0, &view));
	if (r->config->write > 1) {
		for (uint32_t i = 0; i < e->bytes; i += LINE)
			view.rw.at[i] = byte_of(e->block);
		must(event, "execmem_publish", execmem_publish(&view, 0, e->bytes, 0));
	}
	must(event, "execmem_unmap_rw", execmem_unmap_rw(&view));
}

/* Whether a live block still has what was written. */
static void check_block(const struct replay *r, size_t event, uint32_t block)
{
	const volatile unsigned char *at = (const volatile unsigned char *)r->rx[block].at;

	if (r->config->write < 2)
		return;
	for (uint32_t i = 0; i < r->trace->blocks[block].bytes; i += LINE) {
		if (at[i] != byte_of(block))
			replay_failed(event, "a live block lost what was written to it", 0);
	}
}

static void release(struct replay *r, size_t event)
{
	struct execmem_code_release request = {.policy = r->config->release == REPLAY_EXACT ? EXECMEM_RELEASE_EXACT
											    : EXECMEM_RELEASE_SCUDO,
					       .forced = r->config->release == REPLAY_FORCED};

	for (unsigned i = 0; i < r->count; i++)
		must(event, "execmem_code_release", execmem_code_release(r->heaps[i], &request, NULL));
}

static void take(struct replay *r, size_t i)
{
	const struct trace_event *event = &r->trace->events[i];
	struct execmem_code_heap *heap = r->heaps[r->config->together ? 0 : event->heap];
	struct execmem_code code;

	if (event->kind != TRACE_ALLOCATE)
		check_block(r, i, event->block);
	switch (event->kind) {
	case TRACE_ALLOCATE:
		must(i, "execmem_code_allocate", execmem_code_allocate(heap, event->bytes, NULL, &code));
		r->rx[event->block] = code.rx;
		if (r->config->write)
			write_block(r, i, event);
		break;
	case TRACE_TRIM:
		must(i, "execmem_code_shrink", execmem_code_shrink(heap, r->rx[event->block], event->bytes, NULL));
		break;
	default:
		must(i, "execmem_code_free", execmem_code_free(heap, r->rx[event->block]));
		if (r->config->release != REPLAY_KEEP && ++r->frees % r->config->every == 0)
			release(r, i);
	}
	r->trace->blocks[event->block].bytes = event->bytes;
	if (r->config->write > 1 && i % SAMPLE_EVERY == 0)
		sample(r, i);
}

static void add(struct execmem_code_figures *to, const struct execmem_code_figures *from)
{
#define ADD(name_) to->name_ += from->name_
	ADD(free_blocks);
	ADD(free_bytes);
	ADD(unused_bytes);
	ADD(segment_map_bytes);
	ADD(used_bytes);
	ADD(largest_used_bytes);
	ADD(live_blocks);
	ADD(footprint_bytes);
	ADD(metadata_bytes);
	ADD(metadata_mapped);
	ADD(regions);
	ADD(allocations);
	ADD(frees);
	ADD(searches);
	ADD(search_steps);
#undef ADD
	if (from->most_steps > to->most_steps)
		to->most_steps = from->most_steps;
}

static void finish(struct replay *r)
{
	size_t end = r->trace->count, sizes[REPLAY_SIZES];
	struct replay_result *result = r->result;

	for (uint32_t i = 0; i < r->trace->block_count; i++) {
		if (r->trace->blocks[i].bytes)
			check_block(r, end, i);
		r->trace->blocks[i].bytes = 0;
	}
	if (r->config->write > 1)
		sample(r, end);
	must(end, "execmem_stats", execmem_stats(r->allocator, &result->stats));
	for (unsigned i = 0; i < r->count; i++) {
		struct execmem_code_figures figures;
		struct execmem_release_stats released;

		must(end, "execmem_code_figures", execmem_code_figures(r->heaps[i], &figures));
		must(end, "execmem_code_histogram",
		     execmem_code_histogram(r->heaps[i], REPLAY_STEP, sizes, REPLAY_SIZES));
		must(end, "execmem_code_release_stats", execmem_code_release_stats(r->heaps[i], &released));
		add(&result->figures, &figures);
		for (size_t size = 0; size < REPLAY_SIZES; size++)
			replay_sizes[size] += sizes[size];
#define ADD(name_, text_) result->released.name_ += released.name_;
		EXECMEM_RELEASE_COUNTERS(ADD)
#undef ADD
		must(end, "execmem_code_heap_destroy", execmem_code_heap_destroy(r->heaps[i]));
	}
	replay_sum_up(&result->figures);
	must(end, "execmem_destroy", execmem_destroy(r->allocator));
}

void replay_library(const struct replay_config *config, struct trace *trace, size_t page, struct replay_result *result)
{
	struct replay r = {.config = config,
			   .trace = trace,
			   .count = config->together ? 1 : trace->heaps,
			   .rx = replay_get(trace->block_count * sizeof(*r.rx)),
			   .result = result};
	struct execmem_code_config heap = execmem_code_config_default();
	struct execmem_config made;

	real = execmem_os_linux(page);
	made = execmem_config_default(real);
	made.os.file_create = seeing_create;
	made.rw_cache = config->views;
	made.emulation = EXECMEM_EMULATION_OFF; /* no code is run */
	if (config->write == 1 && PAPER != 0) {
		made.os.map = paper_map;
		made.os.map_fixed = paper_map_fixed;
		made.os.unmap = paper_unmap;
	}
	must(0, "execmem_create", execmem_create(&made, &r.allocator, NULL));
	heap.segment_bytes = config->segment;
	heap.minimum = (unsigned)config->minimum;
	heap.policy = config->policy;
	heap.near_percent = config->percent;
	heap.region_bytes = config->together ? 2 * REGION : REGION;
	for (unsigned i = 0; i < r.count; i++)
		must(0, "execmem_code_heap_create", execmem_code_heap_create(r.allocator, &heap, &r.heaps[i]));
	for (size_t i = 0; i < trace->count; i++)
		take(&r, i);
	finish(&r);
}
