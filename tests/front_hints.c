/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_hints.c - good sizes; blocks with a lifetime, which lie apart; blocks
 * near others; and that a hint is never a reason to fail.
 *
 * Arguments, each another process with options of its own: "apart": as the
 * first, "together": no blocks lie apart, "none": no hint is given, "nodes":
 * two nodes, "many": more homes than have groups of their own, "frozen".
 */
#include "allocx_api.h"

#include "eddy/eddy.h"

static struct {
	size_t (*good)(size_t);
	void *(*at_least)(size_t, size_t *);
	void *(*of_short)(size_t);
	void *(*of_long)(size_t);
	void *(*near)(size_t, const void *);
	void *(*hinted)(size_t, const struct eddy_hint *);
	int (*create)(int, unsigned *);
	void *(*arena_malloc)(unsigned, size_t);
	void *(*arena_aligned)(unsigned, size_t, size_t);
	int (*node_of)(const void *);
	void (*freeze)(void);
} h;

static bool
find_hints(void)
{
	static const struct symbol f[] = {
	    {"eddy_good_size", &h.good},
	    {"eddy_alloc_at_least", &h.at_least},
	    {"eddy_alloc_short", &h.of_short},
	    {"eddy_alloc_long", &h.of_long},
	    {"eddy_alloc_near", &h.near},
	    {"eddy_alloc_hinted", &h.hinted},
	    {"eddy_arena_create", &h.create},
	    {"eddy_arena_malloc", &h.arena_malloc},
	    {"eddy_arena_aligned_alloc", &h.arena_aligned},
	    {"eddy_node_of", &h.node_of},
	    {"eddy_freeze", &h.freeze},
	};

	return find_allocx() && find_symbols(f, COUNT(f));
}

static const size_t sizes[] = {0, 1, 8, 9, 16, 100, 128, 1000, 2048, 5000,
    14336, 14337, 16384, 40000, 65536, 65537, 300000, 2 * MIB, 3 * MIB + 1,
    40 * MIB};

/* On one CPU blocks are of one home. */
static cpu_set_t all_cpus;

static void
stay(void)
{
	cpu_set_t one;
	unsigned cpu = 0;

	if (sched_getaffinity(0, sizeof all_cpus, &all_cpus) != 0)
		tap_bail("sched_getaffinity");
	while (!CPU_ISSET(cpu, &all_cpus))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) != 0)
		tap_bail("sched_setaffinity");
}

static void *
checked(void *p)
{
	if (p == NULL)
		tap_bail("no memory");
	return p;
}

/* Index of the arena that a block is of. */
static unsigned
arena_at(const void *p)
{
	unsigned v = 0;
	size_t n = sizeof v;

	if (x.ctl("arenas.lookup", &v, &n, &p, sizeof p) != 0)
		tap_bail("arenas.lookup");
	return v;
}

/* ---- sizes ---- */

static void
test_sizes(void)
{
	static size_t (*const volatile usable)(void *) = malloc_usable_size;
	bool good = true;
	bool at_least = true;
	size_t real;

	for (size_t size = 0; size < 80000; size += size < 2000 ? 1 : 97) {
		char *p = checked(h.at_least(size, &real));
		void *q = checked(p_malloc(size));

		good &= h.good(size) == usable(q);
		at_least &=
		    real == usable(p) && real >= size && real == h.good(size);
		memset(p, 0x5b, real);
		p_free(p);
		p_free(q);
	}
	for (size_t i = 0; i < COUNT(sizes); i++) {
		char *p = checked(h.at_least(sizes[i], &real));

		at_least &= real == usable(p) && real == h.good(sizes[i]);
		p[0] = p[real - 1] = 1;
		p_free(p);
	}
	tap_ok(good, "a good size is what malloc really gives");
	tap_ok(at_least, "a block comes with its real size, and all of it can "
			 "be used");
	good = true;
	for (size_t size = 1; size < 100000; size += 13)
		good &= h.good(h.good(size)) == h.good(size);
	tap_ok(good, "a good size is its own");
	real = 1;
	errno = 0;
	tap_ok(h.at_least(SIZE_MAX / 2 + 2, &real) == NULL && real == 0 &&
		   errno == ENOMEM,
	    "none of a size that there is not: NULL, ENOMEM and 0");
	tap_ok(h.good(SIZE_MAX) == 0 && h.good(SIZE_MAX / 2 + 2) == 0,
	    "which no size is good for");
}

