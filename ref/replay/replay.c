/*
 * Replays a script against libexecmem, once for each configuration, and prints the library's own statistics.
 *
 * usage: replay CONFIG... < SCRIPT
 *
 * CONFIG is N or N,keep: the number of cached views, and whether a view that is hit keeps its place in the cache. For
 * each, one line of JSON: every counter and gauge of struct execmem_stats after the last step, all views closed; and
 * the modelled walks (walk.h), one for each mapping made: `walks`, `walk_steps_moved`, `walk_steps_kept`.
 *
 * Exit status: 0; 1 where the library returned an error or did not do what it should: the executable view not showing
 * what was written, its counters not equal to the system calls counted here; 2 a usage or a script that is not
 * understood; 3 out of memory.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <execmem/allocator.h>
#include <execmem/error.h>
#include <execmem/region.h>
#include <execmem/rwcache.h>
#include <execmem/stats.h>

#include "script.h"
#include "walk.h"

struct config {
	unsigned views;
	bool keep_order;
};

/* Whether the table below was asked for a writable mapping of a file: the library's counters must agree with that. */
static bool mapped;
static struct execmem_os real;

static int seeing_map(void *context, void *hint, size_t bytes, unsigned protection, int file, uint64_t at,
		      void **address)
{
	int error = real.map(context, hint, bytes, protection, file, at, address);

	mapped |= !error && file != EXECMEM_NO_FILE && protection & EXECMEM_WRITE;
	return error;
}

/* A view over places of the file that are apart is made of several. */
static int seeing_map_fixed(void *context, void *address, size_t bytes, unsigned protection, int file, uint64_t at)
{
	int error = real.map_fixed(context, address, bytes, protection, file, at);

	mapped |= !error && file != EXECMEM_NO_FILE && protection & EXECMEM_WRITE;
	return error;
}

struct replay {
	const struct script *script;
	struct execmem_allocator *allocator;
	struct execmem_region *regions;
	bool *reserved;
	struct execmem_view views[SCRIPT_VIEWS];
	struct walk moved, kept;
	uint64_t mappings, opened; /* counted here, for check() */
	unsigned char value;
};

static _Noreturn void failed(size_t step, const char *what, int error)
{
	fprintf(stderr, "replay: step %zu: %s: %s\n", step + 1, what, error ? execmem_error_text(error) : "wrong");
	exit(1);
}

static void must(size_t step, const char *what, int error)
{
	if (error)
		failed(step, what, error);
}

/* Opens a view and writes the first and the last byte of every page of it. */
static void open_view(struct replay *r, const struct script_step *step, size_t number, struct execmem_view *view)
{
	execmem_rx rx = {r->regions[step->region].rx.at + step->offset};

	mapped = false;
	must(number, "map_rw",
	     execmem_map_rw(r->allocator, rx, step->bytes, step->once ? EXECMEM_MAP_SINGLE_USE : 0, view));
	r->opened++;
	if (mapped) {
		r->mappings++;
		walk_find(&r->moved, step->region);
		walk_find(&r->kept, step->region);
	}
	r->value++;
	for (size_t at = 0; at < view->bytes; at += 4096)
		view->rw.at[at] = r->value;
	view->rw.at[view->bytes - 1] = r->value;
}

static void close_view(struct execmem_view *view, size_t number, unsigned char value)
{
	const volatile unsigned char *rx = (const volatile unsigned char *)view->rx.at;
	size_t last = view->bytes - 1;

	must(number, "publish", execmem_publish(view, 0, view->bytes, 0));
	if (rx[last] != value)
		failed(number, "what was written does not show in the executable view", 0);
	must(number, "unmap_rw", execmem_unmap_rw(view));
}

static void take(struct replay *r, const struct script_step *step, size_t number)
{
	struct execmem_view view;

	switch (step->kind) {
	case SCRIPT_RESERVE:
		must(number, "reserve",
		     execmem_reserve(r->allocator, step->bytes, NULL, 0, NULL, &r->regions[step->region]));
		r->reserved[step->region] = true;
		walk_add(&r->moved, step->region);
		walk_add(&r->kept, step->region);
		break;
	case SCRIPT_COMMIT:
		must(number, "commit", execmem_commit(&r->regions[step->region], step->offset, step->bytes));
		break;
	case SCRIPT_WRITE:
		open_view(r, step, number, &view);
		close_view(&view, number, r->value);
		break;
	case SCRIPT_OPEN:
		if (r->views[step->view].handle)
			failed(number, "a view that is open is opened", 0);
		open_view(r, step, number, &r->views[step->view]);
		break;
	case SCRIPT_CLOSE:
		if (!r->views[step->view].handle)
			failed(number, "a view that is not open is closed", 0);
		/* Another view may have written the byte since. */
		view = r->views[step->view];
		close_view(&view, number, view.rw.at[view.bytes - 1]);
		r->views[step->view] = (struct execmem_view){.bytes = 0};
		break;
	case SCRIPT_RELEASE:
		must(number, "release", execmem_release(&r->regions[step->region]));
		r->reserved[step->region] = false;
		walk_remove(&r->moved, step->region);
		walk_remove(&r->kept, step->region);
		break;
	}
}

