/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * returns.h - the return ring: full batches between the CPUs' rows.
 *
 * Layer     heap (L3).
 * Progress  put, take: lock-free: a CAS fails only if another's succeeded.
 * Memory    descriptors are type-stable: numbers 1 .., never unmapped.
 *
 * A row that overflows hands a batch over, a row that misses takes one: four
 * RMWs for 64 objects, and no slab is touched.  Per home and row there are up
 * to 16 cells on one line, each empty or the number of a descriptor.  Putting
 * is a CAS of an empty cell, taking an exchange.  No ticket, no order, hence
 * nothing behind which another could wait: a thread killed in here costs the
 * one descriptor in its hand, with its batch.  A full ring is not an error;
 * the batch then goes to its slabs.
 *
 * Order pairs
 *   RET-R1 -> RET-A1  a batch's pointers, from who puts to who takes.
 *   RET-R2 -> RET-A2  the taker's reads of them, before the descriptor's next
 *                     owner writes.
 */
#ifndef EDDY_RETURNS_H
#define EDDY_RETURNS_H

#include "lib/heap/arena.h"
#include "lib/heap/heap.h"

/*
 * eddy_returns_put - offers n objects of one row to whoever misses next.
 *
 * Returns: false: the ring is full, the objects are still the caller's.
 */
EDDY_MUST_USE bool eddy_returns_put(
    struct eddy_heap *h, uint32_t place, void *const *objects, unsigned n);

/*
 * eddy_returns_take - one batch.
 *
 * Returns: how many objects, the warmest last; 0: there is none.
 */
EDDY_MUST_USE unsigned eddy_returns_take(
    struct eddy_heap *h, uint32_t place, void **objects);

/* Gives everything in the rings back to its slabs. */
void eddy_returns_sweep(struct eddy_heap *h);

/* Objects in a ring, as of some moments during the call. */
unsigned eddy_returns_count(struct eddy_heap *h, uint32_t place);

#endif /* EDDY_RETURNS_H */
