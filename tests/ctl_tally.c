/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_tally.c - what is counted where memory changes hands is what a walk
 * finds, once all is at rest; and what a killed thread leaves wrong is mended.
 *
 *	ctl_tally child		under the options in EDDY_CONF: churns, checks
 */
#include "probe.h"

#include "jemalloc/jemalloc.h"

#include "lib/ctl/mend.h"
#include "lib/ctl/stats.h"
#include "lib/heap/arena.h"

enum { N_THREADS = 4, N_BLOCKS = 4096, N_SLOTS = 512 };

static int n_wrong;

static void
expect(uint64_t is, uint64_t should, const char *what, uint32_t arena,
    unsigned class)
{
	if (is == should)
		return;
	if (n_wrong++ < 10)
		tap_diag("arena %u, class %u, %s: counted %lld, walked %lld",
		    arena, class, what, (long long)is, (long long)should);
}

static uint64_t
count(_Atomic uint64_t *up, _Atomic uint64_t *down)
{
	return eddy_load_relaxed(up) - eddy_load_relaxed(down);
}

static void
check_arena(struct eddy_heap *h, struct eddy_arena *a)
{
	static struct eddy_stats_row rows[EDDY_N_ROWS];
	static uint64_t large[EDDY_N_LARGE];
	struct eddy_tally *t = &a->tally;
	uint64_t run_bytes;
	struct eddy_walk w;

	memset(rows, 0, sizeof rows);
	memset(large, 0, sizeof large);
	eddy_walk_begin(&w, h, a->number);
	w.rows = rows;
	w.large = large;
	eddy_walk(&w);
	run_bytes = w.run_bytes + w.huge_bytes - w.over_bytes;
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		struct eddy_tally_bin *b = &t->bin[row - 1];

		if (row > EDDY_N_SMALL) {
			run_bytes += rows[row].live * eddy_row_size(row);
			continue;
		}
		expect(count(&b->taken, &b->put), rows[row].live, "objects",
		    a->number, row);
		expect(count(&b->born, &b->retired), rows[row].slabs, "slabs",
		    a->number, row);
		expect((uint64_t)eddy_load_relaxed(&b->partial),
		    rows[row].hinted, "partial slabs", a->number, row);
	}
	for (unsigned i = 0; i < EDDY_N_LARGE; i++)
		expect(count(&t->large[i].taken, &t->large[i].put), large[i],
		    "large blocks", a->number, i);
	expect((uint64_t)eddy_load_relaxed(&t->run_bytes), run_bytes,
	    "bytes of runs", a->number, 0);
	expect((uint64_t)eddy_load_relaxed(&t->huge_bytes), w.over_bytes,
	    "bytes of huge blocks", a->number, 0);
	expect((uint64_t)eddy_load_relaxed(&t->huge_chunks), w.over_chunks,
	    "chunks of huge blocks", a->number, 0);
	expect((uint64_t)eddy_load_relaxed(&a->reclaim.active) * EDDY_PAGE,
	    w.active + w.over_chunks * EDDY_CHUNK - w.over_bytes,
	    "pages in use", a->number, 0);
}

static void
check_counts(struct eddy_heap *h)
{
	for (uint32_t i = 1; i <= eddy_stats_n_arenas(h); i++)
		if (eddy_arena_at(h, i) != NULL)
			check_arena(h, eddy_arena_at(h, i));
}

static uint64_t
read_name(const char *name)
{
	uint64_t v = 0;
	size_t n = sizeof v;

	if (mallctl(name, &v, &n, NULL, 0) != 0)
		tap_bail("no %s", name);
	return v;
}

static uint64_t
read_bin(const char *stem, unsigned j, const char *key)
{
	char name[96];

	(void)snprintf(name, sizeof name, "%s.4096.bins.%u.%s", stem, j, key);
	return read_name(name);
}

