/*
 * A QEMU TCG plugin: the system calls of a program that change what is mapped, in order, with thread and time.
 *
 *	qemu-<arch> -plugin calls.so,log=FILE,calls=N.N.N,map=N program ...
 *
 * FILE is there already and not empty: its size says how many records it has room for. It is mapped, shared with
 *children that the program forks, and no descriptor of it stays open that the program could close. The first record is
 *the header: how many were begun. A record's place is taken by an atomic addition, so that the order of records is one
 *order for all threads and processes. A record counts once its `kind` is set.
 *
 * calls: the numbers to record. map: the number of the call that maps files; the file behind its fifth argument is
 * identified by device and inode, because guest descriptors are the emulator's own.
 *
 * Built without QEMU's header package and the C library's headers, like access.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef PLUGIN_API
#define PLUGIN_API 1
#endif

typedef uint64_t qemu_plugin_id_t;

void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id,
					  void (*entered)(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a,
							  uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
							  uint64_t g, uint64_t h));
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id, void (*returned)(qemu_plugin_id_t id, unsigned cpu,
										    int64_t number, int64_t result));

/* As the kernel lays it out on every architecture: linux/stat.h. */
struct statx {
	uint32_t mask, block_size;
	uint64_t attributes;
	uint32_t links, user, group;
	uint16_t mode, unused;
	uint64_t inode, size, blocks, attributes_mask;
	uint64_t times[8];
	uint32_t special_major, special_minor, device_major, device_minor;
	uint64_t spare[14];
};
struct timespec {
	long seconds, nanoseconds;
};

int open(const char *path, int flags, ...);
int close(int fd);
long lseek(int fd, long offset, int whence);
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, long offset);
int statx(int folder, const char *path, int flags, unsigned mask, struct statx *found);
long readlink(const char *path, char *text, size_t bytes);
int clock_gettime(int clock, struct timespec *now);
int gettid(void);
int getpid(void);
int getppid(void);
int dprintf(int fd, const char *format, ...);
int snprintf(char *text, size_t bytes, const char *format, ...);
unsigned long long strtoull(const char *text, char **end, int base);
int strncmp(const char *a, const char *b, size_t count);

__attribute__((visibility("default"))) extern const int qemu_plugin_version;
const int qemu_plugin_version = PLUGIN_API;

#define STDERR          2
#define O_RDWR          2
#define O_CLOEXEC       02000000
#define SEEK_END        2
#define PROT_RW         3
#define MAP_SHARED      1
#define CLOCK_MONOTONIC 1
#define AT_EMPTY_PATH   0x1000
#define STATX_BASIC     0x7ff
#define CALLS_MAX       64
#define ARGUMENTS       6
#define FD_ARGUMENT     4

enum kind { ENTERED = 1, RETURNED = 2 };

/* 256 bytes; harness/execmem_cts/audit/plugin.py reads it. */
struct record {
	uint64_t kind;
	uint64_t time; /* nanoseconds */
	int32_t process, parent, thread, cpu;
	int64_t number, result;
	uint64_t arguments[ARGUMENTS];
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t links, has_file;
	char name[136];
};
_Static_assert(sizeof(struct record) == 256, "a record is 256 bytes");

static struct record *records;
static uint64_t room;
static int64_t wanted[CALLS_MAX];
static size_t wanted_count;
static int64_t map_number = -1;

static bool is_wanted(int64_t number)
{
	for (size_t i = 0; i < wanted_count; i++)
		if (wanted[i] == number)
			return true;
	return false;
}

static struct record *next_record(unsigned cpu, int64_t number)
{
	const uint64_t at = __atomic_add_fetch(&records[0].time, 1, __ATOMIC_RELAXED);
	struct timespec now = {0, 0};
	struct record *r;

	if (at >= room)
		return NULL; /* the header's count says how many found no room */
	r = &records[at];
	clock_gettime(CLOCK_MONOTONIC, &now);
	r->time = (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
	r->process = getpid();
	r->parent = getppid();
	r->thread = gettid();
	r->cpu = (int32_t)cpu;
	r->number = number;
	return r;
}

static void identify(struct record *r, int fd)
{
	char path[32];
	struct statx found;
	long length;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC, &found) != 0)
		return;
	r->has_file = 1;
	r->inode = found.inode;
	r->device_major = found.device_major;
	r->device_minor = found.device_minor;
	r->links = found.links;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	length = readlink(path, r->name, sizeof r->name - 1);
	r->name[length > 0 ? length : 0] = 0;
}

static void entered(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		    uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
	const uint64_t arguments[ARGUMENTS] = {a, b, c, d, e, f};
	struct record *r;

	(void)id;
	(void)g;
	(void)h;
	if (!is_wanted(number))
		return;
	r = next_record(cpu, number);
	if (!r)
		return;
	for (size_t i = 0; i < ARGUMENTS; i++)
		r->arguments[i] = arguments[i];
	if (number == map_number)
		identify(r, (int)arguments[FD_ARGUMENT]);
	__atomic_store_n(&r->kind, ENTERED, __ATOMIC_RELEASE);
}

static void returned(qemu_plugin_id_t id, unsigned cpu, int64_t number, int64_t result)
{
	struct record *r;

	(void)id;
	if (!is_wanted(number))
		return;
	r = next_record(cpu, number);
	if (!r)
		return;
	r->result = result;
	__atomic_store_n(&r->kind, RETURNED, __ATOMIC_RELEASE);
}

static const char *option(const char *argument, const char *name, size_t length)
{
	return !strncmp(argument, name, length) && argument[length] == '=' ? argument + length + 1 : NULL;
}

static void read_numbers(const char *text)
{
	while (*text && wanted_count < CALLS_MAX) {
		char *end;

		wanted[wanted_count++] = (int64_t)strtoull(text, &end, 10);
		text = *end ? end + 1 : end;
	}
}

static bool open_log(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	const long bytes = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;

	if (bytes >= (long)(2 * sizeof *records)) {
		void *const at = mmap(NULL, (size_t)bytes, PROT_RW, MAP_SHARED, fd, 0);

		if (at != (void *)-1) {
			records = at;
			room = (uint64_t)bytes / sizeof *records;
		}
	}
	if (fd >= 0)
		close(fd);
	return records != NULL;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
							       char **argv)
{
	const char *log = NULL;

	(void)info;
	for (int i = 0; i < argc; i++) {
		const char *value;

		if ((value = option(argv[i], "log", 3)) != NULL)
			log = value;
		else if ((value = option(argv[i], "calls", 5)) != NULL)
			read_numbers(value);
		else if ((value = option(argv[i], "map", 3)) != NULL)
			map_number = (int64_t)strtoull(value, NULL, 10);
	}
	if (!log || !wanted_count || !open_log(log)) {
		dprintf(STDERR, "execmem-plugin: wants log=FILE,calls=N.N.N,map=N, and a file with room\n");
		return -1;
	}
	qemu_plugin_register_vcpu_syscall_cb(id, entered);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, returned);
	return 0;
}
