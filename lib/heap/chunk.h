/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chunk.h - runs of pages in the chunks of an arena.
 *
 * Layer     heap (L3).
 * Progress  claim: lock-free but for system calls.  put: lock-free; it goes
 *           round only where a chunk that it was retiring lost pages to another
 *           and got them back.  use, clean: wait-free.  zero: blocking in the
 *           kernel only.
 * Invariants, orders: runset.h.
 * A thread killed here costs the run in its hand; in the middle of a chunk's
 * birth or retirement, that chunk.
 */
#ifndef EDDY_CHUNK_H
#define EDDY_CHUNK_H

#include "lib/heap/heap.h"
#include "lib/heap/hooks.h"

/*
 * eddy_pages_claim - n adjacent pages of the arena's, the first at a multiple
 * of align pages; 1 <= n, align <= 512.
 *
 * The pages' tags are 0, their dirty bits true; see eddy_pages_use.
 */
EDDY_MUST_USE bool eddy_pages_claim(struct eddy_heap *h, struct eddy_arena *a,
    unsigned n, unsigned align, enum eddy_run_want want, struct eddy_run *ret);

/*
 * eddy_pages_fill - pages in hand have their room where the arena wants that:
 * see backing.h.  eddy_pages_claim has seen to it.
 *
 * Returns: false: there is no room, and the pages were put back.
 */
EDDY_MUST_USE bool eddy_pages_fill(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, unsigned page, unsigned n);

/* Claims just these pages (growing in place). */
EDDY_MUST_USE bool eddy_pages_claim_at(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n);

/*
 * Puts pages back that were in use, tags cleared before.  blame: whom a double
 * free names.
 */
void eddy_pages_free(
    uint32_t chunk, unsigned page, unsigned n, const void *blame);

/* The same for pages that did not go into use since they were claimed. */
void eddy_pages_put(
    uint32_t chunk, unsigned page, unsigned n, const void *blame);

/* The same for struct eddy_runset: a roll-back. */
void eddy_pages_put_run(uint32_t chunk, unsigned page, unsigned n);

/*
 * eddy_pages_use - marks pages in hand dirty: they go into use.
 *
 * zero: clear those that were not known to be zero.
 */
void eddy_pages_use(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n, bool zero);

/* Memory to be cleared, gathered so that the kernel is asked once. */
struct eddy_zeroes {
	char *from;
	size_t size;
	char *end; /* nothing from here on, if set */
};

/* Adds a range; what went before is cleared if it is not adjacent. */
void eddy_zeroes_add(struct eddy_zeroes *z, void *p, size_t size);
void eddy_zeroes_finish(struct eddy_zeroes *z);

/* Adds those pages in hand of a chunk that are marked dirty; marks none. */
void eddy_pages_zero(
    struct eddy_heap *h, uint32_t chunk, struct eddy_zeroes *z);

/* Marks pages clean: the caller has them in hand and knows them to be zero. */
void eddy_pages_clean(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n);

/* Marks pages muzzy: the caller has them in hand, and the kernel may take
 * them. */
void eddy_pages_lazy(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n);

/* The same for whatever became of them; false: they are gone for good, and must
 * not be put. */
EDDY_MUST_USE bool eddy_pages_given(struct eddy_heap *h, uint32_t chunk,
    unsigned page, unsigned n, enum eddy_given given);

/* A chunk of which hooks took pages, and all others are free, leaves the arena
 * if they take these as well. */
void eddy_pages_settle(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk);

/* Whether all of some pages in hand are dirty. */
EDDY_MUST_USE bool eddy_pages_are_dirty(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n);

/* Dirty pages of a chunk in hand. */
unsigned eddy_pages_dirty(struct eddy_heap *h, uint32_t chunk);

/* Retires the chunk that the arena keeps although it is empty. */
void eddy_chunk_retire_spare(struct eddy_heap *h, struct eddy_arena *a);

/*
 * eddy_chunk_open - makes a chunk in hand one of the arena's: its first `kept`
 * pages stay the caller's, the others may be claimed.
 */
void eddy_chunk_open(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned kept);

#endif /* EDDY_CHUNK_H */
