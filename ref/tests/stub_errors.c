/*
 * Wrong arguments and addresses are refused by their own error and change nothing; and each system call of a script is
 * refused in turn: the call of the library says so, works when called again, and at the end nothing is left.
 */
#define _GNU_SOURCE
#include "stubs.h"

#include <errno.h>
#include <string.h>

#define STUB_PAGE ((size_t)16384)

static struct execmem_allocator *allocator;

static void wrong_configurations(void)
{
	struct execmem_stub_kind kinds[2] = {stub_kinds(STUB_PAGE)[0], stub_kinds(STUB_PAGE)[3]};
	struct execmem_stub_config right = {.kinds = kinds, .kind_count = 2, .stub_page = STUB_PAGE}, config;
	struct execmem_patch patch = {0, 3};
	struct execmem_stub_heap *heap = NULL;

#define REFUSED(error_, change_)                                                                                       \
	do {                                                                                                           \
		struct execmem_stub_kind saved_ = kinds[1];                                                            \
		config = right;                                                                                        \
		change_;                                                                                               \
		EXPECT_EQUAL(EXECMEM_ERROR_##error_, execmem_stub_heap_create(allocator, &config, &heap));             \
		EXPECT(!heap);                                                                                         \
		kinds[1] = saved_;                                                                                     \
	} while (0)
	REFUSED(ARGUMENT, config.kinds = NULL);
	REFUSED(ARGUMENT, config.kind_count = 0);
	REFUSED(ARGUMENT, config.kind_count = 64);
	REFUSED(ARGUMENT, config.stub_page = STUB_PAGE + 4096);
	REFUSED(ARGUMENT, config.stub_page = 2 * EXECMEM_UNIT_BYTES);
	REFUSED(STUB_PAGE_REACH, config.stub_page = 2048);
	REFUSED(ARGUMENT, kinds[1].kind = 63);
	REFUSED(ARGUMENT, kinds[1].kind = kinds[0].kind);
	REFUSED(TEMPLATE_SIZE, kinds[1].record_bytes = 0);
	REFUSED(TEMPLATE_SIZE, kinds[1].record_bytes = kinds[1].template.pitch + 1);
	REFUSED(TEMPLATE_SIZE, kinds[1].template.pitch = STUB_PAGE + 8);
	REFUSED(TEMPLATE_SIZE, kinds[1].template.pitch = 8);
	REFUSED(TEMPLATE_SIZE, kinds[1].template.code_end = kinds[1].template.code);
	REFUSED(TEMPLATE_SIZE, (kinds[1].template.patches = &patch, kinds[1].template.patch_count = 1));
	patch = (struct execmem_patch){1, 8};
	kinds[1].template.code_end = kinds[1].template.code + 8;
	REFUSED(TEMPLATE_SIZE, (kinds[1].template.patches = &patch, kinds[1].template.patch_count = 1));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_heap_create(NULL, &right, &heap));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_heap_create(allocator, NULL, &heap));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_heap_create(allocator, &right, NULL));
}

static void bad_free(struct execmem_stub_heap *heap, int expected, uintptr_t at)
{
	struct execmem_stub_figures before = stub_figures(heap), after;

	EXPECT_EQUAL(expected, execmem_stub_free(heap, (execmem_rx){at}));
	EXPECT_EQUAL(expected, execmem_stub_back_out(heap, (execmem_rx){at}));
	EXPECT_EQUAL(expected, execmem_stub_publish(heap, (execmem_rx){at}, &before));
	after = stub_figures(heap);
	EXPECT(memcmp(&before, &after, sizeof(after)) == 0);
}

static void wrong_addresses(void)
{
	struct execmem_stub_heap *heap = stub_heap(allocator, STUB_PAGE, 2 * 32 * STUB_PAGE),
				 *other = stub_heap(allocator, STUB_PAGE, 0);
	struct execmem_stub stub, foreign, many[3];
	struct execmem_stub_cache cache = {.heap = NULL};
	uint32_t pitch = stub_kinds(STUB_PAGE)[0].template.pitch;

	OK(execmem_stub_allocate(heap, STUB_PRECODE, &stub));
	OK(execmem_stub_allocate(other, STUB_PRECODE, &foreign));
	bad_free(heap, EXECMEM_ERROR_INTERIOR, stub.rx.at + 1);
	bad_free(heap, EXECMEM_ERROR_INTERIOR, (uintptr_t)stub.record);
	bad_free(heap, EXECMEM_ERROR_PADDING, stub.rx.at + pitch - 1);
	bad_free(heap, EXECMEM_ERROR_PADDING, stub.rx.at + STUB_PAGE - 1);
	bad_free(heap, EXECMEM_ERROR_PADDING, stub.rx.at + 2 * STUB_PAGE - 1);
	bad_free(heap, EXECMEM_ERROR_FREED, stub.rx.at + pitch);
	bad_free(heap, EXECMEM_ERROR_NOT_FOUND, stub.rx.at + 2 * STUB_PAGE);
	bad_free(heap, EXECMEM_ERROR_NOT_FOUND, foreign.rx.at);
	bad_free(heap, EXECMEM_ERROR_NOT_FOUND, foreign.rx.at + pitch - 1);
	bad_free(heap, EXECMEM_ERROR_NOT_FOUND, (uintptr_t)&stub);
	bad_free(heap, EXECMEM_ERROR_NOT_FOUND, 0);
	OK(execmem_stub_free(heap, stub.rx));
	bad_free(heap, EXECMEM_ERROR_FREED, stub.rx.at);

	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_allocate(heap, 9, &stub));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_allocate(heap, 63, &stub));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_allocate(heap, STUB_PRECODE, NULL));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_allocate_many(heap, STUB_PRECODE, many, 0));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_cache_create(heap, 9, &cache));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_cache_allocate(&cache, &stub));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_cache_free(&cache, stub.rx));
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_stub_cache_destroy(&cache));
	/* Two regions are allowed: the third kind has none, and no slot of another. */
	OK(execmem_stub_allocate(heap, STUB_FIXUP, &stub));
	EXPECT_EQUAL(EXECMEM_ERROR_FULL, execmem_stub_allocate(heap, STUB_CLOSURE, &stub));
	OK(execmem_stub_cache_create(heap, STUB_CLOSURE, &cache));
	EXPECT_EQUAL(EXECMEM_ERROR_FULL, execmem_stub_cache_allocate(&cache, &stub));
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_stub_heap_destroy(heap));
	OK(execmem_stub_cache_destroy(&cache));
	OK(execmem_stub_heap_destroy(heap));
	OK(execmem_stub_heap_destroy(other));
}

