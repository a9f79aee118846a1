/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks.h - memory of an arena that functions of the program give and take:
 * jemalloc's extent hooks.
 *
 * Layer     heap (L3).
 * Progress  as the hooks': each is called by whoever needs memory, or gives it
 *           back, with nothing held but the pages in question.  The rest:
 *           wait-free but for system calls.
 *
 * A chunk of such memory has a number, tags, a descriptor and bits as any
 * other; only its bytes may lie elsewhere, `away` from its place in the range
 * (pagemap.h), and a map of addresses finds its number (outmap.h).  Where the
 * answer of an alloc hook is that place itself, all is as it always is, free
 * has its hit path too: so it is with hooks that call the default alloc hook,
 * for that answers a request of ours with the place that it is for.
 *
 * Segments of hooked memory are tied to their arena: nobody else gets chunks of
 * them, used or not.  A hooked arena takes segments that nobody has used, or
 * its own.
 *
 * An *extent* is what one call of alloc gave, whole chunks, until it is split
 * (`joined`).  What is asked of the hooks, and when:
 *   alloc     a number of chunks, 2 MiB each, for a chunk that is to be cut
 *             into pages, or for all of a block; where a block grows in place,
 *             at its end.  Not zeroed, committed.
 *   commit    pages that decommit took or alloc did not commit, before use.
 *   split     before a block becomes shorter where it is; when a block of
 *             several chunks is freed, so that each is an extent by itself;
 *             before some pages of a chunk are offered to dalloc.  To cut a
 *             chunk into blocks is no split, as to cut a slab into objects is
 *             none.  Refused: the block is not resized; the extent stays one,
 *             and is offered to dalloc as one; pages are not offered.
 *   merge     before a block becomes longer where it is, or is made of chunks
 *             of several extents.  Refused: it is not.
 *   dalloc    extents of which all chunks are free, pages of others if split
 *             allows.  Refused: the memory stays the arena's, and is given
 *             back by decommit, else purge_forced, else purge_lazy, page by
 *             page: with the extent's address and size, offset and length.
 *             Where all of them refuse, it stays dirty.
 *   destroy   extents that are still there when the arena ends.
 * A page counts as zero only if alloc or purge_forced said so.  Others are
 * *stale*: not dirty, for nobody has used them, and not zero.
 *
 * Hooks may call malloc and free.  While one runs, the thread calls no other:
 * what it needs comes from the range, what it frees stays.  One that leaves by
 * longjmp leaves the thread in that state.
 *
 * A thread killed in a hook costs what it has in hand: the chunks of an extent,
 * a run of pages.
 *
 * Order pairs
 *   HOOK-R1 -> HOOK-A1  hooks and what they need, to who calls them.
 *   HOOK-R2 -> HOOK-A2  pages that dalloc took, against pages that are put
 *                       (RUN-R1): who comes last sees that none is left.
 *                       Store-load, sequentially consistent.
 */
#ifndef EDDY_HEAP_HOOKS_H
#define EDDY_HEAP_HOOKS_H

#include "jemalloc/jemalloc.h"
#include "lib/heap/heap.h"

/* What arenas have that have no others. */
extern extent_hooks_t eddy_hooks_default;

/* The arena's hooks from now on; NULL or the default: none.  Returns those
 * before, the default for none. */
extent_hooks_t *eddy_hooks_set(struct eddy_arena *a, extent_hooks_t *hooks);
extent_hooks_t *eddy_hooks_get(struct eddy_arena *a);

/* Whether the arena has hooks, or had some. */
static inline bool
eddy_hooked(const struct eddy_arena *a)
{
	/* HOOK-A1: pairs with HOOK-R1. */
	return eddy_load_acquire(&a->hooked);
}

/* Whether it has some of the program's now. */
static inline bool
eddy_hooks_are_set(struct eddy_arena *a)
{
	return eddy_hooked(a) && eddy_hooks_get(a) != &eddy_hooks_default;
}

/* Whether hooks gave the memory of a live block, of which p is any address. */
bool eddy_hooks_gave(struct eddy_heap *h, const void *p);

