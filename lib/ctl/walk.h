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
#include "lib/heap/sizes.h"

#define EDDY_WALK_ALL UINT32_MAX

/* One row: a small class or a length of runs that may be cached. */
struct eddy_stats_row {
	uint64_t slabs;   /* rows of runs: runs in use, cached ones too */
	uint64_t partial; /* slabs that have free objects */
	uint64_t hinted;  /* slabs with a hint of that */
	uint64_t live;    /* objects that are not free; less the cached later */
	uint64_t free;    /* objects in slabs that anyone may take */
	/* Not of a walk: see stats.h. */
	uint64_t cached; /* objects in rows, cells and rings */
	uint64_t refills;
	uint64_t overflows;
};

/* Free runs of one size class (sizes.h), each within its chunk. */
struct eddy_walk_extent {
	uint64_t ndirty; /* runs that may hold memory */
	uint64_t dirty_bytes;
	uint64_t nmuzzy; /* whose memory the kernel may take */
	uint64_t muzzy_bytes;
	uint64_t nretained; /* that hold none */
	uint64_t retained_bytes;
};

/*
 * Slabs of one small class by how much of them is not free: below 10 %, 20 %,
 * ... 100 %, and full.
 */
#define EDDY_FILL_FULL 10
struct eddy_walk_fill {
	uint64_t slabs[EDDY_FILL_FULL + 1];
};

struct eddy_walk {
	/* The caller's, and the heap's. */
	struct eddy_heap *h;
	struct eddy_stats_row *rows; /* EDDY_N_ROWS of them, or NULL */
	uint64_t *large; /* blocks by class, EDDY_N_LARGE, or NULL */
	struct eddy_walk_extent *extents; /* EDDY_N_EXTENTS, or NULL */
	struct eddy_walk_fill *fill;      /* EDDY_N_SMALL, or NULL; with rows */
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
	size_t muzzy;    /* free pages that the kernel may take */
	size_t in_hand;  /* pages between two states */
	size_t metadata; /* of chunks, as far as it holds memory */
	size_t run_bytes;
	size_t huge_bytes;
	size_t over_bytes;    /* of these, of blocks of more than a chunk */
	uint64_t over_chunks; /* of the same, chunks */

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

/*
 * eddy_walk_step - the same of one chunk below n_chunks, and of all that a
 * block of whole chunks there takes.
 *
 * Returns: how many chunks these are; 0: the chunk is not accessible.
 */
uint32_t eddy_walk_step(struct eddy_walk *w, uint32_t chunk);

/* Chunks that are accessible, in segments of the walk's arena or of all. */
uint64_t eddy_walk_ready(const struct eddy_walk *w);

#endif /* EDDY_WALK_H */
