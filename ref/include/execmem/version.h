/*
 * The release. This is where it is stated: CMake reads it here, and a test holds everything else against it.
 */
#ifndef EXECMEM_VERSION_H
#define EXECMEM_VERSION_H

#define EXECMEM_VERSION_MAJOR    0
#define EXECMEM_VERSION_MINOR    1
#define EXECMEM_VERSION_PATCH    0

#define EXECMEM_VERSION_TEXT(n)  EXECMEM_VERSION_TEXT_(n)
#define EXECMEM_VERSION_TEXT_(n) #n

/* "major.minor.patch". Before 1.0.0 a new minor version may change anything; versions follow semantic versioning. */
#define EXECMEM_VERSION                                                                                                \
	EXECMEM_VERSION_TEXT(EXECMEM_VERSION_MAJOR)                                                                    \
	"." EXECMEM_VERSION_TEXT(EXECMEM_VERSION_MINOR) "." EXECMEM_VERSION_TEXT(EXECMEM_VERSION_PATCH)

#endif
