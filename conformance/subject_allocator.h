/*
 * The subject interface of executable-memory allocators: their operations, and the system as they may reach it.
 *
 * An allocator offers what it has. Every operation belongs to one claim, and a claim holds all of its operations; what
 * an allocator does not claim is not applicable to it, so that one that knows no fork, keeps no cache or cannot be led
 * over the suite's table is still judged by the rest.
 *
 * Operations return 0 or a negative number: a negative errno of the system, from -4095 to -1, or one of enum
 * subject_error. They leave their outputs untouched on an error.
 */
#ifndef SUBJECT_ALLOCATOR_H
#define SUBJECT_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What went wrong, where it was not a plain refusal of the system. An allocator that knows less has its adapter answer
 * the nearest; SUBJECT_ERROR_OTHER is never what a check expects.
 */
#define SUBJECT_ERRORS(X)                                                                                              \
	X(OTHER, -8001, "an error that the suite has no word for")                                                     \
	X(ARGUMENT, -8002, "an argument that is not allowed")                                                          \
	X(REFUSED, -8003, "every backend that is allowed is refused")                                                  \
	X(FILE_SIZE, -8004, "the file-size limit")                                                                     \
	X(ADDRESS_SPACE, -8005, "the address-space limit")                                                             \
	X(MAPPING_COUNT, -8006, "the limit on the number of mappings")                                                 \
	X(UNREACHABLE, -8007, "no room within reach of the target")                                                    \
	X(NOT_FOUND, -8008, "the address belongs to no region")                                                        \
	X(NOT_COMMITTED, -8009, "a page that is not committed")                                                        \
	X(COMMITTED, -8010, "a page that is committed already")                                                        \
	X(OUTSIDE, -8011, "the range leaves its region or view")                                                       \
	X(BUSY, -8012, "a view is open, or a region not released")                                                     \
	X(NOT_OPEN, -8013, "the view is not open")                                                                     \
	X(RELEASED, -8014, "the region was released before")                                                           \
	X(FORKED, -8015, "this process is a fork that has not said so")                                                \
	X(STATE, -8016, "not now")                                                                                     \
	X(SYNC, -8017, "the instruction cache could not be synchronised")                                              \
	X(UNSUPPORTED, -8018, "the system lacks a facility, or has a page size that is not known")                     \
	X(ENVIRONMENT, -8019, "an environment variable that is not understood")                                        \
	X(OPERATION, -8020, "the table of system operations lacks an entry")                                           \
	X(FULL, -8021, "the heap has no room, and may not grow")                                                       \
	X(INTERIOR, -8022, "the address lies inside, not at the beginning")                                            \
	X(FREED, -8023, "it was freed before, or never allocated")                                                     \
	X(PADDING, -8024, "the address lies in a page of stubs, but in no stub")

enum subject_error {
#define SUBJECT_ERROR_ENUM(name_, number_, text_) SUBJECT_ERROR_##name_ = (number_),
	SUBJECT_ERRORS(SUBJECT_ERROR_ENUM)
#undef SUBJECT_ERROR_ENUM
};

/* ---- The system, as an allocator reaches it (claim "os-table") ---- */

#define SUBJECT_NONE        0u
#define SUBJECT_READ        1u
#define SUBJECT_WRITE       2u
#define SUBJECT_EXECUTE     4u
#define SUBJECT_PADS        8u /* landing-pad enforcement; without effect where the port has none */

#define SUBJECT_NO_FILE     (-1) /* private anonymous memory */

#define SUBJECT_SEAL_SEAL   1u
#define SUBJECT_SEAL_SHRINK 2u
#define SUBJECT_SEAL_GROW   4u
#define SUBJECT_SEAL_WRITE  8u

enum subject_limit {
	SUBJECT_LIMIT_FILE_BYTES,    /* of one file; `used` is 0 */
	SUBJECT_LIMIT_ADDRESS_BYTES, /* of the process */
	SUBJECT_LIMIT_MAPPINGS       /* of the process */
};
#define SUBJECT_UNLIMITED UINT64_MAX

struct subject_span {
	void *address;
	size_t bytes;
};

/*
 * The suite's table. Entries return 0 or a negative errno and leave their outputs untouched on an error, unless they
 * say otherwise; any thread may call them. Addresses, lengths and file offsets must be multiples of what page_size
 * answers, which the suite may choose: it checks that, records and models every call, and may refuse any.
 */
