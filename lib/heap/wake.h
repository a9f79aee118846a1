/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wake.h - background threads, as the heap sees them: which there are, which
 * sleep, and how to wake one.
 *
 * Layer     heap (L3).
 * Progress  eddy_wake_served: wait-free.  eddy_wake, eddy_wake_by: wait-free
 *           but for one system call, which does not block.  eddy_wake_sleep
 *           blocks: it is for background threads alone.
 * Memory    one page, mapped when the first such thread is to start, never
 *           unmapped.  It is that of this process: the kernel wipes it at fork
 *           (MADV_WIPEONFORK), so that a child has no background thread until
 *           it starts its own.  Where the kernel refuses that, there are none.
 * Context   any thread, signal handlers, vfork children (which wake their
 *           parent's, for the memory is the parent's).
 *
 * There are eddy_wake_n_parts() parts of work; home % n is the part of a home.
 * Worker number i does part i, worker 0 also those whose worker is not there.
 *
 * A worker's word is bits:
 *   RUNS    the worker is there
 *   ASLEEP  it waits in the kernel, or is about to
 *   CALLED  somebody has work for it: it looks again before it sleeps
 *   WOKEN   the kernel was told to wake it
 * Whoever calls ORs CALLED; the worker exchanges all for RUNS before it looks,
 * and adds ASLEEP by a CAS that fails if CALLED is set.  So what was done
 * before a call is either seen by the look that follows the exchange, or the
 * worker does not sleep, or it is woken.  tests/model/wake.pml.
 *
 * Order pairs
 *   WAKE-R1 -> WAKE-A1  the page, from who maps it to all.
 *   WAKE-R2 -> WAKE-A2  what a caller did before it called, to the look.
 *   WAKE-R3 -> WAKE-A3  when the sleep ends, to who might end it sooner.
 */
#ifndef EDDY_WAKE_H
#define EDDY_WAKE_H

#include "lib/heap/heap.h"

/* One a home at most. */
#define EDDY_MAX_WORKERS 62
static_assert(EDDY_MAX_WORKERS >= EDDY_MAX_HOMES, "as many as homes");

#define EDDY_WAKE_RUNS   1u
#define EDDY_WAKE_ASLEEP 2u
#define EDDY_WAKE_CALLED 4u
#define EDDY_WAKE_WOKEN  8u

struct eddy_worker {
	/*
	 * EDDY_WAKE_*.
	 * W, R: the worker, whoever calls it, by RMW.  O: WAKE-R2 -> WAKE-A2.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint32_t word;
	/* Thread id.  W: the worker.  R: statistics.  O: none. */
	_Atomic uint32_t tid;
	/* When its sleep ends.  W: the worker.  R: callers.
	 * O: WAKE-R3 -> WAKE-A3. */
	_Atomic uint64_t until;
	/* Counts.  W: the worker.  R: statistics.  O: none. */
	_Atomic uint64_t steps;
	_Atomic uint64_t sleeps;
	_Atomic uint64_t calls;  /* of these, ended by eddy_wake */
	_Atomic uint64_t alarms; /* of these, ended by their time */
};

struct eddy_wake {
	/*
	 * For lib/ctl/background.c, which says what it means.
	 * W, R: any thread.  O: BACK-R1 -> BACK-A1.
	 */
	_Atomic uint32_t phase;
	_Alignas(EDDY_CACHELINE) struct eddy_worker worker[EDDY_MAX_WORKERS];
};

static_assert(sizeof(struct eddy_wake) <= EDDY_PAGE, "one page");

/* Wakes the background thread that serves the home, if there is one and it
 * sleeps. */
void eddy_wake(struct eddy_heap *h, uint32_t home);

/*
 * eddy_wake_by - the same, unless it will wake by `when` anyhow: ms of
 * eddy_os_milliseconds.  It looks again before it sleeps in any case.
 */
void eddy_wake_by(struct eddy_heap *h, uint32_t home, uint64_t when);

/* Whether this process has a background thread. */
bool eddy_wake_served(struct eddy_heap *h);

/* Parts that the homes are divided into: the same at all times. */
unsigned eddy_wake_n_parts(const struct eddy_heap *h);

/* ------------------------------------------------------------------ */
/* For the threads themselves, and who starts them. */

/* The page; NULL: nobody wanted background threads yet. */
static inline struct eddy_wake *
eddy_wake_peek(struct eddy_heap *h)
{
	/* WAKE-A1: pairs with WAKE-R1. */
	return eddy_load_acquire(&h->wake);
}

/* The page, mapped if need be; NULL: the kernel refused. */
struct eddy_wake *eddy_wake_open(struct eddy_heap *h);

/* Whether worker i is there. */
bool eddy_wake_runs(struct eddy_wake *w, unsigned i);

/* The worker is about to look: from here on calls count anew. */
void eddy_wake_look(struct eddy_worker *me);

/*
 * eddy_wake_sleep - sleeps until `until` (ms of eddy_os_milliseconds,
 * UINT64_MAX: for ever) or a call, at once over if one came since the look.
 */
void eddy_wake_sleep(struct eddy_worker *me, uint64_t until);

/* Wakes a worker, or lets it look again, so that it finds that it is to end. */
void eddy_wake_stop(struct eddy_worker *worker);

/* The worker is no more. */
void eddy_wake_leave(struct eddy_worker *me);

#endif /* EDDY_WAKE_H */
