/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/background.h"

#include <errno.h>
#include <pthread.h>

#include "lib/ctl/mend.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/wake.h"
#include "lib/os/os.h"
#include "lib/os/thread.h"
#include "numa/excluded.h"

enum {
	OFF,
	STARTING,
	ON,
	STOPPING,
	PHASE = 3,
	REVOKED = 4,
	GONE = 8,
};

/* Stack of a thread: eddy_reclaim_step needs a few KiB. */
#define STACK ((size_t)48 << 10)

/* CPUs of the main thread when the library was loaded, as far as the kernel
 * wrote.  W: eddy_background_load.  R: starters. */
static uint64_t cpus_at_load[EDDY_CPU_WORDS];

/*
 * Where threads run, and whether they must not run elsewhere.
 * W: who has made the phase STARTING.  R: the threads it starts.
 */
static uint64_t cpus[EDDY_CPU_WORDS];
static bool cpus_bind;

/*
 * Handles.  [0] W: who has made the phase STARTING.  R: who has made it
 * STOPPING.  O: BACK-R1 -> BACK-A1.  Others and n_threads: W: thread 0.
 * R: who has joined it.
 */
static pthread_t threads[EDDY_MAX_WORKERS];
static unsigned n_threads;

/* Set by stop, cleared by start; a child has its parent's.
 * W, R: any thread.  O: none: a wish. */
static _Atomic uint32_t unwanted;
/* The kernel cannot wipe a page at fork.  The same. */
static _Atomic uint32_t impossible;

/* ------------------------------------------------------------------ */
/* The thread */

/* "eddy_bg7" */
static void
name_thread(unsigned i)
{
	char name[16] = "eddy_bg";
	unsigned n = 7;

	if (i >= 10)
		name[n++] = (char)('0' + i / 10);
	name[n++] = (char)('0' + i % 10);
	name[n] = '\0';
	eddy_os_name_thread(name);
}

/* Whether the thread is where it may be. */
static bool
settle(void)
{
	/* It has inherited from whatever thread has started it. */
	int err = eddy_os_set_affinity(0, cpus, sizeof(cpus));

	eddy_os_no_real_time();
	return err == 0 || !cpus_bind;
}

/* ms until the next step of this thread. */
static uint64_t
step(struct eddy_heap *h, struct eddy_wake *w, unsigned i)
{
	unsigned n = eddy_wake_n_parts(h);
	uint64_t now = eddy_os_milliseconds();
	uint64_t due = EDDY_NEVER;

	for (unsigned part = i; part < n; part++) {
		uint64_t next;

		/* Thread 0 stands in for those that are not there. */
		if (part != i && (i != 0 || eddy_wake_runs(w, part)))
			continue;
		next = eddy_reclaim_step(h, part, n, now, EDDY_RECLAIM_BATCH);
		due = next < due ? next : due;
	}
	return due;
}

static void *run(void *arg);

/* Thread 0 starts the others; where that fails it does their part. */
static void
start_others(struct eddy_heap *h)
{
	unsigned n = eddy_wake_n_parts(h);

	for (n_threads = 1; n_threads < n; n_threads++)
		if (eddy_os_thread_start(&threads[n_threads], STACK, run,
			(void *)(uintptr_t)n_threads) != 0)
			break;
}

static void *
run(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_wake *w = eddy_wake_peek(h);
	struct eddy_worker *me = &w->worker[i];
	uint64_t due;

	name_thread(i);
	if (i == 0)
		n_threads = 1;
	if (!settle())
		return NULL;
	/* relaxed, all: statistics; the phase is ordered by WAKE-A2. */
	eddy_store_relaxed(&me->tid, (uint32_t)eddy_os_tid());
	if (i == 0)
		start_others(h);
	for (;;) {
		eddy_wake_look(me);
		if ((eddy_load_relaxed(&w->phase) & PHASE) == STOPPING)
			break;
		due = step(h, w, i);
		if (due == EDDY_NEVER && i == 0)
			due = eddy_mend_idle(h, eddy_os_milliseconds());
		if (due == EDDY_NEVER)
			eddy_wake_sleep(me, UINT64_MAX);
		else if (due != 0)
			eddy_wake_sleep(me, eddy_os_milliseconds() + due);
	}
	eddy_wake_leave(me);
	return NULL;
}

/* ------------------------------------------------------------------ */
/* Start and stop */

/* How many CPUs are left of `cpus` without those to be left alone. */
static unsigned
left_of_cpus(const struct eddy_heap *h)
{
	unsigned n = 0;

	eddy_excluded_remove(h->opts.exclude_cpus, cpus);
	for (unsigned i = 0; i < EDDY_CPU_WORDS; i++)
		n += (unsigned)__builtin_popcountll(cpus[i]);
	return n;
}

/* Returns whether a CPU is left. */
static bool
choose_cpus(const struct eddy_heap *h)
{
	const char *list = h->opts.background_cpus;
	unsigned n = 0;
	unsigned left;

	cpus_bind = list[0] != '\0';
	for (unsigned i = 0; i < EDDY_CPU_WORDS; i++) {
		cpus[i] = cpus_bind ? 0 : cpus_at_load[i];
		n += (unsigned)__builtin_popcountll(cpus[i]);
	}
	if (cpus_bind && eddy_cpu_list_read(cpus, list) != 0)
		return false;
	left = left_of_cpus(h);
	if (cpus_bind || left != 0) {
		cpus_bind = cpus_bind || left != n;
		return left != 0;
	}
	/*
	 * The process was put on CPUs that are to be left alone, and nowhere
	 * else: what housekeeping there is belongs on the others.  Or the
	 * kernel did not say: it takes what there is of all.
	 */
	for (unsigned i = 0; i < EDDY_CPU_WORDS; i++)
		cpus[i] = ~(uint64_t)0;
	left = left_of_cpus(h);
	cpus_bind = left != EDDY_MAX_CPUS;
	return left != 0;
}

