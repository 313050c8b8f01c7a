/*
 * Writable views: how code is written.
 *
 * A view is opened over a range of committed bytes, written through view.rw, published, and closed. Where the backend
 * maps twice, the mapping made for it covers whole windows and is kept for the next writer: the allocator caches as
 * many as configured, most recent first, and unmaps the least recent that nobody has open. Where the backend toggles,
 * the pages are not executable while the view is open.
 *
 * Threads: any call from any thread, except that one view must not be closed while it is used. Hits take the lock of
 * their region alone, so that threads in different regions do not wait for each other. Recency is exact for
 * one thread; where several hit in turn, a view may keep its place for up to 64 hits.
 */
#ifndef EXECMEM_RWCACHE_H
#define EXECMEM_RWCACHE_H

#include <execmem/allocator.h>

struct execmem_view_handle;

/* An open view. Copies are the same view: closing one closes all. */
struct execmem_view {
	execmem_rw rw; /* where to write */
	execmem_rx rx; /* where it runs */
	size_t bytes;
	struct execmem_view_handle *handle;
	uintptr_t generation;
};

/* Flags of execmem_map_rw. */
#define EXECMEM_MAP_SINGLE_USE 1u /* written once: a mapping of its own, of the pages asked for, never cached */

/*
 * Opens a view of `bytes` bytes at the executable address `rx`; no alignment is asked.
 *
 * EXECMEM_ERROR_ARGUMENT       bytes is 0 or wraps; an unknown flag
 * EXECMEM_ERROR_NOT_FOUND      rx belongs to no region
 * EXECMEM_ERROR_OUTSIDE        the range leaves its region
 * EXECMEM_ERROR_NOT_COMMITTED  a page of it is not committed
 * EXECMEM_ERROR_BUSY           toggling only: an open view covers a part of its pages
 * EXECMEM_ERROR_ADDRESS_SPACE, _MAPPING_COUNT, or a negative errno   the system refuses a mapping, or to unmap the view
 *                              that would be evicted
 * EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_map_rw(struct execmem_allocator *allocator, execmem_rx rx, size_t bytes, unsigned flags,
				      struct execmem_view *view);

/*
 * Closes a view. Afterwards view->rw is null, and no copy of the view works any more. What was written is in place, but
 * may only be run where it was published.
 *
 * EXECMEM_ERROR_NOT_OPEN  the view is closed already
 * EXECMEM_ERROR_MAPPING_COUNT, or a negative errno   the system refuses to unmap, or to make executable again (a
 *                         toggling allocator under PR_SET_MDWE would meet that at creation); the view is still open
 * EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_unmap_rw(struct execmem_view *view);

/* A range of a view, in bytes. */
struct execmem_range {
	size_t offset, bytes;
};

/* Flags of the publishing functions. */
/*
 * Return only when every thread has passed a context-synchronising event (membarrier(2)): needed on a weakly ordered
 * port where another thread may already be running into code that is replaced.
 */
#define EXECMEM_PUBLISH_SERIALIZE 1u

/*
 * Makes [offset, offset + bytes) of an open view, as written so far by the calling thread, visible to instruction
 * fetch: synchronises exactly these bytes, once, at their executable address. Under an emulator that would go on
 * running what these bytes held before, maps their pages anew in place (execmem_emulation), which does not disturb
 * threads that run there.
 *
 * Order: the bytes are visible to a thread that learns of them through a store that the publisher made after the call
 * with release semantics, and that the thread reads with acquire semantics; a thread of a weakly ordered port that may
 * have fetched the old bytes needs EXECMEM_PUBLISH_SERIALIZE, or a context-synchronising event of its own.
 *
 * EXECMEM_ERROR_ARGUMENT     bytes is 0, or an unknown flag
 * EXECMEM_ERROR_OUTSIDE      not inside the view
 * EXECMEM_ERROR_NOT_OPEN     the view is closed
 * EXECMEM_ERROR_SYNC         the system refuses to synchronise
 * EXECMEM_ERROR_UNSUPPORTED  it cannot serialise threads
 * EXECMEM_ERROR_MAPPING_COUNT, or a negative errno   it refuses to map the pages anew
 *                            after these the bytes are written, but a thread may see old ones; to be called again
 * EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_publish(const struct execmem_view *view, size_t offset, size_t bytes, unsigned flags);

/*
 * The same for several writes as one: all ranges are checked before anything is done. A range that starts where the
 * one before it ends, or inside it, is synchronised together with it. Errors as execmem_publish; count 0 is
 * EXECMEM_ERROR_ARGUMENT.
 */
EXECMEM_MUST_CHECK int execmem_publish_many(const struct execmem_view *view, const struct execmem_range *ranges,
					    size_t count, unsigned flags);

/*
 * Map, copy, publish and unmap in one. Errors are those of the four. After an error of publishing the bytes may be
 * written, and nothing is left open. Where the system refuses to close twice in a row, the error is that of closing,
 * and the view stays open for ever: its region cannot be released.
 */
EXECMEM_MUST_CHECK int execmem_write(struct execmem_allocator *allocator, execmem_rx rx, const void *code, size_t bytes,
				     unsigned flags);

#endif
