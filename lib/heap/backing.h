/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backing.h - what lies behind memory of the heap, and how it is given back:
 * private memory of the process, or a file of an arena's own.
 *
 * Layer     heap (L3).
 * Progress  create: lock-free but for system calls, which may wait for a disk.
 *           The others: wait-free but for such.
 * Memory    of a file: whole segments, mapped once for all, for ever.  A page
 * of the arena's that the kernel wipes at fork.
 *
 * An arena of a file has all its segments from the start, and no others: each
 * has its number in `tied`, and a free segment is claimed by the arena whose
 * number it has, those without one by all that have no file.  So the file's
 * size is a limit, and blocks of any size up to it can be had.
 *
 * The mapping is shared, since only so is the file the memory.  Hence
 *   - it is not there in a forked child (MADV_DONTFORK), for what is allocated
 *     on both sides would lie at one place.  The child has the bits of its
 *     parent's arena and no memory: nothing is allocated there, nothing given
 *     back, blocks may be freed, and to touch one is a SIGSEGV.
 *     eddy_backing_here says whether this is so.  Of an arena whose hooks keep
 *     its memory from children (hook_sets.h) it is the same.
 *   - MADV_DONTNEED and MADV_FREE give nothing back, and pages cannot be moved
 *     by mremap into others' memory.
 * What gives back: punching a hole (MADV_REMOVE), after which the pages are
 * zero and the file system has the room.  Where the file system cannot, pages
 * are written to the disk, unmapped and dropped from the cache: they are then
 * muzzy, for ever, since they keep their room and what they hold.
 *
 * A page that is touched first gets its room in the file then, and where there
 * is none that is a SIGBUS.  An arena with `fill` has it before a block is
 * handed out (eddy_backing_fill).  I-BACK-1: of such an arena all dirty pages
 * have their room.
 */
#ifndef EDDY_BACKING_H
#define EDDY_BACKING_H

#include "lib/heap/heap.h"

/*
 * eddy_backing_create - an arena of a file, on a node that is fit for one or
 * EDDY_NO_NODE.
 *
 * directory: NULL: in memory.  size: rounded up to whole chunks, if it is above
 * a segment to whole segments.
 * ret: its number.
 * Returns: 0, or an error as eddy_arena_create_with says.
 */
EDDY_MUST_USE int eddy_backing_create(struct eddy_heap *h, uint32_t node,
    const char *directory, size_t size, bool fill, uint32_t *ret);

/* What lies behind an address of the heap; NULL: private memory, or that of
 * users' hooks. */
static inline const struct eddy_backing *
eddy_backing_of(struct eddy_heap *h, const void *p)
{
	size_t i = ((uintptr_t)p - h->base) >> EDDY_LG_SEGMENT;
	const struct eddy_backing *b;
	uint32_t tied;

	if (eddy_unlikely(i >= h->n_segments))
		return NULL;
	/* relaxed: pinned by what the caller has in hand. */
	tied = eddy_load_relaxed(&h->segments[i].tied);
	if (eddy_likely(tied == 0))
		return NULL;
	b = &eddy_arena_at(h, tied)->backing;
	return b->kind != EDDY_PRIVATE ? b : NULL;
}

bool eddy_backing_is_here(const struct eddy_backing *b);

/* Whether this process has the memory; false: its parent has. */
static inline bool
eddy_backing_here(const struct eddy_backing *b)
{
	/* HOOK-A1: pairs with HOOK-R1. */
	return eddy_likely(b == NULL || !eddy_load_acquire(&b->apart)) ||
	       eddy_backing_is_here(b);
}

/* The same of the memory at an address of the heap. */
bool eddy_backing_has(struct eddy_heap *h, const void *p);

/* Children that are forked from now on do not have the arena's memory, of which
 * there is none yet. */
void eddy_backing_part(struct eddy_heap *h, struct eddy_arena *a);

/*
 * eddy_backing_drop - gives the memory of whole OS pages in hand back, all in
 * one segment.
 *
 * Returns: true: they read as zero; false: they hold what they held.
 */
EDDY_MUST_USE bool eddy_backing_drop(struct eddy_heap *h, void *p, size_t size);

/* The same, but they keep what they hold, or not: who takes them when is left
 * to the kernel. */
EDDY_MUST_USE bool eddy_backing_drop_lazily(
    struct eddy_heap *h, void *p, size_t size);

/* Memory in hand is zero after, all of it in one arena; keep: and none of it is
 * given back. */
void eddy_backing_zero(struct eddy_heap *h, void *p, size_t size, bool keep);

/* The same of part of a block, all in one segment; whole pages go back. */
void eddy_backing_give_back(struct eddy_heap *h, void *p, size_t size);

/* Memory in hand of an arena with `fill` has its room in the file; false: there
 * is none, or not for all. */
EDDY_MUST_USE bool eddy_backing_fill(void *p, size_t size);

/* Memory in hand is there, as a write would have it. */
EDDY_MUST_USE int eddy_backing_populate(
    struct eddy_heap *h, void *p, size_t size);

#endif /* EDDY_BACKING_H */
