/* The part of libffi's generated header that its assembly files use: type numbers, and the port's ffitarget.h. */
#ifndef LIBFFI_H
#define LIBFFI_H

#if defined(__x86_64__)
#define X86_64
#elif defined(__i386__)
#define X86
#endif

#define FFI_TYPE_VOID       0
#define FFI_TYPE_INT        1
#define FFI_TYPE_FLOAT      2
#define FFI_TYPE_DOUBLE     3
#define FFI_TYPE_LONGDOUBLE 4
#define FFI_TYPE_UINT8      5
#define FFI_TYPE_SINT8      6
#define FFI_TYPE_UINT16     7
#define FFI_TYPE_SINT16     8
#define FFI_TYPE_UINT32     9
#define FFI_TYPE_SINT32     10
#define FFI_TYPE_UINT64     11
#define FFI_TYPE_SINT64     12
#define FFI_TYPE_STRUCT     13
#define FFI_TYPE_POINTER    14
#define FFI_TYPE_COMPLEX    15
#define FFI_TYPE_UINT128    16
#define FFI_TYPE_SINT128    17
#define FFI_TYPE_VECTOR     18
#define FFI_TYPE_LAST       FFI_TYPE_VECTOR

/* Of the checkout. */
#ifdef LIBFFI_ASM
#include <ffitarget.h>
#endif

#endif
