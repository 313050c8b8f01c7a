/*
 * The allocator: what regions, views and statistics belong to. Several may live in one process.
 */
#ifndef EXECMEM_ALLOCATOR_H
#define EXECMEM_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <execmem/error.h>
#include <execmem/os.h>
#include <execmem/view.h>

struct execmem_allocator;

/*
 * Bytes of the unit in which regions are reserved and the memory file is handed out: at least every page size that is
 * supported, so that an address leads to its region through one table whatever the page size is.
 */
#define EXECMEM_UNIT_BYTES           65536

#define EXECMEM_WINDOW_BYTES_MAX     16777216
#define EXECMEM_RW_CACHE_MAX         16
#define EXECMEM_RW_CACHE_DEFAULT     3 /* dotnet-83632 */
#define EXECMEM_GROW_BYTES_DEFAULT   4194304
#define EXECMEM_RW_CACHE_ENVIRONMENT "EXECMEM_RW_CACHE"

enum execmem_backend {
	EXECMEM_BACKEND_END, /* ends the order */
	/* A memory file mapped twice: executable at one address, writable at another while it is written. */
	EXECMEM_BACKEND_DOUBLE,
	/*
	 * Private memory whose protection goes from executable to writable and back while a view is open. Nobody may
	 * run code of those pages meanwhile: only for callers that can promise it.
	 */
	EXECMEM_BACKEND_TOGGLE
};

/* Whether code that replaces code already executed needs its pages to be mapped anew to be seen (qemu-user). */
enum execmem_emulation {
	EXECMEM_EMULATION_PROBE, /* find out at creation, by running a few instructions twice */
	EXECMEM_EMULATION_ON,
	EXECMEM_EMULATION_OFF
};

/* Which system call was refused, for which purpose, with which errno (positive). Strings are static. */
struct execmem_refusal {
	const char *backend; /* "double mapping", "protection toggling", or "" where no backend was being chosen */
	const char *call;    /* the name of the operation in struct execmem_os */
	int error;           /* errno, positive */
};

#define EXECMEM_REFUSALS_MAX 12

/* Every refusal met while a backend was chosen, in order. */
struct execmem_refusals {
	unsigned count; /* how many of list are filled; further ones are not kept */
	struct execmem_refusal list[EXECMEM_REFUSALS_MAX];
};

struct execmem_config {
	struct execmem_os os;             /* copied; its context must outlive the allocator */
	enum execmem_backend backends[3]; /* tried in this order, ended by EXECMEM_BACKEND_END */
	size_t window_bytes;              /* power of two, from the page size to EXECMEM_WINDOW_BYTES_MAX */
	unsigned rw_cache;                /* cached views: 0 to EXECMEM_RW_CACHE_MAX */
	bool keep_order;                  /* a cached view keeps its place when hit: no move to front */
	bool pads;                        /* executable pages ask for landing-pad enforcement */
	size_t grow_bytes;                /* the step in which the memory file grows: a multiple of the unit */
	enum execmem_emulation emulation;
	/*
	 * The environment of the program, null-terminated, or null for none. EXECMEM_RW_CACHE there, a decimal number
	 * from 0 to 16, replaces rw_cache.
	 */
	char *const *environment;
};

/* The defaults: double mapping alone, 64 KiB windows, three cached views, probed emulation, no environment. */
struct execmem_config execmem_config_default(struct execmem_os os);

/*
 * Makes an allocator. On success *allocator is to be given to execmem_destroy. `refusals` may be null; else it is
 * always filled: with every refused call, in order, also on success (of a backend passed over, or of a seal).
 *
 * EXECMEM_ERROR_ARGUMENT     a value outside the bounds of struct execmem_config, an empty or repeating backend order
 * EXECMEM_ERROR_OPERATION    the table lacks an entry; refusals names it as `call`, and so does standard error
 * EXECMEM_ERROR_ENVIRONMENT  EXECMEM_RW_CACHE is not understood; standard error says so
 * EXECMEM_ERROR_UNSUPPORTED  a page size that is no power of two from 4096 to EXECMEM_UNIT_BYTES
 * EXECMEM_ERROR_REFUSED      no backend of the order is possible; refusals has the reasons
 * EXECMEM_ERROR_SYNC         code just written and synchronised does not run as written (probed emulation only)
 * EXECMEM_ERROR_ADDRESS_SPACE, EXECMEM_ERROR_MAPPING_COUNT, or a negative errno
 *                            the allocator's own memory cannot be had
 * After an error nothing is left mapped or open.
 */
EXECMEM_MUST_CHECK int execmem_create(const struct execmem_config *config, struct execmem_allocator **allocator,
				      struct execmem_refusals *refusals);

/*
 * Frees the allocator. No other thread may be using it, or do so afterwards.
 *
 * EXECMEM_ERROR_BUSY    a region was not released; nothing is changed
 * EXECMEM_ERROR_FORKED  this process is a fork that has not called execmem_fork_child; nothing is changed
 * A negative errno      the system refused to take a mapping or the file back; the allocator can do nothing any more
 * but be destroyed by calling again
 */
EXECMEM_MUST_CHECK int execmem_destroy(struct execmem_allocator *allocator);

/* The backend in use. Any thread, signal handlers included. */
enum execmem_backend execmem_backend(const struct execmem_allocator *allocator);

/* Whether publishing over executed code maps its pages anew. Any thread, signal handlers included. */
bool execmem_emulation(const struct execmem_allocator *allocator);
/*
 * Turns that on or off, whatever was probed. Turned on late, code published before counts as executed. Never fails. Any
 * thread.
 */
void execmem_set_emulation(struct execmem_allocator *allocator, bool on);

/*
 * The system call that failed last in this allocator, in any thread; zeroed strings and error where none did. Any
 * thread.
 */
void execmem_last_refusal(struct execmem_allocator *allocator, struct execmem_refusal *refusal);

#endif
