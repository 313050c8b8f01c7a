/*
 * The calls that the model makes, each with the result that it must have; those of regions are in model_regions.c.
 */
#define _GNU_SOURCE
#include "model.h"

#include <errno.h>
#include <string.h>

/* ---- Views ---- */

/* Toggling makes whole pages writable, for as long as any view that shared them is open, and may refuse others. */
static bool may_be_busy(int r)
{
	return execmem_backend(model.allocator) == EXECMEM_BACKEND_TOGGLE && model_open_anywhere(r);
}

static void map_rw(void)
{
	struct model_view *v = &model.view[model_pick(MODEL_VIEWS)];
	int r, error, expected = 0;
	struct model_region *m = model_some_region(&r);
	size_t offset, bytes;

	if (!m->live || v->open)
		return;
	model_some_pages(m, &offset, &bytes);
	offset += model_pick((unsigned)model.page);
	bytes = 1 + model_pick(model_pick(4) ? 200 : (unsigned)bytes);
	if (offset + bytes > m->region.bytes)
		expected = EXECMEM_ERROR_OUTSIDE;
	else if (!model_all(m, offset, bytes, true))
		expected = EXECMEM_ERROR_NOT_COMMITTED;
	error = execmem_map_rw(model.allocator, (execmem_rx){m->region.rx.at + offset}, bytes,
			       model_pick(4) ? 0 : EXECMEM_MAP_SINGLE_USE, &v->view);
	if (error == EXECMEM_ERROR_BUSY && expected == 0 && may_be_busy(r))
		expected = error;
	if (!model_done(expected, error))
		return;
	EXPECT(v->view.rx.at == m->region.rx.at + offset && v->view.bytes == bytes);
	v->open = true;
	v->region = r;
	v->offset = offset;
	v->closed = v->view;
	model.maps++;
	EXPECT(memcmp(v->view.rw.at, m->bytes + offset, bytes < 256 ? bytes : 256) == 0);
	EXPECT_EQUAL(m->bytes[offset + bytes - 1], v->view.rw.at[bytes - 1]);
}

static struct model_view *some_open_view(void)
{
	unsigned first = model_pick(MODEL_VIEWS);

	for (unsigned i = 0; i < MODEL_VIEWS; i++) {
		if (model.view[(first + i) % MODEL_VIEWS].open)
			return &model.view[(first + i) % MODEL_VIEWS];
	}
	return NULL;
}

static void unmap_rw(void)
{
	struct model_view *v = some_open_view();

	if (!v || !model_done(0, execmem_unmap_rw(&v->view)))
		return;
	EXPECT(v->view.rw.at == NULL);
	v->open = false;
}

/* Bytes through the view, and into the model. */
static void write_bytes(struct model_view *v, size_t at, size_t bytes, unsigned char value)
{
	struct model_region *m = &model.region[v->region];
	size_t first = v->offset + at;

	memset(v->view.rw.at + at, value, bytes);
	memset(m->bytes + first, value, bytes);
	for (size_t p = first / model.page; p <= (first + bytes - 1) / model.page; p++)
		m->written[p] = true;
}

static void choose_range(const struct model_view *v, struct execmem_range *range)
{
	range->offset = model_pick((unsigned)v->view.bytes);
	range->bytes = 1 + model_pick(64);
	if (range->bytes > v->view.bytes - range->offset)
		range->bytes = v->view.bytes - range->offset;
}

static void expect_visible(const struct model_view *v, const struct execmem_range *range)
{
	EXPECT(memcmp((const void *)(v->view.rx.at + range->offset),
		      model.region[v->region].bytes + v->offset + range->offset, range->bytes) == 0);
}

static void publish(void)
{
	struct model_view *v = some_open_view();
	struct execmem_range range;

	if (!v)
		return;
	choose_range(v, &range);
	write_bytes(v, range.offset, range.bytes, (unsigned char)model_pick(256));
	if (model_done(0, execmem_publish(&v->view, range.offset, range.bytes,
					  model_pick(16) ? 0 : EXECMEM_PUBLISH_SERIALIZE)))
		model.publishes++;
	expect_visible(v, &range);
}

static void publish_many(void)
{
	struct model_view *v = some_open_view();
	struct execmem_range range[3];
	size_t count = 1 + model_pick(3);

	if (!v)
		return;
	for (size_t i = 0; i < count; i++) {
		choose_range(v, &range[i]);
		write_bytes(v, range[i].offset, range[i].bytes, (unsigned char)model_pick(256));
	}
	if (model_done(0, execmem_publish_many(&v->view, range, count, 0)))
		model.publishes++;
	for (size_t i = 0; i < count; i++)
		expect_visible(v, &range[i]);
}

/* Views of other writers may be open on the same bytes, except where the backend toggles. */
static void write_code(void)
{
	unsigned char code[64];
	int r, error;
	struct model_region *m = model_some_region(&r);
	size_t offset, bytes = 1 + model_pick(sizeof(code));

	if (!m->live)
		return;
	offset = model_pick((unsigned)(m->region.bytes - sizeof(code)));
	memset(code, (int)model_pick(256), sizeof(code));
	if (!model_all(m, offset, bytes, true)) {
		(void)model_done(
			EXECMEM_ERROR_NOT_COMMITTED,
			execmem_write(model.allocator, (execmem_rx){m->region.rx.at + offset}, code, bytes, 0));
		return;
	}
	if (may_be_busy(r))
		return;
	error = execmem_write(model.allocator, (execmem_rx){m->region.rx.at + offset}, code, bytes, 0);
	if (!model_done(0, error)) {
		/* They may be written or not, and how many of its steps were counted is not said. */
		model_recount();
		(void)model_done(
			0, execmem_write(model.allocator, (execmem_rx){m->region.rx.at + offset}, code, bytes, 0));
	}
	model.maps++;
	model.publishes++;
	memset(m->bytes + offset, code[0], bytes);
	for (size_t p = offset / model.page; p <= (offset + bytes - 1) / model.page; p++)
		m->written[p] = true;
}

