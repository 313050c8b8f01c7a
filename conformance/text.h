/*
 * Small text building without a C library: bounded, always terminated, cut where it does not fit.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *at;     /* terminated at every moment */
	size_t bytes; /* of room, the terminator included */
	size_t used;
};

/* An empty text in `room`, an array. */
#define TEXT(room_) ((struct text){(room_), sizeof(room_), ((room_)[0] = '\0')})

void text_add(struct text *text, const char *more);
void text_add_decimal(struct text *text, uint64_t value);
void text_add_hex(struct text *text, uint64_t value);       /* 0x1f */
void text_add_signed_hex(struct text *text, int64_t value); /* -0x1f */
void text_add_byte(struct text *text, unsigned char value); /* 1f */
bool text_equal(const char *a, const char *b);
size_t text_length(const char *text);
/* Decimal, or hexadecimal after 0x. False where it is not a number, and then nothing is written. */
bool text_number(const char *text, uint64_t *value);

#endif
