/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gauge.h - a few numbers of the library's statistics, and the kernel's own.
 *
 * The numbers are read out of the text of malloc_stats_print, "J"; nothing
 * allocates.  An allocator that has no such numbers leaves them unknown.
 */
#ifndef EDDY_STRESS_GAUGE_H
#define EDDY_STRESS_GAUGE_H

#include <stdbool.h>
#include <stddef.h>

struct gauge {
	bool is_known; /* the rest but rss says something */
	size_t live;   /* in the program's hands, as the library counts */
	size_t stranded;
	size_t stranded_bound;
	size_t remote_row_bytes; /* of these: in rows for other homes */
	size_t ring_bytes;       /* on their way */
	size_t n_chunks;         /* cut into pages */
	size_t mapped;
	size_t resident; /* as the library counts */
	size_t rss;      /* as the kernel counts */
};

/* Of one moment, or several close to each other while others work. */
void gauge_read(struct gauge *ret);

#endif /* EDDY_STRESS_GAUGE_H */
