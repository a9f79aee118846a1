/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * walk.h - what the chunks of the heap hold, found by looking at each.
 *
 * Layer     ctl (L5); may include base, os, data, heap.
 * Progress  wait-free but for page faults: O(chunks + slabs).
 * Memory    the caller's; no allocation.
 * Context   as stats.h.
 *
 * Tags, free bits and dirty bits say it all.  Each word is seen at another
 * moment: the sums are exact when no other thread allocates or frees.
 */
#ifndef EDDY_WALK_H
#define EDDY_WALK_H

#include "lib/heap/heap.h"

#define EDDY_WALK_ALL UINT32_MAX

/* One row: a small class or a length of runs that may be cached. */
struct eddy_stats_row {
	uint64_t slabs; /* rows of runs: runs in use, cached ones too */
	uint64_t live;  /* objects that are not free; less the cached later */
	uint64_t free;  /* objects in slabs that anyone may take */
	/* Not of a walk: see stats.h. */
	uint64_t cached; /* objects in rows, cells and rings */
	uint64_t refills;
	uint64_t overflows;
};

struct eddy_walk {
	/* The caller's, and the heap's. */
	struct eddy_heap *h;
	struct eddy_stats_row *rows; /* EDDY_N_ROWS of them, or NULL */
	/*
	 * Called for each slab, run and block, with its pages; or NULL.  What
	 * it is told of is in use as far as one can see.
	 */
	void (*used)(struct eddy_walk *w, const void *p, size_t pages);
	uint32_t n_chunks; /* whose tags and segments are readable */
	uint32_t arena;    /* this one alone; EDDY_WALK_ALL */
	bool begun;        /* the first chunk that can be claimed was seen */

	/* Bytes. */
	size_t active;   /* pages of slabs, runs and huge blocks */
	size_t dirty;    /* free pages that may hold memory, and those behind
			    huge blocks */
	size_t in_hand;  /* pages between two states */
	size_t metadata; /* of chunks, as far as it holds memory */
	size_t run_bytes;
	size_t huge_bytes;

	uint64_t segments;
	uint64_t cut;       /* chunks cut into pages */
	uint64_t chunks;    /* these, and those of huge blocks */
	uint64_t runs;      /* too long for a row */
	uint64_t huge;      /* blocks that begin with whole chunks */
	uint64_t free_runs; /* maximal runs of free pages in chunks in use */
};

/*
 * eddy_walk_begin - a walk of one arena, of EDDY_WALK_ALL, or of 0: what no
 * arena has.  All sums are zero.
 */
void eddy_walk_begin(struct eddy_walk *w, struct eddy_heap *h, uint32_t arena);

/* Adds to the sums. */
void eddy_walk(struct eddy_walk *w);

/* Chunks that are accessible, in segments of all arenas. */
uint64_t eddy_walk_ready(const struct eddy_walk *w);

#endif /* EDDY_WALK_H */