/* All or none: what was taken before there was no more is free again. */
static void all_or_none(void)
{
	struct execmem_stub_heap *heap = stub_heap(allocator, STUB_PAGE, 32 * STUB_PAGE);
	size_t slots = STUB_PAGE / stub_kinds(STUB_PAGE)[3].template.pitch * 16;
	struct execmem_stub *stubs = calloc(slots + 1, sizeof(*stubs));

	EXPECT_EQUAL(EXECMEM_ERROR_FULL, execmem_stub_allocate_many(heap, STUB_CLOSURE, stubs, slots + 1));
	EXPECT_EQUAL(0, stub_figures(heap).live);
	OK(execmem_stub_allocate_many(heap, STUB_CLOSURE, stubs, slots));
	EXPECT_EQUAL(slots, stub_figures(heap).live);
	EXPECT_EQUAL(EXECMEM_ERROR_FULL, execmem_stub_allocate(heap, STUB_CLOSURE, stubs));
	OK(execmem_stub_heap_destroy(heap));
	free(stubs);
}

/* ---- Every system call is refused once ---- */

static unsigned long failures;

#define RETRY(call_)                                                                                                   \
	do {                                                                                                           \
		int error_ = (call_);                                                                                  \
		if (error_) {                                                                                          \
			struct execmem_refusal last_;                                                                  \
			failures++;                                                                                    \
			EXPECT(error_ < 0 && *execmem_error_text(error_));                                             \
			execmem_last_refusal(allocator, &last_);                                                       \
			EXPECT(last_.error == ENOMEM && strcmp(last_.call, watch.failed) == 0);                        \
			OK(call_);                                                                                     \
		}                                                                                                      \
	} while (0)

static void script(void)
{
	struct execmem_stub_kind kinds[2] = {stub_kinds(STUB_PAGE)[3], stub_patched()};
	struct execmem_stub_config config = {.kinds = kinds, .kind_count = 2, .stub_page = STUB_PAGE};
	struct execmem_stub_heap *heap;
	struct execmem_stub stub[2];
	long files = watch.files;

	RETRY(execmem_stub_heap_create(allocator, &config, &heap));
	for (unsigned i = 0; i < 2; i++) {
		RETRY(execmem_stub_allocate(heap, kinds[i].kind, &stub[i]));
		stub_aim(kinds[i].kind, &stub[i], 3);
		EXPECT_EQUAL(stub_answer(kinds[i].kind, &stub[i], 3), stub_call(kinds[i].kind, &stub[i]));
		OK(execmem_stub_free(heap, stub[i].rx));
	}
	EXPECT_EQUAL(0, stub_figures(heap).live);
	EXPECT_EQUAL(2, stub_figures(heap).pages);
	RETRY(execmem_stub_trim(heap, NULL));
	RETRY(execmem_stub_allocate(heap, STUB_CLOSURE, &stub[0]));
	RETRY(execmem_stub_heap_destroy(heap));
	EXPECT_EQUAL(files, watch.files);
}

static void every_call_refused(void (*change)(struct execmem_config *config))
{
	unsigned long calls, refused = 0;

	for (unsigned long k = 0; k == 0 || refused; k++) {
		allocator = make(change);
		calls = watch.calls;
		watch.failed = NULL;
		watch.fail_at = k ? calls + k : 0;
		script();
		watch.fail_at = 0;
		refused = watch.failed != NULL;
		OK(execmem_destroy(allocator));
		EXPECT_EQUAL(0, watch.files);
		EXPECT_EQUAL(0, watch.mapped);
		refused |= k == 0;
	}
	EXPECT(failures > 15);
	failures = 0;
}

static void toggle(struct execmem_config *config)
{
	config->backends[0] = EXECMEM_BACKEND_TOGGLE;
}

int main(void)
{
	allocator = make(NULL);
	wrong_configurations();
	wrong_addresses();
	all_or_none();
	OK(execmem_destroy(allocator));
	EXPECT_EQUAL(0, watch.mapped);
	every_call_refused(NULL);
	every_call_refused(toggle);
	return 0;
}
