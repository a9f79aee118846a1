/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segment.h - chunks out of segments, segments out of the range.
 *
 * Layer     heap (L3).
 * Progress  claim: lock-free but for system calls.  put: lock-free, as in
 *           chunk.h.
 * Invariants, orders: runset.h, one level up.  And:
 *   SEG-R1 -> SEG-A1  meta-data made accessible, before the limit says so.
 *   SEG-R2 -> SEG-A2  a whole segment, from its last owner to the next.
 *   SEG-R3 -> SEG-A3  chunks made accessible, before their ready bits.
 * A thread killed here costs the chunks, or the segment, in its hand.
 */
#ifndef EDDY_SEGMENT_H
#define EDDY_SEGMENT_H

#include "lib/heap/heap.h"

/*
 * eddy_chunks_claim - n adjacent chunks for the arena, accessible, the first at
 * a multiple of align chunks; 1 <= n, align <= 512.
 *
 * Returns: true and the number of the first chunk.
 */
EDDY_MUST_USE bool eddy_chunks_claim(struct eddy_heap *h, struct eddy_arena *a,
    unsigned n, unsigned align, enum eddy_run_want want, uint32_t *ret_chunk);

/*
 * eddy_chunks_commit - makes n chunks in hand accessible where they are in the
 * range, and their descriptors.
 *
 * Returns: 0; -EEXIST: something foreign lies there; else the kernel gives no
 *          more.
 */
EDDY_MUST_USE int eddy_chunks_commit(
    struct eddy_heap *h, uint32_t chunk, uint32_t n);

/*
 * eddy_chunks_renew - n chunks in hand, ready or not, are mapped anew where
 * they are in the range: they read as zero, and what the kernel was told of
 * them by hooks is forgotten.  access: they can be used.
 *
 * Returns: false: they are what they were.
 */
EDDY_MUST_USE bool eddy_chunks_renew(
    struct eddy_heap *h, uint32_t chunk, uint32_t n, bool access);

/*
 * eddy_chunks_grow - a block's n chunks in hand, from `chunk` on, get `more`
 * behind them, accessible.
 */
EDDY_MUST_USE bool eddy_chunks_grow(
    struct eddy_heap *h, uint32_t chunk, uint32_t n, uint32_t more);

/* Claims just these chunks, as they are. */
EDDY_MUST_USE bool eddy_chunks_hold(
    struct eddy_heap *h, uint32_t chunk, unsigned n);

/* Extends a claimed run in place by the n chunks from `chunk` on. */
EDDY_MUST_USE bool eddy_chunks_claim_at(
    struct eddy_heap *h, uint32_t chunk, unsigned n);

/* Puts chunks of one segment back to its arena that were in use. */
void eddy_chunks_free(struct eddy_heap *h, uint32_t chunk, unsigned n);

/* The same for chunks that did not go into use since they were claimed. */
void eddy_chunks_put(uint32_t chunk, unsigned n);

/*
 * eddy_segments_claim - the given number of chunks for the arena, accessible,
 * from the first of a segment on; the segment's address is a multiple of align
 * segments.  The chunks of the last segment that are left over may be claimed
 * by others.
 */
EDDY_MUST_USE bool eddy_segments_claim(struct eddy_heap *h,
    struct eddy_arena *a, uint32_t chunks, uint32_t align,
    uint32_t *ret_segment);

/*
 * eddy_segments_lend - n adjacent segments in hand, none of which holds
 * anything or is accessible, for the caller to map something there.
 */
EDDY_MUST_USE bool eddy_segments_lend(
    struct eddy_heap *h, uint32_t n, uint32_t *ret_segment);

/* Puts them to the range, for the arena of that number alone: so many chunks
 * from the first on, backed by its file. */
void eddy_segments_give(
    struct eddy_heap *h, uint32_t segment, uint32_t chunks, uint32_t tied);

/* A chunk for the arena to fall back on, which its hooks gave; false: none. */
EDDY_MUST_USE bool eddy_chunk_reserve(
    struct eddy_heap *h, struct eddy_arena *a);

/* What it falls back on is free as any other chunk. */
void eddy_chunk_unreserve(struct eddy_arena *a);

/* Takes one segment if it is free. */
EDDY_MUST_USE bool eddy_segment_claim_at(struct eddy_heap *h, uint32_t segment);

/* Puts a whole segment back to the range whose chunks were all in use. */
void eddy_segment_free(struct eddy_heap *h, uint32_t segment);

/* Retires the segment that the arena keeps although it is empty. */
void eddy_segment_retire_spare(struct eddy_heap *h, struct eddy_arena *a);

/* Puts whole segments back to the range that hold nothing. */
void eddy_segments_put(struct eddy_heap *h, uint32_t segment, uint32_t n);

/*
 * eddy_segment_open - opens a segment in hand that was claimed for the arena:
 * its first `kept` chunks stay the caller's, the others may be claimed.
 */
void eddy_segment_open(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t segment, unsigned kept);

/*
 * eddy_chunks_use - n claimed chunks go into use as a huge block: marks them
 * dirty.
 *
 * zero: of so many bytes from the first on, clear what may not be zero.
 */
void eddy_chunks_use(
    struct eddy_heap *h, uint32_t chunk, uint32_t n, size_t zero);

/* Pages of n chunks in hand that are clean. */
int64_t eddy_chunks_missing(struct eddy_heap *h, uint32_t chunk, uint32_t n);

/* Marks the dirty ones of n chunks in hand muzzy: the kernel may take them. */
void eddy_chunks_lazy(struct eddy_heap *h, uint32_t chunk, uint32_t n);

/*
 * eddy_segment_from, eddy_segment_below - the lowest segment from `at` on, the
 * highest below it, that is the arena's or was last: nothing of the arena's is
 * in others.
 *
 * Returns: EDDY_ID_NONE: there are no more.
 */
uint32_t eddy_segment_from(struct eddy_arena *a, uint32_t at);
uint32_t eddy_segment_below(struct eddy_arena *a, uint32_t at);

/* Bytes of an arena's bits of its segments. */
static inline size_t
eddy_segments_bytes(const struct eddy_heap *h)
{
	return ((size_t)h->n_segments + 63) / 64 * sizeof(uint64_t);
}

/* Whether the arena owns it: of segments not in hand, a guess. */
static inline bool
eddy_segment_is_of(
    struct eddy_heap *h, uint32_t segment, const struct eddy_arena *a)
{
	/* relaxed: pinned by chunks in hand, else a guess. */
	return eddy_load_relaxed(&h->segments[segment].map.owner) == a->number;
}

/* Pages with dirty bits that are counted with the arena; a guess while others
 * work. */
int64_t eddy_segments_dirty(struct eddy_heap *h, struct eddy_arena *a);

/* A chunk in hand will be cut into pages: it is muzzy no more. */
void eddy_chunk_unmuzzy(struct eddy_heap *h, uint32_t chunk);

/* Marks n chunks in hand clean: the caller knows them to be zero. */
void eddy_chunks_clean(struct eddy_heap *h, uint32_t chunk, uint32_t n);

/* Puts chunks [pos, pos + n) of a segment back: for struct eddy_runset. */
void eddy_segment_put(uint32_t segment, unsigned pos, unsigned n);

#endif /* EDDY_SEGMENT_H */
