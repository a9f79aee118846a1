/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_idle.c - caches that nobody uses are emptied: rows of CPUs, return
 * rings, cells.  The clock is the test's; each CPU is a node.
 */
#include "heap_inside.h"

#include "eddy/pool.h"
#include "lib/heap/pool.h"
#include "lib/heap/reset.h"
#include "lib/heap/returns.h"

enum { N_CPUS = 2, MANY = 4096, IDLE_MS = 10000, ROW = 7 };

static struct eddy_heap *h;
static void *objects[MANY];
static int cpus[N_CPUS];
static atomic_ulong barriers[EDDY_MAX_CPUS];
static atomic_bool no_barriers;

/* Once: what another thread does while an opener, or a looker, stands there. */
static void (*at_watch)(void);
static void (*after_watch)(void);
static void (*after_rows)(void);

int __real_eddy_os_membarrier(unsigned cpu);
int __wrap_eddy_os_membarrier(unsigned cpu);
void __real_eddy_gather_watch(struct eddy_heap *heap);
void __wrap_eddy_gather_watch(struct eddy_heap *heap);
unsigned __real_eddy_returns_count(struct eddy_heap *heap, uint32_t place);
unsigned __wrap_eddy_returns_count(struct eddy_heap *heap, uint32_t place);

int
__wrap_eddy_os_membarrier(unsigned cpu)
{
	atomic_fetch_add(&barriers[cpu], 1);
	return atomic_load(&no_barriers) ? -EPERM
					 : __real_eddy_os_membarrier(cpu);
}

void
__wrap_eddy_gather_watch(struct eddy_heap *heap)
{
	kernel_interrupt(&at_watch);
	__real_eddy_gather_watch(heap);
	kernel_interrupt(&after_watch);
}

unsigned
__wrap_eddy_returns_count(struct eddy_heap *heap, uint32_t place)
{
	kernel_interrupt(&after_rows);
	return __real_eddy_returns_count(heap, place);
}

/* Once: what another thread does while objects of a pool are on their way. */
static void (*at_put)(void);

unsigned __real_eddy_arena_put(
    struct eddy_heap *heap, void *const *list, unsigned n);
unsigned __wrap_eddy_arena_put(
    struct eddy_heap *heap, void *const *list, unsigned n);

unsigned
__wrap_eddy_arena_put(struct eddy_heap *heap, void *const *list, unsigned n)
{
	kernel_interrupt(&at_put);
	return __real_eddy_arena_put(heap, list, n);
}

/* ------------------------------------------------------------------ */

static void
go_to(unsigned k)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpus[k], &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		tap_bail("sched_setaffinity");
}

static cpu_set_t allowed;

static void
go_anywhere(void)
{
	if (sched_setaffinity(0, sizeof allowed, &allowed) != 0)
		tap_bail("sched_setaffinity");
}

static bool
find_cpus(void)
{
	unsigned n = 0;

	if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		return false;
	for (int i = 0; i < CPU_SETSIZE && n < N_CPUS; i++)
		if (CPU_ISSET((size_t)i, &allowed) &&
		    (n == 0 || (i - cpus[0]) % 2 != 0))
			cpus[n++] = i;
	return n == N_CPUS;
}

static unsigned
in_row(unsigned k, uint32_t place)
{
	struct eddy_row *r = eddy_cache_row(h, (unsigned)cpus[k], place);
	uint32_t beg = eddy_cache_row_begin(h, (unsigned)cpus[k], place);
	uint32_t cur = atomic_load(&r->cur);

	return cur > beg ? (cur - beg) / 8 : 0;
}

