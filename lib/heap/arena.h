/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena.h - arenas, and batches of objects out of their slabs and runs and
 * back.
 *
 * Layer     heap (L3).
 * Progress  of_home: wait-free but for system calls; several threads may build
 *           an arena each, one CAS publishes one of them, the losers unmap
 *           theirs, as for the heap itself (tests/model/init.pml).
 *           add: lock-free but for system calls.  fit: wait-free but for them.
 *           of: wait-free.
 *           refill: lock-free but for system calls.  put: lock-free.
 * Memory    an arena has a reservation of its own: the struct, upper levels of
 *           its hints, and their lowest level, of which it opens the part that
 *           belongs to its segments.  Never unmapped.
 * A thread killed here costs the batch in its hand, in the midst of a creation
 * the arena.
 */
#ifndef EDDY_ARENA_H
#define EDDY_ARENA_H

#include "lib/heap/heap.h"

/* The most pointers that travel together. */
#define EDDY_BATCH_MAX 64

/*
 * The arena of a home, or of a group, made now if it is the first call; NULL:
 * no memory; for a group also: no number or segments for it, or a frozen heap.
 */
struct eddy_arena *eddy_arena_of_home(struct eddy_heap *h, uint32_t home);

/* The same of the samples of a home; NULL also where h->n_samples is 0. */
struct eddy_arena *eddy_arena_of_samples(struct eddy_heap *h, uint32_t home);

/*
 * eddy_arena_add - an arena of the program's, on a node that is fit for one or
 * on EDDY_NO_NODE.
 *
 * ret: its number.
 * Returns: 0; -EAGAIN: there are EDDY_MAX_ARENAS; -ENOMEM; what the kernel says
 *          to the policy.
 */
EDDY_MUST_USE int eddy_arena_add(
    struct eddy_heap *h, uint32_t node, uint32_t *ret);

/* The same, without memory of an arena that ended: for those with hooks. */
EDDY_MUST_USE int eddy_arena_add_bare(
    struct eddy_heap *h, uint32_t node, uint32_t *ret);

/* The same, of other memory than private: for backing.c. */
EDDY_MUST_USE int eddy_arena_add_backed(struct eddy_heap *h, uint32_t node,
    const struct eddy_backing *backing, uint32_t *ret);

/*
 * eddy_arena_fit - whether a program's arena may be on the node.
 *
 * Looks at the machine again if the node had no memory at the start.
 * Returns: 0; -EINVAL: no such node; -ENODEV: it has no memory; -ENOMEM.
 */
EDDY_MUST_USE int eddy_arena_fit(struct eddy_heap *h, int node);

/* Bytes of an arena's reservation. */
size_t eddy_arena_bytes(const struct eddy_arena *a);

/*
 * eddy_arena_of - the arena of a live block, of which p is any address.
 *
 * Returns: NULL for what is not in the heap.  Free memory may have either
 *          answer.
 */
struct eddy_arena *eddy_arena_of(struct eddy_heap *h, const void *p);

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
 * Returns: how many words and runs were put; each took an RMW at least.
 * Fatal: an object that is free already, or a pointer into the middle of one.
 */
unsigned eddy_arena_put(struct eddy_heap *h, void *const *objects, unsigned n);

#endif /* EDDY_ARENA_H */
