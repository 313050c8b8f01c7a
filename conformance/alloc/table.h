/*
 * The real table: struct subject_os over the raw system calls of arch/port.h. Nothing is recorded or checked here:
 * watch.h does.
 */
#ifndef ALLOC_TABLE_H
#define ALLOC_TABLE_H

#include <port.h>

#include "subject_allocator.h"

/* Its page_size answers check_os_page. No state: its context is null. */
extern const struct subject_os table_real;

/* A raw system call by the name of its number: TABLE_CALL(GETPID). What is missing is 0. */
#define TABLE_CALL(...) TABLE_CALL7(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define TABLE_CALL7(name_, a, b, c, d, e, f, ...)                                                                      \
	execmem_port_syscall(EXECMEM_SYS_##name_, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#define TABLE_EPERM  1
#define TABLE_ENOENT 2
#define TABLE_EAGAIN 11
#define TABLE_ENOMEM 12
#define TABLE_EACCES 13
#define TABLE_EINVAL 22
#define TABLE_ENFILE 23
#define TABLE_EMFILE 24
#define TABLE_EFBIG  27
#define TABLE_ENOSPC 28
#define TABLE_ENOSYS 38

/* Reads a whole small file: the bytes read, at most `room`, or a negative errno. */
long table_read_file(const char *path, char *to, size_t room);

/* Blocks that a file holds, in bytes; or a negative errno. */
int64_t table_file_blocks(int file);

/* Memory that pages of a private mapping hold, in bytes; or a negative errno. The range is of the system's pages. */
int64_t table_resident(uintptr_t address, size_t bytes);

#endif
