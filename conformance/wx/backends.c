/*
 * What the system refuses leads to the next backend that the caller allows, or to an error that names each refusal;
 * never to memory that is writable and executable.
 */
#include "../alloc/alloc.h"
#include "../alloc/maps.h"
#include "../alloc/table.h"
#include "../os.h"
#include "../text.h"

/* A facility that is refused for good: a kind of call, of which those that ask for `protection` alone, if any. */
struct refused {
	const char *what;
	enum watch_kind kind;
	bool on_file;
	unsigned protection;
	int error;
};

static const struct refused facilities[] = {
	{"memory files, forbidden", WATCH_FILE_CREATE, false, 0, TABLE_EPERM},
	{"memory files, by a security module", WATCH_FILE_CREATE, false, 0, TABLE_EACCES},
	{"memory files, unknown to the system", WATCH_FILE_CREATE, false, 0, TABLE_ENOSYS},
	{"memory files, too many open", WATCH_FILE_CREATE, false, 0, TABLE_EMFILE},
	{"room for a memory file", WATCH_FILE_GROW, false, 0, TABLE_ENOSPC},
	{"memory files of that length", WATCH_FILE_GROW, false, 0, TABLE_EFBIG},
	{"executable mappings of files, forbidden", WATCH_MAP, true, SUBJECT_EXECUTE, TABLE_EPERM},
	{"executable mappings of files, by a security module", WATCH_MAP, true, SUBJECT_EXECUTE, TABLE_EACCES},
	{"writable shared mappings", WATCH_MAP, true, SUBJECT_WRITE, TABLE_EACCES},
};
#define FACILITIES (sizeof(facilities) / sizeof(facilities[0]))
static const struct refused toggling = {"executable pages that were writable", WATCH_PROTECT, false, SUBJECT_EXECUTE,
					TABLE_EACCES};

static const struct refused *refused[2];

static int refuse(const struct watch_call *call)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct refused *r = refused[i];

		if (r && r->kind == call->kind && (!r->on_file || call->file != SPACE_NO_FILE) &&
		    (!r->protection || call->protection & r->protection))
			return -r->error;
	}
	return 0;
}

static struct subject_config ordered(enum subject_backend first, enum subject_backend second)
{
	struct subject_config config = alloc_config();

	config.backends[0] = first;
	config.backends[1] = second;
	return config;
}

/* Creates with these facilities refused. */
static int create(const struct subject_config *config, const struct refused *one, const struct refused *two,
		  struct subject_allocator **allocator, struct subject_refusals *refusals)
{
	int error;

	watch_begin();
	refused[0] = one;
	refused[1] = two;
	watch.refuse = refuse;
	watch.toggling = config->backends[0] == SUBJECT_BACKEND_TOGGLE || config->backends[1] == SUBJECT_BACKEND_TOGGLE;
	if (one)
		check_note("refused", one->what);
	error = ALLOC(create_over)(&watch_os, config, allocator, refusals);
	return error;
}

static bool names(const struct subject_refusals *refusals, const struct refused *r, const char *backend)
{
	for (unsigned i = 0; i < refusals->count; i++)
		if (text_equal(refusals->list[i].backend, backend) &&
		    text_equal(refusals->list[i].call, watch_name[r->kind]) && refusals->list[i].error == r->error)
			return true;
	check_note("must_name", watch_name[r->kind]);
	check_note_number("must_name_errno", (uint64_t)r->error);
	if (refusals->count) {
		check_note("first_named", refusals->list[0].call);
		check_note_number("first_errno", (uint64_t)refusals->list[0].error);
	}
	return false;
}
#define NAMES(refusals_, r_, backend_)                                                                                 \
	CHECK_TRUE(names(refusals_, r_, backend_), "the refusal is named: call and errno")

