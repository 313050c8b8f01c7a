/*
 * libFuzzer target over the whole API: the bytes choose the calls, their arguments, and which system calls are refused;
 * the model (ref/tests/model.h) says what must come of them.
 *
 * EXECMEM_FUZZ_CALLS in the environment: the program ends, with status 0, after so many calls. ref/fuzz/run sets it.
 */
#define _GNU_SOURCE
#include "../tests/model.h"

#include <inttypes.h>
#include <unistd.h>

#define CALLS_A_RUN 2000 /* random ones, where the bytes do not reach: making an allocator takes long */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static uint64_t made, wanted, runs;
	struct model_input input = {.at = bytes, .end = bytes + count};

	if (!watch.abort) {
		const char *text = getenv("EXECMEM_FUZZ_CALLS");

		watch.abort = true;
		wanted = text ? strtoull(text, NULL, 0) : UINT64_MAX;
	}
	made += model_run(&input, CALLS_A_RUN);
	runs++;
	if (made < wanted)
		return 0;
	fprintf(stderr, "api: %" PRIu64 " calls in %" PRIu64 " runs\n", made, runs);
	/* exit would be taken for a crash of the target. */
	_exit(0);
}
