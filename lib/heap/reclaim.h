/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reclaim.h - gives memory that is not used any more back to the kernel, a step
 * at a time.
 *
 * Layer     heap (L3).
 * Progress  the numbers: wait-free.  step, share: lock-free but for system
 *           calls.
 * Memory    struct eddy_reclaim in each arena.
 *
 * Each arena counts pages in use (active) and pages with a dirty bit (backed),
 * where these change hands.  A step compares what is dirty and not in use with
 * what may stay by the decay curve (decay.h) and purges the rest (purge.h).
 * Steps are done by background threads (wake.h), or where the process has none
 * by slow paths, a bounded share each, and by eddy_housekeep.  Any number of
 * threads may be in a step at once, and each may stop there for ever: what a
 * step decides by are hints, what it takes are free pages, as an allocation.
 *
 * When the next step is due is a forecast.  Two things call for one before:
 * more pages that are not in use than `wake_at`, seen by who puts pages; and a
 * CPU cache that is opened while nobody looks at caches (gather.h).
 *
 * A thread killed here costs the pages in its hand: see purge.h.
 */
#ifndef EDDY_RECLAIM_H
#define EDDY_RECLAIM_H

#include "lib/heap/heap.h"

#define EDDY_NEVER UINT64_MAX
/* What a slow path gives back at a time, and a background thread. */
#define EDDY_RECLAIM_SHARE ((size_t)4 << 20)
#define EDDY_RECLAIM_BATCH ((size_t)64 << 20)

/* Sets the numbers of an arena that is being built. */
void eddy_reclaim_begin(const struct eddy_heap *h, struct eddy_arena *a);

/* There was nothing dirty that fitted, with so many pages in use now. */
void eddy_reclaim_grow(struct eddy_reclaim *r, int64_t active, int64_t clean);

/* So many pages of the arena go into use; so many of them were clean. */
static inline void
eddy_reclaim_use(struct eddy_arena *a, int64_t n, int64_t clean)
{
	struct eddy_reclaim *r = &a->reclaim;
	/* relaxed, all: hints. */
	int64_t active = eddy_add_relaxed(&r->active, n) + n;

	if (clean != 0)
		eddy_reclaim_grow(r, active, clean);
	if (active > eddy_load_relaxed(&r->peak))
		eddy_store_relaxed(&r->peak, active);
}

/* So many dirty pages of the arena were given back. */
static inline void
eddy_reclaim_clean(struct eddy_arena *a, int64_t n)
{
	/* relaxed: a hint. */
	(void)eddy_add_relaxed(&a->reclaim.backed, -n);
}

/* There is more to be given back than was known. */
void eddy_reclaim_call(struct eddy_heap *h, struct eddy_arena *a);

/* So many pages of the arena went out of use and can be had again. */
static inline void
eddy_reclaim_free(struct eddy_heap *h, struct eddy_arena *a, int64_t n)
{
	struct eddy_reclaim *r = &a->reclaim;
	/* relaxed, all: hints. */
	int64_t active = eddy_add_relaxed(&r->active, -n) - n;
	int64_t idle = eddy_load_relaxed(&r->backed) - active;

	if (idle > eddy_load_relaxed(&r->most))
		eddy_store_relaxed(&r->most, idle);
	if (eddy_unlikely(idle > eddy_load_relaxed(&r->wake_at)))
		eddy_reclaim_call(h, a);
}

/* Whether the arena gives pages back as they are freed. */
static inline bool
eddy_reclaim_at_once(const struct eddy_arena *a)
{
	/* relaxed: an option. */
	return eddy_load_relaxed(&a->reclaim.dirty_decay_ms) == 0;
}

/* Pages of the arena that are dirty and in nobody's use, muzzy ones left out.
 */
static inline int64_t
eddy_reclaim_dirty(const struct eddy_reclaim *r)
{
	/* relaxed, all: hints. */
	int64_t n = eddy_load_relaxed(&r->backed) -
		    eddy_load_relaxed(&r->active) -
		    eddy_load_relaxed(&r->muzzy);

	return n > 0 ? n : 0;
}

/*
 * eddy_reclaim_step - one step for the arenas whose home % parts is `part`.
 *
 * now: ms of CLOCK_MONOTONIC.  most: bytes given back at most.
 * Returns: ms until the next step is worth while; 0: at once; EDDY_NEVER:
 *          nothing until eddy_wake is called.
 */
uint64_t eddy_reclaim_step(struct eddy_heap *h, unsigned part, unsigned parts,
    uint64_t now, size_t most);

/* A slow path's share, if a step is due and the process has no thread for it.
 */
void eddy_reclaim_share_now(struct eddy_heap *h);

static inline void
eddy_reclaim_share(struct eddy_heap *h)
{
	/* relaxed: a hint. */
	if (eddy_unlikely(eddy_load_relaxed(&h->due) != EDDY_NEVER))
		eddy_reclaim_share_now(h);
}

/*
 * eddy_reclaim_decay - other decay times for an arena, from now on.
 *
 * ms: -1, or as the options.  Pages are given back at the next step.
 */
void eddy_reclaim_decay(struct eddy_heap *h, struct eddy_arena *a,
    int64_t dirty_ms, int64_t muzzy_ms);

#endif /* EDDY_RECLAIM_H */
