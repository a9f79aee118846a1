/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h - what the heap holds, found by walking it.
 *
 * Layer     ctl (L5); may include base, os, data, heap.
 * Progress  wait-free but for page faults: O(chunks + slabs + CPUs in use);
 *           where an arena, home or node is asked for, as much for each.
 * Memory    the caller's; no allocation.
 * Context   any thread, signal handlers (6 KiB of stack, eddy_stats_print 8),
 *           after fork.
 *
 * Tags, free bits and rows say it all; what is counted where memory changes
 * hands (tally.h) is for snapshot.h, and agrees with this at rest.  While other
 * threads work, a walk sees each word at another moment: the sums are then near
 * the truth and never below zero.  They are exact when no other thread
 * allocates or frees.
 *
 * Invariants, of a heap at rest (tests/ctl_stats.c)
 *   I-STATS-1  active = live + stranded + bytes of free objects: the objects
 *              of a slab fill it exactly.
 *   I-STATS-2  mapped = metadata_mapped + active + dirty + muzzy + clean +
 *              in_hand.
 *
 * Order pairs: only the second halves of the heap's (SEG-A1, SEG-A3, HEAP-A2).
 */
#ifndef EDDY_STATS_H
#define EDDY_STATS_H

#include "lib/ctl/bleed.h"
#include "lib/ctl/walk.h"
#include "lib/heap/heap.h"

enum eddy_stats_mode {
	EDDY_STATS_NONE,  /* no caches: check, tcache:false, junk, zero */
	EDDY_STATS_CLAIM, /* no restartable sequences */
	EDDY_STATS_RSEQ,
};

