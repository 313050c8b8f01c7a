/* What the system refuses leads to the next backend of the caller's order, or to an error that names every refusal. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <string.h>

static bool has(const struct execmem_refusals *refusals, const char *backend, const char *name, int error)
{
	for (unsigned i = 0; i < refusals->count; i++) {
		if (strcmp(refusals->list[i].backend, backend) == 0 && strcmp(refusals->list[i].call, name) == 0 &&
		    refusals->list[i].error == error)
			return true;
	}
	return false;
}

int main(void)
{
	static const int errors[] = {EPERM, EACCES, ENOSYS, EINVAL};
	struct execmem_config config = execmem_config_default(watch_os());
	struct execmem_allocator *allocator = NULL;
	struct execmem_refusals refusals;
	struct execmem_region region;
	struct execmem_view view, overlapping;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		watch.fail_name = "file_create";
		watch.fail_with = errors[i];
		config.backends[1] = EXECMEM_BACKEND_END;
		EXPECT_EQUAL(EXECMEM_ERROR_REFUSED, execmem_create(&config, &allocator, &refusals));
		EXPECT(has(&refusals, "double mapping", "file_create", errors[i]));
		EXPECT_EQUAL(errors[i] == ENOSYS ? 1 : 2, refusals.count);
		config.backends[1] = EXECMEM_BACKEND_TOGGLE;
		OK(execmem_create(&config, &allocator, &refusals));
		EXPECT(has(&refusals, "double mapping", "file_create", errors[i]));
		EXPECT_EQUAL(EXECMEM_BACKEND_TOGGLE, execmem_backend(allocator));
		watch.fail_name = NULL;
		OK(execmem_destroy(allocator));
	}
	/* vm.memfd_noexec = 2: only the flag is refused. */
	watch.fail_at = watch.calls + 6;
	watch.fail_with = EACCES;
	OK(execmem_create(&config, &allocator, &refusals));
	EXPECT(strcmp(watch.last, "file_punch") == 0 && has(&refusals, "double mapping", "file_create", EACCES));
	EXPECT_EQUAL(EXECMEM_BACKEND_DOUBLE, execmem_backend(allocator));
	OK(execmem_destroy(allocator));

	/* Both refused. */
	watch.fail_name = "protect";
	config.backends[0] = EXECMEM_BACKEND_TOGGLE;
	config.backends[1] = EXECMEM_BACKEND_DOUBLE;
	OK(execmem_create(&config, &allocator, &refusals));
	EXPECT_EQUAL(EXECMEM_BACKEND_DOUBLE, execmem_backend(allocator));
	EXPECT(refusals.count == 1 && has(&refusals, "protection toggling", "protect", EACCES));
	OK(execmem_destroy(allocator));
	watch.fail_from = watch.calls + 6; /* everything behind the allocator's own memory */
	EXPECT_EQUAL(EXECMEM_ERROR_REFUSED, execmem_create(&config, &allocator, &refusals));
	EXPECT(refusals.list[0].backend[0] == 'p' && refusals.list[refusals.count - 1].backend[0] == 'd');
	watch.fail_from = 0;

	/* Toggling: pages are written in place, and what an open view covers cannot be closed under it. */
	watch.fail_name = NULL;
	config.backends[1] = EXECMEM_BACKEND_END;
	OK(execmem_create(&config, &allocator, NULL));
	region = committed(allocator, 65536);
	OK(execmem_map_rw(allocator, (execmem_rx){region.rx.at + 4090}, 10, 0, &view));
	EXPECT(view.rw.at == (unsigned char *)view.rx.at);
	EXPECT_EQUAL(EXECMEM_ERROR_BUSY, execmem_map_rw(allocator, region.rx, 10000, 0, &overlapping));
	OK(execmem_map_rw(allocator, (execmem_rx){region.rx.at + 4096}, 5, 0, &overlapping));
	view.rw.at[0] = 0xc3;
	OK(execmem_publish(&view, 0, 10, 0));
	OK(execmem_unmap_rw(&view));
	overlapping.rw.at[0] = 0xc3;
	watch.fail_name = "protect";
	EXPECT_EQUAL(-EACCES, execmem_unmap_rw(&overlapping));
	watch.fail_name = NULL;
	overlapping.rw.at[0] = 0xc3;
	OK(execmem_unmap_rw(&overlapping));
	((void (*)(void))(region.rx.at + 4096))();
	EXPECT_EQUAL(0, stats_of(allocator).views_mapped);
	OK(execmem_release(&region));
	OK(execmem_destroy(allocator));
	return 0;
}
