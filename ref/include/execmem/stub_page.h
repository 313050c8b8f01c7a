/*
 * Stub pages: a code page of one template repeated, whose records lie on a data page one stub page size above.
 *
 * Both functions keep no state: any thread, any signal handler.
 */
#ifndef EXECMEM_STUB_PAGE_H
#define EXECMEM_STUB_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include <execmem/error.h>
#include <execmem/view.h>

/* A word of a template that holds, in each slot, its own value plus the slot's executable address (x86). */
struct execmem_patch {
	uint32_t offset; /* bytes from the start of the slot, any alignment */
	uint8_t width;   /* bytes: 2, 4 or 8; the sum is cut to it */
};

struct execmem_template {
	const unsigned char *code, *code_end; /* code addresses without a mode bit */
	uint32_t pitch;                       /* bytes from slot to slot, at least code_end - code */
	const struct execmem_patch *patches;  /* null where there are none */
	unsigned patch_count;
};

/*
 * The stub page size to use under an OS page of `os_page` bytes, a power of two: what the port prefers, or the OS page
 * where that is larger, so that code and data never share an OS page.
 *
 * 0, or EXECMEM_ERROR_ARGUMENT, or EXECMEM_ERROR_STUB_PAGE_REACH where the port's templates do not reach that far;
 * *stub_page is then untouched.
 *
 * Source: dotnet/runtime #83632, GetStubCodePageSize.
 */
EXECMEM_MUST_CHECK int execmem_stub_page_size(size_t os_page, size_t *stub_page);

/*
 * Writes a code page of `stub_page` bytes through its RW view at `writable`, to run at `executable`: the template at
 * every multiple of its pitch that leaves room for a whole slot, and zeros wherever no template's code lies. The caller
 * makes it visible to instruction fetch before the first call (execmem_port_sync_code on the executable address).
 *
 * 0, or EXECMEM_ERROR_TEMPLATE_SIZE, and then nothing was written.
 */
EXECMEM_MUST_CHECK int execmem_stub_page_fill(const struct execmem_template *t, execmem_rw writable,
					      execmem_rx executable, size_t stub_page);

#endif
