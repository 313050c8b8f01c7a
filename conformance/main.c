/*
 * The main program of every conformance program: options, and the loop over points. See check.h.
 */
#include <port.h>

#include "call.h"
#include "check.h"
#include "os.h"
#include "report.h"
#include "subject.h"
#include "subject_allocator.h"
#include "subject_blocks.h"
#include "subject_code_heap.h"
#include "subject_release.h"
#include "subject_stub_heap.h"
#include "text.h"

#define AT_NULL   0
#define AT_PAGESZ 6
#define ONLY_MOST 256
#define PAGE_MOST 65536

/* The linker's bounds of the section that CHECK() fills. */
extern const struct check __start_execmem_checks[], __stop_execmem_checks[];

uint64_t check_seed = 1, check_rounds = 1;
uintptr_t check_code_at, check_code_step;
size_t check_os_page, check_page;
char *const *check_environment;

static const char *nonce = "";
static struct {
	const char *name;
	bool matched;
} only[ONLY_MOST];
static unsigned only_count;
static unsigned planned;
static bool any_failed;
static const struct check *alone; /* --each: the one check of this process */

/* ---- Points ---- */

typedef void visitor(const struct check *check, const char *point, const struct subject_template *t);

static bool is_kind(const struct check *check, const struct subject_template *t)
{
	return text_equal(check->kind, "*") || text_equal(check->kind, t->kind);
}

/* Every point of a check, in the order of the report. */
static void visit_check(const struct check *check, visitor *visit)
{
	unsigned visited = 0;

	for (unsigned i = 0; *check->kind && i < subject_template_count; i++)
		if (is_kind(check, &subject_templates[i])) {
			visit(check, subject_templates[i].name, &subject_templates[i]);
			visited++;
		}
	if (!visited)
		visit(check, "all", NULL);
}

static void visit_all(visitor *visit)
{
	for (const struct check *check = __start_execmem_checks; check < __stop_execmem_checks; check++)
		visit_check(check, visit);
}

static bool selected(const struct check *check, const char *point)
{
	char room[128];
	struct text name = TEXT(room);
	bool found = !only_count;

	if (alone && check != alone)
		return false;
	text_add(&name, check->id);
	text_add(&name, ".");
	text_add(&name, point);
	for (unsigned i = 0; i < only_count; i++)
		if (text_equal(only[i].name, check->id) || text_equal(only[i].name, room))
			found = only[i].matched = true;
	return found;
}

static void count_point(const struct check *check, const char *point, const struct subject_template *t)
{
	(void)t;
	planned += selected(check, point);
}

static void run_point(const struct check *check, const char *point, const struct subject_template *t)
{
	if (!selected(check, point))
		return;
	report_begin(check, point);
	if (t || !*check->kind)
		check->run(t);
	else
		check_not_claimed("the subject has no template of this kind");
	any_failed |= report_end();
}

static void list_point(const struct check *check, const char *point, const struct subject_template *t)
{
	static const struct check *last;

	(void)t;
	if (check == last) {
		report_put(",");
	} else {
		report_put(check->id);
		report_put("\t");
		report_put(check->requirement);
		report_put("\t");
	}
	report_put(point);
	last = check;
}

static void list(void)
{
	for (const struct check *check = __start_execmem_checks; check < __stop_execmem_checks; check++) {
		visit_check(check, list_point);
		report_put("\t");
		report_put(check->text);
		report_put("\n");
	}
}

/* ---- The subject ---- */

bool check_claimed(const char *claim)
{
	for (unsigned i = 0; subject_claims[i]; i++)
		if (text_equal(subject_claims[i], claim))
			return true;
	return false;
}

static bool agrees(const char *claim, const char *operation, bool offered)
{
	if (check_claimed(claim) == offered)
		return true;
	report_put(offered ? "# manifest: the subject offers and does not claim: "
			   : "# manifest: the subject claims and does not offer: ");
	report_put(claim);
	if (operation) {
		report_put(", operation ");
		report_put(operation);
	}
	report_put("\n");
	return false;
}

/* What is claimed is offered and what is offered is claimed, or the manifest is wrong. */
static bool claims_agree(void)
{
	static const struct subject_allocator_operations no_allocator;
	static const struct subject_code_heap_operations no_code_heap;
	static const struct subject_stub_heap_operations no_stub_heap;
	static const struct subject_release_operations no_release;
	static const struct subject_blocks_operations no_blocks;
	const struct subject_allocator_operations *allocator = subject.allocator ? subject.allocator : &no_allocator;
	const struct subject_code_heap_operations *code_heap = subject.code_heap ? subject.code_heap : &no_code_heap;
	const struct subject_stub_heap_operations *stub_heap = subject.stub_heap ? subject.stub_heap : &no_stub_heap;
	const struct subject_release_operations *release = subject.release ? subject.release : &no_release;
	const struct subject_blocks_operations *blocks = subject.blocks ? subject.blocks : &no_blocks;

#define AGREES(layer_, operation_, claim_)   &&agrees(claim_, #operation_, (layer_)->operation_ != NULL)
#define ALLOCATOR_AGREES(operation_, claim_) AGREES(allocator, operation_, claim_)
#define CODE_HEAP_AGREES(operation_, claim_) AGREES(code_heap, operation_, claim_)
#define STUB_HEAP_AGREES(operation_, claim_) AGREES(stub_heap, operation_, claim_)
#define RELEASE_AGREES(operation_, claim_)   AGREES(release, operation_, claim_)
#define BLOCKS_AGREES(operation_, claim_)    AGREES(blocks, operation_, claim_)
	return agrees("stub-pages", NULL, subject.fill_stub_page != NULL) &&
	       agrees("stub-page-size", NULL, subject.stub_page_size != NULL) SUBJECT_ALLOCATOR_CLAIMS(ALLOCATOR_AGREES)
		       SUBJECT_CODE_HEAP_CLAIMS(CODE_HEAP_AGREES) SUBJECT_STUB_HEAP_CLAIMS(STUB_HEAP_AGREES)
			       SUBJECT_RELEASE_CLAIMS(RELEASE_AGREES) SUBJECT_BLOCKS_CLAIMS(BLOCKS_AGREES);
#undef BLOCKS_AGREES
#undef RELEASE_AGREES
#undef STUB_HEAP_AGREES
#undef CODE_HEAP_AGREES
#undef ALLOCATOR_AGREES
#undef AGREES
}

