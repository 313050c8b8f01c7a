#include "model.h"

#include "check.h"

static void remove_at(struct model *model, unsigned at)
{
	model->count--;
	__builtin_memmove(&model->mappings[at], &model->mappings[at + 1],
			  (model->count - at) * sizeof(model->mappings[0]));
}

static struct model_mapping *put_first(struct model *model, struct model_mapping mapping)
{
	if (model->count == MODEL_MAPPINGS_MOST)
		check_broken("the model of the cache is full", MODEL_MAPPINGS_MOST);
	__builtin_memmove(&model->mappings[1], &model->mappings[0], model->count * sizeof(mapping));
	model->mappings[0] = mapping;
	model->count++;
	return &model->mappings[0];
}

static void unmap_at(struct model *model, unsigned at)
{
	model->counters.unmaps++;
	remove_at(model, at);
}

unsigned model_cached(const struct model *model)
{
	unsigned count = 0;

	for (unsigned i = 0; i < model->count; i++)
		count += model->mappings[i].cached;
	return count;
}

/* Makes room for one in the cache; false where there is none. */
static bool make_room(struct model *model)
{
	if (model_cached(model) < model->capacity)
		return true;
	for (unsigned i = model->count; i--;)
		if (model->mappings[i].cached && !model->mappings[i].pins) {
			model->counters.evictions++;
			unmap_at(model, i);
			return true;
		}
	return false;
}

static struct model_mapping *find(struct model *model, unsigned region, size_t from, size_t to)
{
	for (unsigned i = 0; i < model->count; i++) {
		const struct model_mapping mapping = model->mappings[i];

		if (mapping.region != region)
			continue;
		model->counters.steps++;
		if (mapping.single || from < mapping.from || to > mapping.to)
			continue;
		if (model->keep_order)
			return &model->mappings[i];
		remove_at(model, i);
		return put_first(model, mapping);
	}
	return NULL;
}

struct model_mapping *model_open(struct model *model, unsigned region, size_t offset, size_t bytes, bool single)
{
	const size_t mask = (single ? model->page : model->window) - 1, end = offset + bytes;
	struct model_mapping made = {.region = region, .pins = 1, .single = single}, *found;

	if (!single) {
		found = find(model, region, offset, end);
		if (found) {
			model->counters.hits++;
			found->pins++;
			return found;
		}
	}
	made.from = offset & ~mask;
	made.to = (end + mask) & ~mask;
	if (made.to > model->bytes[region])
		made.to = model->bytes[region];
	made.number = ++model->made;
	made.cached = !single && model->capacity && make_room(model);
	model->counters.maps++;
	*(single ? &model->counters.bypasses : &model->counters.misses) += 1;
	return put_first(model, made);
}

struct model_mapping *model_of(struct model *model, unsigned number)
{
	for (unsigned i = 0; i < model->count; i++)
		if (model->mappings[i].number == number)
			return &model->mappings[i];
	return NULL;
}

void model_close(struct model *model, unsigned number)
{
	struct model_mapping *mapping = model_of(model, number);

	if (!--mapping->pins && !mapping->cached)
		unmap_at(model, (unsigned)(mapping - model->mappings));
}

static bool over(const struct model_mapping *mapping, unsigned region, size_t from, size_t to)
{
	return mapping->region == region && mapping->from < to && from < mapping->to;
}

void model_drop(struct model *model, unsigned region, size_t from, size_t to)
{
	for (unsigned i = model->count; i--;)
		if (over(&model->mappings[i], region, from, to))
			unmap_at(model, i);
}

bool model_pinned(const struct model *model, unsigned region, size_t from, size_t to)
{
	for (unsigned i = 0; i < model->count; i++)
		if (model->mappings[i].pins && over(&model->mappings[i], region, from, to))
			return true;
	return false;
}
