/* Behind watch_place_alike() mappings lie where they do in any process that makes the same calls, whatever else it has.
 */
#define _GNU_SOURCE
#include "test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 3
#define REGIONS  4

int main(void)
{
	uintptr_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(at != MAP_FAILED);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status;

		EXPECT(child >= 0);
		if (child == 0) {
			struct execmem_allocator *allocator;
			struct execmem_region region;

			/* A process with other mappings of its own, in the holes where the library's would lie. */
			for (int k = 0; k < 16 * i; k++)
				EXPECT(mmap(NULL, (size_t)65536 << k % REGIONS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
					    -1, 0) != MAP_FAILED);
			watch_place_alike();
			allocator = make(NULL);
			for (int k = 0; k < REGIONS; k++) {
				OK(execmem_reserve(allocator, (size_t)65536 << k, NULL, 0, NULL, &region));
				at[i * REGIONS + k] = region.rx.at;
			}
			_exit(0);
		}
		EXPECT(waitpid(child, &status, 0) == child);
		EXPECT_EQUAL(0, status);
	}
	for (int i = REGIONS; i < CHILDREN * REGIONS; i++)
		EXPECT_EQUAL(at[i - REGIONS], at[i]);
	return 0;
}
