/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hook_sets.h - ready-made extent hooks: arenas in huge pages, in none, in
 * pages of the system's pool, locked, left out of core dumps, left out of
 * children.
 *
 * Layer     heap (L3).
 * Progress  as of hooks.h: system calls.
 * Memory    of pages of 1 GiB: giants.h.
 *
 * A set is named by flags of eddy_arena_create_with, and is complete: for each
 * sum of flags there are functions of its own, so that they need no first
 * argument, and a program may copy a set, replace some of them, and call the
 * others with whatever it likes.  All of them lean on the default hooks; alloc
 * gets the place in the range, and tells the kernel what it is to be:
 *
 *   THP        MADV_HUGEPAGE.  purge_forced takes whole huge pages and nothing
 *              else, so that none is broken; there is no purge_lazy, which
 *              would break them as well.  Chunks are offered whole (hooks.c),
 *              a part of one never.  Where a huge page is longer than a chunk
 *              (pages of 16 KiB and more) nothing is purged.
 *              khugepaged passes by what holds no page at all, so what was
 *              purged stays away; and so that this is so, the page that the
 *              check of eddy_os_drop may have brought is dropped once more.
 *   NOHUGE     MADV_NOHUGEPAGE, and then as any other.
 *   HUGETLB_2M pages of the pool, moved into the place (eddy_os_map_huge).  A
 *              purge would leave the place without a page that is set aside for
 *              it, and a later touch without one is a SIGBUS.  So a purge is
 *              refused, and dalloc takes chunks instead: their place is mapped
 *              anew, and the next alloc begins from there.
 *   HUGETLB_1G chunks of giants.h, outside the range; they are kept until the
 *              arena ends.
 *   LOCKED     mlock2, of what is touched.  Nothing is purged.
 *   NODUMP     MADV_DONTDUMP.
 *   NOFORK     MADV_DONTFORK.  Children do not have the memory, so they get
 *              none of the arena, and give nothing back (backing.h).
 *
 * What the kernel refuses is counted, and the memory is ordinary memory.
 *
 * destroy maps the places anew, so that whoever gets them next does not inherit
 * any of this.
 *
 * alloc notes in the arena what it is (`sets`): purges pass by pages of chunks
 * in use where none would be taken, and what was mapped anew is bound to the
 * arena's node once more (segment.c).  The node itself, and a file, are
 * attributes of an arena and no hooks: a policy is told for whole segments,
 * metadata included, before there is memory, and moves with the arena
 * (bind.h); a file lies behind its segments from the start and for ever, and is
 * their limit (backing.h).  A hook that is asked for chunks could do neither.
 */
#ifndef EDDY_HOOK_SETS_H
#define EDDY_HOOK_SETS_H

#include "eddy/eddy.h"
#include "jemalloc/jemalloc.h"
#include "lib/heap/heap.h"

/* What huge pages are to be there: one of these. */
#define EDDY_SET_PAGES                                                \
	(EDDY_ARENA_THP | EDDY_ARENA_NOHUGE | EDDY_ARENA_HUGETLB_2M | \
	    EDDY_ARENA_HUGETLB_1G)
#define EDDY_SET_ALL                                              \
	(EDDY_SET_PAGES | EDDY_ARENA_LOCKED | EDDY_ARENA_NODUMP | \
	    EDDY_ARENA_NOFORK)

/* The hooks of a sum of flags, the default ones for 0; NULL: they do not go
 * together. */
extent_hooks_t *eddy_hook_set_of(unsigned flags);

/* What an arena is to be: as struct eddy_arena_options has it, with a node that
 * is fit for one or EDDY_NO_NODE. */
struct eddy_arena_plan {
	unsigned flags;
	uint32_t node;
	const char *directory;
	size_t file_size;
};

/*
 * eddy_arena_make - an arena as planned.
 *
 * ret: its number.
 * Returns: 0; -EINVAL: the flags do not go together; else as eddy_arena_add or
 *          eddy_backing_create.
 */
EDDY_MUST_USE int eddy_arena_make(
    struct eddy_heap *h, const struct eddy_arena_plan *plan, uint32_t *ret);

/*
 * eddy_hook_set_collapse - makes huge pages of what lies in small ones, of an
 * arena whose hooks are such.
 *
 * Returns: 0; -EINVAL: they are not; else as eddy_os_collapse.
 */
EDDY_MUST_USE int eddy_hook_set_collapse(
    struct eddy_heap *h, struct eddy_arena *a);

/* Whether free pages of chunks in use are not to be had from its hooks. */
static inline bool
eddy_set_keeps_pages(const struct eddy_arena *a)
{
	/* relaxed: a hint. */
	return (eddy_load_relaxed(&a->sets) &
		   (EDDY_ARENA_THP | EDDY_ARENA_HUGETLB_2M |
		       EDDY_ARENA_HUGETLB_1G | EDDY_ARENA_LOCKED)) != 0;
}

/* Whether its hooks map memory anew in its place. */
static inline bool
eddy_set_maps(const struct eddy_arena *a)
{
	/* relaxed: written by this thread, if it matters. */
	return (eddy_load_relaxed(&a->sets) &
		   (EDDY_ARENA_HUGETLB_2M | EDDY_ARENA_HUGETLB_1G)) != 0;
}

#endif /* EDDY_HOOK_SETS_H */
