/*
 * Replays recorded calls of a code heap, on the library or on a model of HotSpot's, and prints what came of it. A
 * program of its own, without a C library: it runs on every port.
 *
 * usage: replay CONFIG... < TRACE
 *
 * TRACE is what trace.h says. CONFIG is KEY=VALUE,...; what is left out has its default:
 *
 *   list=1                      the model of list.h, in place of the library
 *   policy=first|best|near      best
 *   segment=BYTES               32, a power of two from 16 (32 for the model) to 4096
 *   minimum=SEGMENTS            1, to 64
 *   percent=0..100              near_percent: 50
 *   views=0..16                 cached writable views: 3
 *   together=1                  all heaps of the trace are one
 *   write=1                     a view of each block is opened and closed. With 64 bits its mapping is one on paper:
 * the library decides and counts, the system is not asked, and nothing is written write=2                     a byte of
 * each 64 is written through it, and looked at when the block is freed; and the memory that the code takes is sampled
 *   release=exact|scudo|forced  pages go back (execmem/release.h), tried after each
 *   every=FREES                 62 frees, in all heaps
 *
 * For each CONFIG one line of JSON: the figures of execmem/code_heap.h summed over the heaps, and what the trace is.
 * Exit status: 0; 1 where the library returned an error, or a block lost its bytes; 2 a usage or a trace that is not
 * understood; 3 out of memory.
 */
#include <execmem/error.h>

#include <port.h>

#include "replay.h"

#define STDIN         0
#define STDOUT        1
#define STDERR        2
#define AT_PAGESZ     6
#define TEXT_MOST     ((size_t)64 << 20)
#define PROT_RW       3
#define MAP_ANONYMOUS 0x4022 /* private, no reserve */

size_t replay_sizes[REPLAY_SIZES];

static char out[1 << 16];
static size_t out_count;

static void flush(int fd)
{
	(void)execmem_port_write(fd, out, out_count);
	out_count = 0;
}

static void text(const char *string)
{
	for (; *string && out_count < sizeof(out); string++)
		out[out_count++] = *string;
}

static void decimal(uint64_t value)
{
	char digits[21];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + value % 10);
	} while (value /= 10);
	text(digits + at);
}

static void field(const char *name, uint64_t value)
{
	text(", \"");
	text(name);
	text("\": ");
	decimal(value);
}

static _Noreturn void stop(int status)
{
	text("\n");
	flush(STDERR);
	execmem_port_exit(status);
}

void replay_failed(size_t event, const char *what, int error)
{
	out_count = 0;
	text("replay: event ");
	decimal(event + 1);
	text(": ");
	text(what);
	if (error) {
		text(": ");
		text(execmem_error_text(error));
	}
	stop(1);
}

void *replay_get(size_t bytes)
{
	void *memory = execmem_port_map(NULL, bytes + 1, PROT_RW, MAP_ANONYMOUS, -1, 0);

	if (!execmem_port_is_error(memory))
		return memory;
	out_count = 0;
	text("replay: out of memory: ");
	decimal(bytes);
	text(" bytes");
	stop(3);
}

void replay_sum_up(struct execmem_code_figures *figures)
{
	uint64_t most = figures->largest_used_bytes;

	figures->wasted_bytes = figures->free_bytes + figures->unused_bytes + figures->segment_map_bytes;
	figures->overhead_per_myriad = most ? ((uint64_t)figures->wasted_bytes * 10000 + most / 2) / most : 0;
}

/* ---- Configurations ---- */

/* If `*at` begins with `word`, goes behind it. */
static bool take(const char **at, const char *word)
{
	const char *c = *at;

	while (*word && *c == *word)
		c++, word++;
	if (*word)
		return false;
	*at = c;
	return true;
}

static bool take_number(const char **at, const char *key, size_t low, size_t high, size_t *value)
{
	const char *c = *at;
	size_t got = 0;

	if (!take(&c, key) || *c < '0' || *c > '9')
		return false;
	while (*c >= '0' && *c <= '9' && got <= high)
		got = got * 10 + (size_t)(*c++ - '0');
	if (got < low || got > high)
		return false;
	*at = c;
	*value = got;
	return true;
}

static bool take_one(const char **at, struct replay_config *config)
{
	static const struct {
		const char *word;
		enum execmem_code_policy policy;
	} policies[] = {{"policy=first", EXECMEM_CODE_FIRST},
			{"policy=best", EXECMEM_CODE_BEST},
			{"policy=near", EXECMEM_CODE_NEAR}};
	static const struct {
		const char *word;
		enum replay_release release;
	} releases[] = {
		{"release=exact", REPLAY_EXACT}, {"release=scudo", REPLAY_SCUDO}, {"release=forced", REPLAY_FORCED}};
	size_t number;

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (take(at, policies[i].word)) {
			config->policy = policies[i].policy;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		if (take(at, releases[i].word)) {
			config->release = releases[i].release;
			return true;
		}
	}
	if (take_number(at, "list=", 0, 1, &number))
		config->list = number != 0;
	else if (take_number(at, "segment=", 16, 4096, &config->segment))
		return (config->segment & (config->segment - 1)) == 0;
	else if (take_number(at, "minimum=", 1, 64, &config->minimum))
		return true;
	else if (take_number(at, "percent=", 0, 100, &number))
		config->percent = (unsigned)number;
	else if (take_number(at, "views=", 0, 16, &number))
		config->views = (unsigned)number;
	else if (take_number(at, "together=", 0, 1, &number))
		config->together = number != 0;
	else if (take_number(at, "write=", 0, 2, &number))
		config->write = (unsigned)number;
	else
		return take_number(at, "every=", 1, 1u << 30, &config->every);
	return true;
}

