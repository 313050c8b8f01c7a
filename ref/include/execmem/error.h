/*
 * Errors of the library. Functions return 0 or a negative number: one of these, or a negative errno of the system,
 * which lies in [-4095, -1] and so is never one of them.
 *
 * A function that fails leaves its outputs untouched, and everything else as it was before the call, unless its own
 * docstring says otherwise. Where the system refused, execmem_last_refusal (execmem/allocator.h) names the call.
 */
#ifndef EXECMEM_ERROR_H
#define EXECMEM_ERROR_H

#define EXECMEM_MUST_CHECK __attribute__((warn_unused_result))

/* X(name, number, text): one sentence without a full stop. */
#define EXECMEM_ERRORS(X)                                                                                              \
	X(ARGUMENT, -4097, "an argument is outside what the function allows")                                          \
	X(STUB_PAGE_REACH, -4098, "the OS page is larger than the templates of this port can reach across")            \
	X(TEMPLATE_SIZE, -4099, "a template's code, slot or patch site does not fit where it belongs")                 \
	X(OPERATION, -4100, "the table of system operations lacks an entry")                                           \
	X(ENVIRONMENT, -4101, "an environment variable holds a value that is not understood")                          \
	X(REFUSED, -4102, "the system refuses every backend that the caller allows")                                   \
	X(ADDRESS_SPACE, -4103, "the address-space limit is reached")                                                  \
	X(MAPPING_COUNT, -4104, "the limit on the number of mappings is reached")                                      \
	X(FILE_SIZE, -4105, "the file-size limit does not let the memory file grow")                                   \
	X(UNREACHABLE, -4106, "no free range of addresses lies within reach of the target")                            \
	X(NOT_FOUND, -4107, "the address belongs to no region")                                                        \
	X(NOT_COMMITTED, -4108, "the range holds a page that is not committed")                                        \
	X(COMMITTED, -4109, "the range holds a page that is committed already")                                        \
	X(OUTSIDE, -4110, "the range does not lie inside its region or view")                                          \
	X(BUSY, -4111, "a writable view is open, or a region not released")                                            \
	X(NOT_OPEN, -4112, "the view is not open: it was unmapped before, or never mapped")                            \
	X(RELEASED, -4113, "the region was released before")                                                           \
	X(FORKED, -4114, "this process is a fork that has not called execmem_fork_child")                              \
	X(STATE, -4115, "the call does not fit the allocator's present state")                                         \
	X(SYNC, -4116, "the instruction cache could not be synchronised")                                              \
	X(UNSUPPORTED, -4117, "the system lacks the facility, or has a page size that the library does not know")      \
	X(FULL, -4118, "the heap has no free block that is large enough, and may not grow")                            \
	X(INTERIOR, -4119, "the address lies inside a block, not at its beginning")                                    \
	X(FREED, -4120, "the address lies in free memory: it was freed before, or never allocated")                    \
	X(PADDING, -4121, "the address lies between or behind the slots of a stub page, in no stub")

enum execmem_error {
#define EXECMEM_ERROR_ENUM(name_, number_, text_) EXECMEM_ERROR_##name_ = (number_),
	EXECMEM_ERRORS(EXECMEM_ERROR_ENUM)
#undef EXECMEM_ERROR_ENUM
};

/* One sentence without a full stop, in static storage; of any number, never null. Any thread, any signal handler. */
const char *execmem_error_text(int error);

#endif