/* Objects in all rows of a CPU. */
static unsigned
cached(unsigned k)
{
	unsigned n = 0;

	if (!eddy_cache_slot_used(h, (unsigned)cpus[k]))
		return 0;
	for (uint32_t home = 0; home < h->n_homes; home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			n += in_row(k, eddy_place(home, row));
	return n;
}

static unsigned
in_rings(void)
{
	unsigned n = 0;

	for (uint32_t home = 0; home < h->n_homes; home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			n +=
			    __real_eddy_returns_count(h, eddy_place(home, row));
	return n;
}

static unsigned
in_cells(void)
{
	unsigned n = 0;

	if (!atomic_load(&h->cells_ready))
		return 0;
	for (unsigned s = 0; s < eddy_cache_n_cells(h); s++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			for (unsigned i = 0; i < EDDY_N_CELLS; i++)
				n += atomic_load(&eddy_cache_cells(h, s)
						      ->row[row]
						      .cell[i]) != NULL;
	return n;
}

static void
take(unsigned row, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		objects[i] = p_malloc(eddy_row_size(row));
		if (objects[i] == NULL)
			tap_bail("no memory");
	}
}

static void
drop(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p_free(objects[i]);
}

/* As a CPU at work, whose rows are never as they were. */
static void
work(void)
{
	take(ROW, 100);
	drop(99);
}

static uint64_t
now(void)
{
	return atomic_load(&kernel.now);
}

static uint64_t
look(void)
{
	return eddy_gather_idle(h, now());
}

static void
pass(uint64_t ms)
{
	atomic_fetch_add(&kernel.now, ms);
}

/* Looks when it is told to, for so long; returns how often. */
static unsigned
looks_for(uint64_t ms)
{
	uint64_t end = now() + ms;
	unsigned n = 0;

	while (now() < end) {
		uint64_t due = look();

		n++;
		if (due == EDDY_NEVER || due > end - now())
			break;
		pass(due);
	}
	atomic_store(&kernel.now, end);
	return n;
}

/* Nothing is cached, nobody looks. */
static void
begin(void)
{
	eddy_gather_all(h);
	pass(1000000);
	(void)looks_for(100 * IDLE_MS);
	for (unsigned k = 0; k < N_CPUS; k++)
		if (cached(k) != 0)
			tap_bail("%u objects are cached", cached(k));
	if (look() != EDDY_NEVER)
		tap_bail("looks at nothing");
	memset(barriers, 0, sizeof barriers);
}

/* Whether somebody will look, and then empty it all. */
static bool
is_seen(void)
{
	unsigned n = cached(0) + cached(1) + in_rings() + in_cells();
	uint64_t due = look();

	(void)looks_for(100 * IDLE_MS);
	if (n != 0 && due != EDDY_NEVER &&
	    cached(0) + cached(1) + in_rings() + in_cells() == 0)
		return true;
	tap_diag("%u objects cached, next look in %lld ms, %u left", n,
	    (long long)due, cached(0) + cached(1) + in_rings() + in_cells());
	return false;
}

/* ------------------------------------------------------------------ */

static void
test_idle(void)
{
	unsigned before;
	bool kept = true;
	unsigned n = 0;

	begin();
	go_to(0);
	take(ROW, 200);
	drop(200);
	go_to(1);
	before = cached(0);
	(void)look();
	for (unsigned i = 1; i <= 5; i++) {
		work();
		kept &= cached(0) == before;
		pass(IDLE_MS / 5 - 1);
		/* Others may call for a look at any time. */
		atomic_store(&h->look_at, 0);
		if (i < 5)
			(void)look();
	}
	tap_ok(before != 0 && kept, "a cache is left alone for its time");
	pass(5);
	(void)look();
	tap_ok(cached(0) == 0, "then it is emptied");
	tap_ok(atomic_load(&barriers[cpus[1]]) == 0 && cached(1) != 0,
	    "a CPU at work is not interrupted");
	for (unsigned i = 0; i < 100; i++) {
		uint64_t due = look();

		if (due == EDDY_NEVER)
			break;
		n++;
		pass(due);
	}
	tap_ok(cached(1) == 0 && n <= 4, "it is when it is idle, too");
	pass(1000000);
	tap_ok(look() == EDDY_NEVER, "then nobody looks any more");
	go_to(0);
	take(ROW, 10);
	drop(10);
	tap_ok(is_seen(), "until it is used again");
}

static void
test_rare(void)
{
	uint64_t due[6];
	uint64_t most = 0;
	bool doubled = true;

	begin();
	go_to(0);
	for (unsigned i = 0; i < COUNT(due); i++) {
		work();
		due[i] = look();
		pass(due[i]);
		most = due[i] > most ? due[i] : most;
		if (i != 0)
			doubled &=
			    due[i] == due[i - 1] * 2 || due[i] == 8 * IDLE_MS;
	}
	tap_ok(due[0] == IDLE_MS && doubled && most == 8 * IDLE_MS,
	    "while all are at work looks become rarer, up to 8 times");
	(void)looks_for(18 * IDLE_MS);
	tap_ok(cached(0) == 0, "what then stops is found all the same");
}

/* A look while its CPU's rows are open and hold nothing. */
static void
test_open(void)
{
	begin();
	go_to(0);
	take(ROW, 300);
	while (in_row(0, eddy_place(eddy_cache_home(h), ROW)) != 0)
		objects[300] = p_malloc(eddy_row_size(ROW));
	(void)looks_for(100 * IDLE_MS);
	drop(300);
	tap_ok(is_seen(), "a row that was open and empty at the last look");

	begin();
	take(ROW, 300);
	eddy_cache_flush(h);
	(void)look();
	drop(300);
	tap_ok(is_seen(), "or at the one before");
}

static void
look_now(void)
{
	(void)look();
}

static void
use_row(void)
{
	take(ROW, 10);
	drop(10);
}

/* Rows that are opened while somebody looks. */
static void
test_race(void)
{
	go_to(0);
	begin();
	at_watch = look_now;
	use_row();
	tap_ok(at_watch == NULL && is_seen(), "a look before an opener's word");
	begin();
	after_watch = look_now;
	use_row();
	tap_ok(after_watch == NULL && is_seen(), "and after it");

	/* The look of a heap that has been watched. */
	begin();
	take(ROW + 1, 10);
	drop(10);
	(void)look();
	eddy_gather_all(h);
	pass(IDLE_MS);
	at_watch = look_now;
	use_row();
	tap_ok(at_watch == NULL && is_seen(),
	    "a look that finds nothing, before the word");
	begin();
	take(ROW + 1, 10);
	drop(10);
	(void)look();
	eddy_gather_all(h);
	pass(IDLE_MS);
	after_watch = look_now;
	use_row();
	tap_ok(after_watch == NULL && is_seen(), "and after it");

	begin();
	take(ROW + 1, 10);
	drop(10);
	(void)look();
	eddy_gather_all(h);
	pass(IDLE_MS);
	after_rows = use_row;
	(void)look();
	tap_ok(after_rows == NULL && is_seen(),
	    "a row that is opened behind a looker's back");
}

static void
test_wakes(void)
{
	unsigned long wakes;

	go_to(0);
	begin();
	wakes = atomic_load(&kernel.wakes);
	use_row();
	tap_ok(atomic_load(&kernel.wakes) == wakes + 1 &&
		   atomic_load(&h->due) == 0,
	    "the first row that is opened calls for a look");
	(void)look();
	take(ROW + 3, 10);
	drop(10);
	tap_ok(atomic_load(&kernel.wakes) == wakes + 1,
	    "those that are opened while somebody looks do not");
	begin();
	use_row();
	wakes = atomic_load(&kernel.wakes);
	take(ROW + 3, 10);
	drop(10);
	tap_ok(atomic_load(&kernel.wakes) == wakes + 1,
	    "before the look all call, lest the first was killed");
}

static void
test_rings(void)
{
	begin();
	go_to(0);
	take(ROW, 1000);
	go_to(1);
	drop(1000);
	tap_ok(in_rings() != 0 && cached(1) != 0 && is_seen(),
	    "batches in rings go to their slabs");
}

/* ------------------------------------------------------------------ */
/* Pools */

static struct eddy_pool *pool;

static struct eddy_pool *
new_pool(size_t size)
{
	struct eddy_pool_options o = EDDY_POOL_OPTIONS;
	struct eddy_pool *p;

	o.object_size = size;
	if (eddy_pool_create(&o, &p) != 0)
		tap_bail("no pool");
	return p;
}

static void
pool_take(struct eddy_pool *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		objects[i] = eddy_pool_alloc(p);
		if (objects[i] == NULL)
			tap_bail("no object");
	}
}

static void
pool_drop(struct eddy_pool *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		eddy_pool_free(p, objects[i]);
}

static void
add(void *arg, const struct eddy_pool_cached *c)
{
	*(uint64_t *)arg += c->n;
}

/* Objects in caches of all pools. */
static uint64_t
in_pools(enum eddy_pool_part part, size_t i)
{
	uint64_t n = 0;

	eddy_pools_tell(h, part, i, add, &n);
	return n;
}

static uint64_t
in_pool_rows(unsigned k)
{
	return in_pools(EDDY_POOL_ROWS, (size_t)cpus[k]);
}

static uint64_t
in_pool_cells(void)
{
	uint64_t n = 0;

	for (size_t set = 0; set < h->n_cell_sets; set++)
		n += in_pools(EDDY_POOL_CELLS, set);
	return n;
}

static void
test_pools(void)
{
	struct eddy_pool *other = new_pool(2000);
	uint64_t before;
	bool kept = true;

	pool = new_pool(100);
	begin();
	go_to(0);
	pool_take(pool, 200);
	pool_drop(pool, 200);
	pool_take(other, 10);
	pool_drop(other, 10);
	before = in_pool_rows(0);
	go_to(1);
	(void)look();
	for (unsigned i = 1; i <= 5; i++) {
		pool_take(pool, 100);
		pool_drop(pool, 99);
		kept &= in_pool_rows(0) == before;
		pass(IDLE_MS / 5 - 1);
		atomic_store(&h->look_at, 0);
		if (i < 5)
			(void)look();
	}
	tap_ok(before != 0 && kept, "a pool's row is left alone for its time");
	pass(5);
	(void)look();
	tap_ok(in_pool_rows(0) == 0 && in_pool_rows(1) != 0 &&
		   atomic_load(&barriers[cpus[0]]) == 2 &&
		   atomic_load(&barriers[cpus[1]]) == 0,
	    "then rows of all pools are emptied, by one pair of barriers");
	(void)looks_for(100 * IDLE_MS);
	tap_ok(in_pool_rows(1) == 0 && look() == EDDY_NEVER,
	    "until there are none, and nobody looks any more");
	go_to(0);
	pool_take(pool, 10);
	pool_drop(pool, 10);
	tap_ok(in_pool_rows(0) != 0 && look() != EDDY_NEVER,
	    "but when a row is opened again");
	pool_take(pool, MANY);
	go_to(1);
	pool_drop(pool, MANY);
	before = in_pools(EDDY_POOL_RINGS, 0);
	(void)looks_for(100 * IDLE_MS);
	tap_ok(before != 0 && in_pools(EDDY_POOL_RINGS, 0) == 0 &&
		   in_pool_rows(0) + in_pool_rows(1) == 0,
	    "batches in a pool's ring go to their slabs");
	eddy_pool_destroy(pool);
	eddy_pool_destroy(other);
}

static void
destroy_pool(void)
{
	eddy_pool_destroy(pool);
	pool = NULL;
}

/* A pool that ends while objects of it are in a look's hand. */
static void
test_pool_ends(void)
{
	struct eddy_arena *a;
	bool held;

	begin();
	pool = new_pool(100);
	a = eddy_arena_at(h, eddy_pool_arena(pool));
	go_to(0);
	pool_take(pool, 200);
	pool_drop(pool, 200);
	go_to(1);
	at_put = destroy_pool;
	(void)looks_for(100 * IDLE_MS);
	held = at_put == NULL && pool == NULL;
	tap_ok(held && eddy_arena_phase(a) == EDDY_ARENA_ENDED &&
		   atomic_load(&a->reclaim.active) == 0 && look() == EDDY_NEVER,
	    "a pool that ends meanwhile is ended by who looks");
	pool = new_pool(100);
	pool_take(pool, MANY);
	pool_drop(pool, MANY);
	(void)looks_for(100 * IDLE_MS);
	tap_ok(in_pool_rows(0) + in_pool_rows(1) == 0,
	    "and what takes its place is a pool as any");
	eddy_pool_destroy(pool);
}

static void
test_refused(void)
{
	unsigned n;

	begin();
	go_to(0);
	use_row();
	atomic_store(&no_barriers, true);
	n = looks_for(1000 * IDLE_MS);
	tap_ok(cached(0) != 0 && n <= 4,
	    "where membarrier is refused: %u looks in vain", n);
	atomic_store(&no_barriers, false);
	eddy_gather_all(h);
}

static void
test_frozen(void)
{
	unsigned before;
	bool kept;

	begin();
	go_to(0);
	take(ROW, 300);
	begin();
	eddy_warm_freeze(h);
	drop(300);
	take(ROW + 2, 300);
	drop(300);
	before = cached(0);
	memset(barriers, 0, sizeof barriers);
	kept = true;
	for (unsigned i = 0; i < 20; i++) {
		kept &=
		    eddy_reclaim_step(h, 0, 1, now(), SIZE_MAX) == EDDY_NEVER;
		pass(IDLE_MS);
	}
	eddy_gather_all(h);
	tap_ok(kept && before != 0 && cached(0) == before &&
		   atomic_load(&barriers[cpus[0]]) == 0,
	    "a frozen heap keeps its caches");
	eddy_warm_thaw(h);
	tap_ok(is_seen(), "and has them looked at after the thaw");
}

static void
test_never(void)
{
	int64_t keep = h->opts.idle_purge_ms;
	unsigned n;

	begin();
	go_to(0);
	h->opts.idle_purge_ms = -1;
	use_row();
	tap_ok(look() == EDDY_NEVER, "idle_purge_ms -1: no look");
	h->opts.idle_purge_ms = 0;
	__real_eddy_gather_watch(h);
	n = 0;
	for (uint64_t end = now() + 1000; now() < end && n < 2000; n++) {
		uint64_t due;

		work();
		due = look();
		pass(due < 1000 ? due : 0);
	}
	tap_ok(n <= 110, "0: soon, but not more than %u looks a second", n);
	tap_ok(looks_for(100) <= 10 && cached(0) == 0, "then it is empty");
	h->opts.idle_purge_ms = keep;
}

/* ------------------------------------------------------------------ */

static atomic_bool stop;
static atomic_ulong wrong;

/* Frees what came from anywhere; each block says whose it is. */
static void *
churn(void *arg)
{
	static _Atomic(uint64_t *) shared[512];
	uint64_t rng = (uintptr_t)arg + 1;
	uint64_t mine = (uintptr_t)arg << 32;

	while (!atomic_load(&stop)) {
		uint64_t r = tap_random(&rng);
		uint64_t *p = p_malloc(16 + r % 1000);

		if (p == NULL)
			tap_bail("no memory");
		p[0] = ++mine;
		p[1] = ~mine;
		if (r % 4096 == 0) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET((size_t)cpus[r / 4096 % N_CPUS], &set);
			(void)sched_setaffinity(0, sizeof set, &set);
		}
		if (p[0] != ~p[1])
			atomic_fetch_add(&wrong, 1);
		p = atomic_exchange(&shared[(r >> 20) % 512], p);
		if (p == NULL)
			continue;
		if (p[0] != ~p[1])
			atomic_fetch_add(&wrong, 1);
		p[0] = 1;
		p[1] = 1;
		p_free(p);
	}
	if ((uintptr_t)arg == 2)
		return NULL;
	for (unsigned i = 0; i < 512; i++)
		p_free(atomic_exchange(&shared[i], NULL));
	return NULL;
}

