/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_pool.c - pools of objects of one type: slots that are made once, keep
 * what they hold, and go back by a shrink alone, after its grace.
 *
 * Argument "all": the same under the options that the caller has set; "full": a
 * pool that finds no memory.
 */
#include "allocx_api.h"
#include "pool_api.h"

#include <eddy/region.h>
#include <jemalloc/jemalloc.h>
#include <setjmp.h>

enum { N = 3000, N_THREADS = 4, ROUNDS = 20000 };

static void *v[N];

static int (*trim)(size_t);
static void *(*arena_malloc)(unsigned, size_t);
static int (*region_create)(
    const struct eddy_region_options *, struct eddy_region **);

static bool
filled_with(const void *p, unsigned char c, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		if (b[i] != c)
			return false;
	return true;
}

static void
take_all(struct eddy_pool *p)
{
	for (size_t i = 0; i < N; i++)
		if ((v[i] = pools.alloc(p)) == NULL)
			tap_bail("no object");
}

static void
free_all(struct eddy_pool *p)
{
	for (size_t i = 0; i < N; i++)
		pools.free(p, v[i]);
}

static size_t
pages_of(struct eddy_pool *p)
{
	uint64_t epoch = 1;

	if (x.ctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0)
		tap_bail("epoch");
	return ctl_size("stats.arenas.%u.pactive", pools.arena(p) - 1);
}

/* ---- rules ---- */

static int
create_with(size_t size, size_t object, size_t align)
{
	struct {
		struct eddy_pool_options o;
		size_t later;
	} o = {EDDY_POOL_OPTIONS, 0};
	struct eddy_pool *p = NULL;
	int err;

	o.o.size = size;
	o.o.object_size = object;
	o.o.align = align;
	err = pools.create(&o.o, &p);
	if (err == 0)
		pools.destroy(p);
	return err;
}

/* What hooks a pool's arena has from its options it keeps. */
static void
hooks_stay_out(struct eddy_pool *p)
{
	extent_hooks_t none = {0};
	extent_hooks_t *set = &none;
	extent_hooks_t *before = NULL;
	extent_hooks_t *after = NULL;
	size_t n = sizeof before;
	char name[64];
	int err;

	(void)snprintf(
	    name, sizeof name, "arena.%u.extent_hooks", pools.arena(p) - 1);
	err = x.ctl(name, &before, &n, NULL, 0);
	tap_ok(err == 0 && before != NULL && before != set &&
		   x.ctl(name, NULL, NULL, &set, sizeof set) == EFAULT &&
		   x.ctl(name, &after, &n, NULL, 0) == 0 && after == before,
	    "nor does it take hooks while it lives");
}

static void
rules(void)
{
	const size_t size = sizeof(struct eddy_pool_options);
	struct eddy_pool_options o = EDDY_POOL_OPTIONS;
	struct eddy_arena_options a = EDDY_ARENA_OPTIONS;
	struct eddy_pool *p = (struct eddy_pool *)&o;
	struct eddy_region_options region = EDDY_REGION_OPTIONS;
	struct eddy_region *r;

	tap_ok(create_with(size, 0, 0) == EINVAL &&
		   create_with(size, 14337, 0) == EINVAL &&
		   create_with(size, SIZE_MAX, 0) == EINVAL,
	    "no objects of no bytes, nor of more than 14 KiB");
	tap_ok(create_with(size, 1, 0) == 0 && create_with(size, 14336, 0) == 0,
	    "all between");
	tap_ok(create_with(size, 8, 3) == EINVAL &&
		   create_with(size, 8, 8192) == EINVAL &&
		   create_with(size, 14336, 4096) == EINVAL,
	    "alignments are powers of two, to a page");
	tap_ok(create_with(size - 1, 8, 0) == EINVAL, "options have a size");
	tap_ok(create_with(size + sizeof(size_t), 8, 0) == 0,
	    "what later versions know may be zero");
	a.flags = 1u << 31;
	o.object_size = 8;
	o.arena = &a;
	tap_ok(pools.create(&o, &p) == EINVAL && p == (struct eddy_pool *)&o,
	    "options of arenas are looked at; what fails changes nothing");
	pools.destroy(NULL);
	p = pool_of(64);
	pools.free(p, NULL);
	tap_ok(true, "NULL may be freed and destroyed");
	tap_ok(arena_malloc(pools.arena(p), 64) == NULL && errno == EINVAL,
	    "nothing else is allocated from a pool's arena");
	region.arena = pools.arena(p);
	tap_ok(region_create(&region, &r) == EINVAL,
	    "no region is of a pool's arena, which could not end then");
	tap_ok(ctl_do("arena.%u.reset", pools.arena(p) - 1) == EFAULT &&
		   ctl_do("arena.%u.destroy", pools.arena(p) - 1) == EFAULT,
	    "nor is it reset or destroyed");
	hooks_stay_out(p);
	pools.destroy(p);
}

