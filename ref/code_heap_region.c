/*
 * The regions of a code heap, and heaps themselves.
 */
#include "code_heap.h"

#define W       EXECMEM_CODE_WORD_BITS
#define W_SHIFT EXECMEM_CODE_WORD_SHIFT
#define FANOUT  ((size_t)1 << EXECMEM_CODE_FANOUT_SHIFT)
#define UNIT    ((size_t)EXECMEM_UNIT_BYTES)

/* ---- Tables: one piece of memory, zero, of which what is used is touched ---- */

struct layout {
	unsigned char *tables; /* null: only to learn how many bytes there are */
	size_t bytes;
};

static void *lay(struct layout *layout, size_t bytes)
{
	void *at = layout->tables ? layout->tables + layout->bytes : NULL;

	layout->bytes += (bytes + sizeof(uint64_t) - 1) & ~(sizeof(uint64_t) - 1);
	return at;
}

static size_t words_for(size_t bits)
{
	return (bits + W - 1) >> W_SHIFT;
}

/* The words of a bitmap of all segments: whole groups, and one more for bits that are read as one across words. */
static size_t map_words(const struct execmem_code_region *region)
{
	size_t words = (size_t)1 << (EXECMEM_CODE_GROUP_SHIFT - W_SHIFT);

	return ((words_for(region->segments + 1) + words - 1) & ~(words - 1)) + 1;
}

/* Each level has a word more than it needs: looking behind the last bit finds none. So has the lowest before it. */
static void lay_blocks(struct layout *layout, struct execmem_code_region *region)
{
	struct execmem_code_bits *bits = &region->blocks;

	(void)lay(layout, sizeof(uintptr_t));
	bits->level[0] = lay(layout, map_words(region) * sizeof(uintptr_t));
	bits->levels = 1;
	for (size_t words = words_for(region->segments + 1); words > 1; words = words_for(words))
		bits->level[bits->levels++] = lay(layout, (words_for(words) + 1) * sizeof(uintptr_t));
}

static void lay_classes(struct layout *layout, struct execmem_code_classes *classes, size_t groups)
{
	classes->levels = 0;
	for (size_t words = words_for(groups);; words = words_for(words)) {
		classes->level[classes->levels++] = lay(layout, (words + 1) * W * sizeof(uintptr_t));
		if (words == 1)
			return;
	}
}

static void lay_maxima(struct layout *layout, struct execmem_code_maxima *maxima, size_t groups)
{
	maxima->levels = 0;
	for (size_t count = groups;; count = (count + FANOUT - 1) >> EXECMEM_CODE_FANOUT_SHIFT) {
		size_t rooms = (count + FANOUT - 1) & ~(FANOUT - 1);

		maxima->count[maxima->levels] = count;
		maxima->level[maxima->levels++] = lay(layout, rooms * sizeof(uint32_t));
		if (count == 1)
			return;
	}
}

/* Large free blocks are not neighbours: so many there can be. */
static size_t large_blocks(size_t segments)
{
	return segments / (W + 1) + 1;
}

static void lay_side(struct layout *layout, struct execmem_code_side *side, size_t groups)
{
	side->references = lay(layout, groups * sizeof(*side->references));
	side->cells = lay(layout, execmem_code_side_room(side, groups));
}

/* What the unused bytes of a block are at most: the minimum less a byte, and a remainder below the minimum. */
static size_t most_unused(const struct execmem_code_config *config)
{
	return (2 * (size_t)config->minimum - 1) * config->segment_bytes - 1;
}

