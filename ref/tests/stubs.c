#include "stubs.h"

#include <string.h>

#include <port.h>

/* objcopy gives the symbols of each object a prefix (harness/tests/test_hosted.py). */
#define TEMPLATE(page_, name_)                                                                                         \
	extern const unsigned char page_##execmem_##name_##_begin[], page_##execmem_##name_##_end[];
#define TEMPLATES(page_)                                                                                               \
	TEMPLATE(page_, stub_precode)                                                                                  \
	TEMPLATE(page_, fixup_precode)                                                                                 \
	TEMPLATE(page_, call_counting)                                                                                 \
	TEMPLATE(page_, closure)
TEMPLATES(page4096_)
TEMPLATES(page16384_)
TEMPLATES(page65536_)

#define KIND(page_, name_, kind_, words_, pitch_)                                                                      \
	{                                                                                                              \
		.template = {.code = page_##execmem_##name_##_begin,                                                   \
			     .code_end = page_##execmem_##name_##_end,                                                 \
			     .pitch = (pitch_)},                                                                       \
		.record_bytes = (words_) * sizeof(uintptr_t),                                                          \
		.kind = (kind_),                                                                                       \
	}
#define KINDS(page_)                                                                                                   \
	kinds[0] = (struct execmem_stub_kind)KIND(page_, stub_precode, STUB_PRECODE, 3, EXECMEM_STUB_PRECODE_SLOT);    \
	kinds[1] = (struct execmem_stub_kind)KIND(page_, fixup_precode, STUB_FIXUP, 3, EXECMEM_FIXUP_PRECODE_SLOT);    \
	kinds[2] = (struct execmem_stub_kind)KIND(page_, call_counting, STUB_COUNTING, 3, EXECMEM_CALL_COUNTING_SLOT); \
	kinds[3] = (struct execmem_stub_kind)KIND(page_, closure, STUB_CLOSURE, 2, EXECMEM_CLOSURE_SLOT)

const struct execmem_stub_kind *stub_kinds(size_t stub_page)
{
	static struct execmem_stub_kind kinds[STUB_KINDS];

	if (stub_page == 4096) {
		KINDS(page4096_);
	} else if (stub_page == 16384) {
		KINDS(page16384_);
	} else {
		EXPECT_EQUAL(65536, stub_page);
		KINDS(page65536_);
	}
	return kinds;
}

struct execmem_stub_kind stub_patched(void)
{
	/* movabs $0, %rax; ret */
	static const unsigned char code[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xc3};
	static const struct execmem_patch patch = {2, 8};

	return (struct execmem_stub_kind){
		.template = {code, code + sizeof(code), 20, &patch, 1}, .record_bytes = 12, .kind = STUB_PATCHED};
}

struct execmem_stub_heap *stub_heap(struct execmem_allocator *allocator, size_t stub_page, size_t maximum_bytes)
{
	struct execmem_stub_kind kinds[STUB_KINDS + 1];
	struct execmem_stub_config config = {.kinds = kinds, .kind_count = STUB_KINDS + 1};
	struct execmem_stub_heap *heap;

	memcpy(kinds, stub_kinds(stub_page), STUB_KINDS * sizeof(*kinds));
	kinds[STUB_KINDS] = stub_patched();
	config.stub_page = stub_page;
	config.maximum_bytes = maximum_bytes;
	OK(execmem_stub_heap_create(allocator, &config, &heap));
	return heap;
}

struct execmem_stub_figures stub_figures(struct execmem_stub_heap *heap)
{
	struct execmem_stub_figures figures;

	OK(execmem_stub_figures(heap, &figures));
	return figures;
}

/* What stubs land in: r10 or rax tells which stub it was. */
uintptr_t stub_lands(void);
uintptr_t stub_lands_counted(void);
__asm__(".globl stub_lands\nstub_lands: mov %r10, %rax; ret\n"
	".globl stub_lands_counted\nstub_lands_counted: ret\n");

static uint16_t cell;

void stub_aim(unsigned kind, const struct execmem_stub *stub, uintptr_t value)
{
	uintptr_t *record = stub->record;

	switch (kind) {
	case STUB_PRECODE:
	case STUB_CLOSURE:
		record[0] = value;
		record[1] = (uintptr_t)stub_lands;
		break;
	case STUB_FIXUP: /* its tail is behind the first instruction, of 6 bytes */
		record[0] = stub->rx.at + 6;
		record[1] = value;
		record[2] = (uintptr_t)stub_lands;
		break;
	case STUB_COUNTING:
		record[0] = (uintptr_t)&cell;
		record[1] = (uintptr_t)stub_lands_counted;
		record[2] = (uintptr_t)stub_lands_counted;
		break;
	default:
		memset(record, (int)value, 12);
	}
}

uintptr_t stub_call(unsigned kind, const struct execmem_stub *stub)
{
	(void)kind;
	return ((uintptr_t (*)(void))stub->rx.at)();
}

uintptr_t stub_answer(unsigned kind, const struct execmem_stub *stub, uintptr_t value)
{
	return kind == STUB_PATCHED ? stub->rx.at : kind == STUB_COUNTING ? (uintptr_t)&cell : value;
}