static void
sizes(void)
{
	static const size_t each[] = {
	    1, 8, 24, 100, 512, 1000, 4096, 5000, 14336};
	bool distinct = true;
	bool aligned = true;

	for (size_t i = 0; i < COUNT(each); i++)
		for (size_t align = 1; align <= 4096; align *= 8) {
			struct eddy_pool_options o = EDDY_POOL_OPTIONS;
			struct eddy_pool *p;
			size_t n = 200;

			o.object_size = each[i];
			o.align = align;
			if (pools.create(&o, &p) != 0)
				continue;
			for (size_t k = 0; k < n; k++) {
				v[k] = pools.alloc(p);
				aligned &= (uintptr_t)v[k] % align == 0;
				memset(v[k], (int)k, each[i]);
			}
			for (size_t k = 0; k < n; k++)
				distinct &= filled_with(
				    v[k], (unsigned char)k, each[i]);
			for (size_t k = 0; k < n; k++)
				pools.free(p, v[k]);
			pools.destroy(p);
		}
	tap_ok(distinct, "objects of all sizes do not overlap");
	tap_ok(aligned, "and are aligned as asked for");
}

/* ---- statistics ---- */

static size_t
stat_of(const char *name)
{
	uint64_t epoch = 1;

	if (x.ctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0)
		tap_bail("epoch");
	return ctl_size("%s", name);
}

static void
stranded(void)
{
	size_t bound = stat_of("eddy.stranded_bound");
	size_t none = stat_of("eddy.stranded");
	struct eddy_pool *p = pool_of(1000);
	size_t live;
	size_t before;

	if (bound == 0) {
		tap_skip("objects in caches of pools", "there are no caches");
		pools.destroy(p);
		return;
	}
	for (size_t i = 0; i < 20; i++)
		v[i] = pools.alloc(p);
	pools.free(p, v[19]);
	before = stat_of("eddy.stranded");
	live = stat_of("eddy.live");
	for (size_t i = 0; i < 8; i++)
		pools.free(p, v[i]);
	tap_ok(stat_of("eddy.stranded") == before + 8192 &&
		   stat_of("eddy.live") == live - 8192,
	    "an object that is freed goes from live to stranded");
	tap_ok(ctl_size("stats.arenas.%u.small.allocated",
		   pools.arena(p) - 1) == 11264,
	    "its arena has what is out");
	bound = stat_of("eddy.stranded_bound");
	tap_ok(stat_of("eddy.stranded") <= bound,
	    "what is stranded is within its bound");
	pools.destroy(p);
	tap_ok(stat_of("eddy.stranded") == none &&
		   stat_of("eddy.stranded_bound") < bound,
	    "nothing is when the pool has ended");
}

/* ---- slots ---- */

static size_t made;

static void
make(void *arg, void *object)
{
	memset(object, *(const int *)arg, 96);
	made++;
}

