#include "allocator.h"

static void add(struct execmem_stats *stats, const struct execmem_region_counters *counters)
{
	stats->commits += counters->commits;
	stats->decommits += counters->decommits;
	stats->rx_maps += counters->rx_maps;
	stats->rw_maps += counters->rw_maps;
	stats->rw_unmaps += counters->rw_unmaps;
	stats->hits += counters->hits;
	stats->misses += counters->misses;
	stats->bypasses += counters->bypasses;
	stats->evictions += counters->evictions;
	stats->steps += counters->steps;
	stats->publishes += counters->publishes;
	stats->remaps += counters->remaps;
}

static void add_region(struct execmem_stats *stats, struct execmem_region_record *record)
{
	const struct execmem_os *os = &record->allocator->os;

	execmem_lock(os, &record->lock);
	add(stats, &record->counters);
	for (const struct execmem_view_handle *open = record->open; open; open = open->next)
		stats->publishes += __atomic_load_n(&open->publishes, __ATOMIC_RELAXED);
	for (size_t i = 0; i < record->bytes / EXECMEM_UNIT_BYTES; i++) {
		for (unsigned dirty = record->units[i].dirty; dirty; dirty &= dirty - 1)
			stats->deferred_bytes += record->allocator->page_bytes;
	}
	stats->committed_bytes += record->committed_bytes;
	stats->views_open += record->views_open;
	stats->views_mapped += record->mapping_count;
	execmem_unlock(os, &record->lock);
}

int execmem_stats(struct execmem_allocator *allocator, struct execmem_stats *stats)
{
	struct execmem_stats sum = {0};
	const struct execmem_os *os = &allocator->os;
	int error = execmem_check_process(allocator);

	if (error)
		return error;
	execmem_lock(os, &allocator->lock);
	sum.reserves = allocator->reserves;
	sum.releases = allocator->releases;
	sum.probes = allocator->probes;
	sum.regions = allocator->region_count;
	sum.reserved_bytes = allocator->reserved_bytes;
	add(&sum, &allocator->released);
	for (struct execmem_region_record *record = allocator->regions; record; record = record->next)
		add_region(&sum, record);
	sum.metadata_bytes = allocator->map.bytes + allocator->page_bytes;
	execmem_unlock(os, &allocator->lock);

	execmem_lock(os, &allocator->cache.lock);
	sum.views_cached = allocator->cache.count;
	execmem_unlock(os, &allocator->cache.lock);

	execmem_lock(os, &allocator->file.lock);
	sum.file_bytes = (uint64_t)allocator->file.units * EXECMEM_UNIT_BYTES;
	sum.file_used_bytes = (uint64_t)(allocator->file.used_count - allocator->file.dirty_count) * EXECMEM_UNIT_BYTES;
	sum.deferred_bytes += (uint64_t)allocator->file.dirty_count * EXECMEM_UNIT_BYTES;
	execmem_unlock(os, &allocator->file.lock);

	execmem_lock(os, &allocator->memory.lock);
	sum.metadata_bytes += allocator->memory.bytes;
	execmem_unlock(os, &allocator->memory.lock);
	*stats = sum;
	return 0;
}

/* ---- Text ---- */

#define DIGITS 20 /* of 2^64 */

struct text {
	char bytes[4096];
	size_t count;
};

static void put_text(struct text *text, const char *from)
{
	while (*from && text->count < sizeof(text->bytes))
		text->bytes[text->count++] = *from++;
}

/* Long division by 10, 16 bits at a time: a 64-bit division is a library call on 32-bit ports. */
static unsigned divide(uint64_t *value)
{
	uint64_t quotient = 0;
	uint32_t rest = 0;

	for (unsigned shift = 64; shift > 0;) {
		uint32_t part;

		shift -= 16;
		part = rest << 16 | (uint32_t)(*value >> shift & 0xffff);
		quotient |= (uint64_t)(part / 10) << shift;
		rest = part % 10;
	}
	*value = quotient;
	return rest;
}

static void put_number(struct text *text, uint64_t value)
{
	char digits[DIGITS + 1];
	unsigned at = DIGITS;

	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + divide(&value));
	} while (value);
	put_text(text, digits + at);
}

static void put_line(struct text *text, const char *name, uint64_t value, const char *meaning)
{
	put_text(text, "execmem: ");
	put_text(text, name);
	put_text(text, " ");
	put_number(text, value);
	put_text(text, "  ");
	put_text(text, meaning);
	put_text(text, "\n");
}

int execmem_stats_dump(struct execmem_allocator *allocator)
{
	struct execmem_stats stats;
	struct text text = {.count = 0};
	int error = execmem_stats(allocator, &stats);

	if (error)
		return error;
#define LINE(name_, meaning_) put_line(&text, #name_, stats.name_, meaning_);
	EXECMEM_COUNTERS(LINE)
	EXECMEM_GAUGES(LINE)
#undef LINE
	error = allocator->os.write(allocator->os.context, text.bytes, text.count);
	return execmem_refuse(allocator, "write", error, 0);
}
