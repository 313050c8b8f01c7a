/*
 * The four functions that a compiler may call in freestanding code (GCC and clang both reserve the right). Semantics of
 * C11 7.24; each may be called from any thread and from a signal handler.
 */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *left, const void *right, size_t bytes);

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	unsigned char *restrict t = to;
	const unsigned char *restrict f = from;

	while (bytes--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	if (t <= f) {
		while (bytes--)
			*t++ = *f++;
	} else {
		while (bytes--)
			t[bytes] = f[bytes];
	}
	return to;
}

void *memset(void *to, int value, size_t bytes)
{
	unsigned char *t = to;

	while (bytes--)
		*t++ = (unsigned char)value;
	return to;
}

int memcmp(const void *left, const void *right, size_t bytes)
{
	const unsigned char *l = left, *r = right;

	for (; bytes--; l++, r++) {
		if (*l != *r)
			return *l - *r;
	}
	return 0;
}
