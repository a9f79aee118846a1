/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory_api.c - what a program asks of the memory behind its blocks: to be
 * there before it is needed, to go when it is not, to be left alone.
 *
 * Layer     front (L6).
 * Progress  lock-free but for system calls and page faults; eddy_prefault waits
 *           for the threads that it starts.
 */
#include "eddy/eddy.h"

#include <errno.h>
#include <pthread.h>

#include "lib/front/front.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/reset.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"
#include "lib/os/thread.h"

/* An arena that is there: the program's, or a home's; NULL: none. */
static struct eddy_arena *
find(struct eddy_heap *h, unsigned arena)
{
	if (h == NULL || arena == 0 || arena > EDDY_MAX_ARENAS)
		return NULL;
	return eddy_arena_there(h, arena);
}

/* ------------------------------------------------------------------ */
/* Prefault */

struct task {
	struct eddy_heap *h;
	uint32_t home;
	size_t bytes;
	int err;
	bool started;
	pthread_t thread;
};

static void *
prefault(void *arg)
{
	struct task *t = arg;
	struct eddy_arena *a = eddy_arena_of_home(t->h, t->home);

	t->err = a == NULL ? -ENOMEM : eddy_warm_prefault(t->h, a, t->bytes);
	return NULL;
}

/* All homes at once, each by a thread of its own if there can be one. */
static int
prefault_homes(struct eddy_heap *h, size_t bytes)
{
	struct task t[EDDY_MAX_HOMES];
	int err = 0;

	for (uint32_t i = 0; i < h->n_homes; i++) {
		t[i] = (struct task){.h = h, .home = i, .bytes = bytes};
		t[i].started =
		    i + 1 < h->n_homes && eddy_os_thread_create(&t[i].thread,
					      NULL, prefault, &t[i]) == 0;
		if (!t[i].started)
			(void)prefault(&t[i]);
	}
	for (uint32_t i = 0; i < h->n_homes; i++) {
		if (t[i].started)
			eddy_os_thread_join(t[i].thread);
		if (err == 0)
			err = t[i].err;
	}
	return err;
}

EDDY_EXPORT int
eddy_prefault(unsigned arena, size_t bytes)
{
	struct eddy_heap *h = eddy_heap();
	struct eddy_arena *a = find(h, arena);

	if (h == NULL)
		return ENOMEM;
	if (arena == EDDY_ALL_ARENAS)
		return -prefault_homes(h, bytes);
	return a == NULL ? EINVAL : -eddy_warm_prefault(h, a, bytes);
}

/* Option prefault: before main.  Without options no heap is built for it. */
__attribute__((constructor)) static void
prefault_at_start(void)
{
	struct eddy_heap *h = eddy_conf_given() ? eddy_heap() : NULL;

	if (h != NULL && h->opts.prefault != 0)
		(void)prefault_homes(h, h->opts.prefault);
}

/* ------------------------------------------------------------------ */
/* Giving back */

EDDY_EXPORT size_t
eddy_purge_now(unsigned arena)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_arena *a = find(h, arena);

	if (h == NULL || (a == NULL && arena != EDDY_ALL_ARENAS))
		return 0;
	return eddy_gather_purge(h, a, 0);
}

EDDY_EXPORT int
eddy_set_decay(unsigned arena, long long dirty_ms, long long muzzy_ms)
{
	struct eddy_heap *h = eddy_heap();
	struct eddy_arena *a = find(h, arena);

	if (h == NULL)
		return ENOMEM;
	if ((a == NULL && arena != EDDY_ALL_ARENAS) || dirty_ms < -1 ||
	    dirty_ms > EDDY_DECAY_MAX_MS || muzzy_ms < -1 ||
	    muzzy_ms > EDDY_DECAY_MAX_MS)
		return EINVAL;
	for (uint32_t i = 1; i <= EDDY_MAX_ARENAS; i++) {
		struct eddy_arena *each = eddy_arena_at(h, i);

		if (each != NULL && (a == NULL || a == each))
			eddy_reclaim_decay(h, each, dirty_ms, muzzy_ms);
	}
	return 0;
}

EDDY_EXPORT void
eddy_idle(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (h == NULL || eddy_frozen(h))
		return;
	eddy_cache_flush(h);
	(void)eddy_reclaim_step(
	    h, 0, 1, eddy_os_milliseconds(), EDDY_RECLAIM_BATCH);
}

/* ------------------------------------------------------------------ */
/* Freeze */

EDDY_EXPORT void
eddy_freeze(void)
{
	struct eddy_heap *h = eddy_heap();

	if (h != NULL)
		eddy_warm_freeze(h);
}

EDDY_EXPORT void
eddy_thaw(void)
{
	struct eddy_heap *h = eddy_heap_peek();

	if (h != NULL)
		eddy_warm_thaw(h);
}

EDDY_EXPORT void
eddy_freeze_read(struct eddy_freeze_counts *ret)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_freeze_counts c = {0};

	if (h != NULL && eddy_frozen(h)) {
		/* relaxed, all: counts. */
		c.frozen = 1;
		c.growth = eddy_load_relaxed(&h->frozen_growth);
		c.calls = eddy_os_calls() - eddy_load_relaxed(&h->frozen_calls);
		c.purges = eddy_load_relaxed(&h->n_purges) -
			   eddy_load_relaxed(&h->frozen_purges);
		c.faults =
		    eddy_os_faults() - eddy_load_relaxed(&h->frozen_faults);
	}
	*ret = c;
}
