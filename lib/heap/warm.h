/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * warm.h - memory that is there before it is asked for, and a heap that asks
 * the kernel for nothing.
 *
 * Layer     heap (L3).
 * Progress  prefault: lock-free but for system calls and page faults.  freeze,
 *           thaw: wait-free but for system calls.  allowed: wait-free.
 * Memory    none of its own.
 *
 * The warm set of an arena is what it has backed.  A frozen heap takes from it
 * alone: dirty pages, chunks that are dirty.  What does not fit there is a
 * growth: counted, and refused if freeze_growth says so.  A frozen heap purges
 * nothing, drains no CPU's cache, wakes nobody, reads no file, moves no pages.
 * A heap at its limit (heap_limit) takes from the warm set in the same way.
 *
 * A thread killed in a prefault costs the chunks in its hand: 32 MiB.
 */
#ifndef EDDY_WARM_H
#define EDDY_WARM_H

#include "lib/heap/heap.h"

/*
 * eddy_warm_prefault - brings an arena's memory, in use or free, up to so many
 * bytes, and keeps decay from taking it below that.
 *
 * Returns: 0; -ENOMEM: there is less now, all the same more than before; or
 *          nothing was done, since the range is smaller.
 */
EDDY_MUST_USE int eddy_warm_prefault(
    struct eddy_heap *h, struct eddy_arena *a, size_t bytes);

/* Free chunks of an arena that are ready and have memory. */
unsigned eddy_warm_chunks(struct eddy_heap *h, struct eddy_arena *a);

/* One chunk more of these.  Returns whether there is one. */
bool eddy_warm_ahead(struct eddy_heap *h, struct eddy_arena *a);

/* From now on; what CPUs need is made ready before.  Idempotent. */
void eddy_warm_freeze(struct eddy_heap *h);
void eddy_warm_thaw(struct eddy_heap *h);

static inline bool
eddy_frozen(struct eddy_heap *h)
{
	/* relaxed: from some moment on. */
	return eddy_unlikely(eddy_load_relaxed(&h->frozen) != 0);
}

/*
 * eddy_warm_tight - whether the next so many pages should come from memory that
 * is there: the heap is frozen, or at its limit.
 */
bool eddy_warm_is_tight(struct eddy_heap *h, size_t pages);

static inline bool
eddy_warm_tight(struct eddy_heap *h, size_t pages)
{
	return eddy_unlikely(eddy_frozen(h) || h->limited) &&
	       eddy_warm_is_tight(h, pages);
}

/*
 * eddy_warm_may_grow - there is no such memory, so that the heap would have to
 * grow by so many pages.
 *
 * A frozen heap counts it, and may or may not (freeze_growth).  One at its
 * limit gives back what is free, and may if that is enough.
 */
EDDY_COLD bool eddy_warm_may_grow(struct eddy_heap *h, size_t pages);

#endif /* EDDY_WARM_H */