static void
slots(void)
{
	struct eddy_pool_options o = EDDY_POOL_OPTIONS;
	static int letter = 'a';
	struct eddy_pool *p;
	bool good = true;
	size_t before;

	made = 0;
	o.object_size = 96;
	o.construct = make;
	o.arg = &letter;
	if (pools.create(&o, &p) != 0)
		tap_bail("no pool");
	take_all(p);
	for (size_t i = 0; i < N; i++)
		good &= filled_with(v[i], 'a', 96);
	tap_ok(good && made >= N, "each slot is made before it is used");
	letter = 'b';
	for (size_t i = 0; i < N; i++)
		memset(v[i], 'c', 96);
	before = made;
	free_all(p);
	(void)trim(0);
	for (size_t i = 0; i < N; i++)
		good &= filled_with(v[i], 'c', 96);
	tap_ok(good, "what is free keeps what it holds, trimmed or not");
	for (int k = 0; k < 10; k++) {
		take_all(p);
		for (size_t i = 0; i < N; i++)
			good &= ((char *)v[i])[95] != 'b';
		free_all(p);
	}
	tap_ok(good && made == before, "and no slot is made again");
	pools.destroy(p);
}

/* ---- shrink ---- */

static struct {
	struct eddy_pool *pool;
	unsigned calls;
	bool good;
	bool inner;
	size_t inner_bytes;
	jmp_buf *leave;
} g;

/* All of v, freed long ago, is to be as it was as long as this runs. */
static void
grace(void *arg)
{
	void *p[200];

	g.calls++;
	g.good &= arg == &g;
	if (g.inner) {
		g.inner = false;
		g.inner_bytes = pools.shrink(g.pool, grace, &g);
		return;
	}
	if (g.leave != NULL)
		longjmp(*g.leave, 1);
	for (size_t i = 0; i < COUNT(p); i++)
		p[i] = pools.alloc(g.pool);
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < COUNT(p); k++)
			g.good &= v[i] != p[k];
	for (size_t i = 0; i < N; i++)
		g.good &= filled_with(v[i], 'd', 96);
	for (size_t i = 0; i < COUNT(p); i++)
		pools.free(g.pool, p[i]);
}

static struct eddy_pool *
shrinkable(void)
{
	struct eddy_pool *p = pool_of(96);

	take_all(p);
	for (size_t i = 0; i < N; i++)
		memset(v[i], 'd', 96);
	free_all(p);
	memset(&g, 0, sizeof g);
	g.pool = p;
	g.good = true;
	return p;
}

static void
shrinks(void)
{
	struct eddy_pool *p = shrinkable();
	size_t before = pages_of(p);
	size_t bytes = pools.shrink(p, grace, &g);
	bool good = true;

	tap_ok(g.calls == 1, "grace is called once");
	tap_ok(g.good, "until it returns what was free is as it was, and is "
		       "not given out");
	tap_ok(bytes >= N * 96, "all slabs go back (%zu bytes)", bytes);
	tap_ok(before - pages_of(p) <= bytes / PAGE &&
		   before - pages_of(p) >= bytes / PAGE - 64,
	    "and are not in use any more");
	(void)pools.shrink(p, NULL, NULL);
	g.calls = 0;
	tap_ok(pools.shrink(p, grace, &g) == 0 && g.calls == 0,
	    "where nothing is free there is no grace");
	take_all(p);
	for (size_t i = 0; i < N; i++)
		memset(v[i], 'e', 96);
	for (size_t i = 0; i < N; i++)
		good &= filled_with(v[i], 'e', 96);
	tap_ok(good, "the pool goes on");
	for (size_t i = 0; i < N; i += 64)
		pools.free(p, v[i]);
	bytes = pools.shrink(p, NULL, NULL);
	for (size_t i = 0; i < N; i++)
		good &= i % 64 == 0 || filled_with(v[i], 'e', 96);
	tap_ok(good && bytes < 64 * PAGE, "slabs with objects stay (%zu bytes)",
	    bytes);
	pools.destroy(p);
}

static void
two_shrinks(void)
{
	struct eddy_pool *p = shrinkable();
	size_t outer;

	g.inner = true;
	outer = pools.shrink(p, grace, &g);
	tap_ok(g.calls == 2 && g.good && g.inner_bytes >= N * 96 && outer == 0,
	    "of two shrinks the later one gives back, after its own grace");
	pools.destroy(p);
}

