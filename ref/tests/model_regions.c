/*
 * The calls of the model that make regions, commit their pages, and give them back.
 */
#include "model.h"

#include <inttypes.h>
#include <string.h>

struct model_region *model_some_region(int *r)
{
	*r = (int)model_pick(MODEL_REGIONS);
	return &model.region[*r];
}

/* Whether the system has a range of free addresses that a region within reach could have. */
static bool is_room(const struct execmem_near *near, size_t bytes)
{
	uintptr_t low = near->target > near->reach ? near->target - near->reach : 0;
	uintptr_t high = near->target + near->reach, free = UNIT, start, end;
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;

	EXPECT(maps != NULL);
	bytes += 2 * model.page; /* to which the simulated system aligns */
	while (!found && fscanf(maps, "%" SCNxPTR "-%" SCNxPTR "%*[^\n]", &start, &end) == 2) {
		uintptr_t first = ((free > low ? free : low) + UNIT - 1) & ~(UNIT - 1);

		found = first + bytes <= start && first + bytes <= high;
		free = end;
	}
	fclose(maps);
	return found;
}

static void reserve(bool with_target)
{
	int error;
	int r;
	struct model_region *m = model_some_region(&r);
	size_t units = 1 + model_pick(MODEL_UNITS);
	struct execmem_near near = {(uintptr_t)&model, (size_t)1 << (24 + model_pick(7))};
	const struct execmem_region *other = &model.region[model_pick(MODEL_REGIONS)].region;

	if (m->live)
		return;
	/* How many places are tried depends on what else lies where: a refusal would not come at the same call again.
	 */
	if (with_target)
		watch.fail_at = 0;
	if (model_pick(2) && other->rx.at)
		near.target = other->rx.at;
	m->kind = model_pick(EXECMEM_KIND_MAX + 1);
	error = execmem_reserve(model.allocator, units * UNIT - model_pick(UNIT), with_target ? &near : NULL, m->kind,
				m, &m->region);
	if (!model_done(error == EXECMEM_ERROR_UNREACHABLE && with_target && !is_room(&near, units * UNIT) ? error : 0,
			error))
		return;
	EXPECT_EQUAL(units * UNIT, m->region.bytes);
	EXPECT_EQUAL(0, m->region.rx.at % UNIT);
	if (with_target) {
		EXPECT(m->region.rx.at + near.reach >= near.target);
		EXPECT(m->region.rx.at + m->region.bytes - 1 <= near.target + near.reach);
	}
	m->live = true;
	memset(m->committed, 0, sizeof(m->committed));
	memset(m->written, 0, sizeof(m->written));
	model.reserves++;
}

void model_reserve_anywhere(void)
{
	reserve(false);
}

void model_reserve_near(void)
{
	reserve(true);
}

/* A range of whole pages that begins in the region, and seldom ends behind it. */
void model_some_pages(const struct model_region *m, size_t *offset, size_t *bytes)
{
	size_t pages = m->region.bytes / model.page, first = model_pick((unsigned)pages);

	*offset = first * model.page;
	*bytes = (1 + model_pick(model_pick(8) ? 3 : (unsigned)pages)) * model.page;
}

void model_commit(void)
{
	int r;
	struct model_region *m = model_some_region(&r);
	size_t offset, bytes;
	int expected = 0;

	if (!m->live)
		return;
	model_some_pages(m, &offset, &bytes);
	if (offset + bytes > m->region.bytes)
		expected = EXECMEM_ERROR_OUTSIDE;
	else if (!model_all(m, offset, bytes, false))
		expected = EXECMEM_ERROR_COMMITTED;
	if (!model_done(expected, execmem_commit(&m->region, offset, bytes)))
		return;
	memset(m->committed + offset / model.page, 1, bytes / model.page);
	memset(m->bytes + offset, 0, bytes);
	model.commits++;
	/* Nothing is left of what was there before. */
	model_check_page_at(r, offset / model.page);
	model_check_page_at(r, (offset + bytes - 1) / model.page);
}

bool model_open_anywhere(int r)
{
	return model_open_in(r, 0, model.region[r].region.bytes);
}

void model_decommit(void)
{
	int r, error, expected = 0;
	struct model_region *m = model_some_region(&r);
	size_t offset, bytes;

	if (!m->live)
		return;
	model_some_pages(m, &offset, &bytes);
	if (offset + bytes > m->region.bytes)
		expected = EXECMEM_ERROR_OUTSIDE;
	else if (!model_all(m, offset, bytes, true))
		expected = EXECMEM_ERROR_NOT_COMMITTED;
	else if (model_open_in(r, offset, bytes))
		expected = EXECMEM_ERROR_BUSY;
	error = execmem_decommit(&m->region, offset, bytes);
	/* The mapping of an open view may reach into a unit that would be empty. */
	if (error == EXECMEM_ERROR_BUSY && expected == 0 && model_open_anywhere(r))
		expected = error;
	if (!model_done(expected, error))
		return;
	memset(m->committed + offset / model.page, 0, bytes / model.page);
	memset(m->written + offset / model.page, 0, bytes / model.page);
	model.decommits++;
}

void model_release(void)
{
	int r;
	struct model_region *m = model_some_region(&r);

	if (!m->live || model_pick(4))
		return;
	if (!model_done(model_open_anywhere(r) ? EXECMEM_ERROR_BUSY : 0, execmem_release(&m->region)))
		return;
	m->live = false;
	model.stale = m->region;
	model.releases++;
}
