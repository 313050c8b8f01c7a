/*
 * The code heap: the bytes choose its configuration and the steps (ref/tests/code_model.h).
 */
#include "fuzz.h"

#include "../tests/code_model.h"

unsigned long fuzz_play(const uint8_t *bytes, size_t count)
{
	static struct sequence sequence;

	sequence_read(&sequence, bytes, count, CODE_MODEL_STEPS);
	code_model_play(&sequence);
	return sequence.count;
}
