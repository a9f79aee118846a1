/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purge.h - gives the memory of free dirty pages back to the kernel.
 *
 * Layer     heap (L3).
 * Progress  lock-free but for system calls; one pass over the heap.
 * Context   any thread; not for the data path.
 *
 * A purge is an allocation by the purger: it claims a free dirty run, drops
 * its pages, clears their dirty bits, puts the run back.  A thread killed here
 * costs the run in its hand.
 */
#ifndef EDDY_PURGE_H
#define EDDY_PURGE_H

#include "lib/heap/heap.h"

/*
 * eddy_purge - purges all free dirty pages, but for about `keep` bytes.
 *
 * A page counts as clean only when the kernel took the call and a byte that
 * was set before reads as zero after.
 * Returns: bytes given back.
 */
size_t eddy_purge(struct eddy_heap *h, size_t keep);

/* The same for a whole segment that the caller has in hand. */
size_t eddy_purge_held(struct eddy_heap *h, uint32_t segment);

#endif /* EDDY_PURGE_H */