static void
left_shrink(void)
{
	struct eddy_pool *p = shrinkable();
	jmp_buf leave;

	g.leave = &leave;
	if (setjmp(leave) == 0)
		(void)pools.shrink(p, grace, &g);
	g.leave = NULL;
	tap_ok(pools.shrink(p, grace, &g) >= N * 96 && g.calls == 2 && g.good,
	    "what a shrink that never ended has taken the next one gives back");
	g.leave = &leave;
	take_all(p);
	free_all(p);
	if (setjmp(leave) == 0)
		(void)pools.shrink(p, grace, &g);
	pools.destroy(p);
	p = pool_of(96);
	tap_ok(pages_of(p) == 0, "or the pool's end");
	pools.destroy(p);
}

/* ---- lives ---- */

static void
lives(void)
{
	size_t n = ctl_unsigned("arenas.narenas");
	struct eddy_pool *p[200];
	struct eddy_pool_options o = EDDY_POOL_OPTIONS;
	char name[32] = "";
	char *out = name;
	size_t len = sizeof out;
	char ctl[64];
	bool good = true;

	for (int i = 0; i < 300; i++) {
		p[0] = pool_of(i % 2 ? 64 : 1000);
		good &= pages_of(p[0]) == 0;
		take_all(p[0]);
		if (i % 3 == 0)
			free_all(p[0]);
		pools.destroy(p[0]);
	}
	tap_ok(good, "a pool begins without memory");
	tap_ok(ctl_unsigned("arenas.narenas") <= n + 60,
	    "arenas of pools that ended serve the next ones");
	for (size_t i = 0; i < COUNT(p); i++)
		p[i] = pool_of(8);
	for (size_t i = 0; i < N; i++)
		*(size_t *)(v[i] = pools.alloc(p[i % COUNT(p)])) = i;
	for (size_t i = 0; i < N; i++) {
		good &= *(size_t *)v[i] == i;
		pools.free(p[i % COUNT(p)], v[i]);
	}
	tap_ok(good, "200 pools at once");
	for (size_t i = 0; i < COUNT(p); i++)
		pools.destroy(p[i]);
	o.object_size = 8;
	o.name = "of nodes whose name is too long for it";
	if (pools.create(&o, &p[0]) != 0)
		tap_bail("no pool");
	(void)snprintf(ctl, sizeof ctl, "arena.%u.name", pools.arena(p[0]) - 1);
	tap_ok(x.ctl(ctl, &out, &len, NULL, 0) == 0 &&
		   strcmp(name, "pool of nodes whose name is too") == 0,
	    "its arena has its name (%s)", name);
	pools.destroy(p[0]);
}

/* ---- threads ---- */

static struct {
	struct eddy_pool *pool;
	_Atomic(void *) box[64];
	atomic_size_t wrong;
} t;

static void *
exchange(void *arg)
{
	uint64_t rng = tap.seed + (uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t *p = pools.alloc(t.pool);

		if (p == NULL) {
			t.wrong++;
			continue;
		}
		for (int k = 0; k < 8; k++)
			p[k] = (uintptr_t)p ^ (uintptr_t)k;
		p = atomic_exchange(&t.box[tap_random(&rng) % 64], p);
		for (int k = 0; p != NULL && k < 8; k++)
			t.wrong += p[k] != ((uintptr_t)p ^ (uintptr_t)k);
		if (i % 4096 == 0)
			(void)pools.shrink(t.pool, NULL, NULL);
		pools.free(t.pool, p);
	}
	return NULL;
}