/* Ends all threads.  The phase is STOPPING, by the caller. */
static void
end_all(struct eddy_heap *h, struct eddy_wake *w)
{
	for (unsigned i = 0; i < eddy_wake_n_parts(h); i++)
		eddy_wake_stop(&w->worker[i]);
	eddy_os_thread_join(threads[0]);
	for (unsigned i = 1; i < n_threads; i++)
		eddy_os_thread_join(threads[i]);
	/* BACK-R1: all of this phase. */
	(void)eddy_and_release(&w->phase, (uint32_t)GONE);
}

static void
stop(struct eddy_heap *h, uint32_t gone)
{
	struct eddy_wake *w = eddy_wake_open(h);
	uint32_t seen;
	uint32_t next;

	if (w == NULL)
		return; /* none can be */
	/* relaxed: checked by the CAS. */
	seen = eddy_load_relaxed(&w->phase);
	do {
		next = seen | gone;
		if ((seen & PHASE) == STARTING)
			next |= REVOKED;
		else if ((seen & PHASE) == ON)
			next = STOPPING | ((seen | gone) & GONE);
		/* BACK-A1: the handle.  BACK-R1: nothing of its own. */
	} while (!eddy_cas_acq_rel(&w->phase, &seen, next));
	if ((seen & PHASE) == ON)
		end_all(h, w);
}

/* The main thread ends and the process does not. */
static void
at_main_end(void *arg)
{
	stop(arg, GONE);
}

/*
 * libc ends the process when its last thread ends, and would count ours.  The
 * main thread is the one that can end before others without anybody's notice.
 */
static int
watch_main(struct eddy_heap *h)
{
	if (eddy_os_tid() != eddy_os_pid())
		return 0;
	return eddy_os_thread_at_end(at_main_end, h);
}

/* The phase is STARTING, by the caller. */
static int
launch(struct eddy_heap *h, struct eddy_wake *w)
{
	uint32_t seen = STARTING;
	int err;

	/* relaxed: ordered by the phase.  A stop in between has seen OFF. */
	if (eddy_load_relaxed(&unwanted) != 0)
		err = -EAGAIN;
	else if (!choose_cpus(h))
		err = -ENOTSUP;
	else
		err = eddy_os_thread_start(&threads[0], STACK, run, NULL);
	if (err != 0) {
		/* BACK-R1: nothing; the next may try. */
		(void)eddy_and_release(&w->phase, (uint32_t)GONE);
		return err;
	}
	/* BACK-R1: the handle.  BACK-A1: nothing. */
	if (eddy_cas_acq_rel(&w->phase, &seen, ON))
		return 0;
	/* Revoked meanwhile. */
	/* BACK-A1 and BACK-R1: nothing but the phase. */
	while (!eddy_cas_acq_rel(&w->phase, &seen, STOPPING | (seen & GONE)))
		;
	end_all(h, w);
	return 0;
}

static int
start(struct eddy_heap *h)
{
	struct eddy_wake *w = eddy_wake_open(h);
	uint32_t seen = OFF;
	uint64_t mask;
	int kept = errno;
	int err;

	if (w == NULL) {
		/* relaxed: a fact. */
		eddy_store_relaxed(&impossible, 1);
		return -ENOTSUP;
	}
	err = watch_main(h);
	if (err != 0)
		return err;
	mask = eddy_os_block_signals();
	/* BACK-A1: what the last phase left.  BACK-R1: nothing yet. */
	if (eddy_cas_acq_rel(&w->phase, &seen, STARTING))
		err = launch(h, w);
	else if ((seen & PHASE) == STOPPING || (seen & (REVOKED | GONE)) != 0)
		err = -EAGAIN;
	eddy_os_restore_signals(mask);
	errno = kept;
	return err;
}

int
eddy_background_start(struct eddy_heap *h)
{
	/* relaxed: ordered by the phase. */
	eddy_store_relaxed(&unwanted, 0);
	return start(h);
}

void
eddy_background_note_thread(struct eddy_heap *h)
{
	struct eddy_wake *w = eddy_wake_peek(h);

	if (!h->opts.background_thread && !h->opts.background_thread_auto)
		return;
	/* relaxed, all: wishes and facts; the phase is checked by a CAS. */
	if (eddy_load_relaxed(&unwanted) != 0 ||
	    eddy_load_relaxed(&impossible) != 0)
		return;
	if (w == NULL || eddy_load_relaxed(&w->phase) == OFF)
		(void)start(h);
}

void
eddy_background_stop(struct eddy_heap *h)
{
	/* relaxed: ordered by the phase. */
	eddy_store_relaxed(&unwanted, 1);
	stop(h, 0);
}

bool
eddy_background_on(struct eddy_heap *h)
{
	struct eddy_wake *w = eddy_wake_peek(h);
	uint32_t seen;

	if (w == NULL)
		return false;
	/* relaxed: as of some moment. */
	seen = eddy_load_relaxed(&w->phase);
	return (seen & REVOKED) == 0 &&
	       ((seen & PHASE) == STARTING || (seen & PHASE) == ON);
}

void
eddy_background_load(void)
{
	(void)eddy_os_affinity(
	    eddy_os_pid(), cpus_at_load, sizeof(cpus_at_load));
}
