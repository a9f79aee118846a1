/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counts.h - counts that others change, read for statistics: each as of a
 * moment of its own, so that what is left of two is never below 0.
 *
 * Layer     ctl (L5).
 * Progress  wait-free.
 */
#ifndef EDDY_COUNTS_H
#define EDDY_COUNTS_H

#include "lib/heap/heap.h"
#include "lib/heap/reclaim.h"

static inline uint64_t
eddy_peek(_Atomic uint64_t *p)
{
	/* relaxed: sums are of many moments, whatever the order. */
	return eddy_load_relaxed(p);
}

static inline uint64_t
eddy_peek_signed(_Atomic int64_t *p)
{
	/* relaxed: the same. */
	int64_t v = eddy_load_relaxed(p);

	return v > 0 ? (uint64_t)v : 0;
}

static inline uint64_t
eddy_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Adds a struct of words alone to another. */
static inline void
eddy_add_words(void *to, const void *from, size_t bytes)
{
	uint64_t *t = to;
	const uint64_t *f = from;

	for (size_t i = 0; i < bytes / sizeof(*t); i++)
		t[i] += f[i];
}

/* Pages of an arena, in bytes: as a walk finds them. */
struct eddy_counted {
	uint64_t active; /* less what huge blocks leave of their last chunk */
	uint64_t dirty;  /* with that */
	uint64_t muzzy;
	uint64_t huge_chunks;
};

static inline struct eddy_counted
eddy_counted_of(struct eddy_arena *a)
{
	uint64_t huge = eddy_peek_signed(&a->tally.huge_bytes);
	uint64_t chunks = eddy_peek_signed(&a->tally.huge_chunks);
	uint64_t tails = eddy_less(chunks * EDDY_CHUNK, huge);
	uint64_t active = eddy_peek_signed(&a->reclaim.active) * EDDY_PAGE;
	uint64_t dirty = (uint64_t)eddy_reclaim_dirty(&a->reclaim) * EDDY_PAGE;

	return (struct eddy_counted){
	    .active = eddy_less(active, tails),
	    .dirty = dirty + tails,
	    .muzzy = eddy_peek_signed(&a->reclaim.muzzy) * EDDY_PAGE,
	    .huge_chunks = chunks,
	};
}

#endif /* EDDY_COUNTS_H */