struct subject_os {
	void *context;                      /* the first argument of every entry */
	size_t (*page_size)(void *context); /* bytes; a power of two, the same at every call */
	int (*map)(void *context, void *hint, size_t bytes, unsigned protection, int file, uint64_t offset,
		   void **address); /* where the system likes; shared where there is a file */
	int (*map_fixed)(void *context, void *address, size_t bytes, unsigned protection, int file,
			 uint64_t offset); /* exactly there, replacing what is mapped, in one step */
	int (*protect)(void *context, void *address, size_t bytes, unsigned protection);
	int (*unmap)(void *context, void *address, size_t bytes);
	int (*discard)(void *context, void *address, size_t bytes); /* private pages; they read as zero afterwards */
	/* *done: how many spans, from the first on, are discarded; written on an error as well. -ENOSYS: cannot. */
	int (*discard_many)(void *context, const struct subject_span *spans, size_t count, size_t *done);
	/* A memory file, closed on exec. `executable`: ask for the right to map it executable; -EINVAL: no such flag.
	 */
	int (*file_create)(void *context, const char *name, int executable, int *file);
	int (*file_grow)(void *context, int file, uint64_t bytes); /* to this length */
	int (*file_seal)(void *context, int file, unsigned seals);
	int (*file_punch)(void *context, int file, uint64_t offset, uint64_t bytes); /* reads as zero afterwards */
	int (*file_close)(void *context, int file);
	int (*limit)(void *context, unsigned which, uint64_t *used, uint64_t *limit);
	int (*name)(void *context, void *address, size_t bytes, const char *name);
	int (*sync_code)(void *context, const void *address, size_t bytes); /* at the executable address */
	int (*serialize)(void *context); /* every thread passes a context-synchronising event; -ENOSYS: cannot */
	/* A function of at most 64 bytes that returns `value` (0 to 255), and a call of one. */
	int (*probe_code)(void *context, unsigned value, unsigned char *code, size_t *bytes);
	unsigned (*probe_run)(void *context, const void *code);
	void (*wait)(void *context, const uint32_t *word, uint32_t value);
	void (*wake)(void *context, const uint32_t *word, unsigned count);
	int (*identity)(void *context, uint64_t *process);
	int (*wipe_on_fork)(void *context, void *address, size_t bytes); /* 0 only where the system really does it */
	int (*write)(void *context, const char *text, size_t bytes);     /* to standard error */
};

/* ---- What is asked of an allocator, and what it answers ---- */

struct subject_allocator; /* the subject's own */

enum subject_backend {
	SUBJECT_BACKEND_END,    /* ends an order */
	SUBJECT_BACKEND_DOUBLE, /* one memory, mapped executable and, elsewhere, writable */
	SUBJECT_BACKEND_TOGGLE  /* one mapping, whose protection changes while it is written */
};

enum subject_emulation { SUBJECT_EMULATION_PROBE, SUBJECT_EMULATION_ON, SUBJECT_EMULATION_OFF };

/* The environment variable that replaces rw_cache (claim "rw-cache"). */
#define SUBJECT_RW_CACHE_VARIABLE "EXECMEM_RW_CACHE"
#define SUBJECT_RW_CACHE_OWN      (~0u) /* rw_cache: what the allocator takes by itself */

/* What an allocator does not claim it may ignore. alloc_config() in alloc/alloc.h gives the defaults. */
struct subject_config {
	enum subject_backend backends[3]; /* tried in this order */
	size_t window_bytes;              /* of a cached writable mapping; 0: what the allocator takes by itself */
	unsigned rw_cache;                /* cached writable mappings, 0 to 16 */
	bool keep_order;                  /* no move to front */
	size_t grow_bytes;                /* step of the memory file: a multiple of 64 KiB */
	enum subject_emulation emulation;
	char *const *environment; /* null-terminated, or null */
};

/* A call that the system refused. Strings are static; `call` is the name of an entry of struct subject_os. */
struct subject_refusal {
	const char *backend; /* "double mapping", "protection toggling", or "" where none was being chosen */
	const char *call;
	int error; /* errno, positive */
};
#define SUBJECT_REFUSALS_MOST 12
struct subject_refusals {
	unsigned count;
	struct subject_refusal list[SUBJECT_REFUSALS_MOST];
};

/* By value; copies are equal. `own` is the subject's. */
struct subject_region {
	uintptr_t rx; /* the first byte */
	size_t bytes; /* at least what was asked for */
	uintptr_t own[2];
};

struct subject_view {
	unsigned char *rw; /* where to write */
	uintptr_t rx;      /* where it runs */
	size_t bytes;
	uintptr_t own[2];
};

struct subject_range {
	size_t offset, bytes;
};

struct subject_found {
	uintptr_t start;
	size_t bytes;
	void *owner;
	unsigned kind;
};

/* Counters since creation, and what is so now. */
struct subject_stats {
	uint64_t reserves, releases, commits, decommits, publishes, probes;
	uint64_t regions, reserved_bytes, committed_bytes, views_open, views_mapped, views_cached;
	uint64_t file_bytes, file_used_bytes, deferred_bytes, metadata_bytes;
};

