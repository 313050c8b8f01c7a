/*
 * Giving pages back, beside Scudo: the same blocks, freed at random in the same order, in the same run.
 *
 * Scudo is this program's malloc. Its forced purge of everything (M_PURGE_ALL) is held against one release by policy
 * `exact`: of private memory in batches, of private memory range by range, and of a memory file. What keeping the
 * counts costs lies in allocating and freeing, which is not timed on either side; it is stated by itself.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <execmem/release.h>

#define BYTES     ((size_t)64 << 20)
#define PAGE      ((size_t)4096)
#define ROUNDS    9      /* odd */
#define PURGE_ALL (-104) /* M_PURGE_ALL of Scudo's interface.h */
#define HEADER    16

enum side { BATCHED, ONE_BY_ONE, A_FILE, SIDES };

static struct execmem_os os;
static struct execmem_releaser releaser[SIDES];
static struct execmem_release_pages pages[SIDES];
static unsigned char *memory[SIDES];
static int file;
static void **block;    /* Scudo's */
static uint32_t *order; /* blocks, shuffled: the first are freed */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "release: %s\n", what);
	exit(3);
}

static int by_value(const void *left, const void *right)
{
	double l = *(const double *)left, r = *(const double *)right;

	return (l > r) - (l < r);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void shuffle(size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	for (size_t i = count; i > 1; i--) {
		size_t k = next_random(&seed) % i;
		uint32_t other = order[k];

		order[k] = order[i - 1];
		order[i - 1] = other;
	}
}

static size_t resident(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	unsigned long all, here;

	if (!statm || fscanf(statm, "%lu %lu", &all, &here) != 2)
		fail("/proc/self/statm cannot be read");
	fclose(statm);
	return here;
}

/* Microseconds of a purge by Scudo; *gone: pages that it gave back. */
static double purge(size_t bytes, size_t count, size_t freed, size_t *gone)
{
	double start, end;
	size_t before;

	for (size_t i = 0; i < count; i++) {
		if (!block[i])
			block[i] = malloc(bytes - HEADER);
		if (!block[i])
			fail("malloc");
		*(volatile unsigned char *)block[i] = 1;
	}
	for (size_t i = 0; i < freed; i++) {
		free(block[order[i]]);
		block[order[i]] = NULL;
	}
	before = resident();
	start = now();
	mallopt(PURGE_ALL, 0);
	end = now();
	*gone = before - resident();
	return end - start;
}

static double release(enum side side, size_t freed, size_t *gone)
{
	const struct execmem_release_area area = {memory[side], side == A_FILE ? file : EXECMEM_NO_FILE, 0};
	uint64_t before = releaser[side].stats.pages;
	double start, end;

	for (size_t i = 0; i < BYTES; i += PAGE)
		*(volatile unsigned char *)&memory[side][i] = 1;
	for (size_t i = 0; i < freed; i++)
		execmem_release_give(&pages[side], order[i]);
	start = now();
	if (execmem_release_exact(&releaser[side], &pages[side], &area))
		fail("execmem_release_exact");
	end = now();
	*gone = (size_t)(releaser[side].stats.pages - before);
	return end - start;
}

static void begin(size_t bytes)
{
	const struct execmem_release_layout layout = {PAGE, bytes, 0, BYTES / bytes, BYTES};
	size_t room = execmem_release_pages_bytes(&layout);

	for (int side = 0; side < SIDES; side++) {
		void *books = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (books == MAP_FAILED || execmem_release_pages_init(&pages[side], &layout, books))
			fail("no memory");
		for (size_t i = 0; i < layout.blocks; i++)
			execmem_release_take(&pages[side], i);
	}
	block = mmap(NULL, layout.blocks * sizeof(*block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	order = mmap(NULL, layout.blocks * sizeof(*order), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED || order == MAP_FAILED)
		fail("no memory");
}

static void end(size_t bytes)
{
	for (size_t i = 0; i < BYTES / bytes; i++)
		free(block[i]);
	mallopt(PURGE_ALL, 0);
	munmap(block, BYTES / bytes * sizeof(*block));
	munmap(order, BYTES / bytes * sizeof(*order));
}

/* Every page of Scudo's is there, and one block of each is freed and taken: nothing can go. */
static double nothing(size_t bytes)
{
	const struct execmem_release_area area = {memory[BATCHED], EXECMEM_NO_FILE, 0};
	double taken[101];

	for (size_t i = 0; i < BYTES / bytes; i += 3)
		execmem_release_give(&pages[BATCHED], i);
	if (execmem_release_exact(&releaser[BATCHED], &pages[BATCHED], &area))
		fail("execmem_release_exact");
	for (int i = 0; i < 101; i++) {
		double start = now();

		if (execmem_release_exact(&releaser[BATCHED], &pages[BATCHED], &area))
			fail("execmem_release_exact");
		taken[i] = now() - start;
	}
	return median(taken, 101);
}

static double books(size_t bytes)
{
	size_t count = BYTES / bytes;
	double start = now();

	for (size_t i = 0; i < count; i++)
		execmem_release_take(&pages[A_FILE], order[i]);
	for (size_t i = 0; i < count; i++)
		execmem_release_give(&pages[A_FILE], order[i]);
	return (now() - start) * 1e3 / (double)count;
}

int main(void)
{
	static const size_t sizes[] = {32, 64, 160, 256};
	static const unsigned shares[] = {97, 99};
	static const char *const names[SIDES] = {"private, batched", "private, one by one", "memory file"};
	static const double goals[SIDES] = {10, 4, 2};
	double logs[SIDES] = {0}, least = 0, most_books = 0;
	unsigned cells = 0;
	int missed = 0;

	os = execmem_os_linux(PAGE);
	file = memfd_create("bench", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, (off_t)BYTES))
		fail("memfd_create");
	for (int side = 0; side < SIDES; side++) {
		int flags = side == A_FILE ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;

		memory[side] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, side == A_FILE ? file : -1, 0);
		if (memory[side] == MAP_FAILED)
			fail("no memory");
		(void)madvise(memory[side], BYTES, MADV_NOHUGEPAGE);
		execmem_releaser_init(&releaser[side], &os);
	}
	releaser[ONE_BY_ONE].one_by_one = true;
	printf("%-6s %-6s %12s %10s", "block", "freed", "Scudo, us", "its pages");
	for (int side = 0; side < SIDES; side++)
		printf(" %20s", names[side]);
	printf("   (us and Scudo / it; medians of %d)\n", ROUNDS);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		size_t bytes = sizes[s], count = BYTES / bytes;
		double passed;

		begin(bytes);
		for (size_t p = 0; p < 2; p++) {
			double theirs[ROUNDS], ours[SIDES][ROUNDS], ratios[SIDES][ROUNDS];
			size_t freed = count * shares[p] / 100, gone = 0, went[SIDES];

			for (int round = -1; round < ROUNDS; round++) { /* the first only warms up */
				int at = round < 0 ? 0 : round;

				shuffle(count, 77 + (uint64_t)(round + 1) + 100 * bytes + p);
				theirs[at] = purge(bytes, count, freed, &gone);
				for (int side = 0; side < SIDES; side++) {
					ours[side][at] = release(side, freed, &went[side]);
					ratios[side][at] = theirs[at] / ours[side][at];
					for (size_t i = 0; i < freed; i++) /* all are live again */
						execmem_release_take(&pages[side], order[i]);
				}
			}
			printf("%-6zu %3u %% %13.0f %10zu", bytes, shares[p], median(theirs, ROUNDS), gone);
			for (int side = 0; side < SIDES; side++) {
				double ratio = median(ratios[side], ROUNDS);

				printf(" %10.0f %9.1f", median(ours[side], ROUNDS), ratio);
				logs[side] += log(ratio);
			}
			printf("   %zu pages\n", went[BATCHED]);
			fflush(stdout);
			cells++;
		}
		passed = nothing(bytes);
		least = passed > least ? passed : least;
		for (size_t i = 0; i < count; i++)
			execmem_release_give(&pages[A_FILE], order[i]);
		passed = books(bytes);
		most_books = passed > most_books ? passed : most_books;
		end(bytes);
	}
	printf("\n");
	for (int side = 0; side < SIDES; side++) {
		double mean = exp(logs[side] / cells);

		printf("Scudo / %-20s geometric mean %6.1f   goal >= %2.0f   %s\n", names[side], mean, goals[side],
		       mean >= goals[side] ? "met" : "MISSED");
		missed += mean < goals[side];
	}
	printf("a pass that finds nothing, us                      %6.2f   goal <=  4   %s\n", least,
	       least <= 4 ? "met" : "MISSED");
	printf("taking and giving back a block in the counts, ns   %6.1f\n", most_books);
	printf("ranges together: %s\n", releaser[BATCHED].one_by_one ? "refused by this system" : "taken");
	return missed || least > 4;
}
