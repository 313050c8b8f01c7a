/*
 * What the files of page release share.
 */
#ifndef EXECMEM_INTERNAL_RELEASE_H
#define EXECMEM_INTERNAL_RELEASE_H

#include <execmem/release.h>

/* A run of pages of an area: in a file at once, collected otherwise. *done as execmem_release_private; 1 for a file. */
EXECMEM_MUST_CHECK int execmem_release_run(struct execmem_releaser *releaser,
					   const struct execmem_release_layout *layout,
					   const struct execmem_release_area *area, size_t page, size_t count,
					   size_t *done);

#endif