/* ---- lifetimes ---- */

enum { PLAIN, SHORT, LONG, N_KINDS };

static void *
make(unsigned kind, size_t size)
{
	return checked(kind == SHORT  ? h.of_short(size)
		       : kind == LONG ? h.of_long(size)
				      : p_malloc(size));
}

enum { N_EACH = 200 };

/* Whether blocks of a kind are of one arena, which blocks of others are not. */
static bool
apart(size_t size, bool expected)
{
	static void *p[N_KINDS][N_EACH];
	size_t n = size > 65536 ? 3 : size > 8192 ? 20 : N_EACH;
	unsigned of[N_KINDS];
	bool held = true;

	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < N_KINDS; k++) {
			p[k][i] = make(k, size);
			*(char *)p[k][i] = 1;
			if (i == 0)
				of[k] = arena_at(p[k][i]);
			held &= arena_at(p[k][i]) == of[k];
		}
	if (expected)
		held &= of[SHORT] != of[LONG] && of[SHORT] != of[PLAIN] &&
			of[LONG] != of[PLAIN];
	else
		held &= of[SHORT] == of[PLAIN] && of[LONG] == of[PLAIN];
	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < N_KINDS; k++)
			p_free(p[k][i]);
	if (!held)
		tap_diag("size %zu: arenas %u, %u, %u", size, of[PLAIN],
		    of[SHORT], of[LONG]);
	return held;
}

/* As another process: also for options by which nothing is cached. */
/* ---- what there is of them ---- */

static void
refresh(void)
{
	uint64_t epoch = 1;

	if (x.ctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0)
		tap_bail("epoch");
}

/* Statistics that grew by what was made, if blocks lie apart. */
static bool
counted(bool apart)
{
	enum { N_SHORT = 100, N_LONG = 10 };
	void *p[N_SHORT + N_LONG + 1];
	size_t n_short;
	size_t n_long;
	bool held;

	/* What a group keeps for itself is there already. */
	p_free(h.of_short(1000));
	p_free(h.of_long(100000));
	refresh();
	n_short = ctl_size("stats.hints.short_allocated");
	n_long = ctl_size("stats.hints.long_allocated");
	for (size_t i = 0; i < N_SHORT; i++)
		p[i] = h.of_short(1000);
	for (size_t i = 0; i < N_LONG; i++)
		p[N_SHORT + i] = h.of_long(100000);
	p[N_SHORT + N_LONG] = p_malloc(1000);
	refresh();
	held = ctl_size("stats.hints.short_allocated") ==
		   n_short + (apart ? (size_t)N_SHORT * 1024 : 0) &&
	       ctl_size("stats.hints.long_allocated") ==
		   n_long + (apart ? N_LONG * h.good(100000) : 0) &&
	       ctl_size("stats.hints.short_active") >=
		   ctl_size("stats.hints.short_allocated") &&
	       ctl_size("stats.hints.long_active") >=
		   ctl_size("stats.hints.long_allocated");
	for (size_t i = 0; i < COUNT(p); i++)
		p_free(p[i]);
	refresh();
	return held && ctl_size("stats.hints.short_allocated") == n_short &&
	       ctl_size("stats.hints.long_allocated") == n_long;
}

static int
all_apart(bool expected)
{
	bool held = true;

	for (size_t i = 1; i < COUNT(sizes); i++)
		for (int again = 0; again < 2; again++)
			held &= apart(sizes[i], expected);
	return held ? 0 : 1;
}

/* Whether p is of the arena that blocks of that kind are of. */
static bool
is_kind(const void *p, unsigned kind)
{
	void *q = make(kind, 100);
	bool held = arena_at(p) == arena_at(q);

	p_free(q);
	return held;
}

static void
test_realloc(void)
{
	static const size_t steps[] = {1, 30, 100, 10000, 14000, 15000, 70000,
	    300000, 3 * MIB, 5 * MIB, 100000, 20000, 500, 1};
	bool held = true;

	for (unsigned k = SHORT; k <= LONG; k++)
		for (int flags = 0; flags < 2; flags++) {
			char *p = make(k, 50);

			for (size_t i = 0; i < COUNT(steps); i++) {
				p = flags ? x.rallocx(
						p, steps[i], MALLOCX_ALIGN(64))
					  : p_realloc(p, steps[i]);
				*(char *)checked(p) = 1;
				held &= is_kind(p, k);
				held &= !flags || (uintptr_t)p % 64 == 0;
			}
			p_free(p);
		}
	tap_ok(held, "realloc and rallocx keep the lifetime");
}

