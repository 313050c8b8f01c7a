/*
 * Random sequences of every call against the model (model.h). Arguments: number of sequences, seed of the first, calls
 * in each.
 */
#include "model.h"

int main(int argc, char **argv)
{
	uint64_t sequences = argc > 1 ? strtoull(argv[1], NULL, 0) : 60;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	uint64_t calls = argc > 3 ? strtoull(argv[3], NULL, 0) : 400, made = 0;
	unsigned long mappings = 0;

	for (uint64_t i = 0; i < sequences; i++) {
		struct model_input input = {.random = (seed + i) * 0x9e3779b97f4a7c15u + 1};

		test_seed = seed + i;
		made += model_run(&input, calls);
		if (i < 5)
			mappings = count_mappings();
		else
			EXPECT(count_mappings() <= mappings);
	}
	EXPECT(made >= sequences * calls);
	return 0;
}
