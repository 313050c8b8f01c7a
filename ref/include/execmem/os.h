/*
 * The system as libexecmem sees it: one table of operations, given at creation.
 *
 * Every entry takes the table's own `context` first. Unless it says otherwise an entry returns 0 or a negative errno,
 * leaves its outputs untouched on an error, and may be called from any thread. Addresses, lengths and file offsets that
 * the library passes are multiples of what page_size answers. The library never asks for WRITE and EXECUTE together.
 */
#ifndef EXECMEM_OS_H
#define EXECMEM_OS_H

#include <stddef.h>
#include <stdint.h>

#include <execmem/error.h>

/* Protections. EXECMEM_PADS asks for landing-pad enforcement; without effect where a port has none. */
#define EXECMEM_NONE        0u
#define EXECMEM_READ        1u
#define EXECMEM_WRITE       2u
#define EXECMEM_EXECUTE     4u
#define EXECMEM_PADS        8u

/* `file` of map and map_fixed: private anonymous memory instead of a file. */
#define EXECMEM_NO_FILE     (-1)

/* Seals of a memory file (fcntl(2), F_ADD_SEALS). */
#define EXECMEM_SEAL_SEAL   1u
#define EXECMEM_SEAL_SHRINK 2u
#define EXECMEM_SEAL_GROW   4u
#define EXECMEM_SEAL_WRITE  8u

enum execmem_limit {
	EXECMEM_LIMIT_FILE_BYTES,    /* RLIMIT_FSIZE; `used` is 0 */
	EXECMEM_LIMIT_ADDRESS_BYTES, /* RLIMIT_AS */
	EXECMEM_LIMIT_MAPPINGS       /* vm.max_map_count */
};

#define EXECMEM_UNLIMITED UINT64_MAX

struct execmem_usage {
	uint64_t used, limit; /* limit: EXECMEM_UNLIMITED where there is none */
};

/* A range of addresses for discard_many: the layout of struct iovec. */
struct execmem_span {
	void *address;
	size_t bytes;
};

struct execmem_os {
	void *context;

	/* Bytes in a page: a power of two, the same at every call. Never fails. */
	size_t (*page_size)(void *context);

	/*
	 * Maps `bytes` bytes where the system likes, `hint` (may be null) being a wish that may be ignored: callers
	 * look at *address. With EXECMEM_NO_FILE the memory is private, zero, and not reserved in advance; with a file
	 * it is shared, from `offset` on.
	 */
	int (*map)(void *context, void *hint, size_t bytes, unsigned protection, int file, uint64_t offset,
		   void **address);
	/* The same, at `address` exactly, replacing in one step whatever is mapped there. */
	int (*map_fixed)(void *context, void *address, size_t bytes, unsigned protection, int file, uint64_t offset);
	/* mprotect. Only for protection toggling. */
	int (*protect)(void *context, void *address, size_t bytes, unsigned protection);
	int (*unmap)(void *context, void *address, size_t bytes);

	/* Gives the pages of private memory back; they read as zero afterwards. */
	int (*discard)(void *context, void *address, size_t bytes);
	/*
	 * The same for many ranges in few calls. *done is how many spans, from the first on, are certainly discarded;
	 * written on an error as well. -ENOSYS where the system cannot.
	 */
	int (*discard_many)(void *context, const struct execmem_span *spans, size_t count, size_t *done);

	/*
	 * A new memory file of no bytes, closed on exec, that may be sealed. `executable`: ask for the right to map it
	 * executable where the system has such a flag (-EINVAL where it does not know it).
	 */
	int (*file_create)(void *context, const char *name, int executable, int *file);
	/* Makes the file `bytes` bytes long. Not called beyond EXECMEM_LIMIT_FILE_BYTES: the kernel would signal. */
	int (*file_grow)(void *context, int file, uint64_t bytes);
	int (*file_seal)(void *context, int file, unsigned seals);
	/* Gives the blocks of whole pages back; they read as zero afterwards. */
	int (*file_punch)(void *context, int file, uint64_t offset, uint64_t bytes);
	int (*file_close)(void *context, int file);

	int (*limit)(void *context, enum execmem_limit which, struct execmem_usage *usage);

	/* Names private memory in /proc/self/maps. A refusal is ignored, and not asked again. */
	int (*name)(void *context, void *address, size_t bytes, const char *name);

	/* Makes code visible to instruction fetch, as execmem_port_sync_code; `address` is the executable one. */
	int (*sync_code)(void *context, const void *address, size_t bytes);
	/* On return every thread of the process has passed a context-synchronising event since the call. */
	int (*serialize)(void *context);
	/*
	 * For the emulation probe: writes to `code` (64 bytes) a function without arguments that returns `value`
	 * (0 to 255), and sets *bytes; and calls such a function at an executable address.
	 */
	int (*probe_code)(void *context, unsigned value, unsigned char *code, size_t *bytes);
	unsigned (*probe_run)(void *context, const void *code);

	/* Sleeps while *word is `value`; may return early for no reason. Never fails. */
	void (*wait)(void *context, const uint32_t *word, uint32_t value);
	/* Wakes at most `count` threads that wait for `word`. Never fails. */
	void (*wake)(void *context, const uint32_t *word, unsigned count);

	/* A number that differs between this process and its forks. */
	int (*identity)(void *context, uint64_t *identity);
	/*
	 * From now on, a fork sees zeros in this private memory. Only 0 where the system really does it (an emulator
	 * may only say so): -ENOSYS otherwise, and `identity` is asked at each call instead.
	 */
	int (*wipe_on_fork)(void *context, void *address, size_t bytes);

	/* Writes text to standard error. */
	int (*write)(void *context, const char *text, size_t bytes);
};

/* The name of the first entry of the table that is null, or null where none is. Any thread. */
const char *execmem_os_missing(const struct execmem_os *os);

/*
 * The table of raw Linux system calls over arch/port.h. `page_bytes` is AT_PAGESZ of the program's start (0 is refused
 * by execmem_create); `context` of the result holds that number and points at nothing. Any thread.
 */
struct execmem_os execmem_os_linux(size_t page_bytes);

#endif