static void
test_hinted(void)
{
	bool held = true;
	bool plain = true;

	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t align = 1; align <= 65536; align *= 4)
			for (unsigned k = PLAIN; k <= LONG; k++) {
				struct eddy_hint hint = {
				    .lifetime = (enum eddy_lifetime)k,
				    .align = align,
				    .zero = 1};
				size_t size = sizes[i] > MIB ? 100 : sizes[i];
				char *p = checked(h.hinted(size, &hint));

				held &= (uintptr_t)p % align == 0 &&
					filled(p, 0, p_usable(p));
				plain &= is_kind(p, k);
				memset(p, 0x77, p_usable(p));
				p_free(p);
			}
	tap_ok(held, "a hinted block is aligned and zero if that is wanted");
	tap_ok(plain, "and lies with those of its lifetime");
}

static void
test_errors(void)
{
	struct eddy_hint hint = {.align = 48};
	bool held;

	errno = 0;
	held = h.hinted(10, &hint) == NULL && errno == EINVAL;
	hint = (struct eddy_hint){.lifetime = (enum eddy_lifetime)3};
	errno = 0;
	held &= h.hinted(10, &hint) == NULL && errno == EINVAL;
	hint = (struct eddy_hint){.reserved = 1};
	errno = 0;
	held &= h.hinted(10, &hint) == NULL && errno == EINVAL;
	tap_ok(held, "a hint that is none: EINVAL");
	hint = (struct eddy_hint){.lifetime = EDDY_LIFETIME_LONG};
	errno = 0;
	held = h.hinted(SIZE_MAX / 2 + 2, &hint) == NULL && errno == ENOMEM;
	errno = 0;
	held &= h.of_short(SIZE_MAX / 2 + 2) == NULL && errno == ENOMEM;
	errno = 0;
	held &= h.of_long(SIZE_MAX) == NULL && errno == ENOMEM;
	errno = 0;
	held &= h.near(SIZE_MAX, &hint) == NULL && errno == ENOMEM;
	tap_ok(held, "a size that there is not: ENOMEM");
}

/* ---- near ---- */

static void
test_near(void)
{
	bool held = true;
	int on_stack;
	unsigned a = 0;
	void *gone;

	for (unsigned k = PLAIN; k <= LONG; k++)
		for (size_t i = 1; i < COUNT(sizes); i++) {
			void *p = make(k, sizes[i]);
			void *q = checked(h.near(100, p));
			void *r = checked(h.near(100000, p));

			held &= is_kind(q, k) && is_kind(r, k);
			p_free(p);
			p_free(q);
			p_free(r);
		}
	tap_ok(held, "a block near another has its lifetime");
	held = true;
	gone = make(LONG, 3 * MIB);
	p_free(gone);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		const void *at[] = {
		    NULL, &on_stack, &sizes, (void *)-1, (void *)16, gone};

		for (size_t k = 0; k < COUNT(at); k++) {
			char *p = checked(h.near(sizes[i], at[k]));

			*p = 1;
			held &= is_kind(p, PLAIN) || at[k] == gone;
			p_free(p);
		}
	}
	tap_ok(held, "near what is no block it is as malloc's");
	if (h.create(h.node_of(gone) >= 0 ? h.node_of(gone) : 0, &a) == 0) {
		void *p = checked(h.arena_malloc(a, 100));
		void *q = checked(h.near(100, p));

		tap_ok(arena_at(q) != a - 1,
		    "near a block of a program's arena it is not of that");
		p_free(p);
		p_free(q);
	} else {
		tap_skip("near a block of a program's arena", "no node 0");
	}
}

/* ---- threads ---- */

enum { N_THREADS = 4, N_PARKED = 64 };

static _Atomic(uint64_t *) parked[N_PARKED];
static atomic_ulong wrong;

/* Makes blocks of all kinds, leaves them to others, checks and frees others'.
 */
