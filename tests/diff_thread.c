/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diff_thread.c - a thread that is bound to an arena, counts what it does, and
 * ends; the main thread waits.
 */
#include "diff.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

static char args[128];
static char answer[256];

static const char *
name_of(unsigned index)
{
	if (index == 0)
		return "malloc's";
	for (unsigned i = 0; i < N_STEADY; i++)
		if (index == (unsigned)diff_steady[i])
			return "steady";
	for (unsigned i = 0; i < N_MORTAL; i++)
		if (index == (unsigned)diff_mortal[i])
			return "mortal";
	return "another";
}

/* The size of a block is what the count moves by, seen through its address. */
static void
counts(void)
{
	uint64_t *allocated = (void *)diff_get("thread.allocatedp", 8);
	uint64_t *freed = (void *)diff_get("thread.deallocatedp", 8);
	uint64_t a = *allocated;
	uint64_t d = *freed;
	size_t size = 1 + diff_random() % (diff_one_in(4) ? 200000 : 2000);
	void *p;

	diff_rule(RULE_THREAD_COUNTS);
	(void)snprintf(args, sizeof args, "size=%zu", size);
	p = diff_one_in(2) ? malloc(size) : mallocx(size, MALLOCX_TCACHE_NONE);
	a = *allocated - a;
	free(p);
	d = *freed - d;
	(void)snprintf(answer, sizeof answer,
	    "allocated=%llu freed=%llu same=%d", (unsigned long long)a,
	    (unsigned long long)d,
	    *allocated == diff_get("thread.allocated", 8));
	diff_line("thread.allocatedp", args, answer);
}

static void
peak(void)
{
	uint64_t high;
	uint64_t low;
	void *p;
	int r = mallctl("thread.peak.reset", NULL, NULL, NULL, 0);

	diff_rule(RULE_THREAD_PEAK);
	low = diff_get("thread.peak.read", 8);
	p = malloc(1 << 20);
	high = diff_get("thread.peak.read", 8);
	free(p);
	(void)snprintf(answer, sizeof answer, "r=%d low=%llu high=%d kept=%d",
	    r, (unsigned long long)low, high >= 1 << 20,
	    diff_get("thread.peak.read", 8) >= high);
	diff_line("thread.peak.read", "", answer);
}

/* Bound to an arena, the cache off: what it allocates is of that arena. */
static void
bound(unsigned index)
{
	unsigned old = 0;
	size_t len = sizeof old;
	char name[64];
	unsigned owner = 0;
	size_t size = 1 + diff_below(30000);
	void *p;
	int r = mallctl("thread.arena", &old, &len, &index, sizeof index);

	diff_rule(RULE_THREAD_ARENA);
	(void)snprintf(args, sizeof args, "new=%s", name_of(index));
	(void)snprintf(answer, sizeof answer, "r=%d was=%s is=%s", r,
	    name_of(old), name_of((unsigned)diff_get("thread.arena", 4)));
	diff_line("thread.arena", args, answer);
	if (r != 0)
		return;
	p = malloc(size);
	len = sizeof owner;
	r = mallctl("arenas.lookup", &owner, &len, &p, sizeof p);
	(void)snprintf(args, sizeof args, "size=%zu", size);
	(void)snprintf(
	    answer, sizeof answer, "r=%d owner=%s", r, name_of(owner));
	diff_line("arenas.lookup", args, answer);
	free(p);
	if (index == 0)
		return;
	if (strcmp(name_of(index), "mortal") == 0) {
		diff_rule(RULE_ARENA_BOUND_END);
		(void)snprintf(name, sizeof name, "arena.%u.destroy", index);
		(void)snprintf(answer, sizeof answer, "r=%d",
		    mallctl(name, NULL, NULL, NULL, 0));
		diff_line("arena.<i>.destroy", "bound", answer);
	}
	(void)snprintf(name, sizeof name, "stats.arenas.%u.nthreads", index);
	len = 1;
	(void)mallctl("epoch", NULL, NULL, &(uint64_t){1}, sizeof(uint64_t));
	(void)snprintf(answer, sizeof answer, "%llu",
	    (unsigned long long)diff_get(name, 4));
	diff_line("stats.arenas.<i>.nthreads", "bound", answer);
}

static void *
run(void *arg)
{
	bool off = false;
	unsigned n = diff_below(6);

	(void)arg;
	(void)mallctl("thread.tcache.enabled", NULL, NULL, &off, sizeof off);
	for (unsigned i = 0; i < n; i++) {
		unsigned what = diff_below(10);
		unsigned k = diff_below(N_MORTAL);

		if (what < 4)
			counts();
		else if (what < 6)
			peak();
		else if (what < 7)
			bound(0);
		else if (what < 8 || diff_mortal[k] < 0)
			bound((unsigned)diff_steady[k % N_STEADY]);
		else
			bound((unsigned)diff_mortal[k]);
	}
	(void)mallctl("thread.idle", NULL, NULL, NULL, 0);
	return NULL;
}

void
diff_thread_step(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, NULL) == 0)
		(void)pthread_join(t, NULL);
}
