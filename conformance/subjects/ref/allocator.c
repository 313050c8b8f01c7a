/*
 * libexecmem's allocator in the suite's words. The two tables of the system differ in a few types alone, so that most
 * of the suite's entries are handed over as they are.
 */
#include "allocator.h"

#include <execmem/allocator.h>
#include <execmem/fork.h>
#include <execmem/region.h>
#include <execmem/rwcache.h>
#include <execmem/stats.h>

#include <check.h>

_Static_assert(SUBJECT_READ == EXECMEM_READ && SUBJECT_WRITE == EXECMEM_WRITE && SUBJECT_EXECUTE == EXECMEM_EXECUTE &&
		       SUBJECT_PADS == EXECMEM_PADS,
	       "protections");
/* NOLINTNEXTLINE(misc-redundant-expression): as it should be */
_Static_assert(SUBJECT_NO_FILE == EXECMEM_NO_FILE, "no file");
_Static_assert(SUBJECT_SEAL_SHRINK == EXECMEM_SEAL_SHRINK && SUBJECT_SEAL_WRITE == EXECMEM_SEAL_WRITE, "seals");
_Static_assert((int)SUBJECT_LIMIT_MAPPINGS == (int)EXECMEM_LIMIT_MAPPINGS && SUBJECT_UNLIMITED == EXECMEM_UNLIMITED,
	       "limits");
_Static_assert((int)SUBJECT_BACKEND_TOGGLE == (int)EXECMEM_BACKEND_TOGGLE, "backends");
_Static_assert((int)SUBJECT_EMULATION_OFF == (int)EXECMEM_EMULATION_OFF, "emulation");
_Static_assert(SUBJECT_OPEN_SINGLE_USE == EXECMEM_MAP_SINGLE_USE &&
		       SUBJECT_PUBLISH_SERIALIZE == EXECMEM_PUBLISH_SERIALIZE,
	       "flags");
_Static_assert(SUBJECT_REFUSALS_MOST == EXECMEM_REFUSALS_MAX, "refusals");

int ref_error(int error)
{
	switch (error) {
#define SAME(name_)                                                                                                    \
	case EXECMEM_ERROR_##name_:                                                                                    \
		return SUBJECT_ERROR_##name_;
		SAME(ARGUMENT)
		SAME(REFUSED)
		SAME(FILE_SIZE)
		SAME(ADDRESS_SPACE)
		SAME(MAPPING_COUNT)
		SAME(UNREACHABLE)
		SAME(NOT_FOUND)
		SAME(NOT_COMMITTED)
		SAME(COMMITTED)
		SAME(OUTSIDE)
		SAME(BUSY)
		SAME(NOT_OPEN)
		SAME(RELEASED)
		SAME(FORKED)
		SAME(STATE)
		SAME(SYNC)
		SAME(UNSUPPORTED)
		SAME(ENVIRONMENT)
		SAME(OPERATION)
		SAME(FULL)
		SAME(INTERIOR)
		SAME(FREED)
		SAME(PADDING)
#undef SAME
	default:
		return error >= -4095 && error <= 0 ? error : SUBJECT_ERROR_OTHER;
	}
}

/* ---- The table ---- */

/* The suite's table, of which there is one in a program; for the two entries whose types differ. */
static const struct subject_os *given;

static int discard_many(void *context, const struct execmem_span *spans, size_t count, size_t *done)
{
	_Static_assert(sizeof(struct execmem_span) == sizeof(struct subject_span), "spans");
	return given->discard_many(context, (const struct subject_span *)spans, count, done);
}

static int limit(void *context, enum execmem_limit which, struct execmem_usage *usage)
{
	uint64_t used, most;
	const int error = given->limit(context, (unsigned)which, &used, &most);

	if (!error)
		*usage = (struct execmem_usage){used, most};
	return error;
}

struct execmem_os ref_table(const struct subject_os *os)
{
	given = os;
	return (struct execmem_os){
		.context = os->context,
		.page_size = os->page_size,
		.map = os->map,
		.map_fixed = os->map_fixed,
		.protect = os->protect,
		.unmap = os->unmap,
		.discard = os->discard,
		.discard_many = discard_many,
		.file_create = os->file_create,
		.file_grow = os->file_grow,
		.file_seal = os->file_seal,
		.file_punch = os->file_punch,
		.file_close = os->file_close,
		.limit = limit,
		.name = os->name,
		.sync_code = os->sync_code,
		.serialize = os->serialize,
		.probe_code = os->probe_code,
		.probe_run = os->probe_run,
		.wait = os->wait,
		.wake = os->wake,
		.identity = os->identity,
		.wipe_on_fork = os->wipe_on_fork,
		.write = os->write,
	};
}