/* Bytes, where nothing else is said. */
struct eddy_stats {
	enum eddy_stats_mode mode;
	size_t live;      /* handed to the program, rounded to real sizes */
	size_t stranded;  /* cached: the sum of the next four; pools' too */
	size_t row_bytes; /* in rows of CPUs, of the CPU's own home; pools' */
	size_t remote_row_bytes; /* in rows of CPUs, of other homes */
	size_t ring_bytes;       /* on their way between CPUs */
	/* In cells of claim mode, and of caches that the program created. */
	size_t cell_bytes;
	/*
	 * What stranded can be at most, whatever threads do: capacity times
	 * size of all rows of the CPUs in use, of all rings with what spills,
	 * of all sets of cells in use.
	 */
	size_t stranded_bound;
	size_t active; /* pages of slabs, runs and huge blocks */
	size_t dirty;  /* free pages that may hold memory, and
			those behind huge blocks */
	size_t muzzy;  /* free pages that the kernel may take */
	size_t clean;  /* free pages known to be zero, or never claimable */
	size_t
	    in_hand; /* pages between two states, or lost by killed threads */
	/*
	 * What the kernel would hold if the program had written to every page
	 * in use and had never written to a clean one: active + dirty +
	 * muzzy + in_hand + metadata.
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

	/* Of calloc's blocks above 64 KiB, ever: written, and left alone. */
	uint64_t zeroed;
	uint64_t zero_skipped;

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

/*
 * eddy_stats_complete - the same of a walk that was done: what it found, its
 * rows in ret->row, all else of ret zero.
 *
 * n_ready: eddy_walk_ready, asked for before the walk.
 */
void eddy_stats_complete(struct eddy_heap *h, const struct eddy_walk *w,
    uint64_t n_ready, struct eddy_stats *ret);

/* Cached objects of one home and row: in the row of a slot in use, in a ring.
 */
uint64_t eddy_stats_row_count(
    struct eddy_heap *h, unsigned cpu, uint32_t home, unsigned row);
uint64_t eddy_stats_ring_count(
    struct eddy_heap *h, uint32_t home, unsigned row);

/* What is written of an arena's struct and upper hints. */
size_t eddy_stats_arena_written(struct eddy_arena *a);

/* Pools' rows are a CPU's, their cells of no set.  Returns: false, nothing was
 * ever written there. */
EDDY_MUST_USE bool eddy_stats_cpu(
    struct eddy_heap *h, unsigned cpu, struct eddy_stats_cache *ret);
EDDY_MUST_USE bool eddy_stats_cells(
    struct eddy_heap *h, unsigned set, struct eddy_stats_cache *ret);

/* One row of a CPU, pools' too. */
struct eddy_stats_cached eddy_stats_cpu_row(
    struct eddy_heap *h, unsigned cpu, unsigned row);

/* ------------------------------------------------------------------ */
/* Flows: what a CPU's rows took, and sent where. */

struct eddy_stats_traffic {
	uint32_t home;        /* of the CPU */
	uint64_t in;          /* objects taken for its own use */
	uint64_t back;        /* of these, from a ring */
	uint64_t out;         /* objects of its home sent off */
	uint64_t away;        /* objects of other homes sent there */
	uint64_t to_slabs;    /* objects that no ring would take */
	uint64_t ring_puts;   /* batches */
	uint64_t ring_takes;  /* batches */
	uint64_t ring_spills; /* batches, of the puts */
	uint64_t rmws;        /* atomic read-modify-writes of all that */
};

/* One slot.  Returns: false: it is not in use. */
EDDY_MUST_USE bool eddy_stats_traffic(
    struct eddy_heap *h, unsigned cpu, struct eddy_stats_traffic *ret);

/* Adds b to a, but for the home. */
void eddy_stats_add_traffic(
    struct eddy_stats_traffic *a, const struct eddy_stats_traffic *b);

/* Of a slot in use: objects that it sent to a home. */
uint64_t eddy_stats_to_home(struct eddy_heap *h, unsigned cpu, uint32_t home);

/* Of a slot in use: one class. */
struct eddy_bleed_flow eddy_stats_flow(
    struct eddy_heap *h, unsigned cpu, unsigned row);

struct eddy_bleed_world eddy_stats_world(struct eddy_heap *h);

/* The n worst classes, the worst first; kind EDDY_BLEED_NONE ends them. */
void eddy_stats_bleeding(
    struct eddy_heap *h, struct eddy_bleed_finding *ret, unsigned n);

/* ------------------------------------------------------------------ */
/* Where memory is. */

struct eddy_stats_arena {
	uint32_t number;
	uint32_t home;       /* EDDY_HOME_NONE: created by the program */
	enum eddy_life life; /* of hinted objects, for whom it is */
	uint32_t node;       /* that new segments are bound to */
	uint64_t segments;   /* of addresses */
	uint64_t chunks;     /* in use */
	size_t active;       /* bytes, as in struct eddy_stats */
	size_t dirty;
};

/* Arenas have the numbers 1 to this; some may be missing. */
uint32_t eddy_stats_n_arenas(struct eddy_heap *h);

/*
 * eddy_stats_arena - number 0: what no arena has, which is free segments.
 *
 * Returns: false: there is none of that number.
 */
EDDY_MUST_USE bool eddy_stats_arena(
    struct eddy_heap *h, uint32_t number, struct eddy_stats_arena *ret);

struct eddy_stats_home {
	uint32_t node;
	uint32_t n_cpus;   /* in use */
	uint64_t kept;     /* objects that its CPUs sent off, of their own */
	uint64_t away;     /* the same, of other homes */
	uint64_t arrived;  /* objects of its own that CPUs of others sent */
	size_t kept_bytes; /* kept and away */
	size_t away_bytes;
	size_t ring_bytes; /* waiting there for its CPUs */
	uint32_t gathers;
};

void eddy_stats_home(
    struct eddy_heap *h, uint32_t home, struct eddy_stats_home *ret);

struct eddy_stats_node {
	uint32_t n_homes;
	uint32_t n_arenas;
	size_t active; /* of these arenas */
	size_t dirty;
	/*
	 * Sent off by CPUs of its homes, of homes of this node and of others.
	 * A CPU that sends to both is told apart by numbers of objects.
	 */
	size_t local_bytes;
	size_t remote_bytes;
};

/* Returns: false: a node without memory, home and arena. */
EDDY_MUST_USE bool eddy_stats_node(
    struct eddy_heap *h, uint32_t node, struct eddy_stats_node *ret);

/* Pages in use of a node's arenas, asked for one by one. */
struct eddy_stats_pages {
	uint64_t sampled;
	uint64_t present;
	uint64_t right; /* on the node, or where memory is spread on any */
	uint64_t elsewhere;
};

#define EDDY_STATS_SAMPLES 1024

/*
 * eddy_stats_pages - asks the kernel where up to EDDY_STATS_SAMPLES pages are,
 * evenly spread.
 *
 * Returns: 0, or a negative errno value: the kernel does not tell.
 */
EDDY_MUST_USE int eddy_stats_pages(
    struct eddy_heap *h, uint32_t node, struct eddy_stats_pages *ret);

/* ------------------------------------------------------------------ */

/* "none", "claim" or "rseq". */
const char *eddy_stats_mode_name(enum eddy_stats_mode mode);

/*
 * eddy_stats_print - all of it as text or JSON: malloc_stats_print(3).
 *
 * put NULL: standard error.  opts NULL: no letters.
 */
void eddy_stats_print(struct eddy_heap *h,
    void (*put)(void *arg, const char *s), void *arg, const char *opts);

/*
 * eddy_stats_interval - prints, with the option stats_interval, when so many
 * bytes were taken since the last time.  For slow paths that have nothing in
 * hand.
 */
void eddy_stats_interval_now(struct eddy_heap *h);

static inline void
eddy_stats_interval(struct eddy_heap *h)
{
	if (eddy_unlikely(h->opts.stats_interval >= 0))
		eddy_stats_interval_now(h);
}

#endif /* EDDY_STATS_H */
