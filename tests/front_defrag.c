/* SPDX-License-Identifier: BSD-2-Clause */
/* front_defrag.c - get_defrag_hint leads objects together. */
#include "allocx_api.h"

#include <sys/mman.h>

enum { N = 60000, SIZE = 160, PASSES = 6 };

static int (*hint)(void *);
static unsigned char *p[N];
static size_t n_live;
static bool one_home; /* else a thread may go to another's memory */

static size_t
get_size(const char *name)
{
	size_t v = 0;
	size_t n = sizeof v;
	uint64_t epoch = 1;

	if (x.ctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0 ||
	    x.ctl(name, &v, &n, NULL, 0) != 0)
		tap_bail("%s", name);
	return v;
}

/* The index of the class of SIZE. */
static unsigned
bin(void)
{
	char name[64];

	for (unsigned i = 0;; i++) {
		(void)snprintf(name, sizeof name, "arenas.bin.%u.size", i);
		if (get_size(name) >= SIZE)
			return i;
	}
}

static size_t
slabs(void)
{
	char name[64];

	(void)snprintf(
	    name, sizeof name, "stats.arenas.4096.bins.%u.curslabs", bin());
	return get_size(name);
}

static void
fill(void)
{
	for (unsigned i = 0; i < N; i++) {
		p[i] = x.mallocx(SIZE, 0);
		if (p[i] == NULL)
			tap_bail("no memory");
		memset(p[i], (int)(i % 251), SIZE);
	}
	n_live = N;
}

/* One of so many stays, here and there. */
static void
thin_out(unsigned stays)
{
	uint64_t s = tap.seed | 1;

	for (unsigned k = 0; k < N; k++) {
		/* In an order that leaves caches with objects of all slabs. */
		unsigned i = k * 7919u % N;

		s = s * 6364136223846793005u + 1442695040888963407u;
		if (p[i] == NULL || (s >> 33) % stays == 0)
			continue;
		free(p[i]);
		p[i] = NULL;
		n_live--;
	}
}

/* Moves what shall be moved.  Returns: how many; -1: one moved upwards. */
static long
pass(void)
{
	long moved = 0;

	for (unsigned i = 0; i < N; i++) {
		unsigned char *q;

		if (p[i] == NULL || hint(p[i]) == 0)
			continue;
		q = x.mallocx(SIZE, MALLOCX_TCACHE_NONE);
		if (q == NULL || (one_home && q > p[i]))
			return -1;
		memcpy(q, p[i], SIZE);
		x.dallocx(p[i], MALLOCX_TCACHE_NONE);
		p[i] = q;
		moved++;
	}
	return moved;
}

static bool
whole(void)
{
	for (unsigned i = 0; i < N; i++)
		for (unsigned k = 0; p[i] != NULL && k < SIZE; k++)
			if (p[i][k] != i % 251)
				return false;
	return true;
}

static void
test_defrag(void)
{
	/* 128 objects a slab. */
	size_t before;
	size_t need;
	size_t after = 0;
	long moved = 0;
	long all = 0;

	fill();
	thin_out(3);
	before = slabs();
	need = n_live / 128 + 1;
	/* Caches are emptied by who asks, once a second at most. */
	(void)sleep(2);
	for (unsigned i = 0; i < PASSES && moved >= 0; i++) {
		/* What the hint goes by. */
		(void)slabs();
		moved = pass();
		all += moved;
	}
	after = slabs();
	tap_diag("%zu slabs, then %zu; %zu would do; %ld moves of %zu objects",
	    before, after, need, all, n_live);
	tap_ok(moved >= 0, "objects move downwards alone");
	tap_ok(before > 2 * need && after <= need + need / 10 + 32,
	    "a third of the objects comes to lie in a third of the slabs");
	tap_ok(moved == 0, "and then none shall be moved");
	tap_ok(all <= (long)n_live * 2,
	    "none is moved more than twice, on average");
	tap_ok(whole(), "all are what they were");
	thin_out(1000000);
}

static void
test_nothing(void)
{
	static char fixed[64];
	char stack[64];
	char *large = malloc(100000);
	char *huge = malloc((size_t)8 << 20);
	char *page =
	    mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *all[] = {NULL, fixed, stack, large, huge, huge + 4096, page,
	    (void *)-1, (void *)8};
	size_t got[COUNT(all)][3];
	size_t n = sizeof got;
	bool held = true;

	for (size_t i = 0; i < COUNT(all); i++)
		held &= hint(all[i]) == 0;
	tap_ok(held, "0 for what is no small object, be it anything");
	memset(got, 1, sizeof got);
	held = x.ctl("experimental.utilization.batch_query", got, &n, all,
		   sizeof all) == 0;
	for (size_t i = 0; i < COUNT(all); i++) {
		bool ours = all[i] == large || all[i] == huge;

		held &= got[i][0] == 0 && got[i][1] == ours &&
			(got[i][2] != 0) == ours;
	}
	tap_ok(held, "utilization.batch_query: zeros for it");
	free(large);
	free(huge);
}

/* Memory of the program's, at an address of its own. */
static void *
map_aligned(extent_hooks_t *hooks, void *at, size_t size, size_t align,
    bool *zero, bool *commit, unsigned arena)
{
	char *q;

	(void)hooks;
	(void)arena;
	if (at != NULL)
		return NULL;
	q = mmap(NULL, size + align, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (q == MAP_FAILED)
		return NULL;
	*zero = true;
	*commit = true;
	return (void *)(((uintptr_t)q + align - 1) & ~(align - 1));
}

/* Nothing lies below the only slab of an arena. */
static void
test_hooks(void)
{
	static extent_hooks_t hooks = {.alloc = map_aligned};
	extent_hooks_t *set = &hooks;
	unsigned a;
	size_t n = sizeof a;
	bool held = true;

	if (x.ctl("arenas.create", &a, &n, &set, sizeof set) != 0)
		tap_bail("no arena with hooks");
	for (unsigned i = 0; i < 10; i++) {
		void *q =
		    x.mallocx(SIZE, MALLOCX_ARENA(a) | MALLOCX_TCACHE_NONE);

		held &= q != NULL && hint(q) == 0;
	}
	tap_ok(held, "none in the lowest slab of memory of hooks shall move");
}

int
main(int argc, char **argv)
{
	void *sym;

	(void)argc;
	tap_begin(argv);
	sym = dlsym(RTLD_DEFAULT, "get_defrag_hint");
	if (!find_allocx() || sym == NULL)
		tap_skip_all("no get_defrag_hint");
	memcpy(&hint, &sym, sizeof hint);
	one_home = ctl_unsigned("opt.narenas") == 1;
	test_nothing();
	test_hooks();
	test_defrag();
	return tap_end();
}
