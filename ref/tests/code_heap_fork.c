/* After fork, the heap of either side goes on by itself, from the same state; a child must call execmem_fork_child. */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <execmem/code_heap.h>

static struct execmem_allocator *allocator;
static struct execmem_code_heap *heap;
static int stop;

/* Keeps the heap's lock busy: a fork must not catch it half done. */
static void *churn(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct execmem_code code;

		OK(execmem_code_allocate(heap, 333, NULL, &code));
		OK(execmem_code_free(heap, code.rx));
	}
	return NULL;
}

struct books {
	size_t live, free, unused, used;
	bool last_free;
};

static int count_block(void *context, const struct execmem_code *block)
{
	struct books *books = context;

	/* Free neighbours are merged. */
	EXPECT(block->code_bytes || !books->last_free);
	books->last_free = block->code_bytes == 0;
	books->live += block->code_bytes != 0;
	books->used += block->code_bytes ? block->bytes : 0;
	books->unused += block->code_bytes ? block->bytes - block->code_bytes : 0;
	return 0;
}

/* Nothing is half done. */
static void check_books(void)
{
	struct execmem_code_figures figures;
	struct books books = {0};

	OK(execmem_code_walk(heap, count_block, &books));
	OK(execmem_code_figures(heap, &figures));
	EXPECT_EQUAL(books.live, figures.live_blocks);
	EXPECT_EQUAL(books.used, figures.used_bytes);
	EXPECT_EQUAL(books.unused, figures.unused_bytes);
}

static void go_on(const struct execmem_code *old, unsigned char value)
{
	unsigned char code[100];
	struct execmem_code new, found;

	memset(code, value, sizeof(code));
	OK(execmem_code_allocate(heap, sizeof(code), NULL, &new));
	OK(execmem_write(allocator, new.rx, code, sizeof(code), 0));
	OK(execmem_write(allocator, old->rx, code, sizeof(code), 0));
	EXPECT_EQUAL(value, *(const unsigned char *)new.rx.at);
	OK(execmem_code_find(allocator, (const void *)(old->rx.at + 50), &found));
	EXPECT_EQUAL(old->rx.at, found.rx.at);
	OK(execmem_code_free(heap, old->rx));
}

int main(void)
{
	struct execmem_code_config config = execmem_code_config_default();
	struct execmem_code block, other;
	struct execmem_code_figures figures;
	unsigned char code[100] = {1};
	pthread_t thread;
	int status;

	allocator = make(NULL);
	config.region_bytes = 1 << 20;
	OK(execmem_code_heap_create(allocator, &config, &heap));
	OK(execmem_code_allocate(heap, sizeof(code), NULL, &block));
	OK(execmem_write(allocator, block.rx, code, sizeof(code), 0));
	EXPECT_EQUAL(0, pthread_create(&thread, NULL, churn, NULL));
	for (int i = 0; i < 100; i++) {
		pid_t child;

		OK(execmem_fork_prepare(allocator));
		child = fork();
		EXPECT(child >= 0);
		if (child == 0) {
			EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_code_allocate(heap, 1, NULL, &other));
			EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_code_free(heap, block.rx));
			EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_code_shrink(heap, block.rx, 1, NULL));
			EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_code_figures(heap, &figures));
			EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_code_heap_destroy(heap));
			EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_code_heap_create(allocator, &config, &heap));
			OK(execmem_code_find(allocator, (const void *)block.rx.at, &other));
			OK(execmem_fork_child(allocator));
			check_books();
			go_on(&block, 2);
			OK(execmem_code_heap_destroy(heap));
			OK(execmem_destroy(allocator));
			_exit(0);
		}
		OK(execmem_fork_parent(allocator));
		EXPECT(waitpid(child, &status, 0) == child && status == 0);
		EXPECT_EQUAL(1, *(const unsigned char *)block.rx.at);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	go_on(&block, 3);
	OK(execmem_code_heap_destroy(heap));
	OK(execmem_destroy(allocator));
	return 0;
}
