/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * large.h - blocks of whole pages: runs within a chunk, whole chunks and the
 * head of one more, whole segments.
 *
 * Layer     heap (L3).
 * Progress  alloc, resize: lock-free but for system calls.  free: lock-free.
 *
 * A block of up to 512 pages is a run (EDDY_TAG_RUN).  A longer one is k whole
 * chunks plus a prefix of the chunk behind them, whose other pages serve the
 * arena as those of any chunk (EDDY_TAG_HUGE).  Beyond what a segment holds it
 * begins with whole segments.
 *
 * A thread killed here costs the block in its hand.
 */
#ifndef EDDY_LARGE_H
#define EDDY_LARGE_H

#include "lib/heap/heap.h"

/*
 * eddy_large_alloc - a block of `size` bytes, a multiple of the page, at an
 * address that is a multiple of align pages (a power of two, of any size).
 *
 * zero: all bytes are zero; only what may not be is written.
 * Returns: NULL when there is no memory.
 */
EDDY_MUST_USE void *eddy_large_alloc(struct eddy_heap *h, struct eddy_arena *a,
    size_t size, size_t align, bool zero);

/*
 * Frees a block that is not to be cached.  tag: as found, checked here.
 * Fatal: foreign pointer, misaligned pointer, double free.
 */
void eddy_large_free(struct eddy_heap *h, void *p, uint32_t tag);

/* Size of a live block. */
size_t eddy_large_size_of(struct eddy_heap *h, const void *p, uint32_t tag);

/*
 * eddy_large_resize - makes a block `size` bytes long where it is.
 *
 * Returns: false: the pages behind it are taken; nothing has changed.
 */
EDDY_MUST_USE bool eddy_large_resize(
    struct eddy_heap *h, void *p, uint32_t tag, size_t size);

/*
 * eddy_large_move - moves the pages of a block to a larger new one by mremap
 * and marks the old ones clean; the caller frees the old block.
 *
 * Returns: false: not worth it, or refused; nothing has changed.
 */
EDDY_MUST_USE bool eddy_large_move(
    struct eddy_heap *h, void *from, void *to, size_t size);

#endif /* EDDY_LARGE_H */
