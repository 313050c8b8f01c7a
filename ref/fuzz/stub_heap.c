/*
 * The stub heap: the bytes choose the sizes of pages and the steps (ref/tests/stub_model.h).
 */
#include "fuzz.h"

#include "../tests/stub_model.h"

unsigned long fuzz_play(const uint8_t *bytes, size_t count)
{
	static struct sequence sequence;

	sequence_read(&sequence, bytes, count, STUB_MODEL_STEPS);
	stub_model_play(&sequence);
	return sequence.count;
}