static void lay_all(struct layout *layout, struct execmem_code_region *region)
{
	size_t groups = (region->segments >> EXECMEM_CODE_GROUP_SHIFT) + 1;

	lay_blocks(layout, region);
	region->used = lay(layout, map_words(region) * sizeof(uintptr_t));
	lay_side(layout, &region->unused, groups);
	lay_side(layout, &region->kinds, groups);
	region->pending =
		lay(layout,
		    (words_for((region->segments << region->heap->shift >> region->heap->allocator->page_shift) + 1) *
		     sizeof(uintptr_t)));
	if (region->heap->config.policy == EXECMEM_CODE_FIRST) {
		lay_maxima(layout, &region->maxima, groups);
	} else {
		lay_classes(layout, &region->classes, groups);
		region->trie.nodes =
			lay(layout, (large_blocks(region->segments) + 1) * sizeof(struct execmem_code_trie_node));
	}
	if (region->heap->config.policy == EXECMEM_CODE_NEAR) {
		size_t each = region->heap->allocator->window_bytes >> region->heap->shift;
		size_t windows = (region->segments + each - 1) / each;

		lay_maxima(layout, &region->windows, windows);
		region->bounds = lay(layout, windows * sizeof(*region->bounds));
	}
}

size_t execmem_code_region_metadata(const struct execmem_code_region *region)
{
	struct execmem_code_region used = *region;
	struct layout layout = {NULL, 0};
	size_t groups;

	if (region->top == 0)
		return sizeof(*region);
	used.segments = region->top;
	groups = (used.segments >> EXECMEM_CODE_GROUP_SHIFT) + 1;
	lay_all(&layout, &used);
	/* Of cells and nodes there are as many as were needed, not as there may be. */
	layout.bytes -= execmem_code_side_room(&region->unused, groups) - execmem_code_side_used(&region->unused);
	layout.bytes -= execmem_code_side_room(&region->kinds, groups) - execmem_code_side_used(&region->kinds);
	if (region->kinds.fresh == 1)
		layout.bytes -= groups * sizeof(*region->kinds.references);
	if (region->heap->config.policy != EXECMEM_CODE_FIRST) {
		layout.bytes += region->trie.fresh * sizeof(struct execmem_code_trie_node);
		layout.bytes -= (large_blocks(used.segments) + 1) * sizeof(struct execmem_code_trie_node);
	}
	return layout.bytes + sizeof(*region);
}

static int make_tables(struct execmem_code_region *region)
{
	struct execmem_allocator *allocator = region->heap->allocator;
	struct layout layout = {NULL, 0};
	int error;

	execmem_code_side_measure(&region->unused, most_unused(&region->heap->config));
	execmem_code_side_measure(&region->kinds, EXECMEM_KIND_MAX + 1);
	lay_all(&layout, region);
	region->table_bytes = layout.bytes;
	error = execmem_memory_get(&allocator->memory, &allocator->os, region->table_bytes, &region->tables);
	if (error)
		return execmem_refuse(allocator, "map", error, region->table_bytes);
	layout = (struct layout){region->tables, 0};
	lay_all(&layout, region);
	region->trie.fresh = 1;
	execmem_code_bits_set(&region->blocks, 0);
	execmem_code_bits_set(&region->blocks, region->segments);
	execmem_code_change(region->used, region->segments, true);
	execmem_code_index_insert(region, 0, region->segments);
	return 0;
}

/* ---- Regions; heap->lock is held ---- */

static void link_region(struct execmem_code_region *region)
{
	struct execmem_code_heap *heap = region->heap;
	struct execmem_code_region **at = &heap->regions;

	while (*at && (*at)->start < region->start)
		at = &(*at)->next;
	region->next = *at;
	*at = region;
	heap->region_count++;
	heap->free_count++;
	heap->reserved_bytes += region->region.bytes;
}

static void unlink_region(struct execmem_code_region *region)
{
	struct execmem_code_region **at = &region->heap->regions;

	while (*at != region)
		at = &(*at)->next;
	*at = region->next;
	region->heap->region_count--;
	region->heap->free_count--;
	region->heap->reserved_bytes -= region->region.bytes;
}