static void
threads(void)
{
	pthread_t id[N_THREADS];

	memset(&t, 0, sizeof t);
	t.pool = pool_of(64);
	for (uintptr_t i = 0; i < N_THREADS; i++)
		if (pthread_create(&id[i], NULL, exchange, (void *)i) != 0)
			tap_bail("no thread");
	for (size_t i = 0; i < N_THREADS; i++)
		(void)pthread_join(id[i], NULL);
	for (size_t i = 0; i < COUNT(t.box); i++)
		pools.free(t.pool, t.box[i]);
	tap_ok(t.wrong == 0,
	    "threads hand objects to each other, and shrink the pool");
	take_all(t.pool);
	for (size_t i = 0; i < N; i++)
		*(size_t *)v[i] = i;
	for (size_t i = 0; i < N; i++)
		t.wrong += *(size_t *)v[i] != i;
	tap_ok(t.wrong == 0, "and no object is there twice after that");
	free_all(t.pool);
	pools.destroy(t.pool);
}

static struct eddy_pool *signalled;
static atomic_uint n_signals;

static void
on_signal(int sig)
{
	int kept = errno;
	char *p = pools.alloc(signalled);

	(void)sig;
	if (p != NULL)
		memset(p, 's', 40);
	pools.free(signalled, p);
	n_signals++;
	errno = kept;
}

