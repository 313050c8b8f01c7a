/*
 * Figures of a stub heap.
 */
#include "stub_heap.h"

/* OS pages, in bytes, that the first `count` records of a page touch. */
static size_t data_touched(const struct execmem_stub_type *type, size_t count, size_t page_bytes)
{
	return count ? ((count - 1) * type->pitch + type->record_bytes + page_bytes - 1) & ~(page_bytes - 1) : 0;
}

/* Memory that `live` stubs side by side would take on stub pages of `bytes` bytes, less their own. */
static size_t waste(const struct execmem_stub_type *type, size_t live, size_t bytes, size_t page_bytes)
{
	size_t slots, pages, code;

	if (bytes < page_bytes)
		bytes = page_bytes;
	if (type->pitch > bytes || live == 0)
		return 0;
	slots = bytes / type->pitch;
	pages = live / slots;
	code = type->shared ? bytes : (live + slots - 1) / slots * bytes - live * type->code_bytes;
	return code + pages * data_touched(type, slots, page_bytes) +
	       data_touched(type, live - pages * slots, page_bytes) - live * type->record_bytes;
}

/* Without a function of a compiler's library. */
static size_t bits_of(uintptr_t word)
{
	size_t count = 0;

	for (; word; word &= word - 1)
		count++;
	return count;
}

/* Live and taken slots of a kind, and the OS pages of data that were touched. heap->lock is held. */
static void count(const struct execmem_stub_heap *heap, const struct execmem_stub_type *type, size_t *live,
		  size_t *taken, size_t *touched)
{
	for (const struct execmem_stub_region *region = type->regions; region; region = region->next) {
		*taken += region->taken;
		for (uint32_t i = 0; i < region->made; i++) {
			const struct execmem_stub_pages *pages = &region->pages[i];

			for (unsigned word = 0; word < type->words; word++)
				*live += bits_of(__atomic_load_n(&pages->live[word], __ATOMIC_RELAXED));
			for (unsigned part = 0; part < heap->parts; part++)
				*touched += pages->counts[part] != 0;
		}
	}
}

int execmem_stub_figures(struct execmem_stub_heap *heap, struct execmem_stub_figures *figures)
{
	struct execmem_stub_figures sum = {.live = 0};
	size_t page_bytes, all = 0;
	int error;

	if (!heap || !figures)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_check_process(heap->allocator);
	if (error)
		return error;
	page_bytes = heap->allocator->page_bytes;
	execmem_lock(&heap->allocator->os, &heap->lock);
	sum.metadata_bytes = sizeof(*heap) + heap->type_count * sizeof(*heap->types);
	for (unsigned i = 0; i < heap->type_count; i++) {
		const struct execmem_stub_type *type = &heap->types[i];
		size_t live = 0, taken = 0, touched = 0, code = type->page_count * heap->stub_page;

		count(heap, type, &live, &taken, &touched);
		sum.live += live;
		all += taken;
		sum.slots += type->page_count * type->slots;
		sum.pages += type->page_count;
		sum.regions += (unsigned)type->region_count;
		sum.code_bytes += code;
		sum.data_bytes += code;
		sum.data_memory += touched * page_bytes;
		sum.wasted_bytes += touched * page_bytes - live * type->record_bytes;
		if (type->shared)
			code = type->page_count ? heap->stub_page : 0;
		else
			sum.wasted_bytes -= live * type->code_bytes;
		sum.code_memory += code;
		sum.wasted_bytes += code;
		sum.wasted_4k += waste(type, live, 4096, page_bytes);
		sum.wasted_16k += waste(type, live, 16384, page_bytes);
		sum.metadata_bytes += (type->region_count + type->spare_count) * type->table_bytes;
	}
	/* A cache may be at work. */
	sum.cached = all > sum.live ? all - sum.live : 0;
	sum.caches = heap->caches;
	sum.reserved_bytes = heap->reserved_bytes;
	sum.code_views = heap->code_views;
	sum.fetches = heap->fetches;
	sum.returns = heap->returns;
	execmem_unlock(&heap->allocator->os, &heap->lock);
	*figures = sum;
	return 0;
}