static void put_region(struct execmem_code_region *region)
{
	struct execmem_allocator *allocator = region->heap->allocator;

	execmem_memory_put(&allocator->memory, &allocator->os, region->tables, region->table_bytes);
	execmem_memory_put(&allocator->memory, &allocator->os, region, sizeof(*region));
}

static int add_region(struct execmem_code_heap *heap, size_t bytes, const struct execmem_near *near,
		      struct execmem_code_region **region)
{
	struct execmem_allocator *allocator = heap->allocator;
	struct execmem_code_region *made;
	void *memory;
	int error = execmem_memory_get(&allocator->memory, &allocator->os, sizeof(*made), &memory);

	if (error)
		return execmem_refuse(allocator, "map", error, sizeof(*made));
	made = memory;
	made->heap = heap;
	made->segments = bytes >> heap->shift;
	error = make_tables(made);
	if (!error)
		error = execmem_reserve(allocator, bytes, near, heap->config.kind, heap, &made->region);
	if (error) {
		put_region(made);
		return error;
	}
	made->start = made->region.rx.at;
	link_region(made);
	__atomic_store_n(&made->region.record->face->code, made, __ATOMIC_RELEASE);
	*region = made;
	return 0;
}

int execmem_code_release_region(struct execmem_code_region *region)
{
	struct execmem_region_record *record = region->region.record;
	int error;

	/* First: the record may be another region's as soon as this one is released. */
	__atomic_store_n(&record->face->code, NULL, __ATOMIC_RELEASE);
	error = execmem_release(&region->region);
	if (error) {
		__atomic_store_n(&record->face->code, region, __ATOMIC_RELEASE);
		return error;
	}
	if (region->heap->near_region == region)
		region->heap->near_region = NULL;
	unlink_region(region);
	put_region(region);
	return 0;
}

static size_t units(size_t bytes)
{
	return (bytes + UNIT - 1) & ~(UNIT - 1);
}

int execmem_code_grow(struct execmem_code_heap *heap, const struct execmem_code_wish *wish,
		      struct execmem_code_region **region)
{
	size_t least = units(execmem_code_sure(heap, wish) << heap->shift);
	size_t room = heap->config.maximum_bytes - heap->reserved_bytes;
	/* On a 32-bit port, more than there are addresses. */
	size_t most = EXECMEM_CODE_SEGMENTS_MAX > SIZE_MAX >> heap->shift ? SIZE_MAX & ~(UNIT - 1)
									  : EXECMEM_CODE_SEGMENTS_MAX << heap->shift;
	size_t bytes;
	int error;

	if (least > room || least > most)
		return EXECMEM_ERROR_FULL;
	bytes = heap->reserved_bytes > heap->config.region_bytes ? heap->reserved_bytes : heap->config.region_bytes;
	bytes = bytes > room ? room : bytes;
	bytes = bytes > most ? most : bytes;
	bytes = bytes < least ? least : bytes;
	error = add_region(heap, bytes, wish->near, region);
	/* Where there is no place for as much, there may be for what is needed now. */
	if (error && error != EXECMEM_ERROR_STATE && bytes != least)
		error = add_region(heap, least, wish->near, region);
	return error;
}

int execmem_code_commit(struct execmem_code_region *region, size_t end)
{
	unsigned shift = region->heap->shift;
	size_t done = region->committed << shift, least = units(end << shift) - done;
	size_t more = units(done / 128), bytes = least > more ? least : more;
	int error;

	if (bytes > region->region.bytes - done)
		bytes = region->region.bytes - done;
	error = execmem_commit(&region->region, done, bytes);
	if (error && bytes != least) {
		bytes = least;
		error = execmem_commit(&region->region, done, bytes);
	}
	if (!error)
		region->committed = (done + bytes) >> shift;
	return error;
}

/* ---- Heaps ---- */