/* All are idle all the time. */
static void *
look_always(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		for (unsigned k = 0; k < N_CPUS; k++) {
			struct eddy_slot_stats *s =
			    eddy_cache_stats(h, (unsigned)cpus[k]);

			atomic_store(&s->seen.at, 0);
		}
		atomic_store(&h->look_at, 0);
		atomic_store(&h->watched, 1);
		(void)eddy_gather_idle(h, now());
	}
	return NULL;
}

static void
test_hopping(void)
{
	unsigned long drains;
	pthread_t t[7];

	begin();
	h->opts.idle_purge_ms = 0;
	for (uintptr_t i = 0; i < COUNT(t); i++)
		if (pthread_create(&t[i], NULL, i < 2 ? look_always : churn,
			(void *)i) != 0)
			tap_bail("pthread_create");
	(void)usleep((useconds_t)(probe_seconds(2) * 1e6));
	atomic_store(&stop, true);
	for (unsigned i = 0; i < COUNT(t); i++)
		(void)pthread_join(t[i], NULL);
	h->opts.idle_purge_ms = IDLE_MS;
	drains = atomic_load(&barriers[cpus[0]]) / 2;
	tap_ok(atomic_load(&wrong) == 0,
	    "nothing is handed out twice under %lu drains", drains);
	tap_ok(inside_agree(h, "after drains"), "the numbers agree");
}

