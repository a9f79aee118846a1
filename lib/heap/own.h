/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own.h - what a thread has of its own: an arena of its choice, and counts of
 * what it allocated.
 *
 * Layer     heap (L3).
 * Progress  wait-free; bind: lock-free.
 * Memory    words of TLS, no objects.
 *
 * Blocks above 64 KiB are counted always, for they never meet the hit path.
 * Smaller ones are from the moment that somebody asks, on the thread that asks:
 * its eddy_area is taken from the hit path then (eddy_cache_gate), so that
 * every call of that thread comes to C.  So it is with a thread that is bound
 * to an arena, or in a section of a region (region.h).  The others have no
 * instruction for any of this.
 *
 * A thread that ends unbinds itself if the program's libc tells it so; one that
 * is killed is counted as bound for ever.  A forked child counts anew.
 */
#ifndef EDDY_OWN_H
#define EDDY_OWN_H

#include "lib/heap/heap.h"

struct eddy_scope;

struct eddy_own {
	/*
	 * Bytes.  W: the thread and its signal handlers, by RMW.  R: any
	 * thread that was given the address.  O: none: counts.
	 */
	_Atomic uint64_t allocated;
	_Atomic uint64_t deallocated;
	/* What it had at the last reset; the most since then, above that.
	 * W, R: the thread and its handlers.  O: none. */
	_Atomic int64_t base;
	_Atomic int64_t peak;
	uint32_t arena; /* number; 0: that of the CPU it runs on */
	bool counted;
	/* The innermost section of a region that the thread is in: region.h. */
	struct eddy_scope *scope;
};

extern __thread struct eddy_own eddy_own;

/* Takes the thread off the hit path, or lets it on, as these words say. */
void eddy_own_gate(void);

/* From now on all is counted. */
void eddy_own_count(void);

/* The peak begins anew; what it is. */
void eddy_own_reset_peak(void);
uint64_t eddy_own_peak(void);

/* For who counts: n bytes were handed out, came back. */
void eddy_own_took(size_t n);

static inline void
eddy_own_gave(size_t n)
{
	/* relaxed: a count. */
	(void)eddy_add_relaxed(&eddy_own.deallocated, n);
}

/* Binds the calling thread to an arena, NULL: to none. */
void eddy_own_bind(struct eddy_heap *h, struct eddy_arena *a);

/* The arena that the thread is bound to, where that is not what its CPU's
 * caches are filled from; NULL. */
struct eddy_arena *eddy_own_find(struct eddy_heap *h);

static inline struct eddy_arena *
eddy_own_arena(struct eddy_heap *h)
{
	return eddy_likely(eddy_own.arena == 0) ? NULL : eddy_own_find(h);
}

/* Threads of this process that are bound to an arena. */
uint32_t eddy_own_n_bound(struct eddy_arena *a);

#endif /* EDDY_OWN_H */
