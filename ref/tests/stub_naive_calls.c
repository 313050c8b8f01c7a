#include "stub_model.h"

#include <string.h>

#define MOST 200 /* stubs of one call */

static void do_allocate(const struct sequence_step *step)
{
	unsigned kind = 1 + (unsigned)(step->b % (STUB_KINDS + 1));
	size_t count = step->b >> 8 & 3 ? 1 + (step->b >> 16) % 8 : 1 + (step->b >> 16) % MOST;
	struct execmem_stub stubs[MOST];
	int error = execmem_stub_allocate_many(stub_model.heap, kind, stubs, count);

	if (error) {
		EXPECT_EQUAL(EXECMEM_ERROR_FULL, error);
		EXPECT(stub_model_count_state(kind, STUB_FREE) < count || !stub_model.pages);
		return;
	}
	sequence_calls += count;
	for (size_t i = 0; i < count; i++)
		stub_model_issue(stubs[i].rx.at, kind, STUB_FREE, STUB_LIVE);
	for (size_t i = 0; i < count; i++)
		stub_model_fill(&stubs[i], step->c + i * 977);
}

static void do_cache_allocate(const struct sequence_step *step)
{
	struct execmem_stub_cache *c = &stub_model.cache[step->b % STUB_MODEL_CACHES], old;

	for (unsigned count = 1 + (unsigned)(step->b >> 8) % 50; count; count--) {
		struct execmem_stub stub;
		struct stub_model_page *p;
		int error;

		sequence_calls++;
		old = *c;
		error = execmem_stub_cache_allocate(c, &stub);
		if (error) {
			EXPECT_EQUAL(EXECMEM_ERROR_FULL, error);
			EXPECT_EQUAL(0, stub_model_count_state(c->kind, STUB_FREE));
			return;
		}
		/* In the cache first, if it was fetched. */
		if (!old.count)
			stub_model_issue(stub.rx.at, c->kind, STUB_FREE, STUB_CACHED);
		else
			EXPECT_EQUAL(old.slots[old.count - 1].at, stub.rx.at);
		p = stub_model_page_of(stub.rx.at);
		stub_model_know_cache(c, &old);
		p->state[(stub.rx.at - p->code) / p->kind->template.pitch] = STUB_LIVE;
		stub_model_fill(&stub, step->c + count);
	}
}

static void do_free(const struct sequence_step *step, bool back_out, bool cached)
{
	for (unsigned count = 1 + (unsigned)(step->b % (step->c & 1 ? 4 : 150)); count; count--) {
		struct execmem_stub_cache *c = &stub_model.cache[step->b % STUB_MODEL_CACHES], old = *c;
		struct stub_model_page *p;
		uint32_t slot;
		execmem_rx rx;

		if (!stub_model_pick(step->c + count * 0x9e3779b97f4a7c15u, STUB_LIVE, &p, &slot))
			return;
		sequence_calls++;
		rx = stub_model_address_of(p, slot);
		if (cached) {
			OK(execmem_stub_cache_free(c, rx));
			p->state[slot] = STUB_FREE;
			stub_model_know_cache(c, &old);
			EXPECT_EQUAL(p->kind->kind == c->kind ? STUB_CACHED : STUB_FREE, p->state[slot]);
		} else {
			OK(back_out ? execmem_stub_back_out(stub_model.heap, rx)
				    : execmem_stub_free(stub_model.heap, rx));
			if (back_out)
				memset(p->data + (rx.at - p->code), 0, p->kind->record_bytes);
			p->state[slot] = STUB_FREE;
		}
	}
}

static void do_bad_free(const struct sequence_step *step)
{
	struct stub_model_page *p;
	uint32_t slot;

	if (stub_model_pick(step->b, step->a >> 8 & 1 ? STUB_FREE : STUB_CACHED, &p, &slot)) {
		EXPECT_EQUAL(EXECMEM_ERROR_FREED, execmem_stub_free(stub_model.heap, stub_model_address_of(p, slot)));
		EXPECT_EQUAL(EXECMEM_ERROR_FREED,
			     execmem_stub_back_out(stub_model.heap, stub_model_address_of(p, slot)));
		EXPECT_EQUAL(EXECMEM_ERROR_FREED,
			     execmem_stub_publish(stub_model.heap, stub_model_address_of(p, slot), NULL));
		EXPECT_EQUAL(EXECMEM_ERROR_FREED,
			     execmem_stub_cache_free(&stub_model.cache[0], stub_model_address_of(p, slot)));
	}
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_stub_free(stub_model.heap, (execmem_rx){(uintptr_t)&stub_model}));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_stub_cache_free(&stub_model.cache[0], (execmem_rx){UINTPTR_MAX}));
}

