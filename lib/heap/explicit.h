/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explicit.h - caches that the program creates and names in its calls.
 *
 * Layer     heap (L3).
 * Progress  create: lock-free but for system calls.  find, put: wait-free but
 *           for what goes to slabs.  alloc: as eddy_arena_refill.  flush,
 *           destroy: one look at each cell.
 * Memory    rows of cells (cells.h) for 4,094 caches, addresses of which are
 *           reserved with the first; each is accessible from its first creation
 *           on, for ever.  An id that was destroyed is given out again.
 *
 * A cache belongs to nobody: any thread may use it at any time, and many at
 * once.  Nothing in it depends on who put it there; a thread killed here costs
 * the batch in its hand, within create or destroy the id.  What a late caller
 * puts into a cache that is being destroyed is the next one's.
 *
 * An object may be of any arena.  Who wants one of a certain arena gets that,
 * or none.
 *
 * Order pairs
 *   EXPL-R1 -> EXPL-A1  addresses reserved; a cache made accessible.
 */
#ifndef EDDY_EXPLICIT_H
#define EDDY_EXPLICIT_H

#include "lib/heap/heap.h"

#define EDDY_MAX_EXPLICIT 4094

struct eddy_explicit;

/* ret: the lowest id that is not in use.  0, -EAGAIN or -ENOMEM. */
EDDY_MUST_USE int eddy_explicit_create(struct eddy_heap *h, unsigned *ret);

/* NULL: no cache has that id. */
struct eddy_explicit *eddy_explicit_find(unsigned id);

/*
 * eddy_explicit_alloc - an object of the row, out of the cache, or of a batch
 * from the arena's slabs.
 *
 * any: what is cached may be of another arena, but not of a file's.
 * Returns: NULL when the arena has no memory.
 */
EDDY_MUST_USE void *eddy_explicit_alloc(struct eddy_heap *h,
    struct eddy_explicit *e, struct eddy_arena *a, bool any, unsigned row);

/* Frees an object whose tag says that it may be cached. */
void eddy_explicit_free(
    struct eddy_heap *h, struct eddy_explicit *e, void *p, uint32_t tag);

/* Gives back all that a cache holds; and ends it.  0, or -EFAULT: there is no
 * such cache. */
EDDY_MUST_USE int eddy_explicit_flush(struct eddy_heap *h, unsigned id);
EDDY_MUST_USE int eddy_explicit_destroy(struct eddy_heap *h, unsigned id);

/*
 * eddy_explicit_sweep - gives back what all caches hold of an arena, or (NULL)
 * all that they hold.
 *
 * Returns: whether there was anything.
 */
bool eddy_explicit_sweep(struct eddy_heap *h, const struct eddy_arena *a);

/* Calls seen for each object that caches hold, as of some moment. */
void eddy_explicit_tell(
    void (*seen)(void *arg, const void *p, unsigned row), void *arg);

/* Objects of a row that the caches there are may hold; their memory. */
uint64_t eddy_explicit_limit(unsigned row);
size_t eddy_explicit_bytes(void);

#endif /* EDDY_EXPLICIT_H */
