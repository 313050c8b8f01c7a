/*
 * Page release: the bytes choose how blocks lie on pages, and which come, go and are given back
 * (ref/tests/release_naive.h).
 */
#include "fuzz.h"

#include <string.h>

#include "../tests/release_naive.h"

unsigned long fuzz_play(const uint8_t *bytes, size_t count)
{
	static struct release_sequence sequence;
	struct release_failure failure;
	uint64_t seed = 0, released = 0;
	size_t head = count < sizeof(seed) ? count : sizeof(seed);

	memcpy(&seed, bytes, head);
	release_make(&sequence, seed, bytes + head, count - head);
	failure = release_play(&sequence, &released);
	if (failure.line) {
		fprintf(stderr, "release_naive.c:%d: %s, step %zu\n", failure.line, failure.what, failure.step);
		abort();
	}
	return sequence.count;
}
