#include "stub.h"

const size_t stub_pages[] = {4096, 16384, 65536, 0};

size_t stub_page_first(void)
{
	size_t i = 0;

	while (stub_pages[i] && stub_pages[i] < check_page)
		i++;
	return i;
}

unsigned stub_value(unsigned kind)
{
	return 40 + kind;
}

static uint32_t up(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

static void make_kinds(struct stub *it, bool patched)
{
	const uintptr_t one = 1;

	for (unsigned i = 0; i < STUB_KINDS; i++) {
		const unsigned kind = STUB_SMALL + i;
		uint32_t bytes = (uint32_t)execmem_port_probe_code(stub_value(kind), it->code[i]);

		/* A word that holds 1, to which the slot's address is added. */
		if (kind == STUB_WIDE && patched) {
			bytes = up(bytes);
			it->patch = (struct subject_patch){bytes, sizeof(one)};
			__builtin_memcpy(&it->code[i][bytes], &one, sizeof(one));
			bytes += (uint32_t)sizeof(one);
		}
		it->kinds[i] = (struct subject_stub_kind){.code = it->code[i], .code_bytes = bytes, .kind = kind};
		it->kinds[i].pitch = kind == STUB_SMALL  ? up(bytes) + 8
				     : kind == STUB_EVEN ? up(bytes)
							 : up(bytes) + 24;
		it->kinds[i].record_bytes = kind == STUB_SMALL  ? 4
					    : kind == STUB_EVEN ? it->kinds[i].pitch
								: it->kinds[i].pitch - 8;
	}
	if (patched) {
		it->kinds[STUB_KINDS - 1].patches = &it->patch;
		it->kinds[STUB_KINDS - 1].patch_count = 1;
	}
}

int stub_create(struct stub *it, struct subject_allocator *allocator, size_t page, bool patched)
{
	*it = (struct stub){.allocator = allocator, .page = page};
	make_kinds(it, patched);
	return STUB(create)(allocator, it->kinds, STUB_KINDS, page, &it->heap);
}

bool stub_make(struct stub *it, size_t page, bool patched)
{
	struct subject_allocator *allocator = alloc_make(NULL);

	check_note_number("stub_page", page);
	return CHECK_TRUE(allocator != NULL, "an allocator is made") &&
	       ALLOC_OK(stub_create(it, allocator, page, patched));
}

bool stub_end(struct stub *it)
{
	return ALLOC_OK(STUB(destroy)(it->heap)) && alloc_end(it->allocator);
}

const struct subject_stub_kind *stub_kind(const struct stub *it, unsigned kind)
{
	return &it->kinds[kind - STUB_SMALL];
}

uint32_t stub_slots(const struct stub *it, unsigned kind)
{
	return (uint32_t)it->page / stub_kind(it, kind)->pitch;
}

bool stub_take(struct stub *it, unsigned kind, struct subject_stub *stubs, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!ALLOC_OK(STUB(allocate)(it->heap, kind, &stubs[i])))
			return false;
	return true;
}

static unsigned char filling(unsigned salt, unsigned i)
{
	return (unsigned char)(salt * 37 + i * 5) | 1;
}

void stub_fill(const struct stub *it, unsigned kind, const struct subject_stub *stub, unsigned salt)
{
	for (unsigned i = 0; i < stub_kind(it, kind)->record_bytes; i++)
		stub->record[i] = filling(salt, i);
}

bool stub_filled(const struct stub *it, unsigned kind, const struct subject_stub *stub, unsigned salt, const char *what)
{
	for (unsigned i = 0; i < stub_kind(it, kind)->record_bytes; i++) {
		if (stub->record[i] == filling(salt, i))
			continue;
		check_note_number("kind", kind);
		check_note_number("record_at", (uintptr_t)stub->record);
		check_note_number("byte", i);
		return CHECK_EQUAL(filling(salt, i), stub->record[i], what);
	}
	return CHECK_TRUE(true, what);
}

bool stub_figures(const struct stub *it, struct subject_stub_figures *figures)
{
	return ALLOC_OK(STUB(figures)(it->heap, figures));
}
