/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_explicit.c - MALLOCX_ARENA, MALLOCX_TCACHE, MALLOCX_TCACHE_NONE, and
 * tcache.create, flush and destroy.
 *
 * Argument "limit": under a limit on the heap.
 */
#include "allocx_api.h"

#define N_THREADS 4
#define NONE      MALLOCX_TCACHE_NONE

static unsigned
arena_of(const void *p)
{
	unsigned i = UINT32_MAX;
	size_t n = sizeof i;

	if (x.ctl("arenas.lookup", &i, &n, (void *)&p, sizeof p) != 0)
		return UINT32_MAX;
	return i;
}

/* Blocks of an arena that are with the program, of the class of 112. */
static size_t
held(unsigned arena)
{
	ctl_epoch();
	return ctl_size(
		   "stats.arenas.%u.bins.%u.curregs", arena, ctl_bin(112)) -
	       ctl_size("stats.arenas.%u.tcache_bytes", arena) / 112;
}

/* The same, cached ones too. */
static size_t
taken(unsigned arena)
{
	ctl_epoch();
	return ctl_size("stats.arenas.%u.bins.%u.curregs", arena, ctl_bin(112));
}

/* ---- arenas ---- */

static void
test_arena(void)
{
	static const size_t sizes[] = {
	    1, 100, 5000, 16384, 65536, 100000, 3 << 20};
	unsigned a = ctl_unsigned("arenas.create");
	unsigned b = ctl_unsigned("arenas.create");
	bool right = true;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		void *p = x.mallocx(sizes[i], MALLOCX_ARENA(a) | NONE);
		void *q =
		    x.mallocx(sizes[i], MALLOCX_ARENA(b) | NONE | MALLOCX_ZERO);
		void *r = x.mallocx(sizes[i], MALLOCX_ARENA(0));
		void *old;

		right &= arena_of(p) == a && arena_of(q) == b &&
			 arena_of(r) == 0 && filled(q, 0, sizes[i]);
		old = q;
		p = x.rallocx(p, 2 * sizes[i], NONE);
		q = x.rallocx(q, 5 * sizes[i], MALLOCX_ARENA(a) | NONE);
		right &= arena_of(p) == a;
		right &= arena_of(q) == (q == old ? b : a);
		x.dallocx(p, NONE);
		x.dallocx(q, 0);
		x.dallocx(r, 0);
	}
	tap_ok(right, "MALLOCX_ARENA: blocks are of that arena, and stay");
	tap_ok(x.mallocx(10, MALLOCX_ARENA(4094) | NONE) != NULL,
	    "an index that is none: memory all the same");
}

static void
test_none(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	void *p[64];

	for (size_t i = 0; i < COUNT(p); i++)
		p[i] = x.mallocx(100, MALLOCX_ARENA(a) | NONE);
	tap_ok(held(a) == COUNT(p) && taken(a) == COUNT(p),
	    "MALLOCX_TCACHE_NONE: nothing is cached");
	for (size_t i = 0; i < COUNT(p); i++)
		x.dallocx(p[i], NONE);
	tap_ok(taken(a) == 0, "and all of it goes back at once");
}

/* ---- caches ---- */

static void
test_rules(void)
{
	unsigned id = 77;
	size_t n = sizeof id;
	uint64_t wrong = 0;
	unsigned a;
	unsigned b;

	tap_ok(x.ctl("tcache.create", &id, &n, &id, n) == EPERM &&
		   x.ctl("tcache.flush", &id, &n, NULL, 0) == EPERM &&
		   x.ctl("tcache.destroy", &id, &n, NULL, 0) == EPERM,
	    "what is read is not written, and the other way round");
	n = 8;
	tap_ok(x.ctl("tcache.create", &wrong, &n, NULL, 0) == EINVAL &&
		   n == 0 && wrong == 0,
	    "a wrong length creates none");
	tap_ok(x.ctl("tcache.flush", NULL, NULL, &wrong, 8) == EINVAL &&
		   x.ctl("tcache.flush", NULL, NULL, NULL, 0) == EINVAL,
	    "nor does it flush");
	a = ctl_unsigned("tcache.create");
	b = ctl_unsigned("tcache.create");
	tap_ok(a == 0 && b == 1, "numbers from 0 on");
	tap_ok(ctl_write_unsigned("tcache.destroy", a) == 0 &&
		   ctl_write_unsigned("tcache.destroy", a) == EFAULT &&
		   ctl_write_unsigned("tcache.flush", a) == EFAULT &&
		   ctl_write_unsigned("tcache.flush", 5000) == EFAULT,
	    "EFAULT for a cache that is not there");
	tap_ok(ctl_unsigned("tcache.create") == a, "a number goes round");
	tap_ok(ctl_write_unsigned("tcache.destroy", a) == 0 &&
		   ctl_write_unsigned("tcache.destroy", b) == 0,
	    "and ends");
}

