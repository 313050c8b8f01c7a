#include "observe.h"

#include "../alloc/table.h"
#include "os.h"

struct observe observe;

static int see(const struct watch_call *call)
{
	if (call->kind == WATCH_SERIALIZE) {
		if (!observe.serializes++)
			observe.serialized_after = observe.count;
		return 0;
	}
	if (call->kind != WATCH_SYNC_CODE)
		return 0;
	if (observe.count < OBSERVE_SYNCS_MOST)
		observe.syncs[observe.count] = (struct observe_sync){call->address, (size_t)call->bytes, space_views()};
	observe.count++;
	for (size_t i = 0; observe.expected && i < call->bytes; i++) {
		const size_t place = call->address + i - observe.at;

		if (place < observe.bytes &&
		    *(const volatile unsigned char *)(call->address + i) != observe.expected[place])
			observe.early++;
	}
	return observe.count == observe.refuse_at ? -observe.refuse_with : 0;
}

void observe_begin(void)
{
	observe = (struct observe){.count = 0};
	watch.refuse = see;
}

bool observe_exactly(const struct observe_range *ranges, unsigned count)
{
	struct observe_sync sorted[OBSERVE_SYNCS_MOST] = {{0}};
	unsigned at = 0;

	if (!CHECK_TRUE(observe.count && observe.count <= OBSERVE_SYNCS_MOST, "what is published is synchronised"))
		return false;
	for (unsigned i = 0; i < observe.count; i++) {
		unsigned k = i;

		for (; k && sorted[k - 1].address > observe.syncs[i].address; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = observe.syncs[i];
	}
	for (unsigned r = 0; r < count; r++) {
		const uintptr_t end = ranges[r].address + ranges[r].bytes;
		uintptr_t next = ranges[r].address;

		check_note_number("range_at", next);
		check_note_number("range_bytes", ranges[r].bytes);
		for (; at < observe.count && next < end; at++) {
			if (!CHECK_EQUAL(next, sorted[at].address,
					 "a range is synchronised from its first byte on, at its executable address") ||
			    !CHECK_TRUE(sorted[at].bytes && sorted[at].bytes <= end - next,
					"nothing beyond a range is synchronised"))
				return false;
			next += sorted[at].bytes;
		}
		if (!CHECK_EQUAL(end, next, "a range is synchronised to its last byte"))
			return false;
	}
	return CHECK_EQUAL(at, observe.count, "each byte is synchronised once");
}

/* ---- Probes ---- */

/* Writes a function, synchronises and runs it. */
static unsigned run(unsigned char *rw, void *rx, unsigned value)
{
	unsigned char code[EXECMEM_PORT_PROBE_BYTES];
	const size_t bytes = execmem_port_probe_code(value, code);

	__builtin_memcpy(rw, code, bytes);
	execmem_port_sync_code(rx, bytes);
	return alloc_run((uintptr_t)rx);
}

static bool probe(void)
{
	void *rx, *rw;
	unsigned first, second;
	int file, error = table_real.file_create(NULL, "probe", 1, &file);

	if (error == -TABLE_EINVAL)
		error = table_real.file_create(NULL, "probe", 0, &file);
	if (!error)
		error = table_real.file_grow(NULL, file, check_os_page);
	if (!error)
		error = table_real.map(NULL, NULL, check_os_page, SUBJECT_READ | SUBJECT_EXECUTE, file, 0, &rx);
	if (!error)
		error = table_real.map(NULL, NULL, check_os_page, SUBJECT_READ | SUBJECT_WRITE, file, 0, &rw);
	if (error)
		check_broken("the probe for rewritten code is refused", error);
	first = run(rw, rx, 1);
	second = run(rw, rx, 2);
	os_unmap(rx, check_os_page);
	os_unmap(rw, check_os_page);
	(void)table_real.file_close(NULL, file);
	if (first != 1 || (second != 1 && second != 2))
		check_broken("code that was never executed does not run as written", (long)first);
	return second == 1;
}

bool observe_stale(void)
{
	static int known; /* 0: not yet */

	if (!known)
		known = probe() ? 1 : 2;
	return known == 1;
}

bool observe_serializes(void)
{
	static int known;

	if (!known)
		known = table_real.serialize(NULL) == 0 ? 1 : 2;
	return known == 1;
}
