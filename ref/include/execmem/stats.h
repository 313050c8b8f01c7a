/*
 * Statistics of an allocator.
 */
#ifndef EXECMEM_STATS_H
#define EXECMEM_STATS_H

#include <execmem/allocator.h>

/*
 * X(name, text). Counters never wrap (64 bits) and count since creation; gauges say what is so now. Counted under the
 * lock that also guards what they describe, a region's under the region's, so that 32-bit ports neither tear nor lose
 * one; execmem_stats takes those locks one after the other.
 */
#define EXECMEM_COUNTERS(X)                                                                                            \
	X(reserves, "regions reserved")                                                                                \
	X(releases, "regions released")                                                                                \
	X(commits, "commit calls")                                                                                     \
	X(decommits, "decommit calls")                                                                                 \
	X(rx_maps, "executable mappings made")                                                                         \
	X(rw_maps, "writable mappings made")                                                                           \
	X(rw_unmaps, "writable mappings unmapped")                                                                     \
	X(hits, "views served by a mapping that was there")                                                            \
	X(misses, "views that needed a mapping")                                                                       \
	X(bypasses, "single-use views")                                                                                \
	X(evictions, "cached mappings unmapped for another")                                                           \
	X(steps, "mappings looked at while searching")                                                                 \
	X(publishes, "publish calls")                                                                                  \
	X(remaps, "executable pages mapped anew for an emulator, ranges")                                              \
	X(probes, "places tried for regions near a target")

#define EXECMEM_GAUGES(X)                                                                                              \
	X(regions, "regions")                                                                                          \
	X(reserved_bytes, "bytes of address space in them")                                                            \
	X(committed_bytes, "bytes committed")                                                                          \
	X(views_open, "views open")                                                                                    \
	X(views_mapped, "writable mappings alive")                                                                     \
	X(views_cached, "writable mappings in the cache")                                                              \
	X(file_bytes, "length of the memory file")                                                                     \
	X(file_used_bytes, "of which handed out")                                                                      \
	X(deferred_bytes, "bytes that the system would not take back so far")                                          \
	X(metadata_bytes, "bytes of address space mapped for bookkeeping, of which few are resident")

struct execmem_stats {
#define EXECMEM_STATS_FIELD(name_, text_) uint64_t name_;
	EXECMEM_COUNTERS(EXECMEM_STATS_FIELD)
	EXECMEM_GAUGES(EXECMEM_STATS_FIELD)
#undef EXECMEM_STATS_FIELD
};

/*
 * Reads all figures. Any thread; not from a signal handler.
 *
 * EXECMEM_ERROR_FORKED
 */
EXECMEM_MUST_CHECK int execmem_stats(struct execmem_allocator *allocator, struct execmem_stats *stats);

/*
 * Writes them to standard error in one piece, a line each: "execmem: hits 12  views served by ...".
 *
 * EXECMEM_ERROR_FORKED, or a negative errno
 */
EXECMEM_MUST_CHECK int execmem_stats_dump(struct execmem_allocator *allocator);

#endif
