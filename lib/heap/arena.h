/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena.h - batches of objects, out of slabs and runs and back.
 *
 * Layer     heap (L3).
 * Progress  refill: lock-free but for system calls.  put: lock-free.
 * A thread killed here costs the batch in its hand.
 */
#ifndef EDDY_ARENA_H
#define EDDY_ARENA_H

#include "lib/heap/heap.h"

/* The most pointers that travel together. */
#define EDDY_BATCH_MAX 64

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
 * Fatal: an object that is free already, or a pointer into the middle of one.
 */
void eddy_arena_put(struct eddy_heap *h, void *const *objects, unsigned n);

#endif /* EDDY_ARENA_H */
