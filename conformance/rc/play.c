#include "play.h"

#include "../alloc/alloc.h"
#include "model.h"

struct player {
	const struct sequence *sequence;
	unsigned look;
	struct play_outcome *outcome;
	struct subject_allocator *allocator;
	struct subject_region regions[MODEL_REGIONS];
	bool reserved[MODEL_REGIONS];
	struct subject_view views[SEQUENCE_VIEWS];
	unsigned number[SEQUENCE_VIEWS]; /* of the mapping; 0: not open */
	unsigned char stamp;             /* a byte that differs from the last */
	struct model model;
};

static bool same(struct player *p, uint64_t expected, uint64_t actual, const char *what)
{
	struct play_outcome *outcome = p->outcome;

	if (expected == actual || outcome->differs)
		return expected == actual;
	outcome->differs = true;
	outcome->expected = expected;
	outcome->actual = actual;
	outcome->what = what;
	return false;
}

static bool works(struct player *p, int error, const char *what)
{
	return same(p, 0, (uint64_t)(int64_t)error, what);
}

/* ---- What is looked at ---- */

/* Does one mapping, and nothing before and behind it, cover these addresses? */
static bool is_mapping(uintptr_t start, size_t bytes)
{
	const struct space_extent *first = space_at(start), *before = space_at(start - 1),
				  *behind = space_at(start + bytes);

	if (!first || first->start != start || !space_holds(start, bytes) ||
	    (before && before->mapping == first->mapping) || (behind && behind->mapping == first->mapping))
		return false;
	for (uintptr_t at = start; at - start < bytes;) {
		const struct space_extent *extent = space_at(at);

		if (extent->mapping != first->mapping || extent->file == SPACE_NO_FILE ||
		    !(extent->protection & SUBJECT_WRITE))
			return false;
		at = extent->end;
	}
	return true;
}

static bool contents_agree(struct player *p)
{
	if (!same(p, p->model.count, space_views(), "writable mappings alive are as many as the model's"))
		return false;
	for (unsigned i = 0; i < p->model.count; i++) {
		const struct model_mapping *mapping = &p->model.mappings[i];

		if (!same(p, true, is_mapping((uintptr_t)mapping->rw, mapping->to - mapping->from),
			  "the writable mapping of the model is alive, from its first byte to its last"))
			return false;
	}
	return true;
}

static bool counters_agree(struct player *p)
{
	const struct model_counters *model = &p->model.counters;
	struct subject_cache cache;

	if (!works(p, ALLOC(cache)(p->allocator, &cache), "the counters can be read"))
		return false;
	if (p->look & PLAY_STEPS && !same(p, model->steps, cache.steps, "mappings looked at while searching"))
		return false;
	return !(p->look & PLAY_COUNTERS) ||
	       (same(p, model->hits, cache.hits, "hits") && same(p, model->misses, cache.misses, "misses") &&
		same(p, model->bypasses, cache.bypasses, "single-use views") &&
		same(p, model->evictions, cache.evictions, "evictions") &&
		same(p, model->maps, cache.maps, "writable mappings made") &&
		same(p, model->unmaps, cache.unmaps, "writable mappings unmapped"));
}

/* Is what lies at `rw` the same of the same file as what lies at `rx`, byte by byte? */
static bool is_alias(uintptr_t rw, uintptr_t rx, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		const struct space_extent *w = space_at(rw + at), *x = space_at(rx + at);
		size_t step = 0;

		if (!w || !x || w->file != x->file || w->file == SPACE_NO_FILE ||
		    w->offset + (rw + at - w->start) != x->offset + (rx + at - x->start))
			return false;
		step = w->end - (rw + at) < x->end - (rx + at) ? w->end - (rw + at) : x->end - (rx + at);
		at += step;
	}
	return true;
}

static bool bytes_agree(struct player *p, const struct subject_view *view)
{
	const volatile unsigned char *rx = (const volatile unsigned char *)view->rx;

	if (!same(p, true, is_alias((uintptr_t)view->rw, view->rx, view->bytes),
		  "a view is mapped from where in the file its executable address is"))
		return false;
	view->rw[0] = view->rw[view->bytes - 1] = ++p->stamp;
	return same(p, p->stamp, rx[0], "the first byte written is the first at the executable address") &&
	       same(p, p->stamp, rx[view->bytes - 1], "the last byte written is the last there");
}

static bool look(struct player *p)
{
	return (!(p->look & PLAY_CONTENTS) || contents_agree(p)) &&
	       (!(p->look & (PLAY_COUNTERS | PLAY_STEPS)) || counters_agree(p));
}

/* ---- Steps. Each returns whether it was made and found right, or passed over. ---- */

static bool open(struct player *p, const struct sequence_step *step)
{
	const bool single = step->kind == 's';
	const struct sequence_range range =
		sequence_range(p->sequence, step, p->model.page, p->model.bytes[step->region]);
	struct subject_view *view = &p->views[step->view];
	const unsigned made = p->model.made;
	struct model_mapping *mapping;
	const unsigned char *base;

	if (p->number[step->view])
		return true;
	if (!works(p,
		   ALLOC(open)(p->allocator, p->regions[step->region].rx + range.offset, range.bytes,
			       single ? SUBJECT_OPEN_SINGLE_USE : 0, view),
		   "a view can be opened"))
		return false;
	mapping = model_open(&p->model, step->region, range.offset, range.bytes, single);
	p->number[step->view] = mapping->number;
	base = view->rw - (range.offset - mapping->from);
	if (p->model.made > made)
		mapping->rw = base;
	else if (p->look & PLAY_CONTENTS && !same(p, (uintptr_t)mapping->rw, (uintptr_t)base,
						  "the view is served by the mapping that the model finds"))
		return false;
	return !(p->look & PLAY_BYTES) || bytes_agree(p, view);
}

