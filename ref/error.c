#include <execmem/error.h>

const char *execmem_error_text(int error)
{
	switch (error) {
	case 0:
		return "no error";
#define EXECMEM_ERROR_CASE(name_, number_, text_)                                                                      \
	case EXECMEM_ERROR_##name_:                                                                                    \
		return text_;
		EXECMEM_ERRORS(EXECMEM_ERROR_CASE)
#undef EXECMEM_ERROR_CASE
	default:
		return error < 0 && error >= -4095 ? "the operating system refused (a negative errno)"
						   : "not an error of this library";
	}
}
