/*
 * Random sequences of every call of the code heap against a naive model (code_model.h): blocks tile, free neighbours
 * are merged, the policy's choice is exact, nothing is issued twice, figures are what a count gives. Arguments: number
 * of sequences, first seed. A sequence that fails is cut down to what is needed for it before it is printed.
 */
#include "code_model.h"

int main(int argc, char **argv)
{
	return sequence_main(argc, argv, 40, 130, CODE_MODEL_STEPS, code_model_play);
}
