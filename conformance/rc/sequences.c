/*
 * The cache against the model of model.h, on random sequences: four looks at the same operations.
 */
#include "check.h"
#include "play.h"

CHECK(rc_order, "RC-002",
      "on random sequences, the writable mappings alive are those of the model, for every cache size")
{
	play_random(PLAY_CONTENTS);
}

CHECK(rc_counters, "RC-006", "on random sequences, the counters are the model's, for every cache size")
{
	play_random(PLAY_COUNTERS);
}

CHECK(rc_steps, "RC-007", "on random sequences, a search looks at as many mappings as the model's")
{
	play_random(PLAY_STEPS);
}

CHECK(rc_bytes, "RC-011", "on random sequences, each byte of a view is the byte at its executable address")
{
	play_random(PLAY_BYTES);
}