struct subject_cache {
	uint64_t maps, unmaps; /* writable mappings made and unmapped */
	uint64_t hits, misses; /* views served by a mapping that was there, and those that needed one */
	uint64_t bypasses;     /* single-use views */
	uint64_t evictions;    /* cached mappings unmapped for another */
	uint64_t steps;        /* mappings looked at while searching */
	uint64_t remaps;       /* executable ranges mapped anew for an emulator */
};

#define SUBJECT_OPEN_SINGLE_USE   1u /* of open: written once, never cached */
#define SUBJECT_PUBLISH_SERIALIZE 1u /* of publish: return when every thread sees it */

struct subject_allocator_operations {
	/* Claim "allocator". `refusals` is never null; filled, in order, on success as well. */
	int (*create)(const struct subject_config *config, struct subject_allocator **allocator,
		      struct subject_refusals *refusals);
	int (*destroy)(struct subject_allocator *allocator);
	int (*reserve)(struct subject_allocator *allocator, size_t bytes, struct subject_region *region);
	int (*release)(const struct subject_region *region);
	int (*commit)(const struct subject_region *region, size_t offset, size_t bytes); /* zero, executable */
	int (*decommit)(const struct subject_region *region, size_t offset, size_t bytes);
	int (*open)(struct subject_allocator *allocator, uintptr_t rx, size_t bytes, unsigned flags,
		    struct subject_view *view);
	int (*publish)(const struct subject_view *view, size_t offset, size_t bytes, unsigned flags);
	int (*close)(struct subject_view *view);

	/* Claim "os-table": as create, reaching the system through `os` alone. It outlives the allocator. */
	int (*create_over)(const struct subject_os *os, const struct subject_config *config,
			   struct subject_allocator **allocator, struct subject_refusals *refusals);

	/* Claim "backends". */
	enum subject_backend (*backend)(struct subject_allocator *allocator);
	/* Claim "refusals": the call that the system refused last; zeroed strings and error where none. */
	void (*last_refusal)(struct subject_allocator *allocator, struct subject_refusal *refusal);
	/* Claim "near": every byte at most `reach` bytes from `target`. */
	int (*reserve_near)(struct subject_allocator *allocator, size_t bytes, uintptr_t target, size_t reach,
			    struct subject_region *region);
	/* Claim "lookup": as reserve, with what lookup answers for the region's addresses. */
	int (*reserve_kind)(struct subject_allocator *allocator, size_t bytes, unsigned kind, void *owner,
			    struct subject_region *region);
	int (*lookup)(struct subject_allocator *allocator, const void *address, struct subject_found *found);
	/* Claim "publish-many": several writes as one; and open, copy, publish, close as one. */
	int (*publish_many)(const struct subject_view *view, const struct subject_range *ranges, size_t count,
			    unsigned flags);
	int (*write)(struct subject_allocator *allocator, uintptr_t rx, const void *code, size_t bytes, unsigned flags);
	/* Claim "rw-cache". */
	int (*cache)(struct subject_allocator *allocator, struct subject_cache *cache);
	/* Claim "stats"; dump writes a text of them to standard error. */
	int (*stats)(struct subject_allocator *allocator, struct subject_stats *stats);
	int (*dump)(struct subject_allocator *allocator);
	/* Claim "emulation": rewritten code is made visible to emulators that would run the old. */
	bool (*emulation)(struct subject_allocator *allocator);
	void (*set_emulation)(struct subject_allocator *allocator, bool on);
	/* Claim "fork": the shape of pthread_atfork(3). */
	int (*fork_prepare)(struct subject_allocator *allocator);
	int (*fork_parent)(struct subject_allocator *allocator);
	int (*fork_child)(struct subject_allocator *allocator);
};

/* X(operation, claim): every operation, once. */
#define SUBJECT_ALLOCATOR_CLAIMS(X)                                                                                    \
	X(create, "allocator")                                                                                         \
	X(destroy, "allocator")                                                                                        \
	X(reserve, "allocator")                                                                                        \
	X(release, "allocator")                                                                                        \
	X(commit, "allocator")                                                                                         \
	X(decommit, "allocator")                                                                                       \
	X(open, "allocator")                                                                                           \
	X(publish, "allocator")                                                                                        \
	X(close, "allocator")                                                                                          \
	X(create_over, "os-table")                                                                                     \
	X(backend, "backends")                                                                                         \
	X(last_refusal, "refusals")                                                                                    \
	X(reserve_near, "near")                                                                                        \
	X(reserve_kind, "lookup")                                                                                      \
	X(lookup, "lookup")                                                                                            \
	X(publish_many, "publish-many")                                                                                \
	X(write, "publish-many")                                                                                       \
	X(cache, "rw-cache")                                                                                           \
	X(stats, "stats")                                                                                              \
	X(dump, "stats")                                                                                               \
	X(emulation, "emulation")                                                                                      \
	X(set_emulation, "emulation")                                                                                  \
	X(fork_prepare, "fork")                                                                                        \
	X(fork_parent, "fork")                                                                                         \
	X(fork_child, "fork")

#endif
