/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purge.h - gives the memory of free dirty pages back to the kernel.
 *
 * Layer     heap (L3).
 * Progress  lock-free but for system calls; at most one pass over the heap.
 * Context   any thread; not for the data path.
 *
 * A purge is an allocation by the purger: it claims a free dirty run, drops
 * its pages, clears their dirty bits, puts the run back.  A thread killed here
 * costs the run in its hand: 64 pages, 64 chunks, or an empty segment.
 *
 * Order: whole chunks that serve nothing, then runs of 64 KiB and more within
 * chunks in use, then the rest, and in each the highest address first, since
 * claims take the lowest.  So huge pages are broken last, and what is likely
 * to be used again goes last.
 */
#ifndef EDDY_PURGE_H
#define EDDY_PURGE_H

#include "lib/heap/heap.h"

enum eddy_purge_kind {
	EDDY_PURGE_DIRTY, /* dirty pages, so that they are clean */
	EDDY_PURGE_LAZY,  /* dirty pages, so that they are muzzy */
	EDDY_PURGE_MUZZY, /* muzzy pages, so that they are clean */
	EDDY_PURGE_ALL,   /* dirty and muzzy pages, so that they are clean */
};

struct eddy_purge {
	enum eddy_purge_kind kind;
	uint32_t arena; /* number; 0: all */
	size_t want;    /* bytes: what is left of the task */
	size_t done;    /* bytes */
	unsigned n_calls;
	unsigned n_refused;
	uint32_t at;     /* the chunk that it is at */
	uint64_t cursor; /* where to go on; 0: at the start, or all is done */
};

/*
 * eddy_purge_some - goes on at the cursor until about `want` bytes are done, or
 * all was looked at: then the cursor is 0, and what is left of `want` was not
 * there.
 *
 * A page counts as clean only when the kernel took the call and a byte that
 * was set before reads as zero after.  Gives up after some refusals: then it
 * goes on behind what was refused, which is asked for again the next time
 * round.
 */
void eddy_purge_some(struct eddy_heap *h, struct eddy_purge *p);

/* All that is free and dirty, but for about `keep` bytes.  Returns: bytes given
 * back. */
size_t eddy_purge(struct eddy_heap *h, size_t keep);

/* The same for one arena. */
size_t eddy_purge_arena(struct eddy_heap *h, struct eddy_arena *a);

/* The same for a whole segment that the caller has in hand. */
size_t eddy_purge_held(struct eddy_heap *h, uint32_t segment);

#endif /* EDDY_PURGE_H */
