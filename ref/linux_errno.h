/*
 * Numbers of asm-generic/errno-base.h and errno.h, the same on every Linux port so far.
 */
#ifndef EXECMEM_LINUX_ERRNO_H
#define EXECMEM_LINUX_ERRNO_H

#define EPERM     1
#define ENOENT    2
#define EINTR     4
#define EAGAIN    11
#define ENOMEM    12
#define EACCES    13
#define EINVAL    22
#define EFBIG     27
#define ERANGE    34
#define ENOSYS    38
#define EOVERFLOW 75

#endif