/*
 * eddy_hooks_ready - memory for n chunks in hand of a hooked arena, none of
 * which is ready; they may be of several segments.
 *
 * align: of the address, in chunks.  at: where it is to lie; NULL: anywhere.
 * Returns: 0; -ENOMEM; -EEXIST: something else lies there, and the chunks are
 * to stay in hand for good.
 */
EDDY_MUST_USE int eddy_hooks_ready(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, uint32_t n, uint32_t align, void *at);

/*
 * eddy_hooks_join - n ready chunks in hand become one extent.
 *
 * live: so many of them, the first ones, hold a block, which stays as it is.
 * Returns: false: they do not lie one after the other, not at a multiple of
 *          align chunks, or hooks refuse.
 */
EDDY_MUST_USE bool eddy_hooks_join(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, uint32_t n, uint32_t align, uint32_t live);

/* n ready chunks in hand are two extents, the first of so many chunks; false:
 * the hooks refuse. */
EDDY_MUST_USE bool eddy_hooks_cut(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, uint32_t n, uint32_t first);

/* The same of a run of pages in hand that becomes shorter, or longer: a and b
 * are its parts. */
EDDY_MUST_USE bool eddy_hooks_cut_run(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, unsigned page, unsigned n_a, unsigned n_b);
EDDY_MUST_USE bool eddy_hooks_join_run(struct eddy_heap *h,
    struct eddy_arena *a, uint32_t chunk, unsigned page, unsigned n_a,
    unsigned n_b);

/* n chunks in hand of a block that ends: each an extent by itself, or given to
 * dalloc as one. */
void eddy_hooks_part(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint32_t n);

/*
 * eddy_hooks_fill, eddy_hooks_fill_chunks - memory in hand can be used: what
 * was not committed is, what is not known to be zero has dirty bits.
 *
 * Returns: false: it cannot be committed.
 */
EDDY_MUST_USE bool eddy_hooks_fill(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, unsigned page, unsigned n);
EDDY_MUST_USE bool eddy_hooks_fill_chunks(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint32_t n);

/* Chunks in hand, which are marked dirty, were not filled: what is not
 * committed is not dirty. */
void eddy_hooks_unfill(struct eddy_heap *h, uint32_t chunk, uint32_t n);

/* What became of memory that was given back. */
enum eddy_given {
	EDDY_GIVEN_NOT,  /* it holds what it held */
	EDDY_GIVEN_ZERO, /* it reads as zero */
	EDDY_GIVEN_LAZY, /* it goes when the kernel wants it */
	EDDY_GIVEN_RAW,  /* it must be committed before use */
	EDDY_GIVEN_AWAY, /* dalloc took it */
};

/* Gives back pages in hand of one chunk; lazily: so that they are muzzy, if
 * that can be.  muzzy: they are already. */
EDDY_MUST_USE enum eddy_given eddy_hooks_give(struct eddy_heap *h,
    struct eddy_arena *a, uint32_t chunk, unsigned page, unsigned n,
    bool lazily, bool muzzy);

/* Pages in hand that decommit took. */
void eddy_hooks_raw(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n);

/*
 * eddy_hooks_give_chunks - the same for chunks in hand, that are not cut; those
 * that are not ready are passed over.  all: what is clean is offered to dalloc
 * as well.
 *
 * refused: plus the number of times that all hooks refused.
 * Returns: bytes given back.
 */
size_t eddy_hooks_give_chunks(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, uint32_t n, bool lazily, bool all, unsigned *refused);

/*
 * eddy_hooks_leave_rest - offers the pages in hand of a chunk, all but those
 * that dalloc took before; where the arena has ended there is no refusal.
 *
 * pages: those that are left.
 * Returns: true: none, and the chunk is as one that never had memory.
 */
EDDY_MUST_USE bool eddy_hooks_leave_rest(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint64_t *pages);

/* The next run of bits of 512 from *pos on; false: there is none. */
bool eddy_next_run(const uint64_t *w, unsigned *pos, unsigned *n);

/* The hooks of an arena that has ended take what is left, but for what a purge
 * has in hand: who purges calls it again, after (LIFE-A1).  They are the
 * arena's until it begins again. */
void eddy_hooks_end(struct eddy_heap *h, struct eddy_arena *a);

/* Whether there is something left. */
bool eddy_hooks_left(struct eddy_heap *h, struct eddy_arena *a);

#endif /* EDDY_HEAP_HOOKS_H */