static void *
send_signals(void *arg)
{
	for (int i = 0; i < 2000; i++)
		(void)pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

static void
signals(void)
{
	pthread_t me = pthread_self();
	pthread_t id;
	bool good = true;
	struct sigaction sa = {.sa_handler = on_signal};

	signalled = pool_of(40);
	(void)sigaction(SIGUSR1, &sa, NULL);
	if (pthread_create(&id, NULL, send_signals, &me) != 0)
		tap_bail("no thread");
	for (int i = 0; i < 300000; i++) {
		char *p = pools.alloc(signalled);

		*p = 'm';
		good &= *(volatile char *)p == 'm';
		pools.free(signalled, p);
	}
	(void)pthread_join(id, NULL);
	(void)signal(SIGUSR1, SIG_IGN);
	tap_ok(good && n_signals != 0, "signal handlers may use it, too");
	pools.destroy(signalled);
}

/* ---- fork ---- */

static void
forks(void)
{
	struct eddy_pool *p = pool_of(96);
	bool good = true;
	char why[64];
	pid_t pid;

	take_all(p);
	for (size_t i = 0; i < N; i++)
		memset(v[i], 'p', 96);
	for (size_t i = 0; i < N; i += 2)
		pools.free(p, v[i]);
	pid = fork();
	if (pid == 0) {
		probe_child_begin(60);
		for (size_t i = 1; i < N; i += 2) {
			if (!filled_with(v[i], 'p', 96))
				_exit(1);
			memset(v[i], 'c', 96);
			pools.free(p, v[i]);
		}
		if (pools.shrink(p, NULL, NULL) < N * 96)
			_exit(2);
		take_all(p);
		free_all(p);
		pools.destroy(p);
		p = pool_of(96);
		take_all(p);
		_exit(0);
	}
	if (!tap_ok(probe_wait(pid, why, sizeof why),
		"a child has a copy of the pool, and may end it"))
		tap_diag("%s", why);
	for (size_t i = 1; i < N; i += 2) {
		good &= filled_with(v[i], 'p', 96);
		pools.free(p, v[i]);
	}
	tap_ok(good, "its parent does not notice");
	pools.destroy(p);
}

static void
kinds(void)
{
	static const unsigned flags[] = {EDDY_ARENA_FILE, EDDY_ARENA_NOFORK,
	    EDDY_ARENA_THP, EDDY_ARENA_NODUMP | EDDY_ARENA_NOHUGE};
	bool good = true;
	char why[64];

	for (size_t i = 0; i < COUNT(flags); i++) {
		struct eddy_pool_options o = EDDY_POOL_OPTIONS;
		struct eddy_arena_options a = EDDY_ARENA_OPTIONS;
		struct eddy_pool *p;
		pid_t pid;

		a.flags = flags[i];
		a.file_size = flags[i] & EDDY_ARENA_FILE ? 8 * MIB : 0;
		o.object_size = 96;
		o.arena = &a;
		if (pools.create(&o, &p) != 0)
			tap_bail("no pool of flags %x", flags[i]);
		take_all(p);
		for (size_t k = 0; k < N; k++)
			memset(v[k], 'k', 96);
		for (size_t k = 0; k < N; k++)
			good &= filled_with(v[k], 'k', 96);
		free_all(p);
		pid = fork();
		if (pid == 0) {
			bool apart = (flags[i] & (EDDY_ARENA_FILE |
						     EDDY_ARENA_NOFORK)) != 0;
			void *q;

			probe_child_begin(60);
			errno = 0;
			q = pools.alloc(p);
			if (apart ? q != NULL || errno != ENOMEM : q == NULL)
				_exit(1);
			if (!apart)
				memset(q, 0, 96);
			(void)pools.shrink(p, NULL, NULL);
			pools.destroy(p);
			_exit(0);
		}
		if (!probe_wait(pid, why, sizeof why)) {
			tap_diag("flags %x: child: %s", flags[i], why);
			good = false;
		}
		(void)pools.shrink(p, NULL, NULL);
		take_all(p);
		free_all(p);
		pools.destroy(p);
	}
	tap_ok(good, "pools of files, huge pages, and what children have not");
}

/* ---- no memory ---- */

static int
full(void)
{
	struct eddy_pool *p;
	size_t n = 0;
	void **list = NULL;
	void **o;
	bool good;

	(void)pool_find_api();
	p = pool_of(4096);
	errno = 0;
	while ((o = pools.alloc(p)) != NULL) {
		*o = list;
		list = o;
		n++;
	}
	good = errno == ENOMEM && n > 1000;
	while (list != NULL) {
		o = list;
		list = *o;
		pools.free(p, o);
	}
	for (size_t i = 0; i < n; i++)
		if ((o = pools.alloc(p)) != NULL) {
			*o = list;
			list = o;
		} else {
			good = false;
		}
	while (list != NULL) {
		o = list;
		list = *o;
		pools.free(p, o);
	}
	pools.destroy(p);
	return good ? 0 : 1;
}

static void
all(void)
{
	/* Before other arenas have ended, whose memory children have. */
	kinds();
	rules();
	sizes();
	stranded();
	slots();
	shrinks();
	two_shrinks();
	left_shrink();
	lives();
	threads();
	signals();
	forks();
}

/* The same under other options. */
static void
again(char **argv, const char *conf, const char *arg, const char *what)
{
	(void)setenv("EDDY_CONF", conf, 1);
	tap_ok(probe_again(argv, arg, conf), "%s (%s)", what, conf);
	(void)unsetenv("EDDY_CONF");
}

int
main(int argc, char **argv)
{
	tap_begin(argv);
	tap_guard(argc > 1 ? 120 : 400);
	if (argc > 1 && strcmp(argv[1], "full") == 0)
		return full();
	*(void **)&trim = dlsym(RTLD_DEFAULT, "malloc_trim");
	*(void **)&region_create = dlsym(RTLD_DEFAULT, "eddy_region_create");
	*(void **)&arena_malloc = dlsym(RTLD_DEFAULT, "eddy_arena_malloc");
	if (!find_allocx() || !pool_find_api() || arena_malloc == NULL ||
	    region_create == NULL)
		tap_skip_all("this malloc has no pools");
	/* Points of a child are not those of its parent; by hand they are
	 * shown.
	 */
	if (argc > 1 && getenv("EDDY_TAP_CHILD") != NULL &&
	    freopen("/dev/null", "w", stdout) == NULL)
		tap_bail("/dev/null");
	all();
	if (argc > 1)
		return tap.failed;
	again(argv, "rseq:false", "all", "all of it without CPU caches");
	again(argv, "tcache:false", "all", "without any");
	again(argv, "dirty_decay_ms:0", "all", "with pages that go at once");
	again(argv, "cpu_cache_bytes:65536,slab_sizes:96-96:16", "all",
	    "with small caches and large slabs");
	again(argv, "heap_limit:67108864", "full",
	    "a pool without memory says so, and all of it is used again");
	return tap_end();
}
