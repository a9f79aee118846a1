/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outmap.h - from an address to a number, 2 MiB by 2 MiB, over all of the
 * address space: where memory lies that is not in the range.
 *
 * Layer     data (L2).
 * Progress  find: wait-free.  put: wait-free but for system calls.  drop:
 *           wait-free.
 * Memory    a root of 64 KiB of the caller's; leaves of 32 KiB, each for
 *           16 GiB of addresses, made by who needs one first, published by one
 *           CAS, never freed.
 *
 * Two loads: root, leaf.  A word is a number plus 1, or 0.  Who puts a number
 * takes the place by CAS, so that no address has two; who drops it has all that
 * lies there in hand.  So who looks up a live block finds its number: the block
 * keeps it there, and whoever handed the block over saw it.  Of addresses where
 * no block lives any answer is as good as that of a moment ago.
 *
 * Order pairs
 *   OUT-R1 -> OUT-A1  a leaf made accessible.
 *
 * A thread killed here costs a leaf.
 */
#ifndef EDDY_OUTMAP_H
#define EDDY_OUTMAP_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"

#define EDDY_OUT_LG_UNIT 21
#define EDDY_OUT_LG_ALL  47 /* addresses that a program has */
#define EDDY_OUT_LG_LEAF 13 /* units */
#define EDDY_OUT_ROOTS \
	((size_t)1 << (EDDY_OUT_LG_ALL - EDDY_OUT_LG_UNIT - EDDY_OUT_LG_LEAF))
#define EDDY_OUT_NONE UINT32_MAX

struct eddy_outmap {
	/* W: who makes the leaf.  R: any CPU.  O: OUT-R1 -> OUT-A1. */
	_Atomic(_Atomic uint32_t *) leaf[EDDY_OUT_ROOTS];
};

/* The number of the unit that p lies in; EDDY_OUT_NONE.  Safe for any p. */
uint32_t eddy_outmap_find(const struct eddy_outmap *m, const void *p);

/*
 * eddy_outmap_put - gives the unit at p a number.
 *
 * Returns: false: it has one, it lies beyond all addresses, or there is no
 *          memory for a leaf.
 */
EDDY_MUST_USE bool eddy_outmap_put(
    struct eddy_outmap *m, const void *p, uint32_t number);

/* The unit at p, which has a number, has none. */
void eddy_outmap_drop(struct eddy_outmap *m, const void *p);

#endif /* EDDY_OUTMAP_H */
