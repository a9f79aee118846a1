/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_thread.c - of the calling thread. */
#include <errno.h>

#include "lib/ctl/ctl_gen_names.h"
#include "lib/ctl/thread_end.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/own.h"
#include "lib/heap/reset.h"

/* Whether the program has taken the caches from the thread. */
static __thread bool uncached;

/* ------------------------------------------------------------------ */
/* The arena of its choice */

int
eddy_ctl_thread_arena(struct eddy_ctl *c)
{
	struct eddy_arena *a;

	c->out =
	    eddy_own.arena != 0 ? eddy_own.arena - 1 : eddy_cache_home(c->h);
	if (!c->writes || c->in == c->out)
		return 0;
	if (c->in >= eddy_ctl_n_arenas(c->h))
		return EFAULT;
	a = c->in < c->h->n_homes ? eddy_arena_of_home(c->h, (uint32_t)c->in)
				  : eddy_arena_open(c->h, (uint32_t)c->in + 1);
	if (a == NULL)
		return c->in < c->h->n_homes ? EAGAIN : EFAULT;
	/* The only home there is: as if nothing had been written. */
	if (c->h->n_homes == 1 && c->in == 0)
		a = NULL;
	if (a != NULL)
		eddy_ctl_watch_thread_end();
	eddy_own_bind(c->h, a);
	return 0;
}

int
eddy_ctl_arena_nthreads(struct eddy_ctl *c)
{
	uint32_t n = eddy_ctl_n_arenas(c->h);

	c->out = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct eddy_arena *a = eddy_arena_at(c->h, i + 1);

		if (a != NULL && (i == c->i || eddy_ctl_is_all(c->h, c->i)))
			c->out += eddy_own_n_bound(a);
	}
	return 0;
}

/* ------------------------------------------------------------------ */
/* Counts */

int
eddy_ctl_thread_allocated(struct eddy_ctl *c)
{
	eddy_own_count();
	/* relaxed: the thread's own. */
	c->out = eddy_load_relaxed(&eddy_own.allocated);
	return 0;
}

int
eddy_ctl_thread_deallocated(struct eddy_ctl *c)
{
	eddy_own_count();
	/* relaxed: the thread's own. */
	c->out = eddy_load_relaxed(&eddy_own.deallocated);
	return 0;
}

int
eddy_ctl_thread_allocatedp(struct eddy_ctl *c)
{
	eddy_own_count();
	c->out = eddy_ctl_pointer(&eddy_own.allocated);
	return 0;
}

int
eddy_ctl_thread_deallocatedp(struct eddy_ctl *c)
{
	eddy_own_count();
	c->out = eddy_ctl_pointer(&eddy_own.deallocated);
	return 0;
}

int
eddy_ctl_thread_peak_read(struct eddy_ctl *c)
{
	eddy_own_count();
	c->out = eddy_own_peak();
	return 0;
}

int
eddy_ctl_thread_peak_reset(struct eddy_ctl *c)
{
	(void)c;
	eddy_own_count();
	eddy_own_reset_peak();
	return 0;
}

/* ------------------------------------------------------------------ */
/* Caches */

int
eddy_ctl_thread_idle(struct eddy_ctl *c)
{
	eddy_cache_flush(c->h);
	return 0;
}

int
eddy_ctl_thread_tcache_flush(struct eddy_ctl *c)
{
	if (uncached || !c->h->cached)
		return EFAULT;
	eddy_cache_flush(c->h);
	return 0;
}

/* Plus 1, what the thread wrote; 0: as the option. */
static __thread uint64_t tcache_max;

/* Caches are of CPUs, not of threads: it is kept, no more. */
int
eddy_ctl_thread_tcache_max(struct eddy_ctl *c)
{
	const uint64_t most = (uint64_t)8 << 20;

	c->out = tcache_max != 0 ? tcache_max - 1 : c->h->opts.tcache_max;
	if (c->writes)
		tcache_max = (c->in < most ? c->in : most) + 1;
	return 0;
}

int
eddy_ctl_thread_tcache_enabled(struct eddy_ctl *c)
{
	bool enable = c->in != 0;

	c->out = c->h->cached && !uncached;
	if (!c->writes || !c->h->cached || enable == !uncached)
		return 0;
	if (enable) {
		uncached = false;
		eddy_cache_resume();
	} else {
		eddy_cache_flush(c->h);
		eddy_cache_suspend();
		uncached = true;
	}
	return 0;
}
