/* After fork, the heap of either side goes on by itself, from the same state; a child must call execmem_fork_child. */
#define _GNU_SOURCE
#include "stubs.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static struct execmem_allocator *allocator;
static struct execmem_stub_heap *heap;
static int stop;

/* Keeps the heap's lock busy: a fork must not catch it half done. */
static void *churn(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct execmem_stub stubs[300];

		OK(execmem_stub_allocate_many(heap, STUB_FIXUP, stubs, 300));
		for (int i = 0; i < 300; i++)
			OK(execmem_stub_free(heap, stubs[i].rx));
		OK(execmem_stub_trim(heap, NULL));
	}
	return NULL;
}

static void go_on(unsigned kind, const struct execmem_stub *old, uintptr_t value)
{
	struct execmem_stub stub;

	stub_aim(kind, old, value);
	EXPECT_EQUAL(stub_answer(kind, old, value), stub_call(kind, old));
	OK(execmem_stub_allocate(heap, kind, &stub));
	stub_aim(kind, &stub, value + 1);
	OK(execmem_stub_publish(heap, stub.rx, NULL));
	EXPECT_EQUAL(stub_answer(kind, &stub, value + 1), stub_call(kind, &stub));
	OK(execmem_stub_back_out(heap, stub.rx));
}

static void child(unsigned kind, const struct execmem_stub *stub, struct execmem_stub_cache *cache)
{
	struct execmem_stub other;
	struct execmem_stub_found found;
	struct execmem_stub_figures figures;

	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_allocate(heap, kind, &other));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_free(heap, stub->rx));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_back_out(heap, stub->rx));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_publish(heap, stub->rx, NULL));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_cache_allocate(cache, &other));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_cache_free(cache, stub->rx));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_cache_flush(cache));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_cache_destroy(cache));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_trim(heap, NULL));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_figures(heap, &figures));
	EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stub_heap_destroy(heap));
	OK(execmem_stub_find(allocator, stub->record, &found));
	EXPECT(found.live && found.kind == kind);
	EXPECT_EQUAL(stub_answer(kind, stub, 5), stub_call(kind, stub));
	OK(execmem_fork_child(allocator));
	go_on(kind, stub, 7);
	OK(execmem_stub_cache_destroy(cache));
	figures = stub_figures(heap);
	EXPECT_EQUAL(0, figures.cached);
	OK(execmem_stub_heap_destroy(heap));
	OK(execmem_destroy(allocator));
	_exit(0);
}

int main(void)
{
	struct execmem_stub stub[2], extra;
	struct execmem_stub_cache cache;
	pthread_t thread;
	int status;

	allocator = make(NULL);
	heap = stub_heap(allocator, 16384, 0);
	OK(execmem_stub_allocate(heap, STUB_CLOSURE, &stub[0]));
	OK(execmem_stub_allocate(heap, STUB_PATCHED, &stub[1])); /* its page is written, and copied for the child */
	OK(execmem_stub_cache_create(heap, STUB_CLOSURE, &cache));
	OK(execmem_stub_cache_allocate(&cache, &extra));
	OK(execmem_stub_cache_free(&cache, extra.rx));
	EXPECT_EQUAL(0, pthread_create(&thread, NULL, churn, NULL));
	for (int i = 0; i < 60; i++) {
		unsigned kind = i % 2 ? STUB_PATCHED : STUB_CLOSURE;
		pid_t pid;

		stub_aim(kind, &stub[i % 2], 5);
		OK(execmem_fork_prepare(allocator));
		pid = fork();
		EXPECT(pid >= 0);
		if (pid == 0)
			child(kind, &stub[i % 2], &cache);
		OK(execmem_fork_parent(allocator));
		EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
		EXPECT_EQUAL(stub_answer(kind, &stub[i % 2], 5), stub_call(kind, &stub[i % 2]));
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	go_on(STUB_CLOSURE, &stub[0], 9);
	OK(execmem_stub_cache_destroy(&cache));
	OK(execmem_stub_heap_destroy(heap));
	OK(execmem_destroy(allocator));
	return 0;
}