/* ---- Start ---- */

static int usage(const char *what)
{
	report_put("# usage: PROGRAM [--list] [--each] [--only CHECK[.POINT]]... [--seed N] [--nonce TEXT] [--code-at "
		   "ADDRESS [--code-step BYTES]] [--page BYTES] [--rounds N]\n# ");
	report_put(what);
	report_put("\n");
	return STATUS_USAGE;
}

static void put_end(void)
{
	char room[512];
	struct text line = TEXT(room);

	text_add(&line, "# seen os_page=");
	text_add_decimal(&line, check_page);
	text_add(&line, " stub_page=");
	text_add_decimal(&line, subject_stub_page);
	text_add(&line, "\n# complete nonce=");
	text_add(&line, nonce);
	text_add(&line, " points=");
	text_add_decimal(&line, report_points);
	text_add(&line, " assertions=");
	text_add_decimal(&line, report_assertions);
	text_add(&line, "\n");
	report_put(room);
}

static void put_start(void)
{
	char room[128];
	struct text line = TEXT(room);

	text_add(&line, "KTAP version 1\n1..");
	text_add_decimal(&line, planned);
	text_add(&line, "\n# seed ");
	text_add_decimal(&line, check_seed);
	text_add(&line, "\n");
	report_put(room);
}

/* One option with its value; false where it is none or the value is not one. */
static bool take_option(const char *option, const char *value)
{
	uint64_t number;

	if (text_equal(option, "--only") && only_count < ONLY_MOST) {
		only[only_count++].name = value;
	} else if (text_equal(option, "--nonce")) {
		nonce = value;
	} else if (text_equal(option, "--seed") && text_number(value, &number)) {
		check_seed = number;
	} else if (text_equal(option, "--code-at") && text_number(value, &number)) {
		check_code_at = (uintptr_t)number;
	} else if (text_equal(option, "--code-step") && text_number(value, &number)) {
		check_code_step = (uintptr_t)number;
	} else if (text_equal(option, "--page") && text_number(value, &number) && number && !(number & (number - 1)) &&
		   number <= PAGE_MOST) {
		check_page = (size_t)number;
	} else if (text_equal(option, "--rounds") && text_number(value, &number) && number) {
		check_rounds = number;
	} else {
		return false;
	}
	return true;
}

/* False where --only names what there is not, or nothing is left. */
static bool plan(void)
{
	visit_all(count_point);
	for (unsigned i = 0; i < only_count; i++)
		if (!only[i].matched)
			return usage(only[i].name) == STATUS_OK;
	return planned || usage("there is no check") == STATUS_OK;
}

static int run(void)
{
	if (!check_os_page)
		check_broken("the system names no page size (AT_PAGESZ)", 0);
	call_install();
	put_start();
	visit_all(run_point);
	put_end();
	return any_failed ? STATUS_FAILED : STATUS_OK;
}

static void put_each(const char *what, const struct check *check, int status)
{
	char room[128];
	struct text line = TEXT(room);

	text_add(&line, "# each ");
	text_add(&line, what);
	text_add(&line, " ");
	text_add(&line, check->id);
	if (status < 0)
		text_add(&line, " signal=");
	else
		text_add(&line, " status=");
	text_add_decimal(&line, (uint64_t)(status < 0 ? -status : status));
	text_add(&line, "\n");
	report_put(room);
}

/* The check in a process of its own, which prints what the program would print for it alone. */
static void run_apart(const struct check *check)
{
	long child;
	int status;

	put_each("begin", check, 0);
	child = os_fork();
	if (!child) {
		any_failed = false; /* what failed before was another process's */
		execmem_port_exit(run());
	}
	status = os_ended(child);
	any_failed |= status != STATUS_OK;
	put_each("end", check, status);
}

static int run_each(void)
{
	for (alone = __start_execmem_checks; alone < __stop_execmem_checks; alone++) {
		planned = 0;
		visit_check(alone, count_point);
		if (planned)
			run_apart(alone);
	}
	return any_failed ? STATUS_FAILED : STATUS_OK;
}

int execmem_main(int argc, char **argv, char **envp, const uintptr_t *auxv)
{
	bool listing = false, each = false;

	check_environment = envp;
	for (; auxv[0] != AT_NULL; auxv += 2)
		if (auxv[0] == AT_PAGESZ)
			check_os_page = auxv[1];
	for (int i = 1; i < argc; i++) {
		if (text_equal(argv[i], "--list"))
			listing = true;
		else if (text_equal(argv[i], "--each"))
			each = true;
		else if (i + 1 == argc || !take_option(argv[i], argv[i + 1]))
			return usage(argv[i]);
		else
			i++;
	}
	/* What the system has cannot be made smaller. */
	if (check_page < check_os_page)
		check_page = check_os_page;
	if (subject.version != SUBJECT_VERSION)
		return usage("the subject is built for another version of subject.h");
	if (!claims_agree())
		return STATUS_USAGE;
	if (listing) {
		list();
		return STATUS_OK;
	}
	if (!plan())
		return STATUS_USAGE;
	return each ? run_each() : run();
}