static bool nothing_left(void)
{
	return CHECK_EQUAL(0, space.count, "a creation that fails leaves nothing mapped") &&
	       CHECK_EQUAL(0, space_open_files(), "and no file open") && maps_agree("a creation that fails") &&
	       WATCH_KEPT(WATCH_BOTH, "nothing is mapped writable and executable instead");
}

/* Regions, code, and all of it given back. */
static bool lives(struct subject_allocator *allocator)
{
	struct subject_region region;

	return alloc_region(allocator, 2 * ALLOC_UNIT, &region) && alloc_put(allocator, region.rx + 100, 5) &&
	       alloc_runs(region.rx + 100, 5, "code runs") && alloc_put(allocator, region.rx + 100, 6) &&
	       alloc_runs(region.rx + 100, 6, "code that replaces other runs") && ALLOC_OK(ALLOC(release)(&region)) &&
	       WATCH_KEPT(WATCH_BOTH, "nothing is mapped writable and executable instead");
}

CHECK(wx_next_backend, "WX-010", "where the first backend is refused, the next one that is allowed is used")
{
	const struct subject_config config = ordered(SUBJECT_BACKEND_DOUBLE, SUBJECT_BACKEND_TOGGLE);
	const struct subject_config reverse = ordered(SUBJECT_BACKEND_TOGGLE, SUBJECT_BACKEND_DOUBLE);
	struct subject_allocator *allocator = NULL;
	struct subject_refusals refusals;

	if (!alloc_claims("allocator os-table backends"))
		return;
	for (unsigned i = 0; i < FACILITIES; i++) {
		MUST_OK(create(&config, &facilities[i], NULL, &allocator, &refusals));
		MUST(CHECK_EQUAL(SUBJECT_BACKEND_TOGGLE, ALLOC(backend)(allocator), "the next backend is used"));
		MUST(NAMES(&refusals, &facilities[i], "double mapping"));
		MUST(CHECK_EQUAL(0, space_open_files(), "a file that is of no use is not kept"));
		MUST(lives(allocator) && alloc_end(allocator));
	}
	MUST_OK(create(&reverse, &toggling, NULL, &allocator, &refusals));
	MUST(CHECK_EQUAL(SUBJECT_BACKEND_DOUBLE, ALLOC(backend)(allocator), "the order is the caller's"));
	MUST(NAMES(&refusals, &toggling, "protection toggling"));
	MUST(lives(allocator) && alloc_end(allocator));
}

CHECK(wx_refusals_named, "WX-011", "where every allowed backend is refused, the error names each call and its errno")
{
	const struct subject_config both = ordered(SUBJECT_BACKEND_DOUBLE, SUBJECT_BACKEND_TOGGLE);
	const struct subject_config one = ordered(SUBJECT_BACKEND_DOUBLE, SUBJECT_BACKEND_END);
	struct subject_allocator *allocator = NULL;
	struct subject_refusals refusals;

	if (!alloc_claims("allocator os-table backends"))
		return;
	for (unsigned i = 0; i < FACILITIES; i++) {
		MUST(ALLOC_IS(SUBJECT_ERROR_REFUSED, create(&one, &facilities[i], NULL, &allocator, &refusals)));
		MUST(NAMES(&refusals, &facilities[i], "double mapping") && nothing_left());
		MUST(ALLOC_IS(SUBJECT_ERROR_REFUSED, create(&both, &facilities[i], &toggling, &allocator, &refusals)));
		MUST(NAMES(&refusals, &facilities[i], "double mapping"));
		MUST(NAMES(&refusals, &toggling, "protection toggling") && nothing_left());
	}
}

CHECK(wx_toggling_allowed, "WX-012", "protections are toggled only where the caller allows it")
{
	const struct subject_config config = ordered(SUBJECT_BACKEND_DOUBLE, SUBJECT_BACKEND_END);
	struct subject_allocator *allocator = NULL;
	struct subject_refusals refusals;

	if (!alloc_claims("allocator os-table backends"))
		return;
	for (unsigned i = 0; i < FACILITIES; i++) {
		const int error = create(&config, &facilities[i], NULL, &allocator, &refusals);

		MUST(CHECK_TRUE(watch.injected > 0, "the facility is asked for"));
		MUST(CHECK_EQUAL(0, watch.of_kind[WATCH_PROTECT], "no protection is changed"));
		MUST(CHECK_TRUE(error < 0, "there is no allocator"));
	}
}

