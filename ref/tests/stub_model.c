/*
 * Random sequences of every call of the stub heap against a naive model (stub_model.h): slots and records one to one,
 * nothing issued twice, kinds apart, free slots used before new pages are made, every byte of every data page as the
 * model has it, the counters of OS pages, what may be released, figures. Arguments: number of sequences, first seed. A
 * sequence that fails is cut down to what is needed for it before it is printed.
 */
#include "stub_model.h"

int main(int argc, char **argv)
{
	return sequence_main(argc, argv, 12, 1, STUB_MODEL_STEPS, stub_model_play);
}
