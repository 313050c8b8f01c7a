/*
 * libexecmem's page release as operations of a subject: release.c.
 */
#ifndef REF_RELEASE_H
#define REF_RELEASE_H

#include <subject_release.h>

extern const struct subject_release_operations ref_release;

#endif