struct execmem_code_config execmem_code_config_default(void)
{
	return (struct execmem_code_config){
		.segment_bytes = 32,
		.minimum = 1,
		.policy = EXECMEM_CODE_BEST,
		.region_bytes = EXECMEM_CODE_REGION_DEFAULT,
		.near_percent = EXECMEM_CODE_NEAR_PERCENT_DEFAULT,
		.maximum_bytes = SIZE_MAX & ~(UNIT - 1),
		.free_blocks = EXECMEM_CODE_FREE_BLOCKS_DEFAULT,
	};
}

static bool config_is_right(const struct execmem_code_config *config)
{
	return config->segment_bytes >= EXECMEM_CODE_SEGMENT_MIN && config->segment_bytes <= EXECMEM_CODE_SEGMENT_MAX &&
	       (config->segment_bytes & (config->segment_bytes - 1)) == 0 && config->minimum >= 1 &&
	       config->minimum <= EXECMEM_CODE_MINIMUM_MAX && (unsigned)config->policy <= EXECMEM_CODE_NEAR &&
	       config->near_percent <= 100 && config->kind <= EXECMEM_KIND_MAX &&
	       config->region_bytes >= config->minimum * config->segment_bytes &&
	       config->region_bytes <= config->maximum_bytes && config->maximum_bytes % UNIT == 0 &&
	       (config->region_bytes - 1) / config->segment_bytes < EXECMEM_CODE_SEGMENTS_MAX;
}

static void put_heap(struct execmem_code_heap *heap)
{
	struct execmem_allocator *allocator = heap->allocator;

	execmem_memory_put(&allocator->memory, &allocator->os, heap, sizeof(*heap));
}

int execmem_code_heap_create(struct execmem_allocator *allocator, const struct execmem_code_config *config,
			     struct execmem_code_heap **heap)
{
	struct execmem_code_heap *made;
	struct execmem_code_region *region;
	void *memory;
	int error;

	if (!allocator || !config || !heap || !config_is_right(config) ||
	    config->segment_bytes > allocator->window_bytes)
		return EXECMEM_ERROR_ARGUMENT;
	error = execmem_check_process(allocator);
	if (error)
		return error;
	error = execmem_memory_get(&allocator->memory, &allocator->os, sizeof(*made), &memory);
	if (error)
		return execmem_refuse(allocator, "map", error, sizeof(*made));
	made = memory;
	made->allocator = allocator;
	made->config = *config;
	while ((size_t)1 << made->shift < config->segment_bytes)
		made->shift++;
	while (most_unused(config) >> made->unused_bits)
		made->unused_bits++;
	error = add_region(made, units(config->region_bytes), NULL, &region);
	if (error) {
		put_heap(made);
		return error;
	}
	execmem_lock(&allocator->os, &allocator->heaps_lock);
	made->next = allocator->heaps;
	if (made->next)
		made->next->previous = made;
	allocator->heaps = made;
	execmem_unlock(&allocator->os, &allocator->heaps_lock);
	*heap = made;
	return 0;
}

int execmem_code_heap_destroy(struct execmem_code_heap *heap)
{
	struct execmem_allocator *allocator;
	int error;

	if (!heap)
		return EXECMEM_ERROR_ARGUMENT;
	allocator = heap->allocator;
	error = execmem_check_process(allocator);
	if (error)
		return error;
	execmem_lock(&allocator->os, &allocator->heaps_lock);
	execmem_lock(&allocator->os, &heap->lock);
	while (heap->regions && !error) {
		error = execmem_code_release_region(heap->regions);
		heap->dying |= error == 0;
	}
	execmem_unlock(&allocator->os, &heap->lock);
	if (!error) {
		if (heap->previous)
			heap->previous->next = heap->next;
		else
			allocator->heaps = heap->next;
		if (heap->next)
			heap->next->previous = heap->previous;
		execmem_code_put_books(heap);
		put_heap(heap);
	}
	execmem_unlock(&allocator->os, &allocator->heaps_lock);
	return error;
}