/* Of all arenas, each small class. */
static void
check_bins(const struct eddy_stats *st)
{
	static const char *const fill[] = {"slabs_0", "slabs_10", "slabs_20",
	    "slabs_30", "slabs_40", "slabs_50", "slabs_60", "slabs_70",
	    "slabs_80", "slabs_90", "slabs_full"};

	for (unsigned j = 0; j < EDDY_N_SMALL; j++) {
		const struct eddy_stats_row *r = &st->row[j + 1];
		uint64_t slabs = 0;

		expect(read_bin("stats.arenas", j, "curregs"),
		    r->live + r->cached, "curregs", 0, j);
		expect(read_bin("stats.arenas", j, "curslabs"), r->slabs,
		    "curslabs", 0, j);
		/* Such as are looked at for objects; a killed thread may leave
		 * a full one among them. */
		expect(read_bin("stats.arenas", j, "nonfull_slabs"), r->hinted,
		    "nonfull_slabs", 0, j);
		for (size_t k = 0; k < COUNT(fill); k++)
			slabs += read_bin("eddy.arenas", j, fill[k]);
		expect(slabs, r->slabs, "slabs by occupancy", 0, j);
		expect(read_bin("eddy.arenas", j, "slabs_full"),
		    r->slabs - r->partial, "full slabs", 0, j);
	}
}

/* The names against the walk of all. */
static void
check_names(struct eddy_heap *h)
{
	static struct eddy_stats st;
	uint64_t epoch = 1;

	if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0)
		tap_bail("epoch");
	eddy_stats_read(h, &st);
	expect(read_name("stats.allocated"), st.live, "stats.allocated", 0, 0);
	expect(read_name("stats.active"), st.active, "stats.active", 0, 0);
	/* Pages that killed threads lost count as dirty, if they were. */
	if (st.in_hand == 0)
		expect(read_name("eddy.dirty"), st.dirty, "eddy.dirty", 0, 0);
	expect(read_name("eddy.muzzy"), st.muzzy, "eddy.muzzy", 0, 0);
	expect(read_name("eddy.in_hand"), st.in_hand, "eddy.in_hand", 0, 0);
	expect(read_name("eddy.stranded"), st.stranded, "eddy.stranded", 0, 0);
	expect(read_name("stats.arenas.4096.tcache_bytes"), st.stranded,
	    "tcache_bytes", 0, 0);
	expect(read_name("stats.arenas.4096.small.allocated") +
		   read_name("stats.arenas.4096.large.allocated"),
	    st.live, "small and large", 0, 0);
	check_bins(&st);
	if (read_name("stats.retained") >
	    st.clean + st.clean / 8 + st.in_hand + MIB)
		expect(read_name("stats.retained"), st.clean, "retained", 0, 0);
}

static bool
agree(const char *when)
{
	struct eddy_heap *h = eddy_heap();
	bool ok;

	n_wrong = 0;
	check_counts(h);
	check_names(h);
	ok = n_wrong == 0;
	return tap_ok(ok, "counts agree with a walk: %s", when);
}

/* ------------------------------------------------------------------ */

static void *blocks[N_BLOCKS];

static size_t
some_size(uint64_t *seed)
{
	uint64_t r = tap_random(seed);

	return (r >> 8) & (((uint64_t)1 << (r >> 40) % 24) - 1);
}

static void
fill_and_drop(void)
{
	uint64_t seed = tap.seed;

	for (unsigned i = 0; i < N_BLOCKS; i++)
		blocks[i] = p_malloc(some_size(&seed));
	for (unsigned i = 0; i < N_BLOCKS; i += 2) {
		p_free(blocks[i]);
		blocks[i] = NULL;
	}
}

static void
drop_all(void)
{
	for (unsigned i = 0; i < N_BLOCKS; i++) {
		p_free(blocks[i]);
		blocks[i] = NULL;
	}
}

static void
test_alone(void)
{
	fill_and_drop();
	agree("blocks of all sizes, every other one freed");
	for (unsigned i = 1; i < N_BLOCKS; i += 2)
		blocks[i] = p_realloc(blocks[i], i * 700);
	agree("resized");
	drop_all();
	agree("all freed");
	(void)malloc_trim(0);
	agree("and given back");
}

