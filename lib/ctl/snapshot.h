/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot.h - statistics as of a moment, for mallctl's stats.*.
 *
 * Layer     ctl (L5).
 * Progress  refresh: O(arenas + GiB of addresses + rows of CPUs in use), some
 *           microseconds; nothing is walked: tally.h has what is in slabs and
 *           large blocks, reclaim.h the pages.  Wait-free but for page faults
 *           and system calls, then lock-free (shelf.h).  read: lock-free; does
 *           a refresh where there was none yet.  read_extent, read_pages: the
 *           first after a refresh walks the heap's chunks (walk.h).
 * Memory    two shelves (shelf.h); some 6 KiB for each arena are touched, and
 *           12 more where extents are asked for.
 * Context   any thread, signal handlers (3 KiB of stack), after fork.
 * A thread killed in a refresh costs the buffer in its hand.
 *
 * Numbers of different arenas are of different moments, but each refresh began
 * after the call for it, or it was left out for one that did.  They are exact
 * when no other thread allocates or frees, and none was killed in the midst of
 * that.
 */
#ifndef EDDY_SNAPSHOT_H
#define EDDY_SNAPSHOT_H

#include "lib/ctl/shelf.h"
#include "lib/ctl/walk.h"
#include "lib/heap/heap.h"

/* All members are uint64_t: the shown copy is an array of such words. */

struct eddy_snapshot_bin {
	uint64_t curregs;
	uint64_t curslabs;
	uint64_t nonfull_slabs;
	uint64_t nmalloc;
	uint64_t ndalloc;
	uint64_t nrequests;
	uint64_t nfills;
	uint64_t nflushes;
	uint64_t nslabs;
};

struct eddy_snapshot_lextent {
	uint64_t curlextents;
	uint64_t nmalloc;
	uint64_t ndalloc;
};

struct eddy_snapshot_part {
	uint64_t allocated;
	uint64_t nmalloc;
	uint64_t ndalloc;
	uint64_t nrequests;
	uint64_t nfills;
	uint64_t nflushes;
};

/* Bytes, or as jemalloc has them. */
struct eddy_snapshot_arena {
	uint64_t initialized;
	uint64_t dirty_decay_ms;
	uint64_t muzzy_decay_ms;
	uint64_t pactive;
	uint64_t pdirty;
	uint64_t pmuzzy;
	uint64_t mapped;
	uint64_t retained;
	uint64_t resident;
	uint64_t base;
	uint64_t internal;
	uint64_t tcache_bytes;
	uint64_t metadata_edata;
	uint64_t metadata_rtree;
	uint64_t uptime; /* ns */
	uint64_t dirty_npurge;
	uint64_t dirty_nmadvise;
	uint64_t dirty_purged;
	uint64_t muzzy_npurge;
	uint64_t muzzy_nmadvise;
	uint64_t muzzy_purged;
	struct eddy_snapshot_part small;
	struct eddy_snapshot_part large;
	struct eddy_snapshot_bin bins[EDDY_N_SMALL];
	struct eddy_snapshot_lextent lextents[EDDY_N_LARGE];
};

/* Found by a walk. */
struct eddy_snapshot_pages {
	struct eddy_walk_extent extents[EDDY_N_EXTENTS];
	struct eddy_walk_fill fill[EDDY_N_SMALL];
	uint64_t in_hand; /* bytes */
};

/* Bytes, as in struct eddy_stats, where nothing else is said. */
struct eddy_snapshot {
	uint64_t live;
	uint64_t active;
	uint64_t dirty;
	uint64_t muzzy;
	uint64_t metadata;
	uint64_t metadata_edata;
	uint64_t metadata_rtree;
	uint64_t resident;
	uint64_t mapped;
	uint64_t retained;
	uint64_t stranded;
	uint64_t stranded_bound;
	uint64_t cpus; /* in use */
	uint64_t num_threads;
	uint64_t num_runs;
	uint64_t run_interval; /* ns */
	/* Of hinted objects: what lives, pages in use for it. */
	uint64_t short_allocated;
	uint64_t short_active;
	uint64_t long_allocated;
	uint64_t long_active;
};

/* Indices of stats.arenas.<i>.hpa_shard.alloc. */
#define EDDY_N_HPA_ALLOC 9

/* Places of arenas: 0 is the sum of all, i + 1 that of index i. */
#define EDDY_SNAPSHOT_ALL 0
/* The sum of those that have ended: of blocks that they had at that time. */
#define EDDY_SNAPSHOT_ENDED UINT32_MAX

/*
 * eddy_snapshot_refresh - what is true now, for all.
 *
 * ret: the number of refreshes so far.
 * Returns: 0, or -EAGAIN: no memory, or 63 others are at it.
 */
EDDY_MUST_USE int eddy_snapshot_refresh(struct eddy_heap *h, uint64_t *ret);

/* The number of refreshes so far; does the first one. */
EDDY_MUST_USE int eddy_snapshot_epoch(struct eddy_heap *h, uint64_t *ret);

/*
 * eddy_snapshot_read - a word, at a multiple of 8 bytes in a struct
 * eddy_snapshot or, place by place, a struct eddy_snapshot_arena or
 * eddy_snapshot_pages.
 *
 * What a place did not have at the last refresh is 0.
 * Returns: 0; -EAGAIN: there is no snapshot.
 */
EDDY_MUST_USE int eddy_snapshot_read(
    struct eddy_heap *h, size_t offset, uint64_t *ret);
EDDY_MUST_USE int eddy_snapshot_read_arena(
    struct eddy_heap *h, uint32_t place, size_t offset, uint64_t *ret);
EDDY_MUST_USE int eddy_snapshot_read_pages(
    struct eddy_heap *h, uint32_t place, size_t offset, uint64_t *ret);

/* An arena has ended: what it counted goes to the sum of those. */
void eddy_snapshot_ended(struct eddy_arena *a);

/* Whether any was added. */
bool eddy_snapshot_any_ended(void);

/* snapshot_take.c, for snapshot.c: a refresh. */
struct eddy_shelf_turn;
extern struct eddy_shelf eddy_snapshot_numbers;
void eddy_snapshot_take(
    struct eddy_heap *h, struct eddy_shelf_turn *t, uint32_t n_places);

#endif /* EDDY_SNAPSHOT_H */
