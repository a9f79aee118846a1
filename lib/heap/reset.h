/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reset.h - arenas of the program whose blocks are freed all at once, that end,
 * and that begin again.
 *
 * Layer     heap (L3).
 * Progress  reset, destroy: as long as what the arena holds, lock-free but for
 *           system calls.  revive: lock-free but for system calls.
 * Memory    an arena's struct is type-stable: what ends gives its memory and
 *           its segments back, and its number is given out again.
 *
 * What is in the arena is freed the way that any block is, so nothing depends
 * on who else has part of it in hand: a purge that holds pages puts them back,
 * and of an arena that has ended whoever empties a chunk, or a segment, retires
 * it. The program says that nobody uses the arena meanwhile.  If somebody does
 * all the same, what he frees may be freed twice, and what he allocates may be
 * freed; all of that within the arena, for a chunk in hand keeps each segment
 * the arena's while it is emptied.
 *
 * One thread at a time is in a reset of an arena: others are told so.  A thread
 * killed there leaves the arena as it is for ever, but for a forked child.
 *
 * Order pairs (store-load, sequentially consistent on every access)
 *   LIFE-R1 -> LIFE-A1  an arena that ended, against a chunk or segment that
 *                       becomes empty: who comes last retires it.
 *   LIFE-R2 -> LIFE-A2  what an arena that begins again was given.
 */
#ifndef EDDY_RESET_H
#define EDDY_RESET_H

#include "lib/heap/heap.h"

enum eddy_arena_phase {
	EDDY_ARENA_LIVE,
	EDDY_ARENA_BUSY, /* in a reset, by a thread of the process {pid} */
	EDDY_ARENA_ENDED,
};

static inline enum eddy_arena_phase
eddy_arena_phase(struct eddy_arena *a)
{
	/* LIFE-A1: after what became empty was noted.  LIFE-A2: what it was
	 * given. */
	return (enum eddy_arena_phase)(eddy_load_seq_cst(&a->life) % 4);
}

/* The arena of that number if it has not ended. */
static inline struct eddy_arena *
eddy_arena_there(struct eddy_heap *h, uint32_t number)
{
	struct eddy_arena *a = eddy_arena_at(h, number);

	return a != NULL && eddy_arena_phase(a) != EDDY_ARENA_ENDED ? a : NULL;
}

/* The same of an arena that the program may allocate from: no pool's. */
static inline struct eddy_arena *
eddy_arena_open(struct eddy_heap *h, uint32_t number)
{
	struct eddy_arena *a = eddy_arena_there(h, number);

	/* relaxed: since it has its number. */
	return a != NULL && !eddy_load_relaxed(&a->pooled) ? a : NULL;
}

/*
 * eddy_reset, eddy_reset_destroy - frees all blocks of an arena; and ends it.
 *
 * Returns: 0; -EFAULT: it is a home's, or a pool's, or has ended, or threads
 *          are bound to it, or regions are of it; -EAGAIN: another thread is
 *          at it.
 */
EDDY_MUST_USE int eddy_reset(struct eddy_heap *h, struct eddy_arena *a);
EDDY_MUST_USE int eddy_reset_destroy(struct eddy_heap *h, struct eddy_arena *a);

/*
 * eddy_reset_revive - an arena of private memory that has ended begins again,
 * on the node.
 *
 * bare: one that has no segment left.  The first of the range is never empty,
 *       nor is one in which a killed thread has lost something.
 * ret: its number; 0: there is none.
 * Returns: 0, or what the kernel says to the policy.
 */
EDDY_MUST_USE int eddy_reset_revive(
    struct eddy_heap *h, uint32_t node, bool bare, uint32_t *ret);

/* The arena became emptier: what it kept though empty is retired if it ended.
 */
void eddy_reset_settle(struct eddy_heap *h, struct eddy_arena *a);

#endif /* EDDY_RESET_H */
