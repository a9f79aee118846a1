/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slab.h - objects of one class out of a run of pages.
 *
 * Layer     heap (L3).
 * Progress  put, refill: lock-free (refill but for system calls).  A put goes
 *           round only where a retirement lost to another's take.
 * Memory    free bits in the chunk's descriptor; nothing in the objects.
 *
 * Invariants (tests/model/slab.pml)
 *   I-SLAB-1  Free words are zero unless the slab is live: set last at birth,
 *             all taken before retirement.
 *   I-SLAB-2  Take, then read what you took: class and arena are checked
 *             after, by refillers and by retirers; what is wrong is put back.
 *   I-SLAB-3  One way to put bits back: OR (a bit set before is a double
 *             free), set the hint at every level, look whether all is free.
 *   I-SLAB-4  Without a faulty free nobody is ever accused of one.
 *   I-SLAB-5  A slab of a pool that lives is not retired; its pages go back
 *             after the grace of who withdrew it (tests/model/pool.pml).
 *
 * Order pairs (store-load pairs are sequentially consistent on every access)
 *   SLAB-R1 -> SLAB-A1  bits put back, against the second look of who cleared
 *                       the hint; and against the look of another last freer.
 *   SLAB-R2 -> SLAB-A2  last writes to an object and the slab's tags, to
 *                       whoever takes the bit.
 *   POOL-R1 -> POOL-A1  a pool's slab that was withdrawn, from who took it to
 *                       who gives its pages or withdraws it anew.
 *
 * A thread killed here costs the batch in its hand (64 objects at most), or a
 * slab in the middle of its birth or retirement.
 */
#ifndef EDDY_SLAB_H
#define EDDY_SLAB_H

#include "lib/heap/heap.h"

/*
 * eddy_slab_refill - up to n objects of a small row's class.
 *
 * Returns: how many, lowest address first; 0 when there is no memory.
 */
EDDY_MUST_USE unsigned eddy_slab_refill(struct eddy_heap *h,
    struct eddy_arena *a, unsigned row, void **objects, unsigned n);

/*
 * Where an object's free bit is; p: its place.  Fatal: not the start of one.
 */
struct eddy_slab_bit {
	_Atomic uint64_t *word;
	uint64_t mask;
};
struct eddy_slab_bit eddy_slab_bit_of(
    struct eddy_heap *h, const void *p, uint32_t tag);

/* What was put back of one arena and row, and is not in its tally yet. */
struct eddy_slab_puts {
	struct eddy_arena *a;
	unsigned row;
	unsigned n;
};

/*
 * eddy_slab_put - puts the objects of one word back.
 *
 * puts: zero at first; counted for all of a batch by eddy_slab_count.
 * Fatal: one of them was free.
 */
void eddy_slab_put(struct eddy_heap *h, struct eddy_slab_bit bits,
    struct eddy_slab_puts *puts);

/* Adds them to the tally of their arena. */
static inline void
eddy_slab_count(struct eddy_slab_puts *puts)
{
	if (puts->n != 0 && puts->a != NULL)
		eddy_tally_put(&puts->a->tally, puts->row, puts->n);
	puts->n = 0;
}

/*
 * Whether a refill of its arena would take objects from a slab below the one of
 * this head page: a hint.
 */
bool eddy_slab_below(struct eddy_heap *h, struct eddy_arena *a, unsigned row,
    uint32_t chunk, unsigned page);

/*
 * eddy_slab_empty - frees all objects of a slab of the arena's whose head this
 * is; nothing if it is none.  No fault if one of them is freed meanwhile.
 */
void eddy_slab_empty(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned page);

/*
 * eddy_slab_withdraw - takes a slab of the pool's arena out of circulation, all
 * of whose objects are free, or one that was withdrawn under another number.
 *
 * Returns: whether it did; then the pages are the caller's to give, as long as
 *          nobody withdraws them under his number.
 */
bool eddy_slab_withdraw(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, unsigned page, uint32_t number);

/* Gives back what was withdrawn under the number; how many pages. */
unsigned eddy_slab_give(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, unsigned page, uint32_t number);

/* Objects that are out of the slab whose head this is, 0 if it is none. */
unsigned eddy_slab_alive(struct eddy_heap *h, uint32_t chunk, unsigned page);

#endif /* EDDY_SLAB_H */
