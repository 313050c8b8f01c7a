/*
 * Hosted subjects: those that need a C library, linked statically against one.
 *
 * The suite in such a program is what it is everywhere else: it makes raw system calls. The subject's calls are caught
 * by the linker (--wrap): each function __wrap_NAME in this folder stands for NAME wherever an object that is linked
 * asks for NAME, and __real_NAME is the library's. The harness finds the names by these definitions. What libc does by
 * itself (memory of malloc, stacks of threads) is not caught: it calls itself by other names.
 *
 * No header of a C library is used, so that these files compile for every port as all others do: the few types that
 * matter are those of the System V ABI and of glibc.
 */
#ifndef HOSTED_H
#define HOSTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "subject_allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * From now on the subject's system calls go to this table, or to the system itself where it is null. An adapter calls
 * it in create_over, and with null in create. Page sizes are answered as --page says, whatever is set here. For one
 * thread, while no other is in the subject.
 */
void hosted_over(const struct subject_os *os);

/* The rest is for the files of this folder. */
extern const struct subject_os *hosted_os;

/* Bytes of a page, as the subject is to see it. */
size_t hosted_page(void);
/* 0 for 0, else -1 with errno set to the positive of a negative one. */
int hosted_answer(int error);
#define HOSTED_FAILED ((void *)-1) /* MAP_FAILED */

/* Was the descriptor made through the table? */
bool hosted_knows(int file);
void hosted_know(int file, bool known);

/* mmap with a byte offset, and the memory file of any way to ask for one, through the table. */
void *hosted_map(void *address, size_t bytes, int protection, int flags, int file, int64_t offset);
int hosted_file(const char *name, int executable);

#ifdef __cplusplus
}
#endif

#endif
