/*
 * The code heap: the bytes choose its configuration and the steps (ref/tests/code_model.h).
 */
#include "fuzz.h"

#include "../tests/code_model.h"

#define INTERVAL 32 /* comparing everything takes much longer than a step */

unsigned long fuzz_play(const uint8_t *bytes, size_t count)
{
	static struct sequence sequence;

	sequence_read(&sequence, bytes, count, CODE_MODEL_STEPS);
	sequence_calls = 0;
	sequence_interval = INTERVAL;
	code_model_play(&sequence);
	return sequence_calls;
}
