/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dump.h - profiles as files.
 *
 * Layer     prof (L4).
 * Progress  as long as the profile and /proc/self/maps are, and as the file
 *           system takes; waits for no thread.  Others sample meanwhile: a dump
 *           is of no one moment, a line of it nearly so.
 * Memory    a mapping for the time of the dump.
 * Context   any thread, signal handlers, the end of the process.
 *
 * Order pairs
 *   PREFIX-R1 -> PREFIX-A1  what names begin with.
 */
#ifndef EDDY_DUMP_H
#define EDDY_DUMP_H

#include "lib/heap/heap.h"

/* What names end with tells why. */
enum eddy_dump_kind {
	EDDY_DUMP_FINAL = 'f',
	EDDY_DUMP_ASKED = 'm',
	EDDY_DUMP_INTERVAL = 'i',
	EDDY_DUMP_GROWTH = 'u',
};

/* Names begin as the option says. */
void eddy_dump_begin(struct eddy_heap *h);

/* From now on as this.  0, -ENOMEM, or -ENAMETOOLONG. */
EDDY_MUST_USE int eddy_dump_set_prefix(const char *prefix);

/*
 * eddy_dump - writes a profile to the file, or (NULL) to the next automatic
 * name.
 *
 * Returns: 0, or an error: -EINVAL: there is no prefix.
 */
EDDY_MUST_USE int eddy_dump(
    struct eddy_heap *h, const char *path, enum eddy_dump_kind kind);

/* The same by an automatic name; a failure is a line on standard error. */
void eddy_dump_of_itself(struct eddy_heap *h, enum eddy_dump_kind kind);

/* What is live, by samples. */
struct eddy_dump_leaks {
	uint64_t bytes;
	uint64_t objects;
	uint64_t stacks;
};
void eddy_dump_count(struct eddy_dump_leaks *ret);

#endif /* EDDY_DUMP_H */
