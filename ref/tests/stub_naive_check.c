#include "stub_model.h"

#include <string.h>

void stub_model_check_data(void)
{
	for (unsigned i = 0; i < stub_model.pages; i++)
		EXPECT(memcmp((void *)(stub_model.page[i].code + stub_model.stub_page), stub_model.page[i].data,
			      stub_model.stub_page) == 0);
}

/* How many taken slots have a record in an OS page of data. */
unsigned stub_model_taken_in(const struct stub_model_page *p, size_t part)
{
	unsigned count = 0;

	for (uint32_t s = 0; s < stub_model_slots_of(p); s++) {
		size_t first = s * p->kind->template.pitch, last = first + p->kind->record_bytes - 1;

		count += p->state[s] != STUB_FREE && first / stub_model.os_page <= part &&
			 part <= last / stub_model.os_page;
	}
	return count;
}

void stub_model_check_counters(void)
{
	for (unsigned i = 0; i < stub_model.pages; i++) {
		struct execmem_stub_place place;

		OK(execmem_stub_locate(stub_model.allocator, stub_model.page[i].code, &place));
		for (size_t part = 0; part < stub_model.stub_page / stub_model.os_page; part++) {
			unsigned count = stub_model_taken_in(&stub_model.page[i], part);

			EXPECT_EQUAL(count | (stub_model.page[i].touched[part] ? EXECMEM_STUB_TOUCHED : 0),
				     place.pages->counts[part]);
		}
	}
}

void stub_model_check_figures(void)
{
	struct execmem_stub_figures figures = stub_figures(stub_model.heap);
	size_t touched = 0, slots = 0;

	for (unsigned i = 0; i < stub_model.pages; i++) {
		slots += stub_model_slots_of(&stub_model.page[i]);
		for (size_t part = 0; part < stub_model.stub_page / stub_model.os_page; part++)
			touched += stub_model.page[i].touched[part];
	}
	EXPECT_EQUAL(stub_model_count_state(0, STUB_LIVE), figures.live);
	EXPECT_EQUAL(stub_model_count_state(0, STUB_CACHED), figures.cached);
	EXPECT_EQUAL(slots, figures.slots);
	EXPECT_EQUAL(stub_model.pages, figures.pages);
	EXPECT_EQUAL(touched * stub_model.os_page, figures.data_memory);
	EXPECT_EQUAL(stub_model.pages * stub_model.stub_page, figures.data_bytes);
	EXPECT_EQUAL(STUB_MODEL_CACHES, figures.caches);
}

void stub_model_check_find(uintptr_t address)
{
	const struct stub_model_page *p = stub_model_page_of(address);
	struct execmem_stub_found found;
	int error = execmem_stub_find(stub_model.allocator, (void *)address, &found);
	size_t at = (address - p->code) % stub_model.stub_page;
	bool record = address - p->code >= stub_model.stub_page;
	uint32_t slot = (uint32_t)(at / p->kind->template.pitch);
	size_t bytes = record ? p->kind->record_bytes : (size_t)(p->kind->template.code_end - p->kind->template.code);

	if (slot >= stub_model_slots_of(p) || at % p->kind->template.pitch >= bytes) {
		EXPECT_EQUAL(EXECMEM_ERROR_PADDING, error);
		EXPECT_EQUAL(EXECMEM_ERROR_PADDING, execmem_stub_free(stub_model.heap, (execmem_rx){address}));
		EXPECT_EQUAL(EXECMEM_ERROR_PADDING,
			     execmem_stub_cache_free(&stub_model.cache[0], (execmem_rx){address}));
		return;
	}
	OK(error);
	EXPECT_EQUAL(slot, found.slot);
	EXPECT_EQUAL(p->kind->kind, found.kind);
	EXPECT_EQUAL(record, found.in_record);
	EXPECT_EQUAL(p->state[slot] == STUB_LIVE, found.live);
	EXPECT_EQUAL(stub_model_address_of(p, slot).at, found.stub.rx.at);
	EXPECT_EQUAL(stub_model_address_of(p, slot).at + stub_model.stub_page, (uintptr_t)found.stub.record);
	if (record || at % p->kind->template.pitch) {
		EXPECT_EQUAL(EXECMEM_ERROR_INTERIOR, execmem_stub_free(stub_model.heap, (execmem_rx){address}));
		EXPECT_EQUAL(EXECMEM_ERROR_INTERIOR, execmem_stub_back_out(stub_model.heap, (execmem_rx){address}));
		EXPECT_EQUAL(EXECMEM_ERROR_INTERIOR,
			     execmem_stub_cache_free(&stub_model.cache[0], (execmem_rx){address}));
	}
}
