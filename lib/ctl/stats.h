/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h - what the heap holds, found by walking it.
 *
 * Layer     ctl (L5); may include base, os, data, heap.
 * Progress  wait-free but for page faults: O(chunks + slabs + CPUs in use).
 * Memory    the caller's; no allocation.
 * Context   any thread, signal handlers (6 KiB of stack), after fork.
 *
 * No counter is kept where memory is handed out; tags, free bits and rows say
 * it all.  While other threads work, a walk sees each word at another moment:
 * the sums are then near the truth and never below zero.  They are exact when
 * no other thread allocates or frees.
 *
 * Invariants, of a heap at rest (tests/ctl_stats.c)
 *   I-STATS-1  active = live + stranded + bytes of free objects: the objects
 *              of a slab fill it exactly.
 *   I-STATS-2  mapped = metadata_mapped + active + dirty + clean + in_hand.
 *
 * Order pairs: only the second halves of the heap's (SEG-A1, SEG-A3, HEAP-A2).
 */
#ifndef EDDY_STATS_H
#define EDDY_STATS_H

#include "lib/heap/heap.h"

enum eddy_stats_mode {
	EDDY_STATS_NONE,  /* no caches: check, tcache:false, junk, zero */
	EDDY_STATS_CLAIM, /* no restartable sequences */
	EDDY_STATS_RSEQ,
};

/* One row: a small class or a length of runs that may be cached. */
struct eddy_stats_row {
	uint64_t slabs;  /* rows of runs: runs in use, cached ones too */
	uint64_t live;   /* objects in the program's hands */
	uint64_t free;   /* objects in slabs that anyone may take */
	uint64_t cached; /* objects in rows, cells and rings */
	uint64_t refills;
	uint64_t overflows;
};

/* Bytes, where nothing else is said. */
struct eddy_stats {
	enum eddy_stats_mode mode;
	size_t live;       /* handed to the program, rounded to real sizes */
	size_t stranded;   /* objects in rows of CPUs, cells and return rings */
	size_t ring_bytes; /* of these, on their way between CPUs */
	size_t active;     /* pages of slabs, runs and huge blocks */
	size_t dirty;      /* free pages that may hold memory, and
			    those behind huge blocks */
	size_t clean;      /* free pages known to be zero, or never claimable */
	size_t
	    in_hand; /* pages between two states, or lost by killed threads */
	/*
	 * What the kernel would hold if the program had written to every page
	 * in use and had never written to a clean one: active + dirty +
	 * in_hand + metadata.
	 */
	size_t resident;
	size_t mapped; /* accessible addresses, of objects and metadata */
	/* Addresses set aside without access. */
	size_t retained;
	/*
	 * An estimate of the metadata that holds memory: the fixed part, the
	 * tags and descriptors of chunks in use, rows as far as they may fill.
	 */
	size_t metadata;
	size_t metadata_mapped; /* accessible addresses of metadata */

	uint64_t chunks;    /* cut into pages */
	uint64_t runs;      /* too long for a row */
	size_t run_bytes;   /* of these */
	uint64_t huge;      /* blocks that begin with whole chunks */
	size_t huge_bytes;  /* of these */
	uint64_t free_runs; /* maximal runs of free pages in chunks in use */

	uint64_t n_cached; /* objects */
	uint64_t refills;
	uint64_t overflows;
	uint64_t aborts;
	uint32_t n_cpus; /* slots in use */

	struct eddy_stats_row row[EDDY_N_ROWS];
};

/* A CPU's slot, or a set of cells. */
struct eddy_stats_cache {
	size_t bytes; /* cached */
	uint64_t n_cached;
	uint64_t refills;
	uint64_t overflows;
	uint64_t aborts;
};

struct eddy_stats_cached {
	uint64_t n_cached;
	uint64_t refills;
	uint64_t overflows;
};

/* Walks.  h may be NULL: nothing was allocated yet, all is zero. */
void eddy_stats_read(struct eddy_heap *h, struct eddy_stats *ret);

/* Returns: false, nothing was ever written there. */
EDDY_MUST_USE bool eddy_stats_cpu(
    struct eddy_heap *h, unsigned cpu, struct eddy_stats_cache *ret);
EDDY_MUST_USE bool eddy_stats_cells(
    struct eddy_heap *h, unsigned set, struct eddy_stats_cache *ret);

/* One row of a slot in use. */
struct eddy_stats_cached eddy_stats_cpu_row(
    struct eddy_heap *h, unsigned cpu, unsigned row);

/* "none", "claim" or "rseq". */
const char *eddy_stats_mode_name(enum eddy_stats_mode mode);

/*
 * eddy_stats_print - all of it as text or JSON: malloc_stats_print(3).
 *
 * put NULL: standard error.  opts NULL: no letters.
 */
void eddy_stats_print(struct eddy_heap *h,
    void (*put)(void *arg, const char *s), void *arg, const char *opts);

#endif /* EDDY_STATS_H */