/* ---- The rest ---- */

static void look_up(void)
{
	int r;
	struct model_region *m = model_some_region(&r);
	struct execmem_found found = {.bytes = 1};
	const void *address;

	if (!m->region.rx.at)
		return;
	address = (const void *)(m->region.rx.at + model_pick((unsigned)m->region.bytes));
	if (!m->live) {
		/* Another region may have the same addresses by now. */
		for (int other = 0; other < MODEL_REGIONS; other++) {
			const struct model_region *o = &model.region[other];

			if (o->live && (uintptr_t)address - o->region.rx.at < o->region.bytes)
				return;
		}
		EXPECT_EQUAL(EXECMEM_ERROR_NOT_FOUND, execmem_lookup(model.allocator, address, &found));
		EXPECT_EQUAL(-1, execmem_kind(model.allocator, address));
		EXPECT_EQUAL(1, found.bytes);
	} else {
		OK(execmem_lookup(model.allocator, address, &found));
		EXPECT(found.owner == m && found.kind == m->kind && found.start.at == m->region.rx.at &&
		       found.bytes == m->region.bytes);
		EXPECT_EQUAL(m->kind, execmem_kind(model.allocator, address));
	}
	model.calls++;
}

/* What must be refused, and change nothing. */
static void misuse(void)
{
	struct model_view *v = &model.view[model_pick(MODEL_VIEWS)], *open = some_open_view();
	const struct model_region *m = &model.region[model_pick(MODEL_REGIONS)];
	struct execmem_view view;

	switch (model_pick(8)) {
	case 0:
		if (!v->open && v->closed.handle)
			(void)model_done(EXECMEM_ERROR_NOT_OPEN, execmem_unmap_rw(&v->closed));
		break;
	case 1:
		if (!v->open && v->closed.handle)
			(void)model_done(EXECMEM_ERROR_NOT_OPEN, execmem_publish(&v->closed, 0, 1, 0));
		break;
	case 2:
		if (open)
			(void)model_done(EXECMEM_ERROR_OUTSIDE,
					 execmem_publish(&open->view, model_pick(100) + 1, open->view.bytes, 0));
		break;
	case 3:
		if (open)
			(void)model_done(EXECMEM_ERROR_ARGUMENT, execmem_publish(&open->view, 0, 0, 0));
		break;
	case 4:
		if (m->live)
			(void)model_done(EXECMEM_ERROR_ARGUMENT, execmem_map_rw(model.allocator, m->region.rx,
										SIZE_MAX - model_pick(2), 0, &view));
		break;
	case 5:
		if (m->live)
			(void)model_done(EXECMEM_ERROR_ARGUMENT, execmem_commit(&m->region, 1, model.page));
		break;
	case 6:
		if (model.stale.record)
			(void)model_done(EXECMEM_ERROR_RELEASED, model_pick(2)
									 ? execmem_release(&model.stale)
									 : execmem_commit(&model.stale, 0, model.page));
		break;
	default:
		(void)model_done(EXECMEM_ERROR_NOT_FOUND,
				 execmem_map_rw(model.allocator, (execmem_rx){(uintptr_t)&view}, 1, 0, &view));
	}
}

/* One of the next system calls will be refused. */
static void arm(void)
{
	static const int errors[] = {ENOMEM, EPERM, EINVAL, EAGAIN, ENOSYS, ENOSPC, EFBIG, EACCES};

	if (watch.fail_at)
		return;
	watch.fail_with = errors[model_pick(sizeof(errors) / sizeof(errors[0]))];
	watch.calls = 0;
	watch.fail_at = 1 + model_pick(6);
}

static void destroy(void)
{
	bool any = false;

	for (int r = 0; r < MODEL_REGIONS; r++)
		any |= model.region[r].live;
	if (any) {
		(void)model_done(EXECMEM_ERROR_BUSY, execmem_destroy(model.allocator));
		if (model_pick(8))
			return;
	}
	model_destroy();
	model_create();
}

static void check_some_page(void)
{
	model_check_page((int)model_pick(MODEL_REGIONS));
}

static void set_emulation(void)
{
	execmem_set_emulation(model.allocator, model_pick(2));
	model.calls++;
}

void model_call(void)
{
	static const struct {
		void (*make)(void);
		unsigned weight;
	} calls[] = {{model_reserve_anywhere, 4},
		     {model_reserve_near, 1},
		     {model_commit, 9},
		     {model_decommit, 3},
		     {model_release, 2},
		     {map_rw, 13},
		     {unmap_rw, 7},
		     {publish, 30},
		     {publish_many, 5},
		     {write_code, 4},
		     {look_up, 14},
		     {misuse, 9},
		     {arm, 2},
		     {destroy, 1},
		     {model_check_books, 1},
		     {check_some_page, 2},
		     {set_emulation, 1}};
	unsigned sum = 0, choice;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		sum += calls[i].weight;
	choice = model_pick(sum);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (choice < calls[i].weight) {
			calls[i].make();
			return;
		}
		choice -= calls[i].weight;
	}
}
