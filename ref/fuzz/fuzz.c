/*
 * What libFuzzer calls. EXECMEM_FUZZ_CALLS in the environment: the program ends, with status 0, after so many calls.
 * ref/fuzz/run sets it.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <inttypes.h>
#include <unistd.h>

#include "../tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static uint64_t made, wanted, runs;

	if (!watch.abort) {
		const char *text = getenv("EXECMEM_FUZZ_CALLS");

		watch.abort = true;
		wanted = text ? strtoull(text, NULL, 0) : UINT64_MAX;
		/* What is mapped once and stays must not be in the way of a later run alone. */
		watch_place_alike();
		fuzz_play((const uint8_t *)"", 0);
	}
	watch_place_alike();
	made += fuzz_play(bytes, count);
	runs++;
	if (made < wanted)
		return 0;
	fprintf(stderr, "fuzz: %" PRIu64 " calls in %" PRIu64 " runs\n", made, runs);
	/* exit would be taken for a crash of the target. */
	_exit(0);
}
