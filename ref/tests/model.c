/*
 * The model: making and ending an allocator, and what must be so in between. The calls are in model_regions.c and
 * model_calls.c.
 */
#define _GNU_SOURCE
#include "model.h"

#include <errno.h>
#include <string.h>

struct model model;

unsigned model_pick(unsigned below)
{
	struct model_input *input = model.input;
	unsigned value = 0;

	if (input->at == input->end)
		return (unsigned)((next_random(&input->random) >> 20) % below);
	for (unsigned most = below - 1; most && input->at < input->end; most >>= 8)
		value = value << 8 | *input->at++;
	return value % below;
}

bool model_done(int expected, int error)
{
	bool came = watch.fail_at && watch.calls >= watch.fail_at;

	model.calls++;
	if (!came) {
		EXPECT_EQUAL(expected, error);
		return error == 0;
	}
	watch.fail_at = 0;
	model.refused = true;
	EXPECT(error <= 0 && (expected == 0 || error != 0) && execmem_error_text(error));
	return error == 0;
}

bool model_all(const struct model_region *r, size_t offset, size_t bytes, bool value)
{
	for (size_t p = offset / model.page; p <= (offset + bytes - 1) / model.page; p++) {
		if (r->committed[p] != value)
			return false;
	}
	return true;
}

bool model_open_in(int r, size_t offset, size_t bytes)
{
	for (int v = 0; v < MODEL_VIEWS; v++) {
		const struct model_view *view = &model.view[v];

		if (view->open && view->region == r && view->offset < offset + bytes &&
		    offset < view->offset + view->view.bytes)
			return true;
	}
	return false;
}

/* ---- What must be so ---- */

void model_check_page_at(int index, size_t p)
{
	const struct model_region *r = &model.region[index];

	if (r->committed[p])
		EXPECT(memcmp((const void *)(r->region.rx.at + p * model.page), r->bytes + p * model.page,
			      model.page) == 0);
}

void model_check_page(int r)
{
	const struct model_region *m = &model.region[r];

	if (m->live)
		model_check_page_at(r, model_pick((unsigned)(m->region.bytes / model.page)));
}

static void check_written(int r)
{
	const struct model_region *m = &model.region[r];

	for (size_t p = 0; p < m->region.bytes / model.page; p++) {
		if (m->written[p])
			model_check_page_at(r, p);
	}
}

/* Without being refused, and without counting as one of the calls that may be. */
static struct execmem_stats stats_unwatched(void)
{
	unsigned long at = watch.fail_at, calls = watch.calls;
	struct execmem_stats stats;

	watch.fail_at = 0;
	stats = stats_of(model.allocator);
	watch.fail_at = at;
	watch.calls = calls;
	return stats;
}

void model_recount(void)
{
	struct execmem_stats stats = stats_unwatched();

	EXPECT(stats.hits + stats.misses + stats.bypasses - model.maps <= 1 && stats.publishes - model.publishes <= 1);
	model.maps = stats.hits + stats.misses + stats.bypasses;
	model.publishes = stats.publishes;
}

void model_check_books(void)
{
	struct execmem_stats stats = stats_unwatched();
	size_t committed_bytes = 0, reserved = 0, open = 0, regions = 0;

	for (int r = 0; r < MODEL_REGIONS; r++) {
		const struct model_region *m = &model.region[r];

		if (!m->live)
			continue;
		regions++;
		reserved += m->region.bytes;
		for (size_t p = 0; p < m->region.bytes / model.page; p++)
			committed_bytes += m->committed[p] ? model.page : 0;
	}
	for (int v = 0; v < MODEL_VIEWS; v++)
		open += model.view[v].open;
	EXPECT_EQUAL(regions, stats.regions);
	EXPECT_EQUAL(reserved, stats.reserved_bytes);
	EXPECT_EQUAL(committed_bytes, stats.committed_bytes);
	EXPECT_EQUAL(open, stats.views_open);
	EXPECT_EQUAL(model.reserves, stats.reserves);
	EXPECT_EQUAL(model.releases, stats.releases);
	EXPECT_EQUAL(model.commits, stats.commits);
	EXPECT_EQUAL(model.decommits, stats.decommits);
	EXPECT_EQUAL(model.maps, stats.hits + stats.misses + stats.bypasses);
	EXPECT_EQUAL(model.publishes, stats.publishes);
	EXPECT_EQUAL(stats.views_mapped, stats.rw_maps - stats.rw_unmaps);
	EXPECT_EQUAL(stats.views_mapped, watch.rw_mappings);
	EXPECT(stats.views_cached <= model.rw_cache);
	EXPECT(stats.views_mapped <= stats.views_cached + open);
	EXPECT(stats.evictions <= stats.rw_unmaps);
	EXPECT(stats.file_used_bytes <= stats.file_bytes);
	if (execmem_backend(model.allocator) == EXECMEM_BACKEND_DOUBLE) {
		EXPECT(committed_bytes <= stats.file_used_bytes);
		EXPECT(watch_blocks() <= committed_bytes + stats.deferred_bytes);
	}
	if (!model.refused)
		EXPECT_EQUAL(0, stats.deferred_bytes);
}

