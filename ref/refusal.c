#include "allocator.h"
#include "linux_errno.h"

/* What a new mapping may add: itself, and the two halves of one that it splits. */
#define MAPPINGS_A_CALL 2

/* ENOMEM has three meanings (mmap(2)). Their limits are asked only now. */
static int which_limit(const struct execmem_os *os, size_t bytes)
{
	struct execmem_usage usage;

	if (os->limit(os->context, EXECMEM_LIMIT_MAPPINGS, &usage) == 0 &&
	    (usage.used >= usage.limit || usage.limit - usage.used < MAPPINGS_A_CALL))
		return EXECMEM_ERROR_MAPPING_COUNT;
	if (os->limit(os->context, EXECMEM_LIMIT_ADDRESS_BYTES, &usage) == 0 &&
	    (usage.used >= usage.limit || usage.limit - usage.used < bytes))
		return EXECMEM_ERROR_ADDRESS_SPACE;
	return -ENOMEM;
}

int execmem_note_refusal(struct execmem_allocator *allocator, const char *call, int error, size_t bytes)
{
	execmem_lock(&allocator->os, &allocator->refusal_lock);
	allocator->refusal = (struct execmem_refusal){"", call, -error};
	execmem_unlock(&allocator->os, &allocator->refusal_lock);
	if (error == -ENOMEM)
		return which_limit(&allocator->os, bytes);
	return error == -EFBIG ? EXECMEM_ERROR_FILE_SIZE : error;
}

void execmem_last_refusal(struct execmem_allocator *allocator, struct execmem_refusal *refusal)
{
	execmem_lock(&allocator->os, &allocator->refusal_lock);
	*refusal = allocator->refusal;
	execmem_unlock(&allocator->os, &allocator->refusal_lock);
	if (!refusal->call) {
		refusal->backend = "";
		refusal->call = "";
	}
}
