/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * data_outmap.c - numbers of addresses all over the address space, put and
 * dropped by several threads.  The room alone, under any malloc.
 */
#include "probe.h"

#include "lib/data/outmap.h"

enum { THREADS = 4, ROUNDS = 20000, UNITS = 64 };

#define UNIT ((uintptr_t)1 << EDDY_OUT_LG_UNIT)

static struct eddy_outmap map;
static _Atomic unsigned taken[UNITS];
static _Atomic unsigned wrong;

static void *
at(uintptr_t unit, uintptr_t offset)
{
	return (void *)(unit * UNIT + offset);
}

static void
test_places(void)
{
	const uintptr_t last = ((uintptr_t)1 << EDDY_OUT_LG_ALL) / UNIT - 1;
	const uintptr_t unit[] = {0, 1, ((uintptr_t)1 << EDDY_OUT_LG_LEAF) - 1,
	    (uintptr_t)1 << EDDY_OUT_LG_LEAF, 1234567, last};
	bool held = true;

	for (uint32_t i = 0; i < COUNT(unit); i++) {
		held &= eddy_outmap_find(&map, at(unit[i], 5)) == EDDY_OUT_NONE;
		held &= eddy_outmap_put(&map, at(unit[i], 0), i);
	}
	for (uint32_t i = 0; i < COUNT(unit); i++) {
		held &= eddy_outmap_find(&map, at(unit[i], 0)) == i;
		held &= eddy_outmap_find(&map, at(unit[i], UNIT - 1)) == i;
	}
	held &= eddy_outmap_find(&map, at(2, 0)) == EDDY_OUT_NONE;
	tap_ok(held, "the first and the last unit, and such in between");
	tap_ok(!eddy_outmap_put(&map, at(1, 0), 7) &&
		   eddy_outmap_find(&map, at(1, 0)) == 1,
	    "what has a number gets no other");
	tap_ok(!eddy_outmap_put(&map, at(last + 1, 0), 7) &&
		   eddy_outmap_find(&map, at(last + 1, 0)) == EDDY_OUT_NONE &&
		   eddy_outmap_find(&map, (void *)UINTPTR_MAX) == EDDY_OUT_NONE,
	    "addresses that no program has");
	for (uint32_t i = 0; i < COUNT(unit); i++)
		eddy_outmap_drop(&map, at(unit[i], 0));
	tap_ok(eddy_outmap_find(&map, at(1, 0)) == EDDY_OUT_NONE &&
		   eddy_outmap_find(&map, at(last, 0)) == EDDY_OUT_NONE,
	    "what is dropped has none");
}

static void *
worker(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t r = tap_random(&rng);
		unsigned k = (unsigned)(r % UNITS);
		/* A leaf of its own now and then. */
		uintptr_t unit = (uintptr_t)k << EDDY_OUT_LG_LEAF | k;

		if (!eddy_outmap_put(&map, at(unit, 0), (uint32_t)i))
			continue;
		if (atomic_fetch_add(&taken[k], 1) != 0 ||
		    eddy_outmap_find(&map, at(unit, 99)) != i)
			atomic_fetch_add(&wrong, 1);
		atomic_fetch_sub(&taken[k], 1);
		eddy_outmap_drop(&map, at(unit, 0));
	}
	return NULL;
}

static void
test_threads(void)
{
	pthread_t t[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, worker, (void *)i) != 0)
			tap_bail("pthread_create");
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(t[i], NULL);
	tap_ok(wrong == 0, "of several at once one has the place");
}

int
main(int argc, char **argv)
{
	(void)argc;
	/* It has the library in itself. */
	(void)unsetenv("EDDY_SO");
	tap_begin(argv);
	tap_guard(60);
	test_places();
	test_threads();
	return tap_end();
}
