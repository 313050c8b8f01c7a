/* A heap that is full says so, with its figures; what the system refuses leaves it as it was; bad pointers are errors.
 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <string.h>

#include <execmem/code_heap.h>

#define UNIT ((size_t)EXECMEM_UNIT_BYTES)

static struct execmem_code_warning told;
static unsigned count;

static void warn(void *context, const struct execmem_code_warning *warning)
{
	EXPECT(context == &count);
	told = *warning;
	count++;
}

static struct execmem_code_figures figures_of(struct execmem_code_heap *heap)
{
	struct execmem_code_figures figures;

	OK(execmem_code_figures(heap, &figures));
	return figures;
}

static struct execmem_code_config config_of(void)
{
	struct execmem_code_config config = execmem_code_config_default();

	config.region_bytes = UNIT;
	config.maximum_bytes = 2 * UNIT;
	config.warn = warn;
	config.context = &count;
	return config;
}

static void full(struct execmem_allocator *allocator)
{
	struct execmem_code_config config = config_of();
	struct execmem_code_heap *heap;
	struct execmem_code a, b, c = {.bytes = 9};
	struct execmem_code_request request = {0};
	struct execmem_near near = {4096, 4096};

	OK(execmem_code_heap_create(allocator, &config, &heap));
	OK(execmem_code_allocate(heap, UNIT - 100, NULL, &a));
	OK(execmem_code_allocate(heap, UNIT, NULL, &b));
	EXPECT_EQUAL(0, count);
	EXPECT_EQUAL(EXECMEM_ERROR_FULL, execmem_code_allocate(heap, 97, NULL, &c));
	EXPECT_EQUAL(9, c.bytes);
	EXPECT_EQUAL(1, count);
	EXPECT_EQUAL(EXECMEM_CODE_FULL, told.event);
	EXPECT_EQUAL(EXECMEM_ERROR_FULL, told.error);
	EXPECT_EQUAL(97, told.bytes);
	EXPECT_EQUAL(96, told.figures.largest_free);
	EXPECT_EQUAL(2 * UNIT, told.figures.reserved_bytes);
	EXPECT_EQUAL(2, told.figures.live_blocks);
	EXPECT(strstr(execmem_error_text(EXECMEM_ERROR_FULL), "large enough") != NULL);
	OK(execmem_code_allocate(heap, 96, NULL, &c));
	EXPECT_EQUAL(0, figures_of(heap).largest_free);
	EXPECT_EQUAL(0, figures_of(heap).free_blocks);
	request.near = &near;
	OK(execmem_code_free(heap, b.rx));
	EXPECT_EQUAL(EXECMEM_ERROR_FULL, execmem_code_allocate(heap, UNIT, &request, &b));

	/* Of two heaps, each knows its own. */
	{
		struct execmem_code_heap *other;

		OK(execmem_code_heap_create(allocator, &config, &other));
		EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_code_free(other, a.rx));
		OK(execmem_code_heap_destroy(other));
	}
	OK(execmem_code_free(heap, a.rx));
	EXPECT_EQUAL(EXECMEM_ERROR_FREED, execmem_code_free(heap, a.rx));
	EXPECT_EQUAL(EXECMEM_ERROR_INTERIOR, execmem_code_free(heap, (execmem_rx){c.rx.at + 1}));
	EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_code_free(heap, (execmem_rx){UINTPTR_MAX}));
	OK(execmem_code_heap_destroy(heap));
	count = 0;
}

/* Near a target that no region can be near to: an error, and no region more. */
static void unreachable(struct execmem_allocator *allocator)
{
	struct execmem_code_config config = config_of();
	struct execmem_code_heap *heap;
	struct execmem_code code;
	struct execmem_near near = {16, 4096}, beside;
	struct execmem_code_request request = {.near = &near};

	config.maximum_bytes = 8 * UNIT;
	OK(execmem_code_heap_create(allocator, &config, &heap));
	EXPECT_EQUAL(EXECMEM_ERROR_UNREACHABLE, execmem_code_allocate(heap, 64, &request, &code));
	EXPECT_EQUAL(1, figures_of(heap).regions);
	EXPECT_EQUAL(EXECMEM_ERROR_UNREACHABLE, told.error);
	OK(execmem_code_allocate(heap, 64, NULL, &code));
	beside = (struct execmem_near){code.rx.at, 4096};
	request.near = &beside;
	for (int i = 0; i < 40; i++) {
		struct execmem_code other;

		OK(execmem_code_allocate(heap, 64, &request, &other));
		EXPECT(other.rx.at >= code.rx.at - 4096 && other.rx.at + 63 <= code.rx.at + 4096);
	}
	EXPECT_EQUAL(1, figures_of(heap).regions);
	/* One that does not fit beside it any more goes to a region of its own within reach. */
	beside.reach = 16 * UNIT;
	OK(execmem_code_allocate(heap, UNIT, &request, &code));
	EXPECT_EQUAL(2, figures_of(heap).regions);
	EXPECT(code.rx.at + UNIT - 1 <= beside.target + beside.reach && code.rx.at >= beside.target - beside.reach);
	OK(execmem_code_heap_destroy(heap));
	count = 0;
}