/* ---- Allocators ---- */

static struct execmem_allocator *own(struct subject_allocator *allocator)
{
	return (struct execmem_allocator *)allocator;
}

static int make(struct execmem_os os, const struct subject_config *config, struct subject_allocator **allocator,
		struct subject_refusals *refusals)
{
	struct execmem_config wanted = execmem_config_default(os);
	struct execmem_refusals met = {.count = 0};
	struct execmem_allocator *made;
	int error;

	for (unsigned i = 0; i < sizeof(wanted.backends) / sizeof(wanted.backends[0]); i++)
		wanted.backends[i] = (enum execmem_backend)config->backends[i];
	if (config->window_bytes)
		wanted.window_bytes = config->window_bytes;
	if (config->rw_cache != SUBJECT_RW_CACHE_OWN)
		wanted.rw_cache = config->rw_cache;
	wanted.keep_order = config->keep_order;
	wanted.grow_bytes = config->grow_bytes;
	wanted.emulation = (enum execmem_emulation)config->emulation;
	wanted.environment = config->environment;
	error = execmem_create(&wanted, &made, &met);
	refusals->count = met.count;
	for (unsigned i = 0; i < met.count; i++)
		refusals->list[i] = (struct subject_refusal){met.list[i].backend, met.list[i].call, met.list[i].error};
	if (!error)
		*allocator = (struct subject_allocator *)made;
	return ref_error(error);
}

static int create(const struct subject_config *config, struct subject_allocator **allocator,
		  struct subject_refusals *refusals)
{
	return make(execmem_os_linux(check_os_page), config, allocator, refusals);
}

static int create_over(const struct subject_os *os, const struct subject_config *config,
		       struct subject_allocator **allocator, struct subject_refusals *refusals)
{
	return make(ref_table(os), config, allocator, refusals);
}

static int destroy(struct subject_allocator *allocator)
{
	return ref_error(execmem_destroy(own(allocator)));
}

static enum subject_backend backend(struct subject_allocator *allocator)
{
	return (enum subject_backend)execmem_backend(own(allocator));
}

static void last_refusal(struct subject_allocator *allocator, struct subject_refusal *refusal)
{
	struct execmem_refusal last;

	execmem_last_refusal(own(allocator), &last);
	*refusal = (struct subject_refusal){last.backend, last.call, last.error};
}

/* ---- Regions ---- */

static struct execmem_region region_of(const struct subject_region *region)
{
	return (struct execmem_region){{region->rx}, region->bytes, (void *)region->own[0], region->own[1]};
}

static int reserve_any(struct subject_allocator *allocator, size_t bytes, const struct execmem_near *near,
		       unsigned kind, void *owner, struct subject_region *region)
{
	struct execmem_region made;
	const int error = execmem_reserve(own(allocator), bytes, near, kind, owner, &made);

	if (!error)
		*region = (struct subject_region){made.rx.at, made.bytes, {(uintptr_t)made.record, made.generation}};
	return ref_error(error);
}

static int reserve(struct subject_allocator *allocator, size_t bytes, struct subject_region *region)
{
	return reserve_any(allocator, bytes, NULL, 0, NULL, region);
}

static int reserve_near(struct subject_allocator *allocator, size_t bytes, uintptr_t target, size_t reach,
			struct subject_region *region)
{
	const struct execmem_near near = {target, reach};

	return reserve_any(allocator, bytes, &near, 0, NULL, region);
}

static int reserve_kind(struct subject_allocator *allocator, size_t bytes, unsigned kind, void *owner,
			struct subject_region *region)
{
	return reserve_any(allocator, bytes, NULL, kind, owner, region);
}

static int release(const struct subject_region *region)
{
	const struct execmem_region it = region_of(region);

	return ref_error(execmem_release(&it));
}

static int commit(const struct subject_region *region, size_t offset, size_t bytes)
{
	const struct execmem_region it = region_of(region);

	return ref_error(execmem_commit(&it, offset, bytes));
}

static int decommit(const struct subject_region *region, size_t offset, size_t bytes)
{
	const struct execmem_region it = region_of(region);

	return ref_error(execmem_decommit(&it, offset, bytes));
}

