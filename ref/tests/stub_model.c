/*
 * Random sequences of every call of the stub heap against a naive model: slots and records one to one, nothing issued
 * twice, kinds apart, free slots used before new pages are made, every byte of every data page as the model has it, the
 * counters of OS pages, what may be released, figures. Arguments: number of sequences, first seed. A sequence that
 * fails is cut down to what is needed for it before it is printed.
 */
#define _GNU_SOURCE
#include "stubs.h"

#include "../stub_heap.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS  300
#define PAGES  256
#define CACHES 3
#define MOST   200 /* stubs of one call */

enum state { FREE, LIVE, CACHED };

struct page {
	uintptr_t code;
	uintptr_t region;
	const struct execmem_stub_kind *kind;
	unsigned char *state; /* a slot */
	unsigned char *data;  /* what the data page holds */
	bool touched[16];     /* its OS pages */
};

static struct page page[PAGES];
static unsigned pages;
static struct execmem_stub_kind kinds[STUB_KINDS + 1];
static struct execmem_stub_cache cache[CACHES];
static struct execmem_allocator *allocator;
static struct execmem_stub_heap *heap;
static size_t stub_page, os_page;
static bool verbose;

/* Of one kind: each is told by its own numbers alone, so that any may be left out. */
struct step {
	uint64_t a, b, c;
};

/* ---- The model ---- */

static uint32_t slots_of(const struct page *p)
{
	return (uint32_t)(stub_page / p->kind->template.pitch);
}

static struct page *page_of(uintptr_t address)
{
	for (unsigned i = 0; i < pages; i++) {
		if (address - page[i].code < 2 * stub_page)
			return &page[i];
	}
	return NULL;
}

static size_t count_state(unsigned kind, enum state state)
{
	size_t count = 0;

	for (unsigned i = 0; i < pages; i++) {
		for (uint32_t s = 0; (!kind || page[i].kind->kind == kind) && s < slots_of(&page[i]); s++)
			count += page[i].state[s] == state;
	}
	return count;
}

/* Slots that are taken from the heap are marked touched. */
static void touch(struct page *p, uint32_t slot)
{
	size_t first = slot * p->kind->template.pitch, last = first + p->kind->record_bytes - 1;

	for (size_t at = first / os_page; at <= last / os_page; at++)
		p->touched[at] = true;
}

static void know_page(uintptr_t at, unsigned kind)
{
	struct execmem_found found;
	struct page *p = &page[pages];
	uintptr_t code;

	OK(execmem_lookup(allocator, (void *)at, &found));
	EXPECT_EQUAL(kind, found.kind);
	EXPECT(found.owner == heap);
	code = found.start.at + (at - found.start.at) / (2 * stub_page) * 2 * stub_page;
	EXPECT(pages < PAGES);
	pages++;
	*p = (struct page){.code = code, .region = found.start.at, .kind = &kinds[kind - 1]};
	p->state = calloc(slots_of(p), 1);
	p->data = calloc(stub_page, 1);
}

/* A slot that the heap gave out, for an allocation or to a cache. */
static void issue(uintptr_t rx, unsigned kind, enum state from, enum state to)
{
	struct page *p = page_of(rx);
	uint32_t slot;

	if (!p) {
		/* Only where no other slot was free. */
		EXPECT_EQUAL(0, count_state(kind, FREE));
		know_page(rx, kind);
		p = page_of(rx);
	}
	EXPECT_EQUAL(kind, p->kind->kind);
	EXPECT_EQUAL(0, (rx - p->code) % p->kind->template.pitch);
	slot = (uint32_t)((rx - p->code) / p->kind->template.pitch);
	EXPECT(slot < slots_of(p));
	EXPECT_EQUAL(from, p->state[slot]);
	p->state[slot] = (unsigned char)to;
	touch(p, slot);
}

/* What a cache holds now, where it held `before` slots of `old`. */
static void know_cache(const struct execmem_stub_cache *c, const struct execmem_stub_cache *old)
{
	for (unsigned i = 0; i < old->count; i++) {
		struct page *p = page_of(old->slots[i].at);

		p->state[(old->slots[i].at - p->code) / p->kind->template.pitch] = FREE;
	}
	for (unsigned i = 0; i < c->count; i++)
		issue(c->slots[i].at, c->kind, FREE, CACHED);
	for (unsigned i = c->count; i < EXECMEM_STUB_CACHE_SLOTS; i++)
		EXPECT_EQUAL(0, c->slots[i].at);
}