static bool parse(const char *at, struct replay_config *config)
{
	*config = (struct replay_config){
		.policy = EXECMEM_CODE_BEST, .segment = 32, .minimum = 1, .percent = 50, .views = 3, .every = 62};
	do {
		if (!take_one(&at, config))
			return false;
	} while (take(&at, ","));
	return !*at && (!config->list || (config->segment >= 32 && config->policy != EXECMEM_CODE_NEAR));
}

/* ---- Input and output ---- */

static size_t read_all(char *to, size_t room)
{
	size_t count = 0;

	while (count < room) {
		long got = execmem_port_syscall(EXECMEM_SYS_READ, STDIN, (long)(to + count), (long)(room - count), 0, 0,
						0);

		if (got < 0) {
			text("replay: the trace cannot be read");
			stop(3);
		}
		if (got == 0)
			break;
		count += (size_t)got;
	}
	return count;
}

static struct trace read_trace(void)
{
	char *input = replay_get(TEXT_MOST);
	size_t bytes = read_all(input, TEXT_MOST), lines = bytes / TRACE_LINE_LEAST + 1, line;
	struct trace trace = {.events = replay_get(lines * sizeof(*trace.events)),
			      .blocks = replay_get(lines * sizeof(*trace.blocks))};
	const char *expected = bytes < TEXT_MOST ? trace_read(input, bytes, &trace, &line) : "less than 64 MiB";

	if (!expected)
		return trace;
	text("trace:");
	if (bytes < TEXT_MOST)
		decimal(line);
	text(": expected ");
	text(expected);
	stop(2);
}

static void print(const char *name, const struct trace *trace, const struct replay_result *result)
{
	const struct execmem_code_figures *figures = &result->figures;
	const char *separator = "";

	text("{\"config\": \"");
	text(name);
	text("\"");
	field("pointer_bytes", sizeof(void *));
	field("events", trace->count);
	field("heaps", trace->heaps);
	field("asked_most", trace->live_most);
	field("free_blocks_most", result->free_blocks_most);
#define FIGURE(name_) field(#name_, figures->name_)
	FIGURE(free_blocks);
	FIGURE(free_bytes);
	FIGURE(unused_bytes);
	FIGURE(segment_map_bytes);
	FIGURE(used_bytes);
	FIGURE(largest_used_bytes);
	FIGURE(wasted_bytes);
	FIGURE(overhead_per_myriad);
	FIGURE(live_blocks);
	FIGURE(footprint_bytes);
	FIGURE(metadata_bytes);
	FIGURE(metadata_mapped);
	FIGURE(regions);
	FIGURE(allocations);
	FIGURE(frees);
	FIGURE(searches);
	FIGURE(search_steps);
	FIGURE(most_steps);
#undef FIGURE
	field("misses", result->stats.misses);
	field("hits", result->stats.hits);
	field("rw_maps", result->stats.rw_maps);
	field("release_attempts", result->released.attempts);
	field("release_skipped", result->released.skipped);
	field("release_ranges", result->released.ranges);
	field("release_bytes", result->released.bytes);
	field("resident_samples", result->memory.samples);
	field("resident_sum", result->memory.sum);
	field("resident_most", result->memory.most);
	field("resident_last", result->memory.last);
	text(", \"sizes\": [");
	for (size_t i = 0; i < REPLAY_SIZES; i++) {
		if (!replay_sizes[i])
			continue;
		text(separator);
		text("[");
		decimal(i * REPLAY_STEP);
		text(", ");
		decimal(replay_sizes[i]);
		text("]");
		separator = ", ";
	}
	text("]}\n");
	flush(STDOUT);
}

int execmem_main(int argc, char **argv, char **envp, const uintptr_t *auxv)
{
	struct replay_config config;
	struct trace trace;
	size_t page = 4096;

	(void)envp;
	for (; auxv[0]; auxv += 2)
		page = auxv[0] == AT_PAGESZ ? auxv[1] : page;
	for (int i = 1; i < argc; i++) {
		if (parse(argv[i], &config))
			continue;
		text("replay: ");
		text(argv[i]);
		text(": expected KEY=VALUE,... as the head of ref/replay/hotspot/replay.c says");
		stop(2);
	}
	if (argc < 2) {
		text("usage: replay CONFIG... < TRACE");
		stop(2);
	}
	trace = read_trace();
	for (int i = 1; i < argc; i++) {
		struct replay_result result = {0};

		(void)parse(argv[i], &config);
		__builtin_memset(replay_sizes, 0, sizeof(replay_sizes));
		if (config.list)
			replay_list(&config, &trace, &result);
		else
			replay_library(&config, &trace, page, &result);
		print(argv[i], &trace, &result);
	}
	return 0;
}
