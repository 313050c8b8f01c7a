/*
 * The suite's own system calls: those of arch/port.h, recorded, so that a failure block can show the last of them.
 *
 * Protection and mapping flags are Linux's generic values. A refused call is the suite's own trouble and ends the
 * program (check_broken), except os_try_*.
 */
#ifndef OS_H
#define OS_H

#include <stddef.h>
#include <stdint.h>

#include "text.h"

#define OS_READ    1
#define OS_WRITE   2
#define OS_EXECUTE 4

#define OS_SIGILL  4
#define OS_SIGTRAP 5
#define OS_SIGBUS  7
#define OS_SIGFPE  8
#define OS_SIGSEGV 11

/* Reserves `bytes` bytes that nothing can access, at `address` exactly where it is not null. */
unsigned char *os_reserve(void *address, size_t bytes);
/* Memory that this process shares with its forks, readable and writable. */
void *os_share(size_t bytes);
void os_protect(void *address, size_t bytes, int protection);
int os_try_protect(void *address, size_t bytes, int protection); /* 0 or negative errno */
void os_unmap(void *address, size_t bytes);
void os_sync_code(void *address, size_t bytes);
/* Sleeps while *word is `value`, until os_wake; may wake for no reason. Not recorded: made in loops. */
void os_wait(volatile int32_t *word, int32_t value);
void os_wake(volatile int32_t *word);
/*
 * Forks: 0 in the child, else the child's number. The only way in which the suite does: so it knows which process it
 * is without asking the system.
 */
long os_fork(void);
/* A number that differs between this process and its forks. */
uint64_t os_process(void);
/* Waits for a child: its exit status, or the negative number of the signal that ended it. */
int os_ended(long child);
/* Both: the child runs the function and ends with what it returns. */
int os_apart(int (*run)(void));
/* Gives a signal back to the system, which ends the program by it. From a signal handler. */
void os_default_signal(int signal);

/* Notes a call that was made elsewhere as one of the last. `protection`: -1 where it has none. `name` is static. */
void os_note(const char *name, const void *address, size_t bytes, int protection, long result);
/* Adds the last calls, oldest first, as one line: "protect(0x1000,4096,rx)=0; ...". */
void os_describe(struct text *text);

#endif
