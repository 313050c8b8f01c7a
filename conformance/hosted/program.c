/*
 * The program of a hosted subject: main() in place of the port's own start, and threads and forks by way of the C
 * library, which keeps books about both: a thread that it has not made has no thread-local storage of its own.
 */
#include <stdbool.h>

#include <port.h>

extern char **environ;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
typedef unsigned long thread; /* glibc's pthread_t */
int pthread_create(thread *made, const void *attributes, void *(*run)(void *), void *argument);
int pthread_join(thread made, void **result);
int fork(void);
int *__errno_location(void);
int __wrap_execmem_port_thread_start(struct execmem_port_thread *thread);
void __wrap_execmem_port_thread_join(struct execmem_port_thread *thread);
long __wrap_execmem_port_fork(void);

int main(int argc, char **argv);

int main(int argc, char **argv)
{
	char **end = environ;

	while (*end)
		end++;
	/* exit_group: what the subject left to atexit is not the suite's. */
	execmem_port_exit(execmem_main(argc, argv, environ, (const uintptr_t *)(end + 1)));
}

static void *run(void *argument)
{
	struct execmem_port_thread *thread = argument;

	thread->run(thread->argument);
	return NULL;
}

/* `stack` holds the library's name of the thread. */
int __wrap_execmem_port_thread_start(struct execmem_port_thread *started)
{
	thread made;
	const int error = pthread_create(&made, NULL, run, started);

	if (!error)
		started->stack = (void *)made;
	return -error;
}

void __wrap_execmem_port_thread_join(struct execmem_port_thread *started)
{
	(void)pthread_join((thread)started->stack, NULL);
}

long __wrap_execmem_port_fork(void)
{
	const int child = fork();

	return child < 0 ? -*__errno_location() : child;
}
/* NOLINTEND(bugprone-reserved-identifier) */