static void
test_large(void)
{
	void *p = p_malloc(5 * MIB + 1);
	void *q = p_malloc(100 * KIB);
	void *giant = p_malloc((size_t)2500 * MIB);
	void *r = NULL;

	if (posix_memalign(&r, 4 * MIB, 100) != 0)
		tap_bail("no aligned block");
	agree("huge blocks, a giant, an aligned one");
	for (size_t n = 5 * MIB; n < 9 * MIB; n += 300 * KIB)
		p = p_realloc(p, n);
	for (size_t n = 100 * KIB; n < 900 * KIB; n += 20 * KIB)
		q = p_realloc(q, n);
	agree("grown in place");
	for (size_t n = 9 * MIB; n > 3 * MIB; n -= 300 * KIB)
		p = p_realloc(p, n);
	q = p_realloc(q, 20 * KIB);
	agree("shrunk in place");
	p_free(p);
	p_free(q);
	p_free(r);
	p_free(giant);
	agree("freed");
}

/* ------------------------------------------------------------------ */

static _Atomic(void *) slots[N_SLOTS];

static void *
churn(void *arg)
{
	uint64_t seed = tap.seed + (uintptr_t)arg;

	for (int i = 0; i < 200000; i++) {
		uint64_t r = tap_random(&seed);
		size_t size = r % 64 == 0 ? some_size(&seed) : r >> 20 & 1023;

		p_free(atomic_exchange(
		    &slots[r >> 40 & (N_SLOTS - 1)], p_malloc(size)));
	}
	return NULL;
}

static void
run_threads(void)
{
	pthread_t t[N_THREADS];

	for (uintptr_t i = 0; i < N_THREADS; i++)
		if (pthread_create(&t[i], NULL, churn, (void *)i) != 0)
			tap_bail("pthread_create");
	for (unsigned i = 0; i < N_THREADS; i++)
		(void)pthread_join(t[i], NULL);
}

static void
test_threads(void)
{
	run_threads();
	agree("threads that free what others allocated have ended");
	for (unsigned i = 0; i < N_SLOTS; i++)
		p_free(atomic_exchange(&slots[i], NULL));
	agree("and all is freed");
}

static void
test_fork(void)
{
	int status = 0;
	pid_t pid;

	fill_and_drop();
	pid = fork();
	if (pid < 0)
		tap_bail("fork");
	if (pid == 0) {
		struct eddy_heap *h = eddy_heap();

		check_counts(h);
		check_names(h);
		drop_all();
		run_threads();
		check_counts(h);
		_exit(n_wrong == 0 ? 0 : 1);
	}
	(void)waitpid(pid, &status, 0);
	tap_ok(status == 0, "counts agree in a forked child");
	drop_all();
	agree("in its parent");
}

/* ------------------------------------------------------------------ */

static unsigned
create(void)
{
	unsigned i;
	size_t n = sizeof i;

	if (mallctl("arenas.create", &i, &n, NULL, 0) != 0)
		tap_bail("arenas.create");
	return i;
}

static void
fill_arena(unsigned arena)
{
	int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
	uint64_t seed = tap.seed;

	for (unsigned i = 0; i < 3000; i++) {
		size_t size = some_size(&seed) + 1;
		void *p = mallocx(size, flags);

		if (p == NULL)
			tap_bail("no memory");
		if (i % 3 == 0)
			dallocx(p, MALLOCX_TCACHE_NONE);
	}
}

static void
end_arena(unsigned arena, const char *how)
{
	char name[64];

	(void)snprintf(name, sizeof name, "arena.%u.%s", arena, how);
	if (mallctl(name, NULL, NULL, NULL, 0) != 0)
		tap_bail("%s", name);
}

