/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena.h - arenas, and batches of objects out of their slabs and runs and
 * back.
 *
 * Layer     heap (L3).
 * Progress  of_home, create: wait-free but for system calls; several threads
 *           may build an arena each, one CAS publishes one of them, the losers
 *           unmap theirs, as for the heap itself (tests/model/init.pml).
 *           refill: lock-free but for system calls.  put: lock-free.
 * Memory    an arena has a reservation of its own: the struct, upper levels of
 *           its hints, and their lowest level, of which it opens the part that
 *           belongs to its segments.  Never unmapped.
 * A thread killed here costs the batch in its hand, in the midst of a creation
 * the arena.
 */
#ifndef EDDY_ARENA_H
#define EDDY_ARENA_H

#include "lib/heap/heap.h"

/* The most pointers that travel together. */
#define EDDY_BATCH_MAX 64

/* The arena of a home, made now if it is the first call; NULL: no memory. */
struct eddy_arena *eddy_arena_of_home(struct eddy_heap *h, uint32_t home);

/*
 * eddy_arena_create - an arena of the program's, on a node.
 *
 * Returns: its number, or 0: no memory, or EDDY_MAX_ARENAS of them.
 */
uint32_t eddy_arena_create(struct eddy_heap *h, uint32_t node);

/*
 * eddy_arena_refill - up to n <= EDDY_BATCH_MAX objects of a row.
 *
 * Returns: how many; 0 when there is no memory.
 */
EDDY_MUST_USE unsigned eddy_arena_refill(struct eddy_heap *h,
    struct eddy_arena *a, unsigned row, void **objects, unsigned n);

/*
 * eddy_arena_put - gives n objects of any row and arena back to where they
 * came from.  Objects of one word of a slab go together, as far as a small
 * table sees it.
 *
 * Returns: how many words and runs were put; each took an RMW at least.
 * Fatal: an object that is free already, or a pointer into the middle of one.
 */
unsigned eddy_arena_put(struct eddy_heap *h, void *const *objects, unsigned n);

#endif /* EDDY_ARENA_H */