/* ---- Beginning and end ---- */

static bool choose_config(void)
{
	static char *const good[] = {"HOME=/", "EXECMEM_RW_CACHE=16", "EXECMEM_RW_CACHE_=x", NULL};
	static char *const bad[] = {"EXECMEM_RW_CACHE=17", NULL};
	struct execmem_config *config = &model.config;

	*config = execmem_config_default(watch_os());
	config->rw_cache = model_pick(17);
	config->window_bytes = model.page << model_pick(6);
	config->grow_bytes = UNIT << model_pick(4);
	config->keep_order = model_pick(4) == 1;
	config->pads = model_pick(4) == 1;
	config->emulation = (enum execmem_emulation)model_pick(3);
	model.rw_cache = config->rw_cache;
	switch (model_pick(16)) {
	case 1:
	case 2:
		config->backends[0] = EXECMEM_BACKEND_TOGGLE;
		return !model.no_toggling;
	case 3:
		config->backends[1] = EXECMEM_BACKEND_TOGGLE;
		break;
	case 4:
		config->environment = good;
		model.rw_cache = 16;
		break;
	case 5:
		config->environment = bad;
		return false;
	case 6:
		config->window_bytes += model.page / 2;
		return false;
	case 7:
		config->rw_cache = 17;
		return false;
	case 8:
		config->grow_bytes += 1;
		return false;
	case 9:
		config->backends[1] = config->backends[0];
		return false;
	case 10:
		config->os.file_punch = NULL;
		return false;
	default:
		break;
	}
	return true;
}

/* The result of creation with a configuration that is not right, or that the system does not allow. */
static int refused_config(void)
{
	if (model.config.environment)
		return EXECMEM_ERROR_ENVIRONMENT;
	if (execmem_os_missing(&model.config.os))
		return EXECMEM_ERROR_OPERATION;
	return model.config.backends[0] == EXECMEM_BACKEND_TOGGLE ? EXECMEM_ERROR_REFUSED : EXECMEM_ERROR_ARGUMENT;
}

void model_create(void)
{
	struct execmem_refusals refusals;

	while (!choose_config()) {
		int error = execmem_create(&model.config, &model.allocator, &refusals);

		model.calls++;
		EXPECT_EQUAL(refused_config(), error);
	}
	model.refused = false;
	/* A refusal may lead to another backend of the order, or to none. */
	while (!model_done(0, execmem_create(&model.config, &model.allocator, &refusals)))
		EXPECT(refusals.count != 0);
	model.reserves = model.releases = model.commits = model.decommits = model.maps = model.publishes = 0;
}

void model_destroy(void)
{
	watch.fail_at = 0;
	for (int r = 0; r < MODEL_REGIONS; r++) {
		if (model.region[r].live)
			check_written(r);
	}
	for (int v = 0; v < MODEL_VIEWS; v++) {
		if (model.view[v].open)
			(void)model_done(0, execmem_unmap_rw(&model.view[v].view));
		model.view[v].open = false;
		model.view[v].closed.handle = NULL;
	}
	model_check_books();
	for (int r = 0; r < MODEL_REGIONS; r++) {
		if (model.region[r].live) {
			(void)model_done(0, execmem_release(&model.region[r].region));
			model.releases++;
		}
		model.region[r].live = false;
	}
	model.stale.record = NULL;
	model_check_books();
	EXPECT_EQUAL(0, stats_of(model.allocator).file_used_bytes);
	(void)model_done(0, execmem_destroy(model.allocator));
	EXPECT_EQUAL(0, watch.rw_mappings);
}

unsigned long model_run(struct model_input *input, unsigned long most)
{
	static unsigned char *contents[MODEL_REGIONS];

	/* Nothing of the run before may change this one: it must fail alone as well. */
	model = (struct model){.input = input, .no_toggling = model.no_toggling};
	watch.fail_at = 0;
	watch.calls = 0;
	for (const unsigned char *byte = input->at; byte != input->end; byte++)
		input->random = (input->random ^ *byte) * 0x9e3779b97f4a7c15u + 1;
	input->random += input->random == 0; /* which next_random would stay at */
	for (int r = 0; r < MODEL_REGIONS; r++) {
		if (!contents[r])
			contents[r] = malloc(MODEL_UNITS * UNIT);
		model.region[r].bytes = contents[r];
	}
	model.page = (size_t)MODEL_PAGE_MIN << "\0\0\0\0\0\0\2\4"[model_pick(8)];
	watch.page_bytes = model.page;
	watch.track = true;
	model_create();
	while (model.calls < most)
		model_call();
	model_destroy();
	EXPECT_EQUAL(0, watch.mapped);
	EXPECT_EQUAL(0, watch.files);
	return model.calls;
}
