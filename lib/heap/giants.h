/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * giants.h - huge pages of 1 GiB from the system's pool, cut into chunks.
 *
 * Layer     heap (L3).
 * Progress  lock-free but for system calls.
 * Memory    a table of what is there.
 *
 * Such pages lie outside the range: a place for one would be a whole segment,
 * which is not in the hand of who needs a chunk of it.  Chunks are given from
 * the first to the last, each once, and go back to the kernel together, when
 * their arena has ended.
 *
 * A thread killed here costs the chunks in its hand, and so their pages, until
 * the process ends.
 *
 * Order pairs
 *   GIANT-R1 -> GIANT-A1  what a slot of the table says, to who looks for room.
 */
#ifndef EDDY_GIANTS_H
#define EDDY_GIANTS_H

#include "lib/heap/heap.h"

#define EDDY_GIANT ((size_t)1 << 30)

/* n chunks for the arena at a multiple of align bytes; NULL: there are no such
 * pages. */
void *eddy_giants_take(
    struct eddy_heap *h, struct eddy_arena *a, size_t n, size_t align);

/* Whether an address lies in such a page. */
bool eddy_giants_have(const void *p);

/* n chunks from p on, given by eddy_giants_take, are nobody's any more. */
void eddy_giants_put(void *p, size_t n);

#endif /* EDDY_GIANTS_H */
