#include "code_heap.h"

struct subject_code_config code_config(void)
{
	return (struct subject_code_config){
		.segment_bytes = 64,
		.minimum = 1,
		.policy = SUBJECT_CODE_BEST,
		.near_percent = 50,
		.region_bytes = ALLOC_UNIT,
		.maximum_bytes = 16 * ALLOC_UNIT,
		.kind = 5,
		.free_blocks = SIZE_MAX,
	};
}

bool code_make(const struct subject_code_config *config, struct code_pair *pair)
{
	pair->allocator = alloc_make(NULL);
	return pair->allocator && ALLOC_OK(CODE(create)(pair->allocator, config, &pair->heap));
}

bool code_end(const struct code_pair *pair)
{
	return ALLOC_OK(CODE(destroy)(pair->heap)) && alloc_end(pair->allocator);
}
