/*
 * The stub heap: the bytes choose the sizes of pages and the steps (ref/tests/stub_model.h).
 */
#include "fuzz.h"

#include "../tests/stub_model.h"

#define INTERVAL 32 /* comparing everything takes much longer than a step */

unsigned long fuzz_play(const uint8_t *bytes, size_t count)
{
	static struct sequence sequence;

	sequence_read(&sequence, bytes, count, STUB_MODEL_STEPS);
	sequence_calls = 0;
	sequence_interval = INTERVAL;
	stub_model_play(&sequence);
	return sequence_calls;
}
