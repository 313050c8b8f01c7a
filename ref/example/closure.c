/*
 * Fills a stub page with closures and calls the last one: its record names the function that answers.
 *
 * Exits 0 if the call arrived with its argument and came back with the answer.
 */
#include <execmem/stub_page.h>

#include <port.h>

/* linux/mman.h, which a build without a sysroot has not; the same on every port */
#define PROT_READ     1
#define PROT_WRITE    2
#define PROT_EXEC     4
#define MAP_PRIVATE   0x02
#define MAP_ANONYMOUS 0x20

/* asm/<port>.S */
extern const unsigned char execmem_closure_begin[], execmem_closure_end[], execmem_closure_pitch[];

/* Patch sites of the template, from port.toml, and one of no width, which is not counted: an array has an element. */
static const struct execmem_patch patches[] = {
#include "closure.inc"
	{0, 0},
};

struct record {
	uintptr_t data, target;
};

_Static_assert(offsetof(struct record, data) == EXECMEM_CLOSURE_DATA, "the record's first field");
_Static_assert(offsetof(struct record, target) == EXECMEM_CLOSURE_TARGET, "the record's second field");

static uintptr_t answer(uintptr_t question)
{
	return question + 1;
}

int execmem_main(int argc, char **argv, char **envp, const uintptr_t *auxv)
{
	const size_t stub_page = EXAMPLE_STUB_PAGE;
	const struct execmem_template closure = {
		.code = execmem_closure_begin,
		.code_end = execmem_closure_end,
		.pitch = (uint32_t)(uintptr_t)execmem_closure_pitch, /* an absolute symbol */
		.patches = patches,
		.patch_count = sizeof(patches) / sizeof(patches[0]) - 1,
	};
	const size_t last = (stub_page / closure.pitch - 1) * closure.pitch;
	unsigned char *code;
	struct record *record;

	(void)argc;
	(void)argv;
	(void)envp;
	(void)auxv;
	code = execmem_port_map(NULL, 2 * stub_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (execmem_port_is_error(code))
		return 1;
	if (execmem_stub_page_fill(&closure, (execmem_rw){code}, (execmem_rx){(uintptr_t)code}, stub_page))
		return 2;
	if (execmem_port_protect(code, stub_page, PROT_READ | PROT_EXEC))
		return 3;
	execmem_port_sync_code(code, stub_page);

	record = (struct record *)(void *)(code + stub_page + last);
	record->data = 0;
	record->target = (uintptr_t)answer;
	return ((uintptr_t (*)(uintptr_t))(code + last))(41) == 42 ? 0 : 4;
}
