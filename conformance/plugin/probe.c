/*
 * The smallest program that the audit can be tried on: it prints the page size that it was given and the address of a
 * page that it maps, makes readable and unmaps, and does nothing else that the emulator's plugin looks at. What the
 * plugin shows of it must be just that: then it is loaded, and the port's manifest has the right call numbers.
 */
#include <port.h>

#define AT_PAGESZ     6
#define PROT_NONE     0
#define PROT_READ     1
#define MAP_PRIVATE   0x02
#define MAP_ANONYMOUS 0x20
#define STDOUT        1
#define LENGTH        65536 /* whole pages of any size */

static void say(const char *name, size_t bytes, uintptr_t value)
{
	char digits[16];
	int at = sizeof digits;

	execmem_port_write(STDOUT, name, bytes);
	do {
		digits[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	execmem_port_write(STDOUT, digits + at, sizeof digits - (size_t)at);
	execmem_port_write(STDOUT, "\n", 1);
}

int execmem_main(int argc, char **argv, char **envp, const uintptr_t *auxv)
{
	uintptr_t page = 0;
	void *at;

	(void)argc;
	(void)argv;
	(void)envp;
	for (; auxv[0]; auxv += 2)
		if (auxv[0] == AT_PAGESZ)
			page = auxv[1];
	at = execmem_port_map(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (execmem_port_is_error(at) || execmem_port_protect(at, LENGTH, PROT_READ) || execmem_port_unmap(at, LENGTH))
		return 1;
	say("page=", 5, page);
	say("at=", 3, (uintptr_t)at);
	return 0;
}
