/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mend.h - counts that killed threads left wrong.
 *
 * Layer     ctl (L5).
 * Progress  wait-free: a walk (walk.h) of what was in use since the last one.
 * Memory    5 KiB of the caller's stack.
 * Context   threads of the library's own, once nothing is left to be given
 *           back; tests.
 *
 * A thread that is killed between the bits of what it takes or puts and their
 * count (tally.h, the pages in use of reclaim.h) leaves the count off by that:
 * one batch, one slab, one block.
 * A look compares counts with a walk.  What it finds wrong is mended by the
 * next look if that finds the same, and nothing moved during either.
 */
#ifndef EDDY_MEND_H
#define EDDY_MEND_H

#include "lib/heap/heap.h"

/* Looks at all arenas.  Returns: whether to look again in a while. */
bool eddy_mend(struct eddy_heap *h);

/* The same, every 10 minutes at most.  Returns: ms until the next look;
 * UINT64_MAX: none is due. */
uint64_t eddy_mend_idle(struct eddy_heap *h, uint64_t now);

#endif /* EDDY_MEND_H */
