/*
 * Every system call of a script that touches every operation is refused once: the operation that met it says so, or
 * goes on without it as documented, the script goes on, and at the end nothing is left.
 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNIT ((size_t)EXECMEM_UNIT_BYTES)
#define PAGE ((size_t)4096)

static unsigned long failures; /* operations that said so */
static enum execmem_backend backend;
static bool stale, fork_too;

/* State that an operation which fails must leave as it is. */
static void same(const struct execmem_stats *before, const struct execmem_stats *after)
{
	EXPECT_EQUAL(before->regions, after->regions);
	EXPECT_EQUAL(before->reserved_bytes, after->reserved_bytes);
	EXPECT_EQUAL(before->committed_bytes, after->committed_bytes);
	EXPECT_EQUAL(before->file_used_bytes, after->file_used_bytes);
	EXPECT_EQUAL(before->views_open, after->views_open);
	EXPECT_EQUAL(before->deferred_bytes, after->deferred_bytes);
	EXPECT(after->views_mapped <= before->views_mapped);
}

/* Does it, and again where it was refused: the second time it must work. */
#define RETRY(allocator_, call_)                                                                                       \
	do {                                                                                                           \
		struct execmem_stats before_ = stats_unwatched(allocator_);                                            \
		int error_ = (call_);                                                                                  \
		if (error_) {                                                                                          \
			struct execmem_stats after_ = stats_unwatched(allocator_);                                     \
			failures++;                                                                                    \
			EXPECT(execmem_error_text(error_) && error_ < 0);                                              \
			same(&before_, &after_);                                                                       \
			OK(call_);                                                                                     \
		}                                                                                                      \
	} while (0)

static struct execmem_stats stats_unwatched(struct execmem_allocator *allocator)
{
	unsigned long at = watch.fail_at, calls = watch.calls;
	struct execmem_stats stats;

	watch.fail_at = 0;
	stats = stats_of(allocator);
	watch.fail_at = at;
	watch.calls = calls;
	return stats;
}

static struct execmem_config config_of(void)
{
	struct execmem_config config = execmem_config_default(watch_os());

	config.backends[0] = backend;
	config.rw_cache = 2;
	config.grow_bytes = UNIT;
	config.emulation = stale ? EXECMEM_EMULATION_ON : EXECMEM_EMULATION_PROBE;
	return config;
}

static bool failed_near;

static void script(void)
{
	static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};
	struct execmem_config config = config_of();
	struct execmem_allocator *allocator;
	struct execmem_region a, b, near_region;
	const char *before;
	struct execmem_near near;
	struct execmem_view view, second;
	int error = execmem_create(&config, &allocator, NULL);

	if (error) {
		failures++;
		OK(execmem_create(&config, &allocator, NULL));
	}
	RETRY(allocator, execmem_reserve(allocator, 5 * UNIT, NULL, 1, NULL, &a));
	RETRY(allocator, execmem_reserve(allocator, 3 * UNIT, NULL, 2, NULL, &b));
	near = (struct execmem_near){a.rx.at, 256 * UNIT};
	before = watch.failed;
	RETRY(allocator, execmem_reserve(allocator, UNIT, &near, 3, NULL, &near_region));
	failed_near = watch.failed != before;
	RETRY(allocator, execmem_commit(&a, 0, UNIT));
	RETRY(allocator, execmem_commit(&b, 0, UNIT + PAGE));
	RETRY(allocator, execmem_commit(&a, UNIT, 3 * UNIT));
	RETRY(allocator, execmem_commit(&near_region, PAGE, PAGE));
	for (size_t i = 0; i < 4; i++) {
		RETRY(allocator, execmem_map_rw(allocator, (execmem_rx){a.rx.at + i * UNIT + 100}, 50, 0, &view));
		memcpy(view.rw.at, code, sizeof(code));
		RETRY(allocator, execmem_publish(&view, 0, sizeof(code), EXECMEM_PUBLISH_SERIALIZE));
		RETRY(allocator, execmem_publish(&view, 0, sizeof(code), 0));
		EXPECT_EQUAL(100, view.rx.at % UNIT);
		RETRY(allocator, execmem_unmap_rw(&view));
		EXPECT_EQUAL(7, ((int (*)(void))(a.rx.at + i * UNIT + 100))());
	}
	RETRY(allocator, execmem_map_rw(allocator, (execmem_rx){a.rx.at + UNIT - 20}, UNIT, 0, &view));
	RETRY(allocator, execmem_map_rw(allocator, b.rx, 8, EXECMEM_MAP_SINGLE_USE, &second));
	if (fork_too) {
		int status;
		pid_t child;

		RETRY(allocator, execmem_fork_prepare(allocator));
		child = fork();
		EXPECT(child >= 0);
		if (child == 0) {
			error = execmem_fork_child(allocator);
			if (error)
				OK(execmem_fork_child(allocator));
			RETRY(allocator, execmem_unmap_rw(&view));
			RETRY(allocator, execmem_write(allocator, a.rx, code, sizeof(code), 0));
			_exit(0);
		}
		error = execmem_fork_parent(allocator); /* done, whatever it says */
		failures += error != 0;
		EXPECT(waitpid(child, &status, 0) == child && status == 0);
	}
	RETRY(allocator, execmem_unmap_rw(&view));
	RETRY(allocator, execmem_unmap_rw(&second));
	RETRY(allocator, execmem_decommit(&b, PAGE, PAGE));
	RETRY(allocator, execmem_decommit(&b, 2 * PAGE, UNIT - PAGE));
	RETRY(allocator, execmem_commit(&b, PAGE, 2 * PAGE));
	EXPECT_EQUAL(0, *(const unsigned char *)(b.rx.at + PAGE));
	RETRY(allocator, execmem_decommit(&a, UNIT, 2 * UNIT));
	RETRY(allocator, execmem_commit(&near_region, 2 * PAGE, 2 * PAGE));
	RETRY(allocator, execmem_stats_dump(allocator));
	RETRY(allocator, execmem_release(&a));
	RETRY(allocator, execmem_release(&b));
	RETRY(allocator, execmem_release(&near_region));
	error = execmem_destroy(allocator);
	if (error) {
		failures++;
		OK(execmem_destroy(allocator));
	}
}