static void
test_cached(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned id = ctl_unsigned("tcache.create");
	int flags = MALLOCX_ARENA(a) | MALLOCX_TCACHE(id);
	void *p = x.mallocx(100, flags);
	void *q;
	bool again = true;

	tap_ok(arena_of(p) == a, "a cached block is of the arena");
	x.dallocx(p, flags);
	tap_ok(taken(a) > 0 && held(a) == 0, "freed, it is cached");
	q = x.mallocx(100, flags);
	tap_ok(q == p, "and what comes next");
	q = x.rallocx(q, 200, flags);
	tap_ok(x.rallocx(q, 100, flags) == p, "for rallocx, too");
	x.dallocx(p, flags);
	tap_ok(ctl_write_unsigned("tcache.flush", id) == 0 && taken(a) == 0,
	    "a flush gives all of it back");
	for (int i = 0; i < 200; i++) {
		p = x.mallocx(100, flags);
		x.dallocx(p, flags);
		q = x.mallocx(100, flags);
		again = again && q == p;
		x.dallocx(q, flags);
		again = again && ctl_write_unsigned("tcache.flush", id) == 0;
	}
	tap_ok(again, "and it caches again, as often as one likes");
	for (int i = 0; i < 1000; i++) {
		void *many[300];

		for (size_t k = 0; k < COUNT(many); k++)
			many[k] = x.mallocx(100, flags);
		for (size_t k = 0; k < COUNT(many); k++)
			x.dallocx(many[k], flags);
	}
	tap_ok(taken(a) <= 128, "what it holds is bounded");
	p = x.mallocx(16384, flags);
	x.sdallocx(p, 16384, flags);
	tap_ok(x.mallocx(16384, flags) == p, "runs are cached, too");
	x.dallocx(p, NONE);
	tap_ok(ctl_write_unsigned("tcache.destroy", id) == 0 && taken(a) == 0,
	    "destroying gives all of it back");
	p = x.mallocx(100, flags);
	tap_ok(arena_of(p) == a, "a cache that is gone: past it");
	x.dallocx(p, flags);
	tap_ok(taken(a) == 0, "in both directions");
}

static void
test_apart(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned b = ctl_unsigned("arenas.create");
	unsigned id = ctl_unsigned("tcache.create");
	bool right = true;

	for (int i = 0; i < 1000; i++) {
		void *p = x.mallocx(100, MALLOCX_ARENA(a) | MALLOCX_TCACHE(id));
		void *q = x.mallocx(100, MALLOCX_ARENA(b) | MALLOCX_TCACHE(id));

		right &= arena_of(p) == a && arena_of(q) == b;
		x.dallocx(p, MALLOCX_TCACHE(id));
		x.dallocx(q, MALLOCX_TCACHE(id));
	}
	tap_ok(right, "one cache of two arenas does not mix them up");
	tap_ok(ctl_write_unsigned("tcache.destroy", id) == 0 && taken(a) == 0 &&
		   taken(b) == 0,
	    "and gives back to both");
}

static void
test_thousands(void)
{
	unsigned id = 0;
	size_t n = sizeof id;
	unsigned made = 0;
	int err;

	while ((err = x.ctl("tcache.create", &id, &n, NULL, 0)) == 0)
		made++;
	tap_ok(made == 4094 && err == EAGAIN && id == 4093,
	    "4,094 caches, then EAGAIN");
	for (unsigned i = 0; i < made; i++)
		err |= ctl_write_unsigned("tcache.destroy", i);
	tap_ok(ctl_unsigned("tcache.create") == 0, "and again");
	(void)ctl_write_unsigned("tcache.destroy", 0);
}

/* ---- threads ---- */

static struct {
	unsigned arena;
	unsigned id;
	atomic_bool torn; /* a block changed while it was ours */
	atomic_bool stop;
} shared;

static void *
use(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	unsigned char mine = (unsigned char)(uintptr_t)arg;
	int flags = MALLOCX_ARENA(shared.arena) | MALLOCX_TCACHE(shared.id);

	while (!atomic_load(&shared.stop)) {
		unsigned char *p[8];

		for (size_t i = 0; i < COUNT(p); i++) {
			p[i] = x.mallocx(100, flags);
			memset(p[i], mine, 100);
		}
		for (size_t i = 0; i < COUNT(p); i++) {
			if (!filled(p[i], mine, 100))
				atomic_store(&shared.torn, true);
			x.dallocx(
			    p[i], tap_random(&seed) % 16 == 0 ? NONE : flags);
		}
	}
	return NULL;
}

