/*
 * Whether the system shows rewritten code: found out once, and what is kept where it does not.
 *
 * An emulator translates code when it first runs. qemu-user notices stores through the address that the code runs at,
 * but not those through another mapping of the same file, so that it goes on running the old translation.
 */
#include "allocator.h"
#include "linux_errno.h"

#define GRANULE      ((size_t)1 << EXECMEM_GRANULE_SHIFT)
#define PROBE_CODE   64
#define PROBE_FIRST  41
#define PROBE_SECOND 42

bool execmem_emulation(const struct execmem_allocator *allocator)
{
	return __atomic_load_n(&allocator->emulation, __ATOMIC_RELAXED);
}

void execmem_set_emulation(struct execmem_allocator *allocator, bool on)
{
	__atomic_store_n(&allocator->emulation, on, __ATOMIC_RELAXED);
}

size_t execmem_published_bytes(size_t bytes)
{
	return bytes / GRANULE / 8;
}

bool execmem_published_set(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	bool before = false;

	if (!record->published)
		return true;
	for (size_t i = offset / GRANULE; i <= (offset + bytes - 1) / GRANULE; i++) {
		unsigned char bit = (unsigned char)(1u << (i % 8));

		before |= (record->published[i / 8] & bit) != 0;
		record->published[i / 8] |= bit;
	}
	return before;
}

void execmem_published_clear(struct execmem_region_record *record, size_t offset, size_t bytes)
{
	if (!record->published)
		return;
	/* Whole pages: whole bytes of the table. */
	for (size_t i = offset / GRANULE / 8; i < (offset + bytes) / GRANULE / 8; i++)
		record->published[i] = 0;
}

/* The two views of the probe. */
struct probe {
	struct execmem_allocator *allocator;
	unsigned char *rw;
	void *rx;
	const char *call; /* the operation that failed */
};

/* Writes, synchronises and runs a function that returns `value`. */
static int run(struct probe *probe, unsigned value, unsigned *returned)
{
	const struct execmem_os *os = &probe->allocator->os;
	unsigned char code[PROBE_CODE];
	size_t bytes;
	int error;

	probe->call = "probe_code";
	error = os->probe_code(os->context, value, code, &bytes);
	if (error)
		return error;
	for (size_t i = 0; i < bytes; i++)
		probe->rw[i] = code[i];
	probe->call = "sync_code";
	error = os->sync_code(os->context, probe->rx, bytes);
	if (!error)
		*returned = os->probe_run(os->context, probe->rx);
	return error;
}

static int run_twice(struct probe *probe, bool *stale, bool *wrong)
{
	unsigned first, second;
	int error = run(probe, PROBE_FIRST, &first);

	if (!error)
		error = run(probe, PROBE_SECOND, &second);
	if (error)
		return error;
	*stale = second == PROBE_FIRST;
	*wrong = first != PROBE_FIRST || (second != PROBE_FIRST && second != PROBE_SECOND);
	return 0;
}

/* Unmaps a view; a refusal is an error, unless there is one already, but is not taken for an answer. */
static void undo(struct probe *probe, void *address, int *error)
{
	const struct execmem_os *os = &probe->allocator->os;
	int refused = os->unmap(os->context, address, probe->allocator->page_bytes);

	if (!refused)
		return;
	(void)os->unmap(os->context, address, probe->allocator->page_bytes);
	if (!*error) {
		probe->call = "unmap";
		*error = refused;
	}
}

static void note(struct execmem_refusals *refusals, const char *call, int error)
{
	if (refusals->count < EXECMEM_REFUSALS_MAX)
		refusals->list[refusals->count++] = (struct execmem_refusal){"double mapping", call, -error};
}

int execmem_probe_double(struct execmem_allocator *allocator, bool run_code, bool *stale,
			 struct execmem_refusals *refusals)
{
	const struct execmem_os *os = &allocator->os;
	struct probe probe = {.allocator = allocator, .call = "map"};
	size_t bytes = allocator->page_bytes;
	uint32_t unit, count;
	uint64_t at;
	void *rw = NULL;
	bool wrong = false;
	int error;

	error = execmem_file_take(allocator, 1, &unit, &count);
	if (error) {
		note(refusals, allocator->refusal.call, -allocator->refusal.error);
		return error;
	}
	at = (uint64_t)unit * EXECMEM_UNIT_BYTES;
	error = os->map(os->context, NULL, bytes, allocator->executable, allocator->file.file, at, &probe.rx);
	if (!error) {
		error = os->map(os->context, NULL, bytes, EXECMEM_READ | EXECMEM_WRITE, allocator->file.file, at, &rw);
		if (!error) {
			probe.rw = rw;
			if (run_code)
				error = run_twice(&probe, stale, &wrong);
			undo(&probe, rw, &error);
		}
		undo(&probe, probe.rx, &error);
	}
	execmem_file_give(allocator, unit, 1);
	if (error) {
		note(refusals, probe.call, error);
		return execmem_refuse(allocator, probe.call, error, bytes);
	}
	return wrong ? EXECMEM_ERROR_SYNC : 0;
}