/* Claim mode: the same of cells. */
static int
cells(void)
{
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	begin();
	take(ROW, 300);
	drop(300);
	tap_ok(in_cells() != 0 && is_seen(), "cells are emptied");
	take(ROW, 300);
	(void)looks_for(100 * IDLE_MS);
	drop(300);
	tap_ok(is_seen(), "also if all were empty at the last look");
	begin();
	take(ROW, 10);
	drop(10);
	(void)look();
	pass(IDLE_MS / 2);
	atomic_store(&h->look_at, 0);
	(void)look();
	tap_ok(in_cells() != 0, "cells are left alone for their time");
	begin();
	pool = new_pool(100);
	pool_take(pool, 300);
	pool_drop(pool, 300);
	tap_ok(in_pool_cells() != 0 && look() != EDDY_NEVER,
	    "who fills a pool's cells asks for a look");
	(void)looks_for(100 * IDLE_MS);
	tap_ok(in_pool_cells() == 0, "which empties them, too");
	eddy_pool_destroy(pool);
	return tap.failed != 0;
}

static int
excluded(void)
{
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	memset(barriers, 0, sizeof barriers);
	for (unsigned k = 0; k < N_CPUS; k++) {
		go_to(k);
		take(ROW, 100);
		drop(100);
	}
	(void)looks_for(100 * IDLE_MS);
	eddy_gather_all(h);
	tap_ok(atomic_load(&barriers[cpus[0]]) == 0 && cached(0) != 0,
	    "an excluded CPU is never interrupted");
	tap_ok(cached(1) == 0 && look() == EDDY_NEVER,
	    "others are, and nobody waits for it");
	return tap.failed != 0;
}

