/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * large.h - blocks of whole pages: runs within a chunk, whole chunks, whole
 * segments.  p: a block's place; eddy_large_alloc, _move: its address.
 *
 * Layer     heap (L3).
 * Progress  alloc, resize: lock-free but for system calls.  free: lock-free.
 *
 * A block of up to 512 pages is a run (EDDY_TAG_RUN).  A longer one is whole
 * chunks (EDDY_TAG_HUGE); its size is exact to the page, and what lies behind
 * it in its last chunk is not touched, so it costs addresses only.  Beyond what
 * a segment holds it begins with whole segments.
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
void eddy_large_free(struct eddy_heap *h, const void *p, uint32_t tag);

/* The same for whatever block begins there, if one does. */
void eddy_large_discard(struct eddy_heap *h, const void *p);

/* Size of a live block. */
size_t eddy_large_size_of(struct eddy_heap *h, const void *p, uint32_t tag);

/*
 * eddy_large_resize - makes a block `size` bytes long where it is.
 *
 * zero: what it grows by is zero.
 * Returns: false: the pages behind it are taken; nothing has changed.
 */
EDDY_MUST_USE bool eddy_large_resize(
    struct eddy_heap *h, const void *p, uint32_t tag, size_t size, bool zero);

enum eddy_move {
	EDDY_MOVED,
	EDDY_NOT_MOVED, /* not worth it, or refused: copy */
	EDDY_LOST,      /* refused, and what lies at the target is not known */
};

/*
 * eddy_large_move - moves the pages of a block to a larger new one by mremap
 * and marks the old ones clean; the caller frees the old block.
 *
 * EDDY_LOST: the new block must not be touched, nor freed.  Once a process.
 */
EDDY_MUST_USE enum eddy_move eddy_large_move(
    struct eddy_heap *h, void *from, void *to, size_t size);

#endif /* EDDY_LARGE_H */
