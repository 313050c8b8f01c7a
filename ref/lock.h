/*
 * A mutex of one word over the wait and wake of struct execmem_os: 0 free, 1 held, 2 held and waited for
 * (Drepper, "Futexes Are Tricky", mutex2). No owner: a lock taken before fork(2) may be released on both sides.
 */
#ifndef EXECMEM_LOCK_H
#define EXECMEM_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <execmem/os.h>

struct execmem_lock {
	uint32_t word;
};

void execmem_lock_wait(const struct execmem_os *os, struct execmem_lock *lock);
void execmem_lock_wake(const struct execmem_os *os, struct execmem_lock *lock);

static inline bool execmem_lock_try(struct execmem_lock *lock)
{
	uint32_t word = 0;

	return __atomic_compare_exchange_n(&lock->word, &word, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void execmem_lock(const struct execmem_os *os, struct execmem_lock *lock)
{
	if (!execmem_lock_try(lock))
		execmem_lock_wait(os, lock);
}

static inline void execmem_unlock(const struct execmem_os *os, struct execmem_lock *lock)
{
	if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
		execmem_lock_wake(os, lock);
}

#endif
