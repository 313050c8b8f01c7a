/*
 * How a test fails, what it begins with, and what can be counted of its process. The watched table is in watch.c.
 */
#define _GNU_SOURCE
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

unsigned long long test_seed;

_Noreturn void test_failed(const char *file, int line, const char *what, long long expected, long long actual)
{
	fprintf(stderr, "%s:%d: %s: expected %lld, got %lld (seed %llu)\n", file, line, what, expected, actual,
		test_seed);
	if (watch.abort)
		abort();
	_exit(1);
}

struct execmem_allocator *make(void (*change)(struct execmem_config *config))
{
	struct execmem_config config = execmem_config_default(watch_os());
	struct execmem_allocator *allocator;

	if (change)
		change(&config);
	OK(execmem_create(&config, &allocator, NULL));
	return allocator;
}

struct execmem_region committed(struct execmem_allocator *allocator, size_t bytes)
{
	struct execmem_region region;

	OK(execmem_reserve(allocator, bytes, NULL, 0, NULL, &region));
	OK(execmem_commit(&region, 0, bytes));
	return region;
}

struct execmem_stats stats_of(struct execmem_allocator *allocator)
{
	struct execmem_stats stats;

	OK(execmem_stats(allocator, &stats));
	return stats;
}

/* Read without allocating, which would change it. */
unsigned long count_mappings(void)
{
	static char bytes[65536];
	unsigned long lines = 0;
	ssize_t count;
	int fd = open("/proc/self/maps", O_RDONLY);

	EXPECT(fd >= 0);
	while ((count = read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < count; i++)
			lines += bytes[i] == '\n';
	}
	close(fd);
	return lines;
}

unsigned long count_files(void)
{
	unsigned long count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

unsigned long file_blocks(void)
{
	unsigned long bytes = 0;

	for (int fd = 0; fd < 256; fd++) {
		char path[64], target[64] = "";
		struct stat status;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, "memfd:execmem") &&
		    fstat(fd, &status) == 0)
			bytes += (unsigned long)status.st_blocks * 512;
	}
	return bytes;
}
