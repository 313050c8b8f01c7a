#include <execmem/stub_page.h>

#include <port.h>

_Static_assert(EXECMEM_PORT_STUB_PAGE <= EXECMEM_PORT_STUB_PAGE_MOST, "the port prefers more than its templates reach");

int execmem_stub_page_size(size_t os_page, size_t *stub_page)
{
	const size_t size = os_page > EXECMEM_PORT_STUB_PAGE ? os_page : EXECMEM_PORT_STUB_PAGE;

	if (!os_page || (os_page & (os_page - 1)))
		return EXECMEM_ERROR_ARGUMENT;
	if (size > EXECMEM_PORT_STUB_PAGE_MOST)
		return EXECMEM_ERROR_STUB_PAGE_REACH;
	*stub_page = size;
	return 0;
}

static int fits(const struct execmem_template *t, size_t stub_page)
{
	const size_t code_bytes = (size_t)(t->code_end - t->code);

	if (!code_bytes || code_bytes > t->pitch || t->pitch > stub_page)
		return 0;
	for (unsigned i = 0; i < t->patch_count; i++) {
		const struct execmem_patch *patch = &t->patches[i];

		if ((patch->width != 2 && patch->width != 4 && patch->width != 8) || patch->width > code_bytes ||
		    patch->offset > code_bytes - patch->width)
			return 0;
	}
	return 1;
}

/* Adds `address` to the word at `at`, which may stand at any alignment. */
static void add_address(unsigned char *at, unsigned width, uintptr_t address)
{
	uint16_t half;
	uint32_t word;
	uint64_t quad;

	switch (width) {
	case 2:
		__builtin_memcpy(&half, at, sizeof(half));
		half = (uint16_t)(half + address);
		__builtin_memcpy(at, &half, sizeof(half));
		break;
	case 4:
		__builtin_memcpy(&word, at, sizeof(word));
		word += (uint32_t)address;
		__builtin_memcpy(at, &word, sizeof(word));
		break;
	default:
		__builtin_memcpy(&quad, at, sizeof(quad));
		quad += address;
		__builtin_memcpy(at, &quad, sizeof(quad));
	}
}

int execmem_stub_page_fill(const struct execmem_template *t, execmem_rw writable, execmem_rx executable,
			   size_t stub_page)
{
	const size_t code_bytes = (size_t)(t->code_end - t->code);
	size_t at = 0;

	if (!fits(t, stub_page))
		return EXECMEM_ERROR_TEMPLATE_SIZE;
	for (; stub_page - at >= t->pitch; at += t->pitch) {
		unsigned char *slot = writable.at + at;

		__builtin_memcpy(slot, t->code, code_bytes);
		__builtin_memset(slot + code_bytes, 0, t->pitch - code_bytes);
		for (unsigned i = 0; i < t->patch_count; i++)
			add_address(slot + t->patches[i].offset, t->patches[i].width, executable.at + at);
	}
	__builtin_memset(writable.at + at, 0, stub_page - at);
	return 0;
}
