/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * returns.h - the return rings: full batches on their way home.
 *
 * Layer     heap (L3).
 * Progress  put, take: lock-free: a CAS fails only if another's succeeded.
 * Memory    descriptors are type-stable: numbers 1 .., never unmapped.
 *
 * A row that overflows hands a batch over, a row of the objects' home that
 * misses takes one: two RMWs for a batch, and no slab is touched.  Per home and
 * row there are up to 16 cells on one line, each holding the number of a full
 * descriptor, of an empty one, or 0.  Putting is a CAS of what is not full to
 * the full one, taking an exchange of the full one for an empty one: empty
 * descriptors go back the way that full ones came, and neither side goes
 * through the common stack of them.  No ticket, no order, hence nothing behind
 * which another could wait: a thread killed in here costs the one descriptor in
 * its hand, with its batch.
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

/* What a caller carries from operation to operation. */
struct eddy_carry {
	uint32_t spare; /* an empty descriptor in hand, or 0 */
	unsigned rmws;  /* += atomic read-modify-writes, failed ones included */
};

/*
 * eddy_returns_put - offers n objects of one row to whoever misses next.
 *
 * place: offset of the row, which says the home too.
 */
EDDY_MUST_USE enum eddy_put eddy_returns_put(struct eddy_heap *h,
    uint32_t place, void *const *objects, unsigned n, struct eddy_carry *c);

/*
 * eddy_returns_take - one batch.
 *
 * Returns: how many objects, the warmest last; 0: there is none.
 */
EDDY_MUST_USE unsigned eddy_returns_take(
    struct eddy_heap *h, uint32_t place, void **objects, struct eddy_carry *c);

/* Lays the spare down for all to use; nothing if there is none. */
void eddy_returns_drop(struct eddy_heap *h, struct eddy_carry *c);

/*
 * eddy_returns_sweep - gives batches of a home back to their slabs: of those in
 * cells such as have waited since before gather number `epoch`
 * (EDDY_ALL_EPOCHS: all), and what was spilled.
 */
#define EDDY_ALL_EPOCHS UINT32_MAX
void eddy_returns_sweep(struct eddy_heap *h, uint32_t home, uint32_t epoch);

/*
 * eddy_ring_put, _take, _sweep, _count - the same of a ring that lies
 * elsewhere, for objects of a row: a pool's (pool.h).  It begins as zeros.
 * epoch: what a sweep tells old batches by.
 */
EDDY_MUST_USE enum eddy_put eddy_ring_put(struct eddy_heap *h,
    struct eddy_ring *r, unsigned row, uint32_t epoch, void *const *objects,
    unsigned n, struct eddy_carry *c);
EDDY_MUST_USE unsigned eddy_ring_take(struct eddy_heap *h, struct eddy_ring *r,
    unsigned row, void **objects, struct eddy_carry *c);
void eddy_ring_sweep(struct eddy_heap *h, struct eddy_ring *r, uint32_t epoch);
unsigned eddy_ring_count(
    struct eddy_heap *h, struct eddy_ring *r, unsigned row);

/* Makes some more descriptors accessible: none of them costs a call later. */
void eddy_returns_prepare(struct eddy_heap *h);

/* Objects on their way by one ring, as of some moments during the call. */
unsigned eddy_returns_count(struct eddy_heap *h, uint32_t place);

/* Objects that one ring and its spill stack hold at most. */
unsigned eddy_returns_limit(unsigned row);

#endif /* EDDY_RETURNS_H */
