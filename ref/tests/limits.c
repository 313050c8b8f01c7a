/* Limits are met as errors of their own: the length of files without SIGXFSZ, address space, memory, table entries. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define UNIT ((size_t)EXECMEM_UNIT_BYTES)

static void small_steps(struct execmem_config *config)
{
	config->grow_bytes = 4 * UNIT;
}

int main(void)
{
	struct execmem_allocator *allocator, *none;
	struct execmem_region region, other;
	struct execmem_config config = execmem_config_default(watch_os());
	struct execmem_refusals refusals;
	struct execmem_refusal refusal;
	struct rlimit limit;

	/* The real limit, whose signal would end this process. */
	EXPECT(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = 10 * UNIT + 1;
	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	allocator = make(small_steps);
	OK(execmem_reserve(allocator, 64 * UNIT, NULL, 0, NULL, &region));
	EXPECT_EQUAL(EXECMEM_ERROR_FILE_SIZE, execmem_commit(&region, 0, 11 * UNIT));
	OK(execmem_commit(&region, 0, 9 * UNIT));
	OK(execmem_commit(&region, 9 * UNIT, UNIT));
	EXPECT_EQUAL(10 * UNIT, stats_of(allocator).file_bytes);
	EXPECT_EQUAL(EXECMEM_ERROR_FILE_SIZE, execmem_commit(&region, 10 * UNIT, UNIT));
	OK(execmem_decommit(&region, 3 * UNIT, UNIT));
	OK(execmem_decommit(&region, 5 * UNIT, UNIT));
	/* In pieces, where the file cannot grow. */
	OK(execmem_commit(&region, 20 * UNIT, 2 * UNIT));
	EXPECT_EQUAL(EXECMEM_ERROR_FILE_SIZE, execmem_commit(&region, 30 * UNIT, 4096));
	EXPECT_EQUAL(10 * UNIT, stats_of(allocator).committed_bytes);
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));

	/* No room for the smallest file. */
	limit.rlim_cur = UNIT - 1;
	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EXPECT_EQUAL(EXECMEM_ERROR_REFUSED, execmem_create(&config, &none, &refusals));
	EXPECT_EQUAL(1, refusals.count);
	EXPECT(strcmp(refusals.list[0].call, "limit") == 0 && refusals.list[0].error == EFBIG);
	limit.rlim_cur = limit.rlim_max;
	EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);

	/* Address space: the real limit, just above what is in use. */
	allocator = make(NULL);
	OK(execmem_reserve(allocator, UNIT, NULL, 0, NULL, &region));
	EXPECT(getrlimit(RLIMIT_AS, &limit) == 0);
	limit.rlim_cur = (rlim_t)1 << 32;
	EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
	EXPECT_EQUAL(EXECMEM_ERROR_ADDRESS_SPACE, execmem_reserve(allocator, (size_t)1 << 33, NULL, 0, NULL, &other));
	execmem_last_refusal(allocator, &refusal);
	EXPECT(strcmp(refusal.call, "map") == 0 && refusal.error == ENOMEM);
	limit.rlim_cur = limit.rlim_max;
	EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);

	watch.fail_name = "map_fixed";
	watch.fail_with = ENOSPC;
	EXPECT_EQUAL(-ENOSPC, execmem_commit(&region, 0, 4096));
	watch.fail_with = ENOMEM;
	EXPECT_EQUAL(-ENOMEM, execmem_commit(&region, 0, 4096));
	watch.fail_name = "file_punch";
	watch.fail_with = EPERM;
	OK(execmem_commit(&region, 0, 4096));
	OK(execmem_decommit(&region, 0, 4096)); /* put off */
	EXPECT_EQUAL(UNIT, stats_of(allocator).deferred_bytes);
	execmem_last_refusal(allocator, &refusal);
	EXPECT(strcmp(refusal.call, "file_punch") == 0 && refusal.error == EPERM);
	OK(execmem_commit(&region, 0, 4096)); /* elsewhere in the file */
	watch.fail_name = NULL;
	OK(execmem_commit(&region, 4096, 4096));
	OK(execmem_decommit(&region, 0, 8192));
	OK(execmem_commit(&region, 0, 4096)); /* offered again */
	EXPECT_EQUAL(0, stats_of(allocator).deferred_bytes);
	OK(execmem_release(&region));

	/* Every entry of the table. */
	OK(execmem_destroy(allocator));
	for (size_t i = 1; i < sizeof(struct execmem_os) / sizeof(void *); i++) {
		struct execmem_config broken = execmem_config_default(watch_os());

		((void **)&broken.os)[i] = NULL;
		watch.text[0] = 0;
		EXPECT_EQUAL(EXECMEM_ERROR_OPERATION, execmem_create(&broken, &none, &refusals));
		EXPECT(refusals.count == 1 && strlen(refusals.list[0].call) > 2);
		EXPECT(!broken.os.write || strstr(watch.text, refusals.list[0].call));
	}
	return 0;
}
