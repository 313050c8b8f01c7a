/*
 * Between the entries of the watched table (watch_table.c) and what is done about every call (watch.c).
 */
#ifndef ALLOC_WATCH_CALL_H
#define ALLOC_WATCH_CALL_H

#include "watch.h"

/* Counts a call; 0, or the negative errno with which it is not made. Takes the turn, which watch_call_end() gives back.
 */
int watch_call_begin(const struct watch_call *call);
/* Records a call and what came of it, which is returned. */
int watch_call_end(struct watch_call call, int result);

/* The three arguments that must be multiples of the page size: 0, or the negative errno where one is not. */
int watch_check_multiples(const struct watch_call *call);

/* Keeps the first call that breaks a rule, and counts them. */
void watch_break(enum watch_rule rule, const char *what, const struct watch_call *call);
/* The rules that a call may break: by its protection, as a change of protection, by its range, by its place in a file.
 */
void watch_look_at_protection(const struct watch_call *call);
void watch_look_at_protect(const struct watch_call *call);
void watch_look_at_owner(const struct watch_call *call);
void watch_look_at_file(const struct watch_call *call);

#endif