/* Every refusal, one at a time. */
static void refused(struct execmem_allocator *allocator)
{
	struct execmem_code_config config = config_of();
	unsigned long mappings = 0, failures = 0;

	for (unsigned long k = 1; k < 200; k++) {
		struct execmem_code_heap *heap;
		struct execmem_code code[3];
		int error;

		watch.calls = 0;
		watch.fail_at = k;
		watch.fail_with = ENOMEM;
		error = execmem_code_heap_create(allocator, &config, &heap);
		if (error) {
			failures++;
			OK(execmem_code_heap_create(allocator, &config, &heap));
		}
		for (int i = 0; i < 3; i++) {
			static const size_t bytes[] = {100, UNIT, 30};
			struct execmem_code_figures before = figures_of(heap), after;

			error = execmem_code_allocate(heap, bytes[i], NULL, &code[i]);
			if (!error)
				continue;
			failures++;
			after = figures_of(heap);
			EXPECT_EQUAL(before.reserved_bytes, after.reserved_bytes);
			EXPECT_EQUAL(before.committed_bytes, after.committed_bytes);
			EXPECT_EQUAL(before.used_bytes, after.used_bytes);
			EXPECT_EQUAL(before.free_blocks, after.free_blocks);
			OK(execmem_code_allocate(heap, bytes[i], NULL, &code[i]));
		}
		EXPECT_EQUAL(2, figures_of(heap).regions);
		error = execmem_code_heap_destroy(heap);
		if (error) {
			struct execmem_code other;

			failures++;
			error = execmem_code_allocate(heap, 1, NULL, &other);
			EXPECT(error == 0 || error == EXECMEM_ERROR_STATE);
			OK(execmem_code_heap_destroy(heap));
		}
		if (watch.calls < k)
			break;
		EXPECT(k < 199);
		watch.fail_at = 0;
		EXPECT_EQUAL(0, stats_of(allocator).regions);
		EXPECT_EQUAL(0, stats_of(allocator).file_used_bytes);
		if (k == 1)
			mappings = count_mappings();
		EXPECT(count_mappings() <= mappings + 2);
	}
	watch.fail_at = 0;
	EXPECT(failures > 5);
}

static void busy(struct execmem_allocator *allocator)
{
	struct execmem_code_config config = config_of();
	struct execmem_code_heap *heap;
	struct execmem_code code;
	struct execmem_view view;

	OK(execmem_code_heap_create(allocator, &config, &heap));
	OK(execmem_code_allocate(heap, 100, NULL, &code));
	OK(execmem_map_rw(allocator, code.rx, 100, 0, &view));
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_code_heap_destroy(heap));
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_destroy(allocator));
	/* The only region is in the way: nothing is changed. */
	OK(execmem_code_free(heap, code.rx));
	OK(execmem_unmap_rw(&view));
	OK(execmem_code_heap_destroy(heap));
}

static void wrong(struct execmem_allocator *allocator)
{
	struct execmem_code_config right = config_of(), config;
	struct execmem_code_heap *heap = NULL;

#define WRONG(change_)                                                                                                 \
	do {                                                                                                           \
		config = right;                                                                                        \
		config.change_;                                                                                        \
		EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_heap_create(allocator, &config, &heap));             \
		EXPECT(heap == NULL);                                                                                  \
	} while (0)
	WRONG(segment_bytes = 8);
	WRONG(segment_bytes = 24);
	WRONG(segment_bytes = 8192);
	WRONG(segment_bytes = 0);
	WRONG(minimum = 0);
	WRONG(minimum = 65);
	WRONG(policy = 3);
	WRONG(near_percent = 101);
	WRONG(kind = 63);
	WRONG(region_bytes = 0);
	WRONG(region_bytes = 3 * UNIT);
	WRONG(maximum_bytes = 2 * UNIT + 1);
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, execmem_code_heap_create(allocator, NULL, &heap));
	EXPECT_EQUAL(0, stats_of(allocator).regions);
}

int main(void)
{
	struct execmem_allocator *allocator = make(NULL);

	wrong(allocator);
	full(allocator);
	unreachable(allocator);
	busy(allocator);
	refused(allocator);
	OK(execmem_destroy(allocator));
	return 0;
}