static void *
churn(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;

	(void)sched_setaffinity(0, sizeof all_cpus, &all_cpus);
	for (int i = 0; i < 30000; i++) {
		uint64_t r = tap_random(&rng);
		unsigned kind = (unsigned)(r % N_KINDS);
		size_t size =
		    16 + (r >> 8) % ((r >> 40) % 64 != 0 ? 500 : 100000);
		uint64_t *p = make(kind, size);

		p[0] = (uintptr_t)p ^ size;
		p[1] = kind;
		p = atomic_exchange(&parked[(r >> 50) % N_PARKED], p);
		if (p == NULL)
			continue;
		if ((p[0] ^ (uintptr_t)p) > 100016 || p[1] >= N_KINDS)
			atomic_fetch_add(&wrong, 1);
		p[0] = 0;
		p_free(p);
	}
	return NULL;
}

static void
test_threads(void)
{
	pthread_t t[N_THREADS];
	bool held = true;
	bool mixed = ctl_unsigned("eddy.homes") != 1;

	for (uintptr_t i = 0; i < N_THREADS; i++)
		if (pthread_create(&t[i], NULL, churn, (void *)i) != 0)
			tap_bail("pthread_create");
	for (int i = 0; i < N_THREADS; i++)
		(void)pthread_join(t[i], NULL);
	for (int i = 0; i < N_PARKED; i++) {
		uint64_t *p = atomic_load(&parked[i]);

		/* Those of another home are of another arena. */
		held &= p == NULL || mixed || is_kind(p, (unsigned)p[1]);
		p_free(p);
	}
	tap_ok(atomic_load(&wrong) == 0, "%d threads free what others made",
	    N_THREADS);
	tap_ok(held, "and kinds do not mix");
}

/* ---- memory ---- */

/* Long ones among short ones, many sizes: what stays in use of the short ones'
 * arena. */
static void
test_memory(void)
{
	enum { N = 20000 };
	static void *p[N];
	unsigned of_short = 0;
	unsigned of_long = 0;
	size_t pages = 0;

	for (int i = 0; i < N; i++) {
		size_t size = 16 + (size_t)i * 37 % 3000;

		p[i] = make(i % 16 == 0 ? LONG : SHORT, size);
		if (i == 0)
			of_long = arena_at(p[i]);
		if (i == 1)
			of_short = arena_at(p[i]);
	}
	for (int i = 0; i < N; i++)
		if (i % 16 != 0)
			p_free(p[i]);
	/* A background thread may have a batch in hand. */
	for (int tries = 0; tries < 1000; tries++) {
		(void)malloc_trim(0);
		ctl_epoch();
		pages = ctl_size("stats.arenas.%u.pactive", of_short);
		if (pages == 0)
			break;
		(void)usleep(10000);
	}
	tap_ok(pages == 0,
	    "once the short-lived are gone their arena has no page in use");
	tap_ok(ctl_size("stats.arenas.%u.small.allocated", of_short) == 0 &&
		   ctl_size("stats.arenas.%u.small.allocated", of_long) >=
		       N / 16 * 16,
	    "and statistics say so");
	if (pages != 0)
		tap_diag("%zu pages", pages);
	for (int i = 0; i < N; i += 16)
		p_free(p[i]);
}

/* ---- other processes ---- */

static int
none(void)
{
	unsigned before = ctl_unsigned("arenas.narenas");

	for (size_t i = 0; i < COUNT(sizes); i++) {
		void *p = p_malloc(sizes[i]);

		p_free(p_realloc(p, 2 * sizes[i] + 1));
		p_free(checked(h.near(sizes[i], p)));
	}
	(void)malloc_trim(0);
	ctl_epoch();
	if (ctl_unsigned("arenas.narenas") != before)
		return 1;
	p_free(make(SHORT, 10));
	if (ctl_unsigned("arenas.narenas") != before + 1)
		return 2;
	p_free(make(LONG, 10));
	return ctl_unsigned("arenas.narenas") == before + 2 ? 0 : 3;
}