/* ---- A file without the right to execute ---- */

static int flag_error;

/* vm.memfd_noexec = 2, or a kernel that does not know the flag. */
static int refuse_flag(const struct watch_call *call)
{
	return call->kind == WATCH_FILE_CREATE && call->protection ? -flag_error : 0;
}

CHECK(wx_file_flag, "WX-013",
      "where the system refuses the flag alone that makes a memory file executable, it does without")
{
	static const int errors[] = {TABLE_EINVAL, TABLE_EACCES, TABLE_EPERM};
	const struct subject_config config = ordered(SUBJECT_BACKEND_DOUBLE, SUBJECT_BACKEND_TOGGLE);
	struct subject_allocator *allocator;

	if (!alloc_claims("allocator os-table backends"))
		return;
	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		watch_begin();
		flag_error = errors[i];
		watch.refuse = refuse_flag;
		check_note_number("errno", (uint64_t)flag_error);
		allocator = alloc_create(&config);
		MUST(allocator);
		MUST(CHECK_EQUAL(SUBJECT_BACKEND_DOUBLE, ALLOC(backend)(allocator),
				 "the memory file is used all the same"));
		MUST(lives(allocator) && alloc_end(allocator));
	}
}

#define CLONE_NEWPID 0x20000000
#define SIGCHLD      17
#define AT_FDCWD     (-100)
#define O_WRONLY     1

/* vm.memfd_noexec belongs to a pid namespace: ours is made first. */
static bool noexec_on(void)
{
	char room[8];
	const long file = TABLE_CALL(OPENAT, AT_FDCWD, "/proc/sys/vm/memfd_noexec", O_WRONLY);
	int made;

	if (file < 0)
		return false;
	if (execmem_port_write((int)file, "2", 1) != 1)
		return false;
	TABLE_CALL(CLOSE, file);
	return table_read_file("/proc/sys/vm/memfd_noexec", room, sizeof(room)) > 0 && room[0] == '2' &&
	       table_real.file_create(NULL, "probe", 1, &made) == -TABLE_EACCES;
}

static int live_under_noexec(void)
{
	const struct subject_config config = ordered(SUBJECT_BACKEND_DOUBLE, SUBJECT_BACKEND_END);
	struct subject_allocator *allocator;
	struct subject_refusals refusals;
	struct subject_region region;

	if (!noexec_on())
		return ALLOC_APART_NOT;
	ALLOC_STEP(ALLOC(create)(&config, &allocator, &refusals) == 0);
	ALLOC_STEP(alloc_region(allocator, ALLOC_UNIT, &region));
	ALLOC_STEP(alloc_put(allocator, region.rx, 7) && alloc_run(region.rx) == 7);
	ALLOC_STEP(ALLOC(release)(&region) == 0 && ALLOC(destroy)(allocator) == 0);
	return 0;
}

CHECK(wx_memfd_noexec, "WX-014", "memory files run code under vm.memfd_noexec = 2")
{
	int status = ALLOC_APART_NOT;
	long child;

	if (!alloc_claims("allocator"))
		return;
	/* Not os_fork: the allocator of the child is made in it. */
	child = TABLE_CALL(CLONE, CLONE_NEWPID | SIGCHLD);
	if (!child)
		execmem_port_exit(live_under_noexec());
	if (child > 0)
		status = os_ended(child);
	if (status == ALLOC_APART_NOT)
		check_emulator("this system has no vm.memfd_noexec, or does not let this process set it");
	else
		(void)alloc_ended(status, "code runs from a memory file under vm.memfd_noexec = 2");
}
