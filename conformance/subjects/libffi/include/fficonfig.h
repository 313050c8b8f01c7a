/* What configure would have found, for the assembly files of libffi with static trampolines, by clang on ELF. */
#ifndef LIBFFI_SHIM_FFICONFIG_H
#define LIBFFI_SHIM_FFICONFIG_H

#define FFI_EXEC_STATIC_TRAMP            1
#define FFI_NO_RAW_API                   1
#define HAVE_AS_CFI_PSEUDO_OP            1
#define HAVE_AS_X86_PCREL                1
#define HAVE_HIDDEN_VISIBILITY_ATTRIBUTE 1
#define EH_FRAME_FLAGS                   "a"
#define FFI_HIDDEN(name)                 .hidden name

#endif