/* One cache, used by all at once, flushed, destroyed and made again. */
static void
test_threads(void)
{
	pthread_t t[N_THREADS];
	struct timespec until;
	struct timespec now;
	int n = 0;

	shared.arena = ctl_unsigned("arenas.create");
	shared.id = ctl_unsigned("tcache.create");
	for (uintptr_t i = 0; i < N_THREADS; i++)
		if (pthread_create(&t[i], NULL, use, (void *)(i + 1)) != 0)
			tap_bail("pthread_create");
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 2;
	do {
		if (n++ % 2 == 0)
			(void)ctl_write_unsigned("tcache.flush", shared.id);
		else if (ctl_write_unsigned("tcache.destroy", shared.id) == 0 &&
			 ctl_unsigned("tcache.create") != shared.id)
			tap_bail("another number");
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < until.tv_sec);
	atomic_store(&shared.stop, true);
	for (int i = 0; i < N_THREADS; i++)
		(void)pthread_join(t[i], NULL);
	tap_ok(!atomic_load(&shared.torn),
	    "%d threads at one cache, %d times flushed or destroyed: no block "
	    "is two threads'",
	    N_THREADS, n);
	(void)ctl_write_unsigned("tcache.flush", shared.id);
	tap_ok(taken(shared.arena) == 0, "and none is lost");
	(void)ctl_write_unsigned("tcache.destroy", shared.id);
}

/* ---- surroundings ---- */

/* Caches hold what would be needed: it is taken back. */
static int
limit(void)
{
	unsigned id = ctl_unsigned("tcache.create");
	void *p[80];
	unsigned n = 0;

	for (unsigned i = 0; i < 80; i++)
		p[i] = x.mallocx(57344, NONE);
	for (unsigned i = 0; i < 80; i++)
		x.dallocx(p[i], MALLOCX_TCACHE(id));
	for (unsigned size = 32; size < 60000; size += size / 2) {
		void *q[63];

		for (unsigned i = 0; i < 63; i++)
			q[i] = x.mallocx(size, NONE);
		for (unsigned i = 0; i < 63; i++)
			if (q[i] != NULL)
				x.dallocx(q[i], MALLOCX_TCACHE(id));
	}
	/* All of the limit but a little, page by page. */
	while (n < 8192 && x.mallocx(4096, NONE) != NULL)
		n++;
	tap_diag("%u pages", n);
	return n * 4096 > 15 * MIB ? 0 : 1;
}

static void
test_surroundings(char **argv)
{
	(void)setenv("EDDY_CONF", "heap_limit:16777216", 1);
	tap_ok(probe_again(argv, "limit", "limit"),
	    "caches are emptied before a request fails");
	(void)setenv("EDDY_CONF", "check:true", 1);
	tap_ok(probe_again(argv, "check", "check"),
	    "check:true: nothing is cached");
	(void)setenv("EDDY_CONF", "rseq:false", 1);
	tap_ok(probe_again(argv, "claim", "claim"), "claim mode");
	(void)setenv("EDDY_CONF", "topology:2x1x1", 1);
	tap_ok(probe_again(argv, "homes", "homes"),
	    "MALLOCX_ARENA of each of two homes");
	(void)unsetenv("EDDY_CONF");
}

static int
check(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned id = ctl_unsigned("tcache.create");
	int flags = MALLOCX_ARENA(a) | MALLOCX_TCACHE(id);
	void *p = x.mallocx(100, flags);

	if (arena_of(p) != a || held(a) != 1)
		return 1;
	x.dallocx(p, flags);
	return taken(a) == 0 ? 0 : 2;
}

static int
claim(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned id = ctl_unsigned("tcache.create");
	int flags = MALLOCX_ARENA(a) | MALLOCX_TCACHE(id);
	void *p = x.mallocx(100, flags);

	if (arena_of(p) != a || taken(a) < 1)
		return 1;
	x.dallocx(p, flags);
	if (x.mallocx(100, flags) != p)
		return 2;
	x.dallocx(p, NONE);
	return ctl_write_unsigned("tcache.destroy", id) == 0 && taken(a) == 0
		   ? 0
		   : 3;
}

static int
homes(void)
{
	void *p = x.mallocx(100, MALLOCX_ARENA(0));
	void *q = x.mallocx(100, MALLOCX_ARENA(1));
	unsigned id = ctl_unsigned("tcache.create");
	void *r = x.mallocx(100, MALLOCX_ARENA(1) | MALLOCX_TCACHE(id));

	if (arena_of(p) != 0 || arena_of(q) != 1 || arena_of(r) != 1)
		return 1;
	x.dallocx(p, 0);
	x.dallocx(q, NONE);
	x.dallocx(r, MALLOCX_TCACHE(id));
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *arg;
		int (*run)(void);
	} parts[] = {{"limit", limit}, {"check", check}, {"claim", claim},
	    {"homes", homes}};

	tap_begin(argv);
	if (!find_allocx())
		tap_skip_all("no mallocx here");
	for (size_t i = 0; i < COUNT(parts); i++)
		if (argc > 1 && strcmp(argv[1], parts[i].arg) == 0)
			return parts[i].run();
	tap_guard(120);
	test_rules();
	test_arena();
	test_none();
	test_cached();
	test_apart();
	test_threads();
	test_thousands();
	test_surroundings(argv);
	return tap_end();
}
