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

#endif /* EDDY_GATHER_H */