/* Fills record and padding of a slot that was just allocated. */
static void fill(const struct execmem_stub *stub, uint64_t random)
{
	struct page *p = page_of(stub->rx.at);
	size_t at = stub->rx.at - p->code;
	unsigned char bytes[64];

	EXPECT_EQUAL(stub->rx.at + stub_page, (uintptr_t)stub->record);
	for (unsigned i = 0; i < p->kind->template.pitch; i++)
		bytes[i] = (unsigned char)(next_random(&random) | 1);
	if (random & 64)
		OK(execmem_stub_publish(heap, stub->rx, bytes));
	else
		memcpy(stub->record, bytes, p->kind->template.pitch);
	memcpy(p->data + at, bytes, random & 64 ? p->kind->record_bytes : p->kind->template.pitch);
}

static bool pick(uint64_t random, enum state state, struct page **p, uint32_t *slot)
{
	size_t count = count_state(0, state), nth = count ? random % count : 0;

	for (unsigned i = 0; i < pages; i++) {
		for (uint32_t s = 0; s < slots_of(&page[i]); s++) {
			if (page[i].state[s] == state && nth-- == 0) {
				*p = &page[i];
				*slot = s;
				return true;
			}
		}
	}
	return false;
}

static execmem_rx address_of(const struct page *p, uint32_t slot)
{
	return (execmem_rx){p->code + (uintptr_t)slot * p->kind->template.pitch};
}

/* ---- Comparing ---- */

static void check_data(void)
{
	for (unsigned i = 0; i < pages; i++)
		EXPECT(memcmp((void *)(page[i].code + stub_page), page[i].data, stub_page) == 0);
}

/* How many taken slots have a record in an OS page of data. */
static unsigned taken_in(const struct page *p, size_t part)
{
	unsigned count = 0;

	for (uint32_t s = 0; s < slots_of(p); s++) {
		size_t first = s * p->kind->template.pitch, last = first + p->kind->record_bytes - 1;

		count += p->state[s] != FREE && first / os_page <= part && part <= last / os_page;
	}
	return count;
}

static void check_counters(void)
{
	for (unsigned i = 0; i < pages; i++) {
		struct execmem_stub_place place;

		OK(execmem_stub_locate(allocator, page[i].code, &place));
		for (size_t part = 0; part < stub_page / os_page; part++) {
			unsigned count = taken_in(&page[i], part);

			EXPECT_EQUAL(count | (page[i].touched[part] ? EXECMEM_STUB_TOUCHED : 0),
				     place.pages->counts[part]);
		}
	}
}

static void check_figures(void)
{
	struct execmem_stub_figures figures = stub_figures(heap);
	size_t touched = 0, slots = 0;

	for (unsigned i = 0; i < pages; i++) {
		slots += slots_of(&page[i]);
		for (size_t part = 0; part < stub_page / os_page; part++)
			touched += page[i].touched[part];
	}
	EXPECT_EQUAL(count_state(0, LIVE), figures.live);
	EXPECT_EQUAL(count_state(0, CACHED), figures.cached);
	EXPECT_EQUAL(slots, figures.slots);
	EXPECT_EQUAL(pages, figures.pages);
	EXPECT_EQUAL(touched * os_page, figures.data_memory);
	EXPECT_EQUAL(pages * stub_page, figures.data_bytes);
	EXPECT_EQUAL(CACHES, figures.caches);
}

