/*
 * A QEMU TCG plugin: every memory access that the code in pages of stubs makes, seen from outside of the program.
 *
 *	qemu-<arch> -plugin access.so,page=ADDRESS:BYTES:PITCH:SLOTS,page=... program --code-at ADDRESS ...
 *
 * The program calls a page's slots path by path, within a path each slot once, ascending (conformance/po/path.c). A
 * call starts when an instruction of the page runs after one outside. Calls number k * slots to (k + 1) * slots - 1 of
 *a page are its pass k; an access is told apart by its pass, its place in its call, its instruction, width and
 *direction. One line each, at the end, on standard error; pages are numbered as they were given, from 0:
 *	execmem-plugin: page=P pass=K index=I at=OFFSET width=N store=0|1 count=N first=ADDRESS stride=N steady=0|1
 * first: the address of the first such access; stride: what a later call adds to it; steady: whether all calls do.
 *	execmem-plugin: page=P calls=N astray=N lost=N
 * astray: calls, or instructions within one, on another slot than this order says; lost: accesses that found no room.
 *
 * Built without QEMU's header package: the few prototypes are those of its documentation ("QEMU TCG Plugins"), and the
 * ones of the C library are declared as well, so that a bare clang suffices. Programs are single-threaded here.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef PLUGIN_API
#define PLUGIN_API 1
#endif

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum { QEMU_PLUGIN_MEM_RW = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*run)(unsigned cpu, void *data),
					  int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void (*run)(unsigned cpu, void *data),
					    int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*accessed)(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address,
						       void *data),
				      int flags, int direction, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*ended)(qemu_plugin_id_t id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

int dprintf(int fd, const char *format, ...);
unsigned long long strtoull(const char *text, char **end, int base);
int strncmp(const char *a, const char *b, size_t count);

__attribute__((visibility("default"))) extern const int qemu_plugin_version;
const int qemu_plugin_version = PLUGIN_API;

#define STDERR     2
#define PAGES_MAX  32
#define ACCESS_MAX 256 /* a page */

struct access {
	uint64_t pass, index, at, first, previous, count;
	int64_t stride;
	unsigned width;
	bool store, steady;
};

struct page {
	uint64_t code, bytes, pitch, slots;
	uint64_t calls, astray, lost;
	uint64_t index_in_call, slot_of_call;
	struct access accesses[ACCESS_MAX];
	size_t access_count;
};

static struct page pages[PAGES_MAX];
static size_t page_count;
static bool outside = true;

static struct page *page_of(uint64_t at)
{
	for (struct page *page = pages; page < pages + page_count; page++)
		if (at - page->code < page->bytes)
			return page;
	return NULL;
}

static void left_page(unsigned cpu, void *data)
{
	(void)cpu;
	(void)data;
	outside = true;
}

static void run_insn(unsigned cpu, void *data)
{
	const uint64_t at = (uint64_t)(uintptr_t)data;
	struct page *page = page_of(at);

	(void)cpu;
	if (outside) {
		outside = false;
		page->slot_of_call = page->calls % page->slots;
		page->index_in_call = 0;
		page->calls++;
	}
	if ((at - page->code) / page->pitch != page->slot_of_call)
		page->astray++;
}

static struct access *find(struct page *page, uint64_t pass, uint64_t at, unsigned width, bool store)
{
	for (struct access *a = page->accesses; a < page->accesses + page->access_count; a++)
		if (a->pass == pass && a->index == page->index_in_call && a->at == at && a->width == width &&
		    a->store == store)
			return a;
	return NULL;
}

static void accessed(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct page *page = page_of((uint64_t)(uintptr_t)data);
	const uint64_t at = ((uint64_t)(uintptr_t)data - page->code) % page->pitch;
	const uint64_t pass = (page->calls - 1) / page->slots;
	const unsigned width = 1u << qemu_plugin_mem_size_shift(info);
	const bool store = qemu_plugin_mem_is_store(info);
	struct access *a = find(page, pass, at, width, store);

	(void)cpu;
	if (a) {
		const int64_t step = (int64_t)(address - a->previous);

		if (a->count == 1)
			a->stride = step;
		a->steady = a->steady && step == a->stride;
		a->previous = address;
		a->count++;
	} else if (page->access_count < ACCESS_MAX) {
		page->accesses[page->access_count++] = (struct access){.pass = pass,
								       .index = page->index_in_call,
								       .at = at,
								       .first = address,
								       .previous = address,
								       .count = 1,
								       .width = width,
								       .store = store,
								       .steady = true};
	} else {
		page->lost++;
	}
	page->index_in_call++;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	const size_t count = qemu_plugin_tb_n_insns(block);
	bool inside = false;

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		const uint64_t at = qemu_plugin_insn_vaddr(insn);
		void *const data = (void *)(uintptr_t)at;

		if (!page_of(at))
			continue;
		inside = true;
		qemu_plugin_register_vcpu_insn_exec_cb(insn, run_insn, QEMU_PLUGIN_CB_NO_REGS, data);
		qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, data);
	}
	if (!inside)
		qemu_plugin_register_vcpu_tb_exec_cb(block, left_page, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

static void report(const struct page *page, unsigned number)
{
	for (const struct access *a = page->accesses; a < page->accesses + page->access_count; a++)
		dprintf(STDERR,
			"execmem-plugin: page=%u pass=%llu index=%llu at=%llu width=%u store=%d count=%llu first=%llu "
			"stride=%lld steady=%d\n",
			number, (unsigned long long)a->pass, (unsigned long long)a->index, (unsigned long long)a->at,
			a->width, a->store, (unsigned long long)a->count, (unsigned long long)a->first,
			(long long)a->stride, a->steady);
	dprintf(STDERR, "execmem-plugin: page=%u calls=%llu astray=%llu lost=%llu\n", number,
		(unsigned long long)page->calls, (unsigned long long)page->astray, (unsigned long long)page->lost);
}

static void ended(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	for (unsigned i = 0; i < page_count; i++)
		report(&pages[i], i);
}

/* "page=ADDRESS:BYTES:PITCH:SLOTS", each a number that is not zero. */
static bool take_page(const char *argument)
{
	uint64_t numbers[4];
	char *at = (char *)argument;

	if (strncmp(argument, "page=", 5) || page_count == PAGES_MAX)
		return false;
	for (unsigned i = 0; i < 4; i++) {
		numbers[i] = strtoull(at + (i ? 1 : 5), &at, 0);
		if (!numbers[i] || *at != (i < 3 ? ':' : '\0'))
			return false;
	}
	pages[page_count++] =
		(struct page){.code = numbers[0], .bytes = numbers[1], .pitch = numbers[2], .slots = numbers[3]};
	return true;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
							       char **argv)
{
	bool understood = argc > 0;

	(void)info;
	for (int i = 0; i < argc; i++)
		understood = understood && take_page(argv[i]);
	if (!understood) {
		dprintf(STDERR, "execmem-plugin: wants page=ADDRESS:BYTES:PITCH:SLOTS, at most %d times\n", PAGES_MAX);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
