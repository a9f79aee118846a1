/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_homes.c - memory goes home: under a made-up topology in which each CPU
 * is a node, seen from inside.
 */
#include "probe.h"

#include <pthread.h>
#include <sched.h>

#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/returns.h"

#define N_CPUS 2
#define MANY   4096

static void *objects[MANY];
static int cpus[N_CPUS];

static struct eddy_heap *
heap(void)
{
	struct eddy_heap *h = eddy_heap();

	if (h == NULL)
		tap_bail("no heap");
	return h;
}

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

/* Two CPUs of different homes that the process may use. */
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

static uint32_t
home_of(const void *p)
{
	struct eddy_heap *h = heap();
	uint32_t chunk = (uint32_t)(eddy_page_of(h, p) / EDDY_CHUNK_PAGES);
	uint32_t owner =
	    atomic_load(&h->segments[chunk / EDDY_SEGMENT_CHUNKS].map.owner);

	return owner - 1;
}

static unsigned
cached(int cpu, uint32_t place)
{
	struct eddy_row *r = eddy_cache_row(heap(), (unsigned)cpu, place);
	uint32_t beg = eddy_cache_row_begin(heap(), (unsigned)cpu, place);
	uint32_t cur = atomic_load(&r->cur);

	return cur > beg ? (cur - beg) / 8 : 0;
}

static void
take(unsigned row, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		objects[i] = malloc(eddy_row_size(row));
		if (objects[i] == NULL)
			tap_bail("no memory");
		*(volatile char *)objects[i] = 1;
	}
}

static void
drop(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free(objects[i]);
}

/* How many of each row, so that a few batches are on their way. */
static unsigned
some(unsigned row)
{
	return eddy_classes[row].batch * 4u;
}

/* ------------------------------------------------------------------ */

static void
test_places(void)
{
	bool held = true;

	for (unsigned k = 0; k < N_CPUS; k++) {
		uint32_t home;

		go_to(k);
		free(malloc(8)); /* opens the slot */
		home = eddy_cache_home(heap());
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			take(row, some(row));
			for (unsigned i = 0; i < some(row); i++) {
				uint32_t tag =
				    eddy_tag_find(heap(), objects[i]);

				held &= eddy_tag_home(tag) == home &&
					home_of(objects[i]) == home;
			}
			drop(some(row));
		}
		for (size_t size = 1 << 17; size < (1 << 24); size *= 2) {
			void *p = malloc(size);

			held &= home_of(p) == home;
			free(p);
		}
	}
	tap_ok(held, "each block lies at home, of every size");
}

static void
test_remote(void)
{
	bool sent = true;
	bool apart = true;
	bool shallow = true;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		uint32_t home;

		go_to(0);
		home = eddy_cache_home(heap());
		take(row, some(row));
		go_to(1);
		drop(some(row));
		shallow &= cached(cpus[1], eddy_place(home, row)) <=
			   eddy_classes[row].batch;
		if (eddy_returns_count(heap(), eddy_place(home, row)) == 0) {
			sent = false;
			tap_diag("row %u: nothing in the ring", row);
		}
		take(row, some(row));
		for (unsigned i = 0; i < some(row); i++)
			apart &= home_of(objects[i]) == 1 - home;
		drop(some(row));
	}
	tap_ok(sent, "what is freed away is on its way home");
	tap_ok(apart, "no malloc elsewhere gets it");
	tap_ok(shallow, "a remote row holds a batch at most");
}

/*
 * More rows than the budget has room for: those that come last have their
 * place, too, and what the ring brings them fits.
 */