static void
test_arenas(void)
{
	unsigned a = create();
	unsigned tc;
	size_t n = sizeof tc;
	char name[64];
	uint64_t taken;

	fill_arena(a);
	agree("an arena of the program's");
	if (mallctl("tcache.create", &tc, &n, NULL, 0) != 0)
		tap_bail("tcache.create");
	for (unsigned i = 0; i < 200; i++)
		dallocx(
		    mallocx(i * 50 + 1, MALLOCX_ARENA(a) | MALLOCX_TCACHE(tc)),
		    MALLOCX_TCACHE(tc));
	agree("with a cache of its own");
	end_arena(a, "reset");
	agree("reset");
	fill_arena(a);
	agree("filled again");
	(void)snprintf(name, sizeof name, "stats.arenas.%u.small.nmalloc", a);
	taken = read_name(name);
	end_arena(a, "destroy");
	agree("destroyed");
	tap_ok(taken != 0 &&
		   read_name("stats.arenas.4097.small.nmalloc") == taken &&
		   read_name("stats.arenas.4097.small.ndalloc") == taken,
	    "what it counted is among what was destroyed");
	if (create() != a)
		tap_bail("another number");
	agree("begun again");
	(void)read_name("stats.allocated");
	tap_ok(read_name(name) == 0, "with counts of its own");
	end_arena(a, "destroy");
}

/* ------------------------------------------------------------------ */
/* Memory that functions of the program give */

