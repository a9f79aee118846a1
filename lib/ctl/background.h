/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * background.h - starts and stops the background threads of the process.
 *
 * Layer     ctl (L5).
 * Progress  blocking in libc and the kernel.  No thread of the program ever
 *           waits for a background thread, but the caller of
 *           eddy_background_stop, and the main thread when it ends without the
 *           process (pthread_exit): both wait for the step at hand.
 * Memory    stacks of libc; the page of wake.h.
 * Context   threads; never from malloc's family, not from signal handlers.
 *
 * A background thread has all signals blocked, from its first instruction on,
 * but the two that libc sends among threads; runs with the ordinary policy on
 * the CPUs that the options say; and goes round: eddy_reclaim_step for its part
 * of the homes, then a sleep until the next step is due or somebody calls
 * (wake.h).  Thread 0 starts the others.
 *
 * After fork the child has none, whatever the parent was at: the page of wake.h
 * is empty there, which means OFF.
 *
 * Phases, one word in that page, by CAS:
 *   OFF -> STARTING -> ON -> STOPPING -> OFF
 *   REVOKED  with STARTING: who starts it has to stop it again
 *   GONE     with any: the main thread has ended; nothing is started any more
 *
 * Order pairs
 *   BACK-R1 -> BACK-A1  handle of thread 0, from who started it to who joins.
 *                       And the whole of a phase, to who begins the next.
 */
#ifndef EDDY_BACKGROUND_H
#define EDDY_BACKGROUND_H

#include "lib/heap/heap.h"

/*
 * eddy_background_start - background threads, from now on; until stopped, also
 * in children of this process that create a thread.
 *
 * Returns: 0, they are there or will be; or a negative errno value:
 *          -EAGAIN  a stop is under way; or what pthread_create said
 *          -ENOTSUP no CPU is left to run on; or the kernel cannot do what it
 *                   takes (MADV_WIPEONFORK)
 */
int eddy_background_start(struct eddy_heap *h);

/* The program has created a thread: the same, if the options want it. */
void eddy_background_note_thread(struct eddy_heap *h);

/*
 * eddy_background_stop - no background threads any more, until
 * eddy_background_start.  Waits until they have ended, or another's stop is at
 * that, or has them ended by who is about to start them.
 */
void eddy_background_stop(struct eddy_heap *h);

/* Whether there are some, or are about to be. */
bool eddy_background_on(struct eddy_heap *h);

/* Notes what CPUs the process was started on. */
void eddy_background_load(void);

#endif /* EDDY_BACKGROUND_H */