static void do_flush(const struct sequence_step *step)
{
	struct execmem_stub_cache *c = &stub_model.cache[step->b % STUB_MODEL_CACHES], old = *c;

	if (step->c & 1) {
		OK(execmem_stub_cache_flush(c));
		EXPECT_EQUAL(0, c->count);
	} else {
		OK(execmem_stub_cache_destroy(c));
		EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_cache_flush(c));
		OK(execmem_stub_cache_create(stub_model.heap, 1 + (unsigned)(step->c >> 8) % (STUB_KINDS + 1), c));
	}
	stub_model_know_cache(c, &old);
}

static void do_trim(void)
{
	uintptr_t gone[STUB_MODEL_PAGES];
	unsigned gone_count = 0;
	size_t bytes, given;

	for (unsigned i = 0; i < stub_model.pages; i++) {
		bool taken = false, known = false;

		for (unsigned k = 0; k < stub_model.pages; k++) {
			for (uint32_t s = 0; stub_model.page[k].region == stub_model.page[i].region &&
					     s < stub_model_slots_of(&stub_model.page[k]);
			     s++)
				taken |= stub_model.page[k].state[s] != STUB_FREE;
		}
		for (unsigned k = 0; k < gone_count; k++)
			known |= gone[k] == stub_model.page[i].region;
		if (!taken && !known)
			gone[gone_count++] = stub_model.page[i].region;
	}
	bytes = stub_figures(stub_model.heap).reserved_bytes;
	OK(execmem_stub_trim(stub_model.heap, &given));
	EXPECT_EQUAL(gone_count * ((2 * EXECMEM_STUB_REGION_PAGES * stub_model.stub_page + 65535) & ~(size_t)65535),
		     given);
	EXPECT_EQUAL(bytes - given, stub_figures(stub_model.heap).reserved_bytes);
	for (unsigned i = 0; i < stub_model.pages;) {
		bool is_gone = false;

		for (unsigned k = 0; k < gone_count; k++)
			is_gone |= gone[k] == stub_model.page[i].region;
		if (!is_gone) {
			i++;
			continue;
		}
		EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND,
			     execmem_stub_find(stub_model.allocator, (void *)stub_model.page[i].code,
					       &(struct execmem_stub_found){.slot = 0}));
		EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND,
			     execmem_stub_free(stub_model.heap, (execmem_rx){stub_model.page[i].code}));
		free(stub_model.page[i].state);
		free(stub_model.page[i].data);
		stub_model.page[i] = stub_model.page[--stub_model.pages];
	}
}

static size_t give(void *context, void *address, size_t bytes)
{
	struct stub_model_page *p = stub_model_page_of((uintptr_t)address);
	size_t at = (uintptr_t)address - p->code - stub_model.stub_page;

	EXPECT(context == &stub_model && at % stub_model.os_page == 0 && bytes % stub_model.os_page == 0 &&
	       at + bytes <= stub_model.stub_page);
	/* A run is as long as it can be. */
	EXPECT(at + bytes == stub_model.stub_page || !p->touched[(at + bytes) / stub_model.os_page] ||
	       stub_model_taken_in(p, (at + bytes) / stub_model.os_page));
	if (stub_model.partly)
		bytes = stub_model.os_page;
	OK(stub_model.allocator->os.discard(stub_model.allocator->os.context, address, bytes));
	memset(p->data + at, 0, bytes);
	for (size_t i = at; i < at + bytes; i += stub_model.os_page) {
		EXPECT(p->touched[i / stub_model.os_page] && !stub_model_taken_in(p, i / stub_model.os_page));
		p->touched[i / stub_model.os_page] = false;
	}
	return bytes;
}