static void
test_last_rows(void)
{
	struct eddy_slot_stats *stats;
	unsigned closed = 0;
	uint64_t before;
	uint32_t home;

	go_to(0);
	home = eddy_cache_home(heap());
	stats = eddy_cache_stats(heap(), (unsigned)cpus[0]);
	for (unsigned row = EDDY_N_ROWS; row-- > 1;) {
		take(row, some(row));
		drop(some(row));
	}
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		free(malloc(eddy_row_size(row)));
		closed += cached(cpus[0], eddy_place(home, row)) == 0;
	}
	if (!tap_ok(
		closed == 0, "a row finds a place whatever the budget says"))
		tap_diag("%u rows are closed", closed);
	before = atomic_load(&stats->to_slabs);
	for (unsigned i = 0; i < 200; i++) {
		/* 1,536 B: its batch is no power of two. */
		go_to(0);
		take(23, 84);
		go_to(1);
		drop(84);
	}
	if (!tap_ok(atomic_load(&stats->to_slabs) - before < 1000,
		"what the ring brings is not thrown back"))
		tap_diag("%llu objects of 16800 went to slabs",
		    (unsigned long long)(atomic_load(&stats->to_slabs) -
					 before));
}

/* Addresses that come back are those that went. */
static void
test_return(void)
{
	static void *first[MANY];
	unsigned n = 0;

	go_to(0);
	take(5, 1024);
	memcpy(first, objects, sizeof first);
	go_to(1);
	drop(1024);
	go_to(0);
	take(5, 2048);
	for (unsigned i = 0; i < 2048; i++)
		for (unsigned k = 0; k < 1024; k++)
			n += objects[i] == first[k];
	drop(2048);
	if (!tap_ok(n >= 1024 - 64, "what was freed away is allocated again"))
		tap_diag("%u of 1024", n);
}

static void
test_gather(void)
{
	uint32_t home;
	uint32_t place;
	uint64_t until;
	bool parked;
	bool ring;
	void *p;

	go_to(0);
	home = eddy_cache_home(heap());
	place = eddy_place(home, 7);
	take(7, 200);
	go_to(1);
	drop(200);
	parked = cached(cpus[1], place) != 0;
	ring = eddy_returns_count(heap(), place) != 0;
	if (!tap_ok(parked && ring, "objects are parked away from home"))
		tap_diag("row %d, ring %d", parked, ring);
	go_to(0);
	/* A home that grows: chunk after chunk, which stay in use. */
	until = probe_ns() + 6000000000u;
	p = NULL;
	while (
	    probe_ns() < until && (cached(cpus[1], place) != 0 ||
				      eddy_returns_count(heap(), place) != 0)) {
		for (int i = 0; i < 200; i++) {
			void **q = malloc(14336);

			if (q == NULL)
				tap_bail("no memory");
			*q = p;
			p = q;
		}
		(void)usleep(20000);
	}
	if (!tap_ok(cached(cpus[1], place) == 0 &&
			eddy_returns_count(heap(), place) == 0,
		"a home that grows calls them back"))
		tap_diag("row %u, ring %u", cached(cpus[1], place),
		    eddy_returns_count(heap(), place));
	while (p != NULL) {
		void *next = *(void **)p;

		free(p);
		p = next;
	}
}

static void
test_trim(void)
{
	unsigned left = 0;

	for (unsigned k = 0; k < N_CPUS; k++) {
		go_to(k);
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			take(row, some(row));
			drop(some(row));
		}
	}
	(void)malloc_trim(0);
	for (unsigned k = 0; k < N_CPUS; k++)
		for (uint32_t home = 0; home < heap()->n_homes; home++)
			for (unsigned row = 1; row < EDDY_N_ROWS; row++)
				left += cached(cpus[k], eddy_place(home, row)) +
					eddy_returns_count(
					    heap(), eddy_place(home, row));
	if (!tap_ok(left == 0, "malloc_trim empties all CPUs' rows and rings"))
		tap_diag("%u objects are left", left);
	take(5, 100);
	drop(100);
	go_to(0);
	take(5, 100);
	drop(100);
	tap_ok(cached(cpus[0], eddy_place(eddy_cache_home(heap()), 5)) != 0,
	    "rows that were drained are opened again");
}

/* ------------------------------------------------------------------ */

static _Atomic bool stop;
static _Atomic unsigned long wrong;

