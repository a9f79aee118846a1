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

/* Extends a claimed run in place by the n chunks from `chunk` on. */
EDDY_MUST_USE bool eddy_chunks_claim_at(
    struct eddy_heap *h, uint32_t chunk, unsigned n);

/* Puts chunks of one segment back to its arena. */
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

/* Takes one segment if it is free. */
EDDY_MUST_USE bool eddy_segment_claim_at(struct eddy_heap *h, uint32_t segment);

/* Puts whole segments back to the range. */
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

/* Marks n chunks in hand clean: the caller knows them to be zero. */
void eddy_chunks_clean(struct eddy_heap *h, uint32_t chunk, uint32_t n);

/* Puts chunks [pos, pos + n) of a segment back: for struct eddy_runset. */
void eddy_segment_put(uint32_t segment, unsigned pos, unsigned n);

#endif /* EDDY_SEGMENT_H */
