/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * returns.h - the return rings: full batches on their way home.
 *
 * Layer     heap (L3).
 * Progress  put, take: lock-free: a CAS fails only if another's succeeded.
 * Memory    descriptors are type-stable: numbers 1 .., never unmapped.
 *
 * A row that overflows hands a batch over, a row of the objects' home that
 * misses takes one: four RMWs for 64 objects, and no slab is touched.  Per home
 * and row there are up to 16 cells on one line, each empty or the number of a
 * descriptor.  Putting is a CAS of an empty cell, taking an exchange.  No
 * ticket, no order, hence nothing behind which another could wait: a thread
 * killed in here costs the one descriptor in its hand, with its batch.
 *
 * What finds no cell goes on the spill stack, which is as deep as there are
 * cells: {number, tag} in one word, the tag grows at pops.  Its depth stands in
 * the descriptors, since a counter would leak with a killed thread.  Beyond it
 * the batch goes to its slabs.
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

enum eddy_put {
	EDDY_PUT_NOWHERE, /* all is full: the objects are still the caller's */
	EDDY_PUT_CELL,
	EDDY_PUT_SPILL,
};

/*
 * eddy_returns_put - offers n objects of one row to whoever misses next.
 *
 * place: offset of the row, which says the home too.
 * rmws:  += atomic read-modify-writes, those that failed included.
 */
EDDY_MUST_USE enum eddy_put eddy_returns_put(struct eddy_heap *h,
    uint32_t place, void *const *objects, unsigned n, unsigned *rmws);

/*
 * eddy_returns_take - one batch.
 *
 * Returns: how many objects, the warmest last; 0: there is none.
 */
EDDY_MUST_USE unsigned eddy_returns_take(
    struct eddy_heap *h, uint32_t place, void **objects, unsigned *rmws);

/*
 * eddy_returns_sweep - gives batches of a home back to their slabs: of those in
 * cells such as have waited since before gather number `epoch`
 * (EDDY_ALL_EPOCHS: all), and what was spilled.
 */
#define EDDY_ALL_EPOCHS UINT32_MAX
void eddy_returns_sweep(struct eddy_heap *h, uint32_t home, uint32_t epoch);

/* Objects on their way by one ring, as of some moments during the call. */
unsigned eddy_returns_count(struct eddy_heap *h, uint32_t place);

/* Objects that one ring and its spill stack hold at most. */
unsigned eddy_returns_limit(unsigned row);

#endif /* EDDY_RETURNS_H */
