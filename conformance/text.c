#include "text.h"

static void add_char(struct text *text, char c)
{
	if (text->used + 1 >= text->bytes)
		return;
	text->at[text->used++] = c;
	text->at[text->used] = '\0';
}

void text_add(struct text *text, const char *more)
{
	while (*more)
		add_char(text, *more++);
}

static char digit(unsigned value)
{
	return (char)(value < 10 ? '0' + value : 'a' + value - 10);
}

/* By subtraction of powers of ten: a 64-bit division is a library call on 32-bit ports. */
void text_add_decimal(struct text *text, uint64_t value)
{
	uint64_t powers[20] = {1};
	unsigned n = 1;

	for (; n < 20 && powers[n - 1] * 10 <= value; n++)
		powers[n] = powers[n - 1] * 10;
	while (n--) {
		unsigned d = 0;

		for (; value >= powers[n]; value -= powers[n])
			d++;
		add_char(text, digit(d));
	}
}

void text_add_hex(struct text *text, uint64_t value)
{
	unsigned shift = 60;

	while (shift && !(value >> shift))
		shift -= 4;
	text_add(text, "0x");
	for (;; shift -= 4) {
		add_char(text, digit(value >> shift & 15));
		if (!shift)
			return;
	}
}

void text_add_signed_hex(struct text *text, int64_t value)
{
	if (value < 0)
		add_char(text, '-');
	text_add_hex(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void text_add_byte(struct text *text, unsigned char value)
{
	add_char(text, digit(value >> 4));
	add_char(text, digit(value & 15));
}

bool text_equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

size_t text_length(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	return n;
}

bool text_number(const char *text, uint64_t *value)
{
	unsigned base = text[0] == '0' && text[1] == 'x' ? 16 : 10;
	const char *p = base == 16 ? text + 2 : text;
	const uint64_t most = base == 16 ? UINT64_MAX >> 4 : UINT64_C(1844674407370955161); /* that takes a digit */
	uint64_t result = 0;

	if (!*p)
		return false;
	for (; *p; p++) {
		unsigned n = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
			     : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a' + 10)
						      : 16;

		if (n >= base || result > most || result * base > UINT64_MAX - n)
			return false;
		result = result * base + n;
	}
	*value = result;
	return true;
}
