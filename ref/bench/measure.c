#define _GNU_SOURCE
#include "bench.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <execmem/error.h>

static int missed;

void bench_fail(const char *what)
{
	fprintf(stderr, "bench: %s failed\n", what);
	_exit(3);
}

void bench_ok(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "bench: %s: %s (%d)\n", what, execmem_error_text(error), error);
	_exit(3);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double bench_time(bench_side *side, size_t count)
{
	double start = now();

	side(count);
	return (now() - start) / (double)count;
}

static int by_value(const void *left, const void *right)
{
	double l = *(const double *)left, r = *(const double *)right;

	return (l > r) - (l < r);
}

double bench_median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), by_value);
	return values[count / 2];
}

struct bench_pair bench_compare(bench_side *quick, size_t quick_count, bench_side *prepare_quick, bench_side *slow,
				size_t slow_count, bench_side *prepare_slow)
{
	double q[BENCH_ROUNDS], s[BENCH_ROUNDS], ratio[BENCH_ROUNDS];

	for (int i = -1; i < BENCH_ROUNDS; i++) {
		int at = i < 0 ? 0 : i; /* the first round only warms up */

		if (prepare_quick)
			prepare_quick(quick_count);
		q[at] = bench_time(quick, quick_count);
		if (prepare_slow)
			prepare_slow(slow_count);
		s[at] = bench_time(slow, slow_count);
		ratio[at] = s[at] / q[at];
	}
	return (struct bench_pair){bench_median(q, BENCH_ROUNDS), bench_median(s, BENCH_ROUNDS),
				   bench_median(ratio, BENCH_ROUNDS)};
}

/* ---- Threads ---- */

struct work {
	void (*side)(void *argument, size_t count);
	void *argument;
	size_t count;
	pthread_barrier_t *start;
};

static void *work(void *argument)
{
	const struct work *own = argument;

	pthread_barrier_wait(own->start);
	own->side(own->argument, own->count);
	return NULL;
}

double bench_threads(void (*side)(void *argument, size_t count), void **arguments, int threads, size_t count)
{
	pthread_t thread[2];
	struct work own[2];
	pthread_barrier_t barrier;
	double start;

	pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++) {
		own[i] = (struct work){side, arguments[i], count, &barrier};
		if (pthread_create(&thread[i], NULL, work, &own[i]))
			bench_fail("pthread_create");
	}
	start = now();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&barrier);
	return (now() - start) / (double)count;
}

/* ---- Instructions ---- */

#define TRAP_FLAG  0x100L /* of eflags */
#define STEPS_FEW  20
#define STEPS_MANY 120

static bool is_traced(void)
{
	char line[256];
	int tracer = 0;
	FILE *status = bench_must(fopen("/proc/self/status", "r"));

	while (fgets(line, sizeof(line), status))
		(void)sscanf(line, "TracerPid: %d", &tracer);
	fclose(status);
	return tracer != 0;
}

/* Steps through its parent, from one SIGSTOP to the next, and writes how many steps that took. */
static _Noreturn void trace(pid_t parent, int result)
{
	long made = 0, flags;
	int status, stops = 0, signal = 0;

	if (ptrace(PTRACE_ATTACH, parent, NULL, NULL) || waitpid(parent, &status, 0) != parent)
		_exit(1);
	while (stops < 2) {
		if (ptrace(stops ? PTRACE_SINGLESTEP : PTRACE_CONT, parent, NULL, (void *)(intptr_t)signal) ||
		    waitpid(parent, &status, 0) != parent || !WIFSTOPPED(status))
			_exit(1);
		signal = 0;
		if (WSTOPSIG(status) == SIGUSR1)
			stops++;
		else if (WSTOPSIG(status) == SIGTRAP)
			made += stops;
		else
			signal = WSTOPSIG(status);
	}
	/* A stepped pushf has kept the trap flag, and iret has made it the program's own. */
	flags = ptrace(PTRACE_PEEKUSER, parent, (void *)offsetof(struct user, regs.eflags), NULL);
	ptrace(PTRACE_POKEUSER, parent, (void *)offsetof(struct user, regs.eflags), (void *)(flags & ~TRAP_FLAG));
	ptrace(PTRACE_DETACH, parent, NULL, NULL);
	_exit(write(result, &made, sizeof(made)) != sizeof(made));
}

/* The library cannot be used in a child: so this process works, and a child looks on. */
static long steps(bench_side *side, size_t count)
{
	int ready[2], result[2], status;
	pid_t parent = getpid(), child;
	long made = 0;
	char byte = 0;

	if (pipe(ready) || pipe(result))
		bench_fail("pipe");
	child = fork();
	if (child == 0) {
		/* Where only those that are named may trace (Yama), wait to be named. */
		if (read(ready[0], &byte, 1) != 1)
			_exit(1);
		trace(parent, result[1]);
	}
	prctl(PR_SET_PTRACER, child, 0, 0, 0);
	side(1);
	if (child < 0 || write(ready[1], &byte, 1) != 1)
		bench_fail("fork");
	/* Until it has attached. */
	while (!is_traced())
		usleep(1000);
	raise(SIGUSR1);
	side(count);
	raise(SIGUSR1);
	close(result[1]);
	if (read(result[0], &made, sizeof(made)) != sizeof(made) || waitpid(child, &status, 0) != child)
		bench_fail("stepping");
	close(result[0]);
	close(ready[0]);
	close(ready[1]);
	return made;
}

long bench_instructions_in(bench_side *side, size_t few, size_t many)
{
	return (steps(side, many) - steps(side, few)) / (long)(many - few);
}

long bench_instructions(bench_side *side)
{
	return bench_instructions_in(side, STEPS_FEW, STEPS_MANY);
}

/* ---- The table ---- */

static void goal_text(char *text, size_t bytes, double ratio, const char *relation, double goal)
{
	bool met = goal == 0 || (relation[0] == '>' ? ratio >= goal : relation[1] ? ratio <= goal : ratio < goal);

	missed += !met;
	if (goal == 0)
		snprintf(text, bytes, "-");
	else
		snprintf(text, bytes, "%s %g  %s", relation, goal, met ? "met" : "MISSED");
}

void bench_header(void)
{
	printf("| %-58s | %9s | %10s | %9s | %-15s |\n", "what", "ratio", "slow, ns", "quick, ns", "goal");
	printf("| %.58s | --------: | ---------: | --------: | --------------- |\n",
	       "----------------------------------------------------------");
}

void bench_report(const char *name, struct bench_pair pair, const char *relation, double goal)
{
	char text[32];

	goal_text(text, sizeof(text), pair.ratio, relation, goal);
	printf("| %-58s | %9.2f | %10.1f | %9.1f | %-15s |\n", name, pair.ratio, pair.slow, pair.quick, text);
	fflush(stdout);
}

void bench_report_ratio(const char *name, double ratio, const char *relation, double goal)
{
	char text[32];

	goal_text(text, sizeof(text), ratio, relation, goal);
	printf("| %-58s | %9.2f | %10s | %9s | %-15s |\n", name, ratio, "", "", text);
	fflush(stdout);
}

void bench_report_count(const char *name, long count)
{
	printf("| %-58s | %9ld | %10s | %9s | %-15s |\n", name, count, "", "", "-");
	fflush(stdout);
}

int bench_missed(void)
{
	return missed;
}
