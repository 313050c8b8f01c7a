/* After fork, neither side sees what the other writes, open views included; a child must call execmem_fork_child. */
#define _GNU_SOURCE
#include "test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned char one[] = {0xb8, 1, 0, 0, 0, 0xc3}, two[] = {0xb8, 2, 0, 0, 0, 0xc3};

static int call(uintptr_t code)
{
	return ((int (*)(void))code)();
}

static void wait_for(pid_t child)
{
	int status;

	EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void toggling(struct execmem_config *config)
{
	config->backends[0] = EXECMEM_BACKEND_TOGGLE;
}

/* As an emulator that does not wipe: the process is asked for at each call. */
static void asking(struct execmem_config *config)
{
	(void)config;
	watch.fail_name = "wipe_on_fork";
}

static void run(void (*change)(struct execmem_config *))
{
	struct execmem_allocator *allocator = make(change);
	struct execmem_region region = committed(allocator, 3 * 65536), other;
	struct execmem_view view;
	struct execmem_stats stats;
	struct execmem_found found;
	int to_child[2], to_parent[2];
	char byte = 0;
	pid_t child;

	watch.fail_name = NULL;
	EXPECT(pipe(to_child) == 0 && pipe(to_parent) == 0);
	OK(execmem_decommit(&region, 65536, 4096)); /* a hole */
	OK(execmem_write(allocator, region.rx, one, sizeof(one), 0));
	OK(execmem_map_rw(allocator, (execmem_rx){region.rx.at + 2 * 65536}, 100, 0, &view));
	memcpy(view.rw.at, one, sizeof(one));

	EXPECT_EQUAL(EXECMEM_ERROR_STATE, execmem_fork_parent(allocator));
	EXPECT_EQUAL(EXECMEM_ERROR_STATE, execmem_fork_child(allocator));

	/* A child of a fork that was not prepared. */
	child = fork();
	if (child == 0) {
		OK(execmem_lookup(allocator, (void *)region.rx.at, &found));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_reserve(allocator, 1, NULL, 0, NULL, &other));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_commit(&region, 65536, 4096));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_publish(&view, 0, 1, 0));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_write(allocator, region.rx, two, sizeof(two), 0));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_unmap_rw(&view));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_release(&region));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_stats(allocator, &stats));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_fork_prepare(allocator));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_destroy(allocator));
		EXPECT_EQUAL(EXECMEM_ERROR_STATE, execmem_fork_child(allocator));
		_exit(0);
	}
	wait_for(child);

	OK(execmem_fork_prepare(allocator));
	child = fork();
	if (child == 0) {
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_write(allocator, region.rx, two, sizeof(two), 0));
		EXPECT_EQUAL(EXECMEM_ERROR_FORKED, execmem_fork_parent(allocator));
		/* The parent rewrites everything before this child has moved. */
		EXPECT(read(to_child[0], &byte, 1) == 1);
		OK(execmem_fork_child(allocator));
		EXPECT_EQUAL(1, call(region.rx.at));
		EXPECT_EQUAL(1, view.rw.at[1]);
		view.rw.at[1] = 3;
		OK(execmem_publish(&view, 0, sizeof(one), 0));
		OK(execmem_unmap_rw(&view));
		EXPECT_EQUAL(3, call(view.rx.at));
		OK(execmem_commit(&region, 65536, 4096));
		OK(execmem_write(allocator, (execmem_rx){region.rx.at + 65536}, two, sizeof(two), 0));
		EXPECT_EQUAL(2, call(region.rx.at + 65536));
		EXPECT(write(to_parent[1], &byte, 1) == 1 && read(to_child[0], &byte, 1) == 1);
		EXPECT_EQUAL(1, call(region.rx.at));
		OK(execmem_release(&region));
		OK(execmem_destroy(allocator));
		_exit(0);
	}
	OK(execmem_fork_parent(allocator));
	OK(execmem_write(allocator, region.rx, two, sizeof(two), 0));
	view.rw.at[1] = 2;
	EXPECT(write(to_child[1], &byte, 1) == 1 && read(to_parent[0], &byte, 1) == 1);
	EXPECT_EQUAL(2, call(region.rx.at));
	EXPECT_EQUAL(2, view.rw.at[1]);
	OK(execmem_publish(&view, 0, sizeof(one), 0));
	OK(execmem_unmap_rw(&view));
	EXPECT_EQUAL(2, call(view.rx.at));
	EXPECT(write(to_child[1], &byte, 1) == 1);
	wait_for(child);
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(to_parent[i]);
	}
}

int main(void)
{
	unsigned long files = count_files();

	run(NULL);
	run(toggling);
	run(asking);
	EXPECT_EQUAL(files, count_files());
	return 0;
}