static void do_release(const struct sequence_step *step)
{
	stub_model.partly = step->b & 1;
	OK(execmem_stub_free_pages(stub_model.heap, give, &stub_model));
	for (unsigned i = 0; i < stub_model.pages && !stub_model.partly; i++) {
		for (size_t part = 0; part < stub_model.stub_page / stub_model.os_page; part++)
			EXPECT(!stub_model.page[i].touched[part] || stub_model_taken_in(&stub_model.page[i], part));
	}
}

static void do_step(const struct sequence_step *step)
{
	sequence_say(step);
	sequence_calls++;
	switch (step->a % 16) {
	default:
		do_allocate(step);
		break;
	case 3:
	case 4:
	case 5:
		do_cache_allocate(step);
		break;
	case 6:
	case 7:
		do_free(step, false, false);
		break;
	case 8:
		do_free(step, true, false);
		break;
	case 9:
	case 10:
		do_free(step, false, true);
		break;
	case 11:
		do_flush(step);
		break;
	case 12:
		do_bad_free(step);
		break;
	case 13:
		do_trim();
		break;
	case 14:
		stub_model_check_data();
		do_release(step);
		break;
	case 15:
		for (unsigned i = 0; i < 32 && stub_model.pages; i++)
			stub_model_check_find(stub_model.page[step->b % stub_model.pages].code +
					      (step->c + i * 0x9e3779b97f4a7c15u) % (2 * stub_model.stub_page));
	}
	if (!sequence_compares(step))
		return;
	stub_model_check_figures();
	if (step->a >> 32 & 1)
		stub_model_check_counters();
	if ((step->a >> 33 & 7) == 0)
		stub_model_check_data();
}

static void toggle(struct execmem_config *config)
{
	config->backends[0] = EXECMEM_BACKEND_TOGGLE;
}

/* Nothing is known any more. */
static void forget(void)
{
	while (stub_model.pages) {
		struct stub_model_page *p = &stub_model.page[--stub_model.pages];

		free(p->state);
		free(p->data);
	}
}

void stub_model_play(const struct sequence *sequence)
{
	uint64_t state = sequence->seed * 0x9e3779b97f4a7c15u + 1, random;

	for (int i = 0; i < 8; i++)
		next_random(&state);
	random = next_random(&state);
	stub_model.stub_page = (size_t)4096 << 2 * (random % 3);
	stub_model.os_page = (size_t)4096 << (random >> 8) % 5;
	if (stub_model.os_page > stub_model.stub_page)
		stub_model.os_page = stub_model.stub_page;
	watch.page_bytes = stub_model.os_page;
	if (sequence_verbose)
		fprintf(stderr, "\tstub page %zu, OS page %zu\n", stub_model.stub_page, stub_model.os_page);
	stub_model.allocator = make(random >> 16 & 3 ? NULL : toggle);
	memcpy(stub_model.kinds, stub_kinds(stub_model.stub_page),
	       sizeof(stub_model.kinds) - sizeof(*stub_model.kinds));
	stub_model.kinds[STUB_KINDS] = stub_patched();
	stub_model.heap = stub_heap(stub_model.allocator, stub_model.stub_page,
				    (2 + (random >> 24) % 6) * 32 * stub_model.stub_page + 65535);
	for (unsigned i = 0; i < STUB_MODEL_CACHES; i++)
		OK(execmem_stub_cache_create(stub_model.heap, 1 + (unsigned)(random >> (32 + 4 * i)) % (STUB_KINDS + 1),
					     &stub_model.cache[i]));
	for (size_t i = 0; i < sequence->count; i++)
		do_step(&sequence->step[i]);
	stub_model_check_data();
	stub_model_check_counters();
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_stub_heap_destroy(stub_model.heap));
	for (unsigned i = 0; i < STUB_MODEL_CACHES; i++)
		OK(execmem_stub_cache_destroy(&stub_model.cache[i]));
	OK(execmem_stub_heap_destroy(stub_model.heap));
	OK(execmem_destroy(stub_model.allocator));
	EXPECT_EQUAL(0, watch.files);
	EXPECT_EQUAL(0, watch.mapped);
	forget();
}
