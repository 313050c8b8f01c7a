/*
 * What the libFuzzer targets share. Each is a program of its own, and plays what bytes choose against a naive model of
 * ref/tests.
 */
#ifndef EXECMEM_FUZZ_H
#define EXECMEM_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/*
 * Plays what the bytes choose, and returns how many calls of the library, or steps of a model that make at least one,
 * that were. A failure aborts. Random choices, which depend on the bytes, follow where the bytes do not reach.
 */
unsigned long fuzz_play(const uint8_t *bytes, size_t count);

#endif