/*
 * Calls that may be refused without a word, each with the reason. Everything else must be reported, for every k.
 */
static const struct {
	const char *call;
	int errors[4]; /* with these alone; none: with any */
	const char *reason;
	bool near; /* while memory near a target is reserved, and not elsewhere */
} ignorable[] = {
	{"map", {0}, "another place within reach is taken", true},
	{"name", {0}, "a name in /proc/self/maps is for people", false},
	{"file_seal", {0}, "nothing depends on the seal; execmem_create's refusals tell it", false},
	{"file_create",
	 {EINVAL, EPERM, EACCES},
	 "asked again without the flag; execmem_create's refusals tell it",
	 false},
	{"wipe_on_fork", {0}, "identity is asked at each call instead", false},
	{"file_punch", {0}, "put off, and counted as deferred_bytes", false},
};

static bool is_ignorable(const char *call, int error)
{
	for (size_t i = 0; i < sizeof(ignorable) / sizeof(ignorable[0]); i++) {
		const int *errors = ignorable[i].errors;

		if (strcmp(ignorable[i].call, call) == 0 && (failed_near || !ignorable[i].near))
			return !errors[0] || error == errors[0] || error == errors[1] || error == errors[2];
	}
	return false;
}

int main(void)
{
	static const int errors[] = {ENOMEM, EPERM, EINVAL, EAGAIN, ENOSYS, ENOSPC, EFBIG, EACCES};
	unsigned long mappings, files, calls;

	for (int mode = 0; mode < 4; mode++) {
		backend = mode == 3 ? EXECMEM_BACKEND_TOGGLE : EXECMEM_BACKEND_DOUBLE;
		stale = mode == 1;
		fork_too = mode == 2;
		watch.fail_at = 0;
		script();
		watch.calls = 0;
		script();
		calls = watch.calls;
		EXPECT(calls > 20 && calls < 1000);
		mappings = count_mappings();
		files = count_files();
		for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
			if (fork_too && e > 1)
				break;
			for (unsigned long k = 1; k <= calls; k++) {
				unsigned long before = failures;

				watch.calls = 0;
				watch.fail_at = k;
				watch.failed = "none";
				watch.fail_with = errors[e];
				script();
				if (failures == before && !is_ignorable(watch.failed, errors[e])) {
					fprintf(stderr, "mode %d: call %lu (%s, errno %d) is refused silently\n", mode,
						k, watch.failed, errors[e]);
					return 1;
				}
				EXPECT_EQUAL(files, count_files());
				if (count_mappings() != mappings) {
					fprintf(stderr, "mode %d: call %lu (errno %d): %lu mappings, before %lu\n",
						mode, k, errors[e], count_mappings(), mappings);
					return 1;
				}
			}
		}
	}
	return 0;
}
