/*
 * What the benchmark measures with.
 */
#ifndef EXECMEM_BENCH_H
#define EXECMEM_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_ROUNDS 41 /* odd: the median is one of them */

/* Does something `count` times. */
typedef void bench_side(size_t count);

/* Medians of the rounds: nanoseconds of one time of each side, and of their ratio, slow / quick. */
struct bench_pair {
	double quick, slow, ratio;
};

/* Each side's count is how often it is done in a round; before it, its `prepare` (may be null), not timed. */
struct bench_pair bench_compare(bench_side *quick, size_t quick_count, bench_side *prepare_quick, bench_side *slow,
				size_t slow_count, bench_side *prepare_slow);
double bench_time(bench_side *side, size_t count); /* nanoseconds of one time */
double bench_median(double *values, int count);    /* sorts them */
/* The time in which each of `threads` threads (1 or 2) does it `count` times with its argument; nanoseconds of one. */
double bench_threads(void (*side)(void *argument, size_t count), void **arguments, int threads, size_t count);
/* User instructions of one time, counted by stepping through a child; exact, and the same on a busy machine. */
long bench_instructions(bench_side *side);
/* The same from the difference of doing it `few` times and `many` times: for what takes very many. */
long bench_instructions_in(bench_side *side, size_t few, size_t many);

/* A line of the table. `relation` (">=", "<=" or "<") and `goal` say what is wanted; a goal of 0: nothing. */
void bench_header(void);
void bench_report(const char *name, struct bench_pair pair, const char *relation, double goal);
void bench_report_ratio(const char *name, double ratio, const char *relation, double goal);
void bench_report_count(const char *name, long count);
/* Measures and reports a million stubs: stubs.c. */
void bench_stubs(void);
/* The code heap, beside asmjit's where that is there: heaps.c. Threads are judged only with two processors to spare. */
void bench_heaps(bool two_processors);

int bench_missed(void); /* how many goals were */

_Noreturn void bench_fail(const char *what);
void bench_ok(int error, const char *what);
void *bench_must(void *pointer);

#endif
