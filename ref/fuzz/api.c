/*
 * The allocator: the bytes choose the calls, their arguments, and which system calls are refused (ref/tests/model.h).
 */
#include "fuzz.h"

#include "../tests/model.h"

#define CALLS 2000 /* random ones, where the bytes do not reach: making an allocator takes long */

unsigned long fuzz_play(const uint8_t *bytes, size_t count)
{
	struct model_input input = {.at = bytes, .end = bytes + count};

	return model_run(&input, CALLS);
}
