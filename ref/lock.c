#include "lock.h"

/* A holder that makes no system call is done within so many looks at the word. */
#define SPINS 64

void execmem_lock_wait(const struct execmem_os *os, struct execmem_lock *lock)
{
	for (int i = 0; i < SPINS; i++) {
		if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) == 0 && execmem_lock_try(lock))
			return;
	}
	/* Whoever waited takes the lock as waited for: others may be waiting still. */
	while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0)
		os->wait(os->context, &lock->word, 2);
}

void execmem_lock_wake(const struct execmem_os *os, struct execmem_lock *lock)
{
	os->wake(os->context, &lock->word, 1);
}