/* Frees what came from anywhere; each block says whose it is. */
static void *
churn(void *arg)
{
	static _Atomic(uint64_t *) shared[512];
	uint64_t rng = (uintptr_t)arg + 1;
	uint64_t mine = (uintptr_t)arg << 32;

	while (!atomic_load(&stop)) {
		uint64_t r = tap_random(&rng);
		size_t size = 16 + r % 1000;
		uint64_t *p = malloc(size);

		if (p == NULL)
			tap_bail("no memory");
		p[0] = ++mine;
		p[1] = ~mine;
		if (p[0] != ~p[1])
			atomic_fetch_add(&wrong, 1);
		p = atomic_exchange(&shared[(r >> 20) % 512], p);
		if (p == NULL)
			continue;
		if (p[0] != ~p[1])
			atomic_fetch_add(&wrong, 1);
		p[0] = 1;
		p[1] = 1;
		free(p);
	}
	return NULL;
}

static void *
gather_all(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		eddy_gather_all(heap());
		(void)usleep(200);
	}
	return NULL;
}

static void
test_drains(void)
{
	pthread_t t[8];

	for (uintptr_t i = 0; i < 8; i++)
		if (pthread_create(&t[i], NULL, i < 2 ? gather_all : churn,
			(void *)i) != 0)
			tap_bail("pthread_create");
	(void)usleep((useconds_t)(probe_seconds(2) * 1e6));
	atomic_store(&stop, true);
	for (int i = 0; i < 8; i++)
		(void)pthread_join(t[i], NULL);
	if (!tap_ok(atomic_load(&wrong) == 0,
		"rows drained under their owners' "
		"feet lose and double nothing"))
		tap_diag("%lu blocks had two owners", atomic_load(&wrong));
}

/* ------------------------------------------------------------------ */

/* As another process, with other homes. */
static int
many_homes(void)
{
	struct eddy_heap *h = heap();
	bool held = h->n_homes == EDDY_MAX_HOMES;

	for (unsigned k = 0; k < N_CPUS; k++) {
		go_to(k);
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			take(row, some(row));
			go_to(1 - k);
			drop(some(row));
			go_to(k);
		}
	}
	for (uint32_t home = 0; home < h->n_homes; home++)
		held &= eddy_arena_of_home(h, home) != NULL &&
			eddy_arena_of_home(h, home)->home == home;
	return held ? 0 : 1;
}

/* Segments are few: what one home's arena has not got, another's has. */
static int
few_segments(void)
{
	void *first = NULL;
	unsigned homes = 0;
	size_t n = 0;
	void *small;

	go_to(0);
	for (;;) {
		void **p = malloc((size_t)64 << 20);

		if (p == NULL)
			break;
		homes |= 1u << home_of(p);
		*p = first;
		first = p;
		n++;
	}
	go_to(1);
	small = malloc(100);
	while (first != NULL) {
		void *next = *(void **)first;

		free(first);
		first = next;
	}
	tap_diag("%zu blocks of 64 MiB, homes %#x", n, homes);
	if (heap()->n_homes != 2)
		return 2;
	/* 8 GiB less a random place in front, and what does not fit. */
	if (n < 110)
		return 3;
	small = small != NULL ? small : malloc(100);
	free(small);
	return small != NULL ? 0 : 4;
}

int
main(int argc, char **argv)
{
	if (!find_cpus())
		tap_skip_all("fewer than two CPUs to be used");
	if (argc > 1 && strcmp(argv[1], "many") == 0)
		return many_homes();
	if (argc > 1 && strcmp(argv[1], "few") == 0)
		return few_segments();
	if (getenv("EDDY_CONF") == NULL) {
		(void)setenv("EDDY_CONF", "topology:2x1x1", 1);
		(void)execv("/proc/self/exe", argv);
	}
	tap.pid = getpid();
	tap_guard(120);
	(void)free(malloc(1));
	if (heap()->n_homes != 2 || !heap()->sections)
		tap_skip_all("no restartable sections, or no room for homes");
	test_places();
	test_remote();
	test_return();
	test_last_rows();
	test_gather();
	test_trim();
	test_drains();
	(void)setenv("EDDY_CONF", "topology:80x1x1", 1);
	go_anywhere();
	tap_ok(probe_again(argv, "many", "many"), "80 nodes: 62 homes");
	(void)setenv("EDDY_CONF", "topology:2x1x1,lg_range:33", 1);
	tap_ok(probe_again(argv, "few", "few"),
	    "a home without segments borrows from another");
	return tap_end();
}