/* Two nodes that are made up. */
static int
nodes(void)
{
	for (unsigned k = PLAIN; k <= LONG; k++)
		for (size_t i = 1; i < COUNT(sizes); i++) {
			char *p = make(k, sizes[i]);
			int at = h.node_of(p);
			char *near = checked(h.near(64, p));

			if (at < 0 || h.node_of(near) != at)
				return 1;
			p_free(p);
			p_free(near);
		}
	/* Homes' arenas are those of the first indices. */
	for (unsigned a = 0; a < 2; a++) {
		char *p =
		    x.mallocx(100, MALLOCX_ARENA(a) | MALLOCX_TCACHE_NONE);
		unsigned at = arena_at(checked(p));
		bool held = at == a;

		for (int i = 0; i < 1000; i++) {
			struct eddy_hint hint = {.near = p};
			char *q = i % 2 ? checked(h.near(100, p))
					: checked(h.hinted(100, &hint));

			held &= arena_at(q) == a;
			held &= h.node_of(q) == h.node_of(p);
			if (i % 3 != 0)
				p_free(q);
		}
		if (!held)
			return 2;
	}
	return all_apart(true);
}

/* A heap that was frozen before the first hint has no groups. */
static int
frozen(void)
{
	bool held;

	p_free(p_malloc(100));
	h.freeze();
	held = is_kind(make(SHORT, 100), PLAIN);
	held &= is_kind(make(LONG, 100), PLAIN);
	return held ? 0 : 1;
}

static int
hinted_child(void)
{
	pid_t pid;
	char why[64];
	void *p = make(LONG, 100);

	pid = fork();
	if (pid == 0) {
		bool held = is_kind(p, LONG);

		p_free(p);
		held &= apart(100, true) && apart(100000, true);
		_exit(held ? 0 : 1);
	}
	if (pid < 0 || !probe_wait(pid, why, sizeof why))
		return 1;
	return is_kind(p, LONG) ? 0 : 2;
}

static int
run(const char *arg)
{
	if (strcmp(arg, "apart") == 0)
		return all_apart(true) | !counted(true);
	if (strcmp(arg, "together") == 0)
		return all_apart(false) | !counted(false);
	if (strcmp(arg, "none") == 0)
		return none();
	if (strcmp(arg, "nodes") == 0)
		return nodes();
	if (strcmp(arg, "frozen") == 0)
		return frozen();
	if (strcmp(arg, "child") == 0)
		return hinted_child();
	return 99;
}

static void
test_surroundings(char **argv)
{
	static const struct {
		const char *conf;
		const char *arg;
		const char *what;
	} t[] = {
	    {"", "none", "without hints there are no arenas for them"},
	    {"hints:false", "together", "hints:false: nothing lies apart"},
	    {"rseq:false", "apart", "claim mode"},
	    {"tcache:false", "apart", "no caches"},
	    {"tcache_max:1024", "apart", "caches of small sizes alone"},
	    {"junk:true", "apart", "blocks are filled"},
	    {"check:true", "apart", "blocks are checked"},
	    {"zero:true", "apart", "blocks are zero"},
	    {"dirty_decay_ms:0", "apart", "what is free goes back at once"},
	    {"lg_range:30", "together", "a range without room for arenas"},
	    {"topology:2x1x1", "nodes", "two nodes"},
	    {"topology:2x1x1,rseq:false", "nodes", "two nodes, claim mode"},
	    {"topology:20x1x1", "apart", "20 nodes, which share groups"},
	    {"topology:80x1x1", "together", "as many homes as can be"},
	    {"", "frozen", "a frozen heap makes no groups"},
	    {"", "child", "a forked child has all of it"},
	};

	for (size_t i = 0; i < COUNT(t); i++) {
		(void)setenv("EDDY_CONF", t[i].conf, 1);
		tap_ok(probe_again(argv, t[i].arg, t[i].conf), "%s", t[i].what);
	}
	(void)unsetenv("EDDY_CONF");
}

int
main(int argc, char **argv)
{
	bool held = true;

	tap_begin(argv);
	if (!find_hints())
		tap_skip_all("no eddy_alloc_hinted here");
	stay();
	if (argc > 1)
		return run(argv[1]);
	tap_guard(240);
	test_sizes();
	for (size_t i = 0; i < COUNT(sizes); i++)
		held &= apart(sizes[i], true);
	tap_ok(held, "blocks lie apart by their lifetimes, whatever the size");
	test_realloc();
	test_hinted();
	test_errors();
	test_near();
	test_threads();
	test_memory();
	tap_ok(counted(true), "statistics know what there is of each lifetime");
	test_surroundings(argv);
	return tap_end();
}