static void check_find(uintptr_t address)
{
	const struct page *p = page_of(address);
	struct execmem_stub_found found;
	int error = execmem_stub_find(allocator, (void *)address, &found);
	size_t at = (address - p->code) % stub_page;
	bool record = address - p->code >= stub_page;
	uint32_t slot = (uint32_t)(at / p->kind->template.pitch);
	size_t bytes = record ? p->kind->record_bytes : (size_t)(p->kind->template.code_end - p->kind->template.code);

	if (slot >= slots_of(p) || at % p->kind->template.pitch >= bytes) {
		EXPECT_EQUAL(EXECMEM_ERROR_PADDING, error);
		EXPECT_EQUAL(EXECMEM_ERROR_PADDING, execmem_stub_free(heap, (execmem_rx){address}));
		EXPECT_EQUAL(EXECMEM_ERROR_PADDING, execmem_stub_cache_free(&cache[0], (execmem_rx){address}));
		return;
	}
	OK(error);
	EXPECT_EQUAL(slot, found.slot);
	EXPECT_EQUAL(p->kind->kind, found.kind);
	EXPECT_EQUAL(record, found.in_record);
	EXPECT_EQUAL(p->state[slot] == LIVE, found.live);
	EXPECT_EQUAL(address_of(p, slot).at, found.stub.rx.at);
	EXPECT_EQUAL(address_of(p, slot).at + stub_page, (uintptr_t)found.stub.record);
	if (record || at % p->kind->template.pitch) {
		EXPECT_EQUAL(EXECMEM_ERROR_INTERIOR, execmem_stub_free(heap, (execmem_rx){address}));
		EXPECT_EQUAL(EXECMEM_ERROR_INTERIOR, execmem_stub_back_out(heap, (execmem_rx){address}));
		EXPECT_EQUAL(EXECMEM_ERROR_INTERIOR, execmem_stub_cache_free(&cache[0], (execmem_rx){address}));
	}
}

/* ---- Steps ---- */

static void do_allocate(const struct step *step)
{
	unsigned kind = 1 + (unsigned)(step->b % (STUB_KINDS + 1));
	size_t count = step->b >> 8 & 3 ? 1 + (step->b >> 16) % 8 : 1 + (step->b >> 16) % MOST;
	struct execmem_stub stubs[MOST];
	int error = execmem_stub_allocate_many(heap, kind, stubs, count);

	if (error) {
		EXPECT_EQUAL(EXECMEM_ERROR_FULL, error);
		EXPECT(count_state(kind, FREE) < count || !pages);
		return;
	}
	for (size_t i = 0; i < count; i++)
		issue(stubs[i].rx.at, kind, FREE, LIVE);
	for (size_t i = 0; i < count; i++)
		fill(&stubs[i], step->c + i * 977);
}

static void do_cache_allocate(const struct step *step)
{
	struct execmem_stub_cache *c = &cache[step->b % CACHES], old;

	for (unsigned count = 1 + (unsigned)(step->b >> 8) % 50; count; count--) {
		struct execmem_stub stub;
		struct page *p;
		int error;

		old = *c;
		error = execmem_stub_cache_allocate(c, &stub);
		if (error) {
			EXPECT_EQUAL(EXECMEM_ERROR_FULL, error);
			EXPECT_EQUAL(0, count_state(c->kind, FREE));
			return;
		}
		/* In the cache first, if it was fetched. */
		if (!old.count)
			issue(stub.rx.at, c->kind, FREE, CACHED);
		else
			EXPECT_EQUAL(old.slots[old.count - 1].at, stub.rx.at);
		p = page_of(stub.rx.at);
		know_cache(c, &old);
		p->state[(stub.rx.at - p->code) / p->kind->template.pitch] = LIVE;
		fill(&stub, step->c + count);
	}
}

static void do_free(const struct step *step, bool back_out, bool cached)
{
	for (unsigned count = 1 + (unsigned)(step->b % (step->c & 1 ? 4 : 150)); count; count--) {
		struct execmem_stub_cache *c = &cache[step->b % CACHES], old = *c;
		struct page *p;
		uint32_t slot;
		execmem_rx rx;

		if (!pick(step->c + count * 0x9e3779b97f4a7c15u, LIVE, &p, &slot))
			return;
		rx = address_of(p, slot);
		if (cached) {
			OK(execmem_stub_cache_free(c, rx));
			p->state[slot] = FREE;
			know_cache(c, &old);
			EXPECT_EQUAL(p->kind->kind == c->kind ? CACHED : FREE, p->state[slot]);
		} else {
			OK(back_out ? execmem_stub_back_out(heap, rx) : execmem_stub_free(heap, rx));
			if (back_out)
				memset(p->data + (rx.at - p->code), 0, p->kind->record_bytes);
			p->state[slot] = FREE;
		}
	}
}

