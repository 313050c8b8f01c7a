/* Lookups in a signal handler, while the interrupted thread and another one reserve and release. */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static struct execmem_allocator *allocator;
static struct execmem_region fixed;
static unsigned long handled, wrong;
static uintptr_t last;

static void handler(int signal)
{
	struct execmem_found found;
	uintptr_t at = __atomic_load_n(&last, __ATOMIC_RELAXED);
	int error;

	(void)signal;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	if (execmem_lookup(allocator, (void *)(fixed.rx.at + 70000), &found) || found.start.at != fixed.rx.at)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	error = execmem_lookup(allocator, (void *)at, &found);
	if (!error && at - found.start.at >= found.bytes)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	if (error && error != EXECMEM_ERROR_NOT_FOUND)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

static void *churn(void *argument)
{
	for (unsigned long i = 0; __atomic_load_n(&handled, __ATOMIC_RELAXED) < 300 && i < 1000000; i++) {
		struct execmem_region region;

		OK(execmem_reserve(allocator, 65536 * (1 + i % 5), NULL, 0, argument, &region));
		__atomic_store_n(&last, region.rx.at + region.bytes - 1, __ATOMIC_RELAXED);
		OK(execmem_release(&region));
	}
	return NULL;
}

int main(void)
{
	struct itimerval timer = {{0, 500}, {0, 500}};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	pthread_t other;

	allocator = make(NULL);
	OK(execmem_reserve(allocator, 131072, NULL, 9, NULL, &fixed));
	last = fixed.rx.at;
	EXPECT_EQUAL(0, sigaction(SIGALRM, &action, NULL));
	EXPECT_EQUAL(0, setitimer(ITIMER_REAL, &timer, NULL));
	EXPECT_EQUAL(0, pthread_create(&other, NULL, churn, NULL));
	churn(NULL);
	pthread_join(other, NULL);
	EXPECT(handled >= 300);
	EXPECT_EQUAL(0, wrong);
	return 0;
}