static void check(const struct replay *r, const struct execmem_stats *stats)
{
	size_t end = r->script->count;

	if (stats->rw_maps != r->mappings || stats->misses + stats->bypasses != r->mappings)
		failed(end, "the library's count of mappings is not that of the system calls", 0);
	if (stats->hits + stats->misses + stats->bypasses != r->opened || stats->publishes != r->opened)
		failed(end, "the library's counts of hits, misses and bypasses do not add up to the views opened", 0);
	if (stats->views_mapped != stats->views_cached || stats->views_open)
		failed(end, "a mapping is alive that is neither open nor cached", 0);
}

static void print(const struct config *config, const struct replay *r, const struct execmem_stats *stats)
{
	printf("{\"views\": %u, \"keep_order\": %s", config->views, config->keep_order ? "true" : "false");
#define PRINT(name_, text_) printf(", \"" #name_ "\": %llu", (unsigned long long)stats->name_);
	EXECMEM_COUNTERS(PRINT)
	EXECMEM_GAUGES(PRINT)
#undef PRINT
	printf(", \"walks\": %llu, \"walk_steps_moved\": %llu, \"walk_steps_kept\": %llu}\n",
	       (unsigned long long)r->mappings, (unsigned long long)r->moved.steps, (unsigned long long)r->kept.steps);
	fflush(stdout);
}

static void run(const struct config *config, const struct script *script)
{
	struct execmem_os os = execmem_os_linux((size_t)sysconf(_SC_PAGESIZE));
	struct execmem_refusals refusals;
	struct execmem_config made;
	struct execmem_stats stats;
	struct replay *r = calloc(1, sizeof(*r));

	if (r) {
		r->regions = calloc((size_t)script->regions + 1, sizeof(*r->regions));
		r->reserved = calloc((size_t)script->regions + 1, sizeof(*r->reserved));
	}
	if (!r || !r->regions || !r->reserved) {
		fprintf(stderr, "replay: out of memory\n");
		exit(3);
	}
	r->script = script;
	walk_create(&r->moved, script->regions, true);
	walk_create(&r->kept, script->regions, false);
	real = os;
	os.map = seeing_map;
	os.map_fixed = seeing_map_fixed;
	made = execmem_config_default(os);
	made.rw_cache = config->views;
	made.keep_order = config->keep_order;
	must(0, "create", execmem_create(&made, &r->allocator, &refusals));
	for (size_t i = 0; i < script->count; i++)
		take(r, &script->steps[i], i);
	for (uint32_t v = 0; v < SCRIPT_VIEWS; v++) {
		if (r->views[v].handle)
			failed(script->count, "a view is open at the end", 0);
	}
	must(script->count, "stats", execmem_stats(r->allocator, &stats));
	check(r, &stats);
	print(config, r, &stats);
	for (uint32_t i = 0; i < script->regions; i++) {
		if (r->reserved[i])
			must(script->count, "release", execmem_release(&r->regions[i]));
	}
	must(script->count, "destroy", execmem_destroy(r->allocator));
	walk_destroy(&r->moved);
	walk_destroy(&r->kept);
	free(r->regions);
	free(r->reserved);
	free(r);
}

static int parse(const char *text, struct config *config)
{
	char *end;
	unsigned long views = strtoul(text, &end, 10);

	if (end == text || views > EXECMEM_RW_CACHE_MAX || (*end && strcmp(end, ",keep") != 0))
		return 0;
	*config = (struct config){.views = (unsigned)views, .keep_order = *end != '\0'};
	return 1;
}

int main(int argc, char **argv)
{
	struct script script;
	struct config config;

	if (argc < 2)
		fprintf(stderr, "usage: replay CONFIG... < SCRIPT, CONFIG being N or N,keep\n");
	for (int i = 1; i < argc; i++) {
		if (!parse(argv[i], &config)) {
			fprintf(stderr, "replay: %s: expected 0 to %d cached views, N or N,keep\n", argv[i],
				EXECMEM_RW_CACHE_MAX);
			return 2;
		}
	}
	if (argc < 2)
		return 2;
	script = script_read(stdin, "script");
	for (int i = 1; i < argc; i++) {
		(void)parse(argv[i], &config);
		run(&config, &script);
	}
	free(script.steps);
	return 0;
}
