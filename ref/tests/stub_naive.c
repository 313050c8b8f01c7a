#include "stub_model.h"

#include <string.h>

struct stub_model stub_model;

uint32_t stub_model_slots_of(const struct stub_model_page *p)
{
	return (uint32_t)(stub_model.stub_page / p->kind->template.pitch);
}

struct stub_model_page *stub_model_page_of(uintptr_t address)
{
	for (unsigned i = 0; i < stub_model.pages; i++) {
		if (address - stub_model.page[i].code < 2 * stub_model.stub_page)
			return &stub_model.page[i];
	}
	return NULL;
}

size_t stub_model_count_state(unsigned kind, enum stub_model_state state)
{
	size_t count = 0;

	for (unsigned i = 0; i < stub_model.pages; i++) {
		for (uint32_t s = 0;
		     (!kind || stub_model.page[i].kind->kind == kind) && s < stub_model_slots_of(&stub_model.page[i]);
		     s++)
			count += stub_model.page[i].state[s] == state;
	}
	return count;
}

/* Slots that are taken from the heap are marked touched. */
static void touch(struct stub_model_page *p, uint32_t slot)
{
	size_t first = slot * p->kind->template.pitch, last = first + p->kind->record_bytes - 1;

	for (size_t at = first / stub_model.os_page; at <= last / stub_model.os_page; at++)
		p->touched[at] = true;
}

static void know_page(uintptr_t at, unsigned kind)
{
	struct execmem_found found;
	struct stub_model_page *p = &stub_model.page[stub_model.pages];
	uintptr_t code;

	OK(execmem_lookup(stub_model.allocator, (void *)at, &found));
	EXPECT_EQUAL(kind, found.kind);
	EXPECT(found.owner == stub_model.heap);
	code = found.start.at + (at - found.start.at) / (2 * stub_model.stub_page) * 2 * stub_model.stub_page;
	EXPECT(stub_model.pages < STUB_MODEL_PAGES);
	stub_model.pages++;
	*p = (struct stub_model_page){.code = code, .region = found.start.at, .kind = &stub_model.kinds[kind - 1]};
	p->state = calloc(stub_model_slots_of(p), 1);
	p->data = calloc(stub_model.stub_page, 1);
}

/* A slot that the heap gave out, for an allocation or to a cache. */
void stub_model_issue(uintptr_t rx, unsigned kind, enum stub_model_state from, enum stub_model_state to)
{
	struct stub_model_page *p = stub_model_page_of(rx);
	uint32_t slot;

	if (!p) {
		/* Only where no other slot was free. */
		EXPECT_EQUAL(0, stub_model_count_state(kind, STUB_FREE));
		know_page(rx, kind);
		p = stub_model_page_of(rx);
	}
	EXPECT_EQUAL(kind, p->kind->kind);
	EXPECT_EQUAL(0, (rx - p->code) % p->kind->template.pitch);
	slot = (uint32_t)((rx - p->code) / p->kind->template.pitch);
	EXPECT(slot < stub_model_slots_of(p));
	EXPECT_EQUAL(from, p->state[slot]);
	p->state[slot] = (unsigned char)to;
	touch(p, slot);
}

/* What a cache holds now, where it held `before` slots of `old`. */
void stub_model_know_cache(const struct execmem_stub_cache *c, const struct execmem_stub_cache *old)
{
	for (unsigned i = 0; i < old->count; i++) {
		struct stub_model_page *p = stub_model_page_of(old->slots[i].at);

		p->state[(old->slots[i].at - p->code) / p->kind->template.pitch] = STUB_FREE;
	}
	for (unsigned i = 0; i < c->count; i++)
		stub_model_issue(c->slots[i].at, c->kind, STUB_FREE, STUB_CACHED);
	for (unsigned i = c->count; i < EXECMEM_STUB_CACHE_SLOTS; i++)
		EXPECT_EQUAL(0, c->slots[i].at);
}

/* Fills record and padding of a slot that was just allocated. */
void stub_model_fill(const struct execmem_stub *stub, uint64_t random)
{
	struct stub_model_page *p = stub_model_page_of(stub->rx.at);
	size_t at = stub->rx.at - p->code;
	unsigned char bytes[64];

	EXPECT_EQUAL(stub->rx.at + stub_model.stub_page, (uintptr_t)stub->record);
	for (unsigned i = 0; i < p->kind->template.pitch; i++)
		bytes[i] = (unsigned char)(next_random(&random) | 1);
	if (random & 64)
		OK(execmem_stub_publish(stub_model.heap, stub->rx, bytes));
	else
		memcpy(stub->record, bytes, p->kind->template.pitch);
	memcpy(p->data + at, bytes, random & 64 ? p->kind->record_bytes : p->kind->template.pitch);
}

bool stub_model_pick(uint64_t random, enum stub_model_state state, struct stub_model_page **p, uint32_t *slot)
{
	size_t count = stub_model_count_state(0, state), nth = count ? random % count : 0;

	for (unsigned i = 0; i < stub_model.pages; i++) {
		for (uint32_t s = 0; s < stub_model_slots_of(&stub_model.page[i]); s++) {
			if (stub_model.page[i].state[s] == state && nth-- == 0) {
				*p = &stub_model.page[i];
				*slot = s;
				return true;
			}
		}
	}
	return false;
}

execmem_rx stub_model_address_of(const struct stub_model_page *p, uint32_t slot)
{
	return (execmem_rx){p->code + (uintptr_t)slot * p->kind->template.pitch};
}