static void *
give(extent_hooks_t *hooks, void *new_addr, size_t size, size_t alignment,
    bool *zero, bool *commit, unsigned arena)
{
	char *p;
	size_t skip;

	(void)hooks;
	(void)arena;
	if (new_addr != NULL)
		return NULL;
	p = mmap(NULL, size + alignment, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	skip = -(uintptr_t)p & (alignment - 1);
	*zero = true;
	*commit = true;
	return p + skip;
}

/* What it gave is its own, and stays there. */
static bool
keep(
    extent_hooks_t *hooks, void *p, size_t size, bool committed, unsigned arena)
{
	(void)hooks;
	(void)p;
	(void)size;
	(void)committed;
	(void)arena;
	return true;
}

static void
test_hooks(void)
{
	static extent_hooks_t hooks = {.alloc = give, .dalloc = keep};
	extent_hooks_t *h = &hooks;
	unsigned a;
	unsigned tc;
	size_t n = sizeof a;
	void *big;

	if (mallctl("arenas.create", &a, &n, &h, sizeof h) != 0)
		tap_bail("arenas.create");
	fill_arena(a);
	agree("an arena whose memory the program gives");
	big = mallocx(20 * MIB + 1, MALLOCX_ARENA(a) | MALLOCX_TCACHE_NONE);
	(void)xallocx(big, 30 * MIB, 0, 0);
	(void)xallocx(big, 5 * MIB, 0, 0);
	big = rallocx(big, 50 * MIB, MALLOCX_ARENA(a) | MALLOCX_TCACHE_NONE);
	agree("with blocks resized");
	dallocx(big, MALLOCX_TCACHE_NONE);
	n = sizeof tc;
	if (mallctl("tcache.create", &tc, &n, NULL, 0) != 0)
		tap_bail("tcache.create");
	for (unsigned i = 0; i < 200; i++)
		dallocx(
		    mallocx(i * 50 + 1, MALLOCX_ARENA(a) | MALLOCX_TCACHE(tc)),
		    MALLOCX_TCACHE(tc));
	agree("and a cache");
	end_arena(a, "destroy");
	agree("destroyed");
}

/* ------------------------------------------------------------------ */

/* As if threads had been killed between the bits and their counts. */
static void
test_mend(void)
{
	struct eddy_arena *a;
	struct eddy_tally *t;

	fill_and_drop();
	a = eddy_arena_of(eddy_heap(), blocks[1]);
	t = &a->tally;
	tap_ok(!eddy_mend(eddy_heap()), "a look finds nothing wrong");
	eddy_tally_take(t, 5, 64);
	eddy_tally_put(t, 9, 7);
	eddy_tally_born(t, 9);
	eddy_tally_partial(t, 12, -1);
	eddy_tally_large_put(t, 3 * MIB);
	eddy_tally_large_take(t, 100000);
	tap_ok(eddy_mend(eddy_heap()), "one that finds something wrong wants "
				       "another");
	n_wrong = 0;
	check_arena(eddy_heap(), a);
	tap_ok(n_wrong >= 7, "the first one leaves all as it is");
	tap_ok(!eddy_mend(eddy_heap()), "the second is content");
	agree("what was wrong is mended");
	eddy_tally_take(t, 5, 64);
	tap_ok(eddy_mend(eddy_heap()), "a count that is behind is seen");
	eddy_tally_put(t, 5, 64);
	tap_ok(!eddy_mend(eddy_heap()), "and left alone once it has come");
	agree("as it was");
	drop_all();
}

/* Threads that are ended at some instruction of malloc or free. */
static atomic_int ready;
static struct flag stop; /* never set */

static void
end_thread(int sig)
{
	(void)sig;
	(void)syscall(SYS_exit, 0);
}

static void *
until_killed(void *arg)
{
	uint64_t seed = tap.seed + (uintptr_t)arg;
	void *mine[300];

	while (!flag_is_set(&stop)) {
		size_t size = tap_random(&seed) % 40 == 0
				  ? tap_random(&seed) % (5 * MIB)
				  : tap_random(&seed) % 2000;

		for (unsigned i = 0; i < COUNT(mine); i++)
			mine[i] = p_malloc(size > MIB && i > 3 ? 50000 : size);
		for (unsigned i = 0; i < COUNT(mine); i++)
			p_free(mine[i]);
		atomic_store(&ready, 1);
	}
	return NULL;
}

static void
test_killed(void)
{
	struct sigaction act = {.sa_handler = end_thread};
	uint64_t seed = tap.seed;
	int wrong;

	(void)sigaction(SIGUSR1, &act, NULL);
	for (uintptr_t i = 0; i < 200; i++) {
		pthread_t t;

		atomic_store(&ready, 0);
		if (pthread_create(&t, NULL, until_killed, (void *)i) != 0)
			tap_bail("pthread_create");
		while (!atomic_load(&ready))
			(void)usleep(100);
		(void)usleep((unsigned)(tap_random(&seed) % 500));
		(void)pthread_kill(t, SIGUSR1);
		(void)pthread_join(t, NULL);
	}
	n_wrong = 0;
	check_counts(eddy_heap());
	wrong = n_wrong;
	/* It takes two looks that agree. */
	for (unsigned i = 0; i < 20 && eddy_mend(eddy_heap()); i++)
		(void)usleep(1000);
	tap_diag("%d counts were off after 200 deaths", wrong);
	agree("once mended, after threads were killed");
}

static void
run_child(char **argv, const char *conf)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		tap_bail("fork");
	if (pid == 0) {
		char *args[] = {argv[0], (char *)"child", NULL};

		(void)setenv("EDDY_CONF", conf, 1);
		(void)execv("/proc/self/exe", args);
		_exit(126);
	}
	(void)waitpid(pid, &status, 0);
	tap_ok(status == 0, "counts agree with %s", conf);
}

static int
child(void)
{
	struct eddy_heap *h;

	fill_and_drop();
	run_threads();
	h = eddy_heap();
	check_counts(h);
	check_names(h);
	drop_all();
	check_counts(h);
	check_names(h);
	return n_wrong == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "child") == 0)
		return child();
	/* The library is in this program. */
	(void)unsetenv("EDDY_SO");
	tap_begin(argv);
	tap_guard(240);
	test_alone();
	test_large();
	test_threads();
	test_fork();
	test_arenas();
	test_hooks();
	test_mend();
	test_killed();
	run_child(argv, "background_thread_auto:false");
	run_child(argv, "rseq:false");
	run_child(argv, "tcache:false");
	run_child(argv, "junk:true");
	run_child(argv, "dirty_decay_ms:0");
	run_child(argv, "dirty_decay_ms:0,muzzy_decay_ms:1000");
	run_child(argv, "topology:2x1x1");
	return tap_end();
}