static bool close(struct player *p, unsigned view)
{
	const unsigned number = p->number[view];

	if (!number)
		return true;
	if (!works(p, ALLOC(close)(&p->views[view]), "a view can be closed"))
		return false;
	p->number[view] = 0;
	model_close(&p->model, number);
	return true;
}

/* The pages of two neighbours change places in the file, as far as the allocator takes the free place first. */
static bool exchange(struct player *p, const struct sequence_step *step)
{
	const size_t window = p->sequence->window, block = window > ALLOC_UNIT ? window : ALLOC_UNIT;
	const size_t from = step->window * window & ~(block - 1), middle = from + block, to = middle + block;
	const struct subject_region *region = &p->regions[step->region];

	if (to > p->model.bytes[step->region] || model_pinned(&p->model, step->region, from, to))
		return true;
	model_drop(&p->model, step->region, from, to);
	return works(p, ALLOC(decommit)(region, from, block), "pages can be decommitted") &&
	       works(p, ALLOC(decommit)(region, middle, block), "pages can be decommitted") &&
	       works(p, ALLOC(commit)(region, middle, block), "pages can be committed again") &&
	       works(p, ALLOC(commit)(region, from, block), "pages can be committed again");
}

static bool reserve(struct player *p, unsigned region)
{
	struct subject_region *made = &p->regions[region];

	if (!works(p, ALLOC(reserve)(p->allocator, p->model.bytes[region], made), "a region can be reserved"))
		return false;
	p->reserved[region] = true;
	p->model.bytes[region] = made->bytes;
	return works(p, ALLOC(commit)(made, 0, made->bytes), "a region can be committed");
}

static bool release(struct player *p, unsigned region)
{
	p->reserved[region] = false;
	model_drop(&p->model, region, 0, p->model.bytes[region]);
	return works(p, ALLOC(release)(&p->regions[region]), "a region can be released");
}

static bool renew(struct player *p, unsigned first)
{
	const unsigned second = (first + 1) % MODEL_REGIONS;

	if (model_pinned(&p->model, first, 0, p->model.bytes[first]) ||
	    model_pinned(&p->model, second, 0, p->model.bytes[second]))
		return true;
	return release(p, first) && release(p, second) && reserve(p, second) && reserve(p, first);
}

static bool make_step(struct player *p, const struct sequence_step *step)
{
	switch (step->kind) {
	case 'c':
		return close(p, step->view);
	case 'x':
		return exchange(p, step);
	case 'r':
		return renew(p, step->region);
	default:
		return open(p, step);
	}
}

/* ---- A whole sequence ---- */

static bool begin(struct player *p)
{
	struct subject_config config = alloc_config();
	struct subject_refusals refusals;

	config.rw_cache = p->sequence->capacity;
	config.keep_order = p->sequence->keep_order;
	config.window_bytes = p->sequence->window;
	config.emulation = SUBJECT_EMULATION_OFF; /* nothing is run */
	if (!works(p, ALLOC(create_over)(&watch_os, &config, &p->allocator, &refusals), "an allocator can be made"))
		return false;
	for (unsigned i = 0; i < MODEL_REGIONS; i++) {
		/* The last window of one is no whole window where windows are large. */
		p->model.bytes[i] = (SEQUENCE_WINDOWS - i) * p->sequence->window +
				    (i == 1 && p->sequence->window > ALLOC_UNIT ? ALLOC_UNIT : 0);
		if (!reserve(p, i))
			return false;
	}
	return true;
}

/* Also of a subject that differs: what can be given back is. */
static void end(struct player *p)
{
	for (unsigned i = 0; i < SEQUENCE_VIEWS; i++)
		(void)close(p, i);
	for (unsigned i = 0; i < MODEL_REGIONS; i++)
		if (p->reserved[i])
			(void)release(p, i);
	if (p->look & PLAY_CONTENTS)
		(void)same(p, 0, space_views(), "no writable mapping is left of regions that are gone");
	if (p->look & (PLAY_COUNTERS | PLAY_STEPS))
		(void)counters_agree(p);
	if (p->allocator)
		(void)works(p, ALLOC(destroy)(p->allocator), "the allocator can be destroyed");
}

void play(const struct sequence *sequence, unsigned look_at, struct play_outcome *outcome)
{
	static struct player player;
	struct player *p = &player;

	*p = (struct player){.sequence = sequence, .look = look_at, .outcome = outcome};
	p->model = (struct model){.capacity = sequence->capacity,
				  .keep_order = sequence->keep_order,
				  .window = sequence->window,
				  .page = watch.page};
	*outcome = (struct play_outcome){.differs = false};
	if (begin(p))
		while (outcome->step < sequence->count && make_step(p, &sequence->steps[outcome->step]) && look(p))
			outcome->step++;
	end(p);
}