static void do_bad_free(const struct step *step)
{
	struct page *p;
	uint32_t slot;

	if (pick(step->b, step->a >> 8 & 1 ? FREE : CACHED, &p, &slot)) {
		EXPECT_EQUAL(EXECMEM_ERROR_FREED, execmem_stub_free(heap, address_of(p, slot)));
		EXPECT_EQUAL(EXECMEM_ERROR_FREED, execmem_stub_back_out(heap, address_of(p, slot)));
		EXPECT_EQUAL(EXECMEM_ERROR_FREED, execmem_stub_publish(heap, address_of(p, slot), NULL));
		EXPECT_EQUAL(EXECMEM_ERROR_FREED, execmem_stub_cache_free(&cache[0], address_of(p, slot)));
	}
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_stub_free(heap, (execmem_rx){(uintptr_t)&heap}));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_stub_cache_free(&cache[0], (execmem_rx){UINTPTR_MAX}));
}

static void do_flush(const struct step *step)
{
	struct execmem_stub_cache *c = &cache[step->b % CACHES], old = *c;

	if (step->c & 1) {
		OK(execmem_stub_cache_flush(c));
		EXPECT_EQUAL(0, c->count);
	} else {
		OK(execmem_stub_cache_destroy(c));
		EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_cache_flush(c));
		OK(execmem_stub_cache_create(heap, 1 + (unsigned)(step->c >> 8) % (STUB_KINDS + 1), c));
	}
	know_cache(c, &old);
}

static void do_trim(void)
{
	uintptr_t gone[PAGES];
	unsigned gone_count = 0;
	size_t bytes, given;

	for (unsigned i = 0; i < pages; i++) {
		bool taken = false, known = false;

		for (unsigned k = 0; k < pages; k++) {
			for (uint32_t s = 0; page[k].region == page[i].region && s < slots_of(&page[k]); s++)
				taken |= page[k].state[s] != FREE;
		}
		for (unsigned k = 0; k < gone_count; k++)
			known |= gone[k] == page[i].region;
		if (!taken && !known)
			gone[gone_count++] = page[i].region;
	}
	bytes = stub_figures(heap).reserved_bytes;
	OK(execmem_stub_trim(heap, &given));
	EXPECT_EQUAL(gone_count * ((2 * EXECMEM_STUB_REGION_PAGES * stub_page + 65535) & ~(size_t)65535), given);
	EXPECT_EQUAL(bytes - given, stub_figures(heap).reserved_bytes);
	for (unsigned i = 0; i < pages;) {
		bool is_gone = false;

		for (unsigned k = 0; k < gone_count; k++)
			is_gone |= gone[k] == page[i].region;
		if (!is_gone) {
			i++;
			continue;
		}
		EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_stub_find(allocator, (void *)page[i].code,
									&(struct execmem_stub_found){.slot = 0}));
		EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_stub_free(heap, (execmem_rx){page[i].code}));
		free(page[i].state);
		free(page[i].data);
		page[i] = page[--pages];
	}
}

static unsigned partly;

static size_t give(void *context, void *address, size_t bytes)
{
	struct page *p = page_of((uintptr_t)address);
	size_t at = (uintptr_t)address - p->code - stub_page;

	EXPECT(context == &page && at % os_page == 0 && bytes % os_page == 0 && at + bytes <= stub_page);
	/* A run is as long as it can be. */
	EXPECT(at + bytes == stub_page || !p->touched[(at + bytes) / os_page] || taken_in(p, (at + bytes) / os_page));
	if (partly)
		bytes = os_page;
	OK(allocator->os.discard(allocator->os.context, address, bytes));
	memset(p->data + at, 0, bytes);
	for (size_t i = at; i < at + bytes; i += os_page) {
		EXPECT(p->touched[i / os_page] && !taken_in(p, i / os_page));
		p->touched[i / os_page] = false;
	}
	return bytes;
}

static void do_release(const struct step *step)
{
	partly = step->b & 1;
	OK(execmem_stub_free_pages(heap, give, &page));
	for (unsigned i = 0; i < pages && !partly; i++) {
		for (size_t part = 0; part < stub_page / os_page; part++)
			EXPECT(!page[i].touched[part] || taken_in(&page[i], part));
	}
}

