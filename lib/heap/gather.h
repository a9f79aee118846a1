/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gather.h - calls home what is parked elsewhere: on remote rows of CPUs that
 * free no more, in rings whose class nobody wants.
 *
 * Layer     heap (L3).
 * Progress  lock-free but for system calls (membarrier: a kernel's wait for an
 *           interrupt to be taken by another CPU, microseconds).
 * Memory    none of its own.
 *
 * Draining a row of another CPU (tests/model/slot.pml; D1 to D9 there and in
 * the code): stop it, so that nobody opens it; membarrier, so that no section
 * that was opening it goes on; close its limits; membarrier, so that no section
 * that saw them open goes on; mark it drained; take batches by CAS of {cur,
 * gen}.  The CPU's own threads never wait: a stopped row is opened again by
 * their next slow path, at whatever step the drainer is.
 *
 * A thread killed here costs the batch in its hand: 64 objects, 1 MiB.  Where
 * membarrier is refused, rows of other CPUs stay as they are.
 *
 * While nothing is cached nobody looks (`watched` is 0).  Who opens a row, or
 * fills a cell, asks for a look afterwards (`look_at` is 0), and calls; who
 * looks clears `watched` first (tests/model/watch.pml).  So rows of an idle CPU
 * are closed, whether they hold something or not: what is open may be filled
 * unseen.  Who is killed between the two leaves his row to the next that is
 * opened.
 *
 * Order pairs
 *   IDLE-R1 -> IDLE-A1  a row open or a cell full, and each word by which a
 *                       look comes to it (that a slot is ready, a pool lives),
 *                       against a look that finds none: store-load,
 *                       sequentially consistent on every access.
 *   IDLE-R2 -> IDLE-A2  `watched` cleared, against who has just opened a row.
 */
#ifndef EDDY_GATHER_H
#define EDDY_GATHER_H

#include "lib/heap/heap.h"

/* A home that grows calls back what has been parked for so long: seconds. */
#define EDDY_GATHER_SECONDS 1

/*
 * eddy_gather_note - the arena has just served its slow path.  If it took
 * chunks since, and the last gather is EDDY_GATHER_SECONDS ago, does the next.
 */
void eddy_gather_note(struct eddy_heap *h, struct eddy_arena *a);

/* Empties all rows of all CPUs, all rings and all cells. */
void eddy_gather_all(struct eddy_heap *h);

/* Empties some rows of a CPU, wherever they lie, EDDY_GATHER_ROWS at most.
 * closes: those that hold nothing are closed, too. */
#define EDDY_GATHER_ROWS 32
struct eddy_row_at;
void eddy_gather_rows(struct eddy_heap *h, unsigned cpu,
    const struct eddy_row_at *rows, unsigned n, bool closes);

/*
 * eddy_gather_purge - all that nobody uses goes back to the kernel, what caches
 * hold too, which pins its pages; but for about `keep` bytes.
 *
 * a: of this arena only; NULL: of all.
 * Returns: bytes given back.
 */
size_t eddy_gather_purge(
    struct eddy_heap *h, struct eddy_arena *a, size_t keep);

/*
 * eddy_gather_idle - looks, if it is time, for caches of CPUs that were not
 * used for idle_purge_ms, and empties them; and for batches that waited as long
 * in rings, objects in cells.
 *
 * Whether a cache was used is told by its rows' words and counters: one that
 * gives back just what it gave away may be taken for idle, and costs its CPU a
 * refill.  While all are in use, the looks become rarer, up to 8 times.
 * now: ms of CLOCK_MONOTONIC.
 * Returns: ms until the next look; EDDY_NEVER: nothing is cached.
 */
uint64_t eddy_gather_idle(struct eddy_heap *h, uint64_t now);

/* What a look finds. */
struct eddy_look {
	uint64_t now;
	uint64_t ms;   /* idle_purge_ms */
	uint64_t next; /* ms until something may be idle */
	bool any;      /* something is cached */
};

/*
 * eddy_look_idle - whether what is cached somewhere, `sum` of it, has been as
 * it is for the whole time; 0: nothing is.
 */
bool eddy_look_idle(struct eddy_look *l, struct eddy_seen *seen, uint64_t sum);

/* A row was opened, or a cell filled: from now on somebody looks. */
void eddy_gather_watch(struct eddy_heap *h);

#endif /* EDDY_GATHER_H */
