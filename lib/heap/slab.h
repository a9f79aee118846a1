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
 *
 * Order pairs (store-load pairs are sequentially consistent on every access)
 *   SLAB-R1 -> SLAB-A1  bits put back, against the second look of who cleared
 *                       the hint; and against the look of another last freer.
 *   SLAB-R2 -> SLAB-A2  last writes to an object and the slab's tags, to
 *                       whoever takes the bit.
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
 * Where an object's free bit is.  Fatal: not the start of an object.
 */
struct eddy_slab_bit {
	_Atomic uint64_t *word;
	uint64_t mask;
};
struct eddy_slab_bit eddy_slab_bit_of(
    struct eddy_heap *h, const void *p, uint32_t tag);

/* Puts the objects of one word back.  Fatal: one of them was free. */
void eddy_slab_put(struct eddy_heap *h, struct eddy_slab_bit bits);

#endif /* EDDY_SLAB_H */
