/*
 * Between main.c, which loops over points, and check.c, which judges and reports one.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define STATUS_OK     0
#define STATUS_FAILED 1
#define STATUS_USAGE  2
#define STATUS_BROKEN 3

struct check;

/* Writes a text to standard output, whole. */
void report_put(const char *string);

void report_begin(const struct check *check, const char *point);
/* Prints the point's line and, where it failed, its block. Returns whether it failed. */
bool report_end(void);

/* Points ended and assertions made so far. */
extern uint64_t report_points, report_assertions;

#endif
