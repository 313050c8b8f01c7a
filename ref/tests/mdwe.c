/*
 * PR_SET_MDWE, natively: with the kernel's own refusal of everything that is or becomes writable and executable, every
 * call of the library works with double mapping, forks included, and toggling is refused by name. Exit status 77, with
 * the reason, where the kernel has no such switch.
 */
#define _GNU_SOURCE
#include "model.h"
#include "stubs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

#define SKIPPED   77
#define SEQUENCES 20
#define CALLS     500

static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};

static int run(struct execmem_region region, size_t offset)
{
	return ((int (*)(void))(region.rx.at + offset))();
}

/* The switch is on: without the library, what it refuses. */
static void kernel_refuses(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(page != MAP_FAILED && mprotect(page, 4096, PROT_READ | PROT_EXEC) == -1 && errno == EACCES);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	munmap(page, 4096);
}

static void toggling_is_refused(void)
{
	struct execmem_config config = execmem_config_default(watch_os());
	struct execmem_allocator *allocator;
	struct execmem_refusals refusals;

	config.backends[0] = EXECMEM_BACKEND_TOGGLE;
	EXPECT_EQUAL(EXECMEM_ERROR_REFUSED, execmem_create(&config, &allocator, &refusals));
	EXPECT_EQUAL(1, refusals.count);
	EXPECT(strcmp(refusals.list[0].backend, "protection toggling") == 0 &&
	       strcmp(refusals.list[0].call, "protect") == 0);
	EXPECT_EQUAL(EACCES, refusals.list[0].error);
	config.backends[1] = EXECMEM_BACKEND_DOUBLE;
	OK(execmem_create(&config, &allocator, &refusals));
	EXPECT_EQUAL(EXECMEM_BACKEND_DOUBLE, execmem_backend(allocator));
	EXPECT_EQUAL(1, refusals.count);
	OK(execmem_destroy(allocator));
}

static void code_is_rewritten(bool emulation)
{
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region region;
	struct execmem_view view;

	execmem_set_emulation(allocator, emulation);
	region = committed(allocator, 3 * UNIT);
	for (unsigned i = 0; i < 8; i++) {
		OK(execmem_map_rw(allocator, (execmem_rx){region.rx.at + UNIT - 2}, sizeof(code),
				  i % 2 ? EXECMEM_MAP_SINGLE_USE : 0, &view));
		memcpy(view.rw.at, code, sizeof(code));
		view.rw.at[1] = (unsigned char)i;
		OK(execmem_publish(&view, 0, sizeof(code), EXECMEM_PUBLISH_SERIALIZE));
		EXPECT_EQUAL(i, run(region, UNIT - 2));
		OK(execmem_unmap_rw(&view));
	}
	OK(execmem_decommit(&region, 0, UNIT));
	OK(execmem_commit(&region, 0, UNIT));
	EXPECT_EQUAL(0, *(const unsigned char *)region.rx.at);
	OK(execmem_write(allocator, region.rx, code, sizeof(code), 0));
	EXPECT_EQUAL(7, run(region, 0));
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
}

static void child_has_its_own(void)
{
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_region region = committed(allocator, UNIT);
	unsigned char other[sizeof(code)];
	int status;
	pid_t child;

	memcpy(other, code, sizeof(code));
	other[1] = 9;
	OK(execmem_write(allocator, region.rx, code, sizeof(code), 0));
	OK(execmem_fork_prepare(allocator));
	child = fork();
	if (child == 0) {
		OK(execmem_fork_child(allocator));
		OK(execmem_write(allocator, region.rx, other, sizeof(other), 0));
		_exit(run(region, 0));
	}
	OK(execmem_fork_parent(allocator));
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	EXPECT_EQUAL(9, WEXITSTATUS(status));
	EXPECT_EQUAL(7, run(region, 0));
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
}

/* Shared pages and written ones, and their regions again where they were. */
static void stubs_run(void)
{
	struct execmem_allocator *allocator = make(NULL);
	struct execmem_stub_heap *heap = stub_heap(allocator, 16384, 0);

	for (unsigned i = 0; i < 20; i++) {
		unsigned kind = i % 2 ? STUB_CLOSURE : STUB_PATCHED;
		struct execmem_stub stub;

		OK(execmem_stub_allocate(heap, kind, &stub));
		stub_aim(kind, &stub, i);
		EXPECT_EQUAL(stub_answer(kind, &stub, i), stub_call(kind, &stub));
		OK(execmem_stub_free(heap, stub.rx));
		OK(execmem_stub_trim(heap, NULL));
	}
	OK(execmem_stub_heap_destroy(heap));
	OK(execmem_destroy(allocator));
}

int main(void)
{
	if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)) {
		printf("prctl(PR_SET_MDWE): %s\n", strerror(errno));
		return SKIPPED;
	}
	kernel_refuses();
	toggling_is_refused();
	code_is_rewritten(false);
	code_is_rewritten(true);
	child_has_its_own();
	stubs_run();
	model.no_toggling = true;
	for (test_seed = 1; test_seed <= SEQUENCES; test_seed++) {
		struct model_input input = {.random = test_seed};

		EXPECT(model_run(&input, CALLS) >= CALLS);
	}
	return 0;
}