static void do_step(const struct step *step)
{
	if (verbose)
		fprintf(stderr, "\t{0x%llx, 0x%llx, 0x%llx}\n", (unsigned long long)step->a,
			(unsigned long long)step->b, (unsigned long long)step->c);
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
		check_data();
		do_release(step);
		break;
	case 15:
		for (unsigned i = 0; i < 32 && pages; i++)
			check_find(page[step->b % pages].code + (step->c + i * 0x9e3779b97f4a7c15u) % (2 * stub_page));
	}
	check_figures();
	if (step->a >> 32 & 1)
		check_counters();
	if ((step->a >> 33 & 7) == 0)
		check_data();
}

static void toggle(struct execmem_config *config)
{
	config->backends[0] = EXECMEM_BACKEND_TOGGLE;
}

static void run(uint64_t seed, const struct step *steps, const bool *left_out)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1, random;

	for (int i = 0; i < 8; i++)
		next_random(&state);
	random = next_random(&state);
	stub_page = (size_t)4096 << 2 * (random % 3);
	os_page = (size_t)4096 << (random >> 8) % 5;
	if (os_page > stub_page)
		os_page = stub_page;
	watch.page_bytes = os_page;
	if (verbose)
		fprintf(stderr, "\tstub page %zu, OS page %zu\n", stub_page, os_page);
	allocator = make(random >> 16 & 3 ? NULL : toggle);
	memcpy(kinds, stub_kinds(stub_page), sizeof(kinds) - sizeof(*kinds));
	kinds[STUB_KINDS] = stub_patched();
	heap = stub_heap(allocator, stub_page, (2 + (random >> 24) % 6) * 32 * stub_page + 65535);
	for (unsigned i = 0; i < CACHES; i++)
		OK(execmem_stub_cache_create(heap, 1 + (unsigned)(random >> (32 + 4 * i)) % (STUB_KINDS + 1),
					     &cache[i]));
	for (int i = 0; i < STEPS; i++) {
		if (!left_out[i])
			do_step(&steps[i]);
	}
	check_data();
	check_counters();
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_stub_heap_destroy(heap));
	for (unsigned i = 0; i < CACHES; i++)
		OK(execmem_stub_cache_destroy(&cache[i]));
	OK(execmem_stub_heap_destroy(heap));
	OK(execmem_destroy(allocator));
	EXPECT_EQUAL(0, watch.files);
	EXPECT_EQUAL(0, watch.mapped);
}

/* ---- Sequences, as code_heap_model.c has them ---- */

/* In a process of its own: whether it goes well. */
static bool passes(uint64_t seed, const struct step *steps, const bool *left_out, bool quiet)
{
	int status;
	pid_t child = fork();

	EXPECT(child >= 0);
	if (child == 0) {
		if (quiet && !freopen("/dev/null", "w", stderr))
			_exit(1);
		verbose = !quiet;
		run(seed, steps, left_out);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child);
	return status == 0;
}

/* Leaves out ever smaller runs of steps, as long as it fails without them. */
static void cut(uint64_t seed, const struct step *steps, bool *left_out)
{
	for (int length = STEPS / 2; length; length /= 2) {
		for (int from = 0; from < STEPS; from += length) {
			bool saved[STEPS];
			int to = from + length < STEPS ? from + length : STEPS;

			memcpy(saved, left_out, sizeof(saved));
			memset(left_out + from, true, (size_t)(to - from));
			if (memcmp(saved, left_out, sizeof(saved)) != 0 && passes(seed, steps, left_out, true))
				memcpy(left_out, saved, sizeof(saved));
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t sequences = argc > 1 ? strtoull(argv[1], NULL, 0) : 12,
		 first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	for (uint64_t seed = first; seed < first + sequences; seed++) {
		static struct step steps[STEPS];
		bool left_out[STEPS] = {false};
		uint64_t state = seed * 0xd1342543de82ef95u + 7;

		for (int i = 0; i < STEPS; i++) {
			steps[i].a = next_random(&state);
			steps[i].b = next_random(&state);
			steps[i].c = next_random(&state);
		}
		if (passes(seed, steps, left_out, true))
			continue;
		cut(seed, steps, left_out);
		test_seed = seed;
		fprintf(stderr, "seed %llu fails; the steps that it needs:\n", (unsigned long long)seed);
		(void)passes(seed, steps, left_out, false);
		return 1;
	}
	return 0;
}