static int lookup(struct subject_allocator *allocator, const void *address, struct subject_found *found)
{
	struct execmem_found it;
	const int error = execmem_lookup(own(allocator), address, &it);

	if (!error)
		*found = (struct subject_found){it.start.at, it.bytes, it.owner, it.kind};
	return ref_error(error);
}

/* ---- Views ---- */

static struct execmem_view view_of(const struct subject_view *view)
{
	return (struct execmem_view){{view->rw}, {view->rx}, view->bytes, (void *)view->own[0], view->own[1]};
}

static int open(struct subject_allocator *allocator, uintptr_t rx, size_t bytes, unsigned flags,
		struct subject_view *view)
{
	struct execmem_view made;
	const int error = execmem_map_rw(own(allocator), (execmem_rx){rx}, bytes, flags, &made);

	if (!error)
		*view = (struct subject_view){
			made.rw.at, made.rx.at, made.bytes, {(uintptr_t)made.handle, made.generation}};
	return ref_error(error);
}

static int close(struct subject_view *view)
{
	struct execmem_view it = view_of(view);
	const int error = execmem_unmap_rw(&it);

	view->rw = it.rw.at;
	return ref_error(error);
}

static int publish(const struct subject_view *view, size_t offset, size_t bytes, unsigned flags)
{
	const struct execmem_view it = view_of(view);

	return ref_error(execmem_publish(&it, offset, bytes, flags));
}

static int publish_many(const struct subject_view *view, const struct subject_range *ranges, size_t count,
			unsigned flags)
{
	const struct execmem_view it = view_of(view);

	_Static_assert(sizeof(struct execmem_range) == sizeof(struct subject_range), "ranges");
	return ref_error(execmem_publish_many(&it, (const struct execmem_range *)ranges, count, flags));
}

static int write(struct subject_allocator *allocator, uintptr_t rx, const void *code, size_t bytes, unsigned flags)
{
	return ref_error(execmem_write(own(allocator), (execmem_rx){rx}, code, bytes, flags));
}

/* ---- The rest ---- */

static int stats(struct subject_allocator *allocator, struct subject_stats *to)
{
	struct execmem_stats from;
	const int error = execmem_stats(own(allocator), &from);

	if (!error)
		*to = (struct subject_stats){
			.reserves = from.reserves,
			.releases = from.releases,
			.commits = from.commits,
			.decommits = from.decommits,
			.publishes = from.publishes,
			.probes = from.probes,
			.regions = from.regions,
			.reserved_bytes = from.reserved_bytes,
			.committed_bytes = from.committed_bytes,
			.views_open = from.views_open,
			.views_mapped = from.views_mapped,
			.views_cached = from.views_cached,
			.file_bytes = from.file_bytes,
			.file_used_bytes = from.file_used_bytes,
			.deferred_bytes = from.deferred_bytes,
			.metadata_bytes = from.metadata_bytes,
		};
	return ref_error(error);
}

static int cache(struct subject_allocator *allocator, struct subject_cache *to)
{
	struct execmem_stats from;
	const int error = execmem_stats(own(allocator), &from);

	if (!error)
		*to = (struct subject_cache){
			.maps = from.rw_maps,
			.unmaps = from.rw_unmaps,
			.hits = from.hits,
			.misses = from.misses,
			.bypasses = from.bypasses,
			.evictions = from.evictions,
			.steps = from.steps,
			.remaps = from.remaps,
		};
	return ref_error(error);
}

static int dump(struct subject_allocator *allocator)
{
	return ref_error(execmem_stats_dump(own(allocator)));
}

static bool emulation(struct subject_allocator *allocator)
{
	return execmem_emulation(own(allocator));
}

static void set_emulation(struct subject_allocator *allocator, bool on)
{
	execmem_set_emulation(own(allocator), on);
}

static int fork_prepare(struct subject_allocator *allocator)
{
	return ref_error(execmem_fork_prepare(own(allocator)));
}

static int fork_parent(struct subject_allocator *allocator)
{
	return ref_error(execmem_fork_parent(own(allocator)));
}

static int fork_child(struct subject_allocator *allocator)
{
	return ref_error(execmem_fork_child(own(allocator)));
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name */
#define OPERATION(name_, claim_) .name_ = name_,
const struct subject_allocator_operations ref_allocator = {SUBJECT_ALLOCATOR_CLAIMS(OPERATION)};
