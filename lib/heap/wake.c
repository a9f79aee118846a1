/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/wake.h"

#include <errno.h>

#include "lib/os/os.h"

unsigned
eddy_wake_n_parts(const struct eddy_heap *h)
{
	unsigned most = (unsigned)h->opts.max_background_threads;

	return h->n_homes < most ? h->n_homes : most;
}

bool
eddy_wake_runs(struct eddy_wake *w, unsigned i)
{
	/* relaxed: as of some moment; calls find out by their RMW. */
	return (eddy_load_relaxed(&w->worker[i].word) & EDDY_WAKE_RUNS) != 0;
}

bool
eddy_wake_served(struct eddy_heap *h)
{
	struct eddy_wake *w = eddy_wake_peek(h);

	return w != NULL && eddy_wake_runs(w, 0);
}

/* Returns whether the worker is there. */
static bool
call(struct eddy_worker *worker, uint64_t when)
{
	/*
	 * WAKE-R2: what the caller did, to a worker that looks from now on.
	 * WAKE-A3: pairs with WAKE-R3.
	 */
	uint32_t was = eddy_or_acq_rel(&worker->word, EDDY_WAKE_CALLED);

	if ((was & EDDY_WAKE_RUNS) == 0)
		return false;
	if ((was & (EDDY_WAKE_ASLEEP | EDDY_WAKE_WOKEN)) != EDDY_WAKE_ASLEEP)
		return true;
	/* relaxed: ordered by WAKE-A3. */
	if (eddy_load_relaxed(&worker->until) <= when)
		return true;
	/* In one call: who is killed before it leaves it to the next caller. */
	eddy_os_futex_mark_and_wake(&worker->word, EDDY_WAKE_WOKEN);
	return true;
}

void
eddy_wake_by(struct eddy_heap *h, uint32_t home, uint64_t when)
{
	struct eddy_wake *w = eddy_wake_peek(h);

	if (w == NULL || !eddy_wake_runs(w, 0))
		return;
	if (!call(&w->worker[home % eddy_wake_n_parts(h)], when))
		(void)call(&w->worker[0], when);
}

void
eddy_wake(struct eddy_heap *h, uint32_t home)
{
	eddy_wake_by(h, home, 0);
}

void
eddy_wake_stop(struct eddy_worker *worker)
{
	(void)call(worker, 0);
}

struct eddy_wake *
eddy_wake_open(struct eddy_heap *h)
{
	struct eddy_wake *w = eddy_wake_peek(h);
	struct eddy_wake *seen = NULL;
	size_t size = eddy_os_page_size();

	if (w != NULL)
		return w;
	w = eddy_os_reserve(size);
	if (w == NULL)
		return NULL;
	/* WAKE-R1: an empty page, wiped at fork.  WAKE-A1: or another's. */
	if (eddy_os_commit(w, size) == 0 &&
	    eddy_os_wipe_on_fork(w, size) == 0 &&
	    eddy_cas_acq_rel(&h->wake, &seen, w))
		return w;
	eddy_os_unmap(w, size);
	return seen;
}

/* One writer, so no RMW. */
static void
count(_Atomic uint64_t *counter)
{
	/* relaxed: a count. */
	eddy_store_relaxed(counter, eddy_load_relaxed(counter) + 1);
}

void
eddy_wake_look(struct eddy_worker *me)
{
	uint32_t was;

	/*
	 * WAKE-A2: pairs with WAKE-R2.  As an exchange: calls after it find
	 * the worker awake, calls before it are seen.
	 */
	was = eddy_xchg_acquire(&me->word, EDDY_WAKE_RUNS);
	if ((was & EDDY_WAKE_WOKEN) != 0)
		count(&me->calls);
	count(&me->steps);
}

void
eddy_wake_sleep(struct eddy_worker *me, uint64_t until)
{
	const uint32_t asleep = EDDY_WAKE_RUNS | EDDY_WAKE_ASLEEP;
	uint32_t awake = EDDY_WAKE_RUNS;
	int err;

	/* relaxed: published by WAKE-R3. */
	eddy_store_relaxed(&me->until, until);
	/* WAKE-R3: until.  Fails if somebody has called since the look. */
	if (!eddy_cas_release(&me->word, &awake, asleep))
		return;
	count(&me->sleeps);
	/* The kernel may end a sleep for no reason. */
	do
		err = eddy_os_futex_wait(&me->word, asleep, until);
	while (err == -EINTR ||
	       /* relaxed: the kernel compares it again. */
	       (err == 0 && eddy_load_relaxed(&me->word) == asleep));
	if (err == -ETIMEDOUT)
		count(&me->alarms);
}

void
eddy_wake_leave(struct eddy_worker *me)
{
	/* relaxed: whoever calls from now on finds nobody. */
	(void)eddy_xchg_relaxed(&me->word, 0);
}
