/*
 * vm.memfd_noexec at 1 and 2, natively, in a pid namespace of its own: the flag that asks for an executable file is
 * refused at 2, and named; what works then is found out by trying. Exit status 77, with the reason, where the system
 * lets nobody set it.
 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED  77
#define MFD_EXEC 0x10u

static int skip(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	return SKIPPED;
}

/* What the kernel itself answers, without the library: whether a file made without the flag may be mapped to run. */
static bool kernel_maps_executable(void)
{
	int file = memfd_create("test", MFD_CLOEXEC);
	void *at = MAP_FAILED;

	if (file >= 0 && ftruncate(file, 4096) == 0)
		at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
	if (at != MAP_FAILED)
		munmap(at, 4096);
	close(file);
	return at != MAP_FAILED;
}

static void use(struct execmem_allocator *allocator)
{
	static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};
	struct execmem_region region = committed(allocator, 65536);

	for (int i = 0; i < 2; i++)
		OK(execmem_write(allocator, region.rx, code, sizeof(code), 0));
	EXPECT_EQUAL(7, ((int (*)(void))region.rx.at)());
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
}

static void under(int level)
{
	struct execmem_config config = execmem_config_default(watch_os());
	struct execmem_allocator *allocator;
	struct execmem_refusals refusals;
	bool executable = kernel_maps_executable();
	int flagged = memfd_create("test", MFD_CLOEXEC | MFD_EXEC), error;

	EXPECT_EQUAL(level == 2 ? EACCES : 0, flagged < 0 ? errno : 0);
	error = execmem_create(&config, &allocator, &refusals);
	if (level == 2) {
		EXPECT(refusals.count >= 1 && strcmp(refusals.list[0].backend, "double mapping") == 0);
		EXPECT(strcmp(refusals.list[0].call, "file_create") == 0);
		EXPECT_EQUAL(EACCES, refusals.list[0].error);
	} else {
		EXPECT_EQUAL(0, refusals.count);
	}
	if (level < 2 || executable) {
		OK(error);
		EXPECT_EQUAL(EXECMEM_BACKEND_DOUBLE, execmem_backend(allocator));
		use(allocator);
	} else {
		EXPECT_EQUAL(EXECMEM_ERROR_REFUSED, error);
		config.backends[1] = EXECMEM_BACKEND_TOGGLE;
		OK(execmem_create(&config, &allocator, &refusals));
		EXPECT_EQUAL(EXECMEM_BACKEND_TOGGLE, execmem_backend(allocator));
		use(allocator);
	}
	printf("level %d: MFD_EXEC %s; without it, an executable mapping is %s\n", level,
	       level == 2 ? "is refused" : "works", executable ? "allowed" : "refused");
}

static int in_namespace(void)
{
	for (int level = 1; level <= 2; level++) {
		char text = (char)('0' + level), now = 0;
		int file = open("/proc/sys/vm/memfd_noexec", O_RDWR | O_CLOEXEC);

		if (file < 0)
			return skip("/proc/sys/vm/memfd_noexec");
		if (pwrite(file, &text, 1, 0) != 1)
			return skip("writing /proc/sys/vm/memfd_noexec");
		EXPECT(pread(file, &now, 1, 0) == 1 && now == text);
		close(file);
		under(level);
	}
	return 0;
}

/* The first process of a new namespace. */
static int first_process(void)
{
	int status = 0;
	pid_t child;

	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return skip("unshare(CLONE_NEWPID)");
	child = fork();
	if (child == 0) {
		status = in_namespace();
		fflush(stdout);
		_exit(status);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/*
 * The level of a namespace can only rise, so that it must not be this program's own. And a process that has left its
 * namespace can start no threads, as the search for leaks at the end of this one does.
 */
int main(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		status = first_process();
		fflush(stdout);
		_exit(status);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}