int
main(int argc, char **argv)
{
	char conf[64];

	(void)unsetenv("EDDY_SO"); /* the heap is linked in */
	if (getenv("EDDY_CONF") == NULL) {
		(void)setenv("EDDY_CONF", "topology:2x1x1", 1);
		(void)execv("/proc/self/exe", argv);
	}
	tap_begin(argv);
	if (!find_cpus())
		tap_skip_all("fewer than two CPUs to be used");
	atomic_store(&kernel.now, 1000000);
	atomic_store(&kernel.served, true);
	go_to(0);
	p_free(p_malloc(1));
	h = eddy_heap();
	if (h == NULL)
		tap_bail("no heap");
	if (argc > 1 && strcmp(argv[1], "cells") == 0)
		return cells();
	if (h->n_homes != 2 || !h->sections)
		tap_skip_all("no restartable sections, or no room for homes");
	for (unsigned k = 0; k < N_CPUS; k++) {
		go_to(k);
		p_free(p_malloc(1)); /* opens the slot */
	}
	if (argc > 1)
		return excluded();
	tap_guard(120);
	test_idle();
	test_rare();
	test_open();
	test_race();
	test_wakes();
	test_rings();
	test_pools();
	test_pool_ends();
	test_refused();
	test_frozen();
	test_never();
	test_hopping();
	go_anywhere();
	(void)setenv("EDDY_CONF", "rseq:false", 1);
	tap_ok(probe_again(argv, "cells", "cells"), "claim mode");
	(void)snprintf(
	    conf, sizeof conf, "topology:2x1x1,exclude_cpus:%d", cpus[0]);
	(void)setenv("EDDY_CONF", conf, 1);
	tap_ok(probe_again(argv, "excluded", "excluded"), "excluded CPUs");
	return tap_end();
}
