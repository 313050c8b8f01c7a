/* EXECMEM_RW_CACHE sets the number of cached views, or is refused with a message; other values are bounded. */
#include "test.h"

#include <string.h>

static int create_with(char *variable, unsigned rw_cache, unsigned *cached)
{
	char other[] = "EXECMEM_RW_CACHE_OTHER=5";
	char *environment[] = {other, variable, NULL};
	struct execmem_config config = execmem_config_default(watch_os());
	struct execmem_allocator *allocator;
	struct execmem_region region;
	int error;

	config.rw_cache = rw_cache;
	config.environment = environment;
	watch.text[0] = 0;
	error = execmem_create(&config, &allocator, NULL);
	if (error)
		return error;
	region = committed(allocator, 20 * EXECMEM_UNIT_BYTES);
	for (unsigned i = 0; i < 20; i++)
		OK(execmem_write(allocator, (execmem_rx){region.rx.at + i * EXECMEM_UNIT_BYTES}, "", 1, 0));
	*cached = (unsigned)stats_of(allocator).views_cached;
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
	return 0;
}

int main(void)
{
	static char good[][24] = {"EXECMEM_RW_CACHE=0", "EXECMEM_RW_CACHE=16", "EXECMEM_RW_CACHE=07", "HOME=/"};
	static char bad[][24] = {"EXECMEM_RW_CACHE=",     "EXECMEM_RW_CACHE=17", "EXECMEM_RW_CACHE=-1",
				 "EXECMEM_RW_CACHE=3x",   "EXECMEM_RW_CACHE= 3", "EXECMEM_RW_CACHE=003",
				 "EXECMEM_RW_CACHE=99999"};
	static const unsigned expected[] = {0, 16, 7, 3};
	unsigned cached = 99;

	for (int i = 0; i < 4; i++) {
		OK(create_with(good[i], 3, &cached));
		EXPECT_EQUAL(expected[i], cached);
	}
	for (int i = 0; i < 7; i++) {
		EXPECT_EQUAL(EXECMEM_ERROR_ENVIRONMENT, create_with(bad[i], 3, &cached));
		EXPECT(strstr(watch.text, "execmem: EXECMEM_RW_CACHE=") == watch.text);
		EXPECT(strstr(watch.text, "is not a number from 0 to 16\n"));
	}
	EXPECT_EQUAL(EXECMEM_ERROR_ARGUMENT, create_with(good[3], 17, &cached));
	OK(create_with(good[1], 17, &cached));
	return 0;
}
