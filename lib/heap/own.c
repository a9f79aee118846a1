/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/own.h"

#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/reset.h"
#include "lib/os/os.h"

__thread struct eddy_own eddy_own;

/* ------------------------------------------------------------------ */
/* Counts */

void
eddy_own_gate(void)
{
	eddy_cache_gate(
	    eddy_own.counted || eddy_own.arena != 0 || eddy_own.scope != NULL);
}

/* Bytes that the thread has more than at the last reset. */
static int64_t
now(void)
{
	/* relaxed, all: the thread's own. */
	return (int64_t)(eddy_load_relaxed(&eddy_own.allocated) -
			 eddy_load_relaxed(&eddy_own.deallocated)) -
	       eddy_load_relaxed(&eddy_own.base);
}

void
eddy_own_count(void)
{
	if (eddy_own.counted)
		return;
	eddy_own.counted = true;
	eddy_own_gate();
}

void
eddy_own_reset_peak(void)
{
	/* relaxed, both: the thread's own. */
	(void)eddy_add_relaxed(&eddy_own.base, now());
	eddy_store_relaxed(&eddy_own.peak, 0);
}

uint64_t
eddy_own_peak(void)
{
	/* relaxed: the thread's own. */
	return (uint64_t)eddy_load_relaxed(&eddy_own.peak);
}

void
eddy_own_took(size_t n)
{
	int64_t peak;
	int64_t have;

	/* relaxed, all: a count, and the thread's own. */
	(void)eddy_add_relaxed(&eddy_own.allocated, n);
	if (eddy_likely(!eddy_own.counted))
		return;
	have = now();
	peak = eddy_load_relaxed(&eddy_own.peak);
	/* Goes round where a handler has set it meanwhile. */
	while (have > peak && !eddy_cas_relaxed(&eddy_own.peak, &peak, have))
		continue;
}

/* ------------------------------------------------------------------ */
/* Arenas */

/* {process, threads of it that are bound}: of another's, that is one's own. */
static uint32_t
count_in(const struct eddy_arena *a, uint64_t w)
{
	if (w >> 32 == (uint32_t)eddy_os_pid())
		return (uint32_t)w;
	return eddy_own.arena == a->number;
}

uint32_t
eddy_own_n_bound(struct eddy_arena *a)
{
	/* relaxed: a count. */
	return count_in(a, eddy_load_relaxed(&a->bound));
}

static void
change(struct eddy_arena *a, int by)
{
	/* relaxed, both: a count. */
	uint64_t w = eddy_load_relaxed(&a->bound);
	uint32_t n;

	do {
		n = count_in(a, w);
		n = by < 0 && n == 0 ? 0 : n + (uint32_t)by;
	} while (!eddy_cas_relaxed(
	    &a->bound, &w, (uint64_t)(uint32_t)eddy_os_pid() << 32 | n));
}

void
eddy_own_bind(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t before = eddy_own.arena;

	/* Counts are looked at by what the thread was bound to until now. */
	if (a != NULL && a->number != before)
		change(a, 1);
	if (before != 0 && (a == NULL || a->number != before))
		change(eddy_arena_at(h, before), -1);
	eddy_own.arena = a != NULL ? a->number : 0;
	eddy_own_gate();
}

struct eddy_arena *
eddy_own_find(struct eddy_heap *h)
{
	uint32_t number = eddy_own.arena;
	struct eddy_arena *a;

	if (number <= h->n_homes)
		return eddy_cache_home(h) == number - 1
			   ? NULL
			   : eddy_arena_of_home(h, number - 1);
	a = eddy_arena_there(h, number);
	return a != NULL && eddy_backing_here(&a->backing) ? a : NULL;
}
