/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_clients.c - what programs written for jemalloc do with it, call by call:
 * how they find out that it is there, arenas with hooks of their own, caches,
 * counters of other threads.  ctl_mallctl_use.c has what is names alone.
 */
#include "probe.h"

#include <jemalloc/jemalloc.h>

/* The library is preloaded, not linked. */
#pragma weak mallocx
#pragma weak rallocx
#pragma weak xallocx
#pragma weak sallocx
#pragma weak dallocx
#pragma weak sdallocx
#pragma weak nallocx
#pragma weak mallctl
#pragma weak mallctlnametomib
#pragma weak mallctlbymib
#pragma weak malloc_stats_print

static bool
get(const char *name, void *v, size_t size)
{
	size_t len = size;

	return mallctl(name, v, &len, NULL, 0) == 0 && len == size;
}

static unsigned
get_unsigned(const char *name)
{
	unsigned v = 0;

	if (!get(name, &v, sizeof v))
		tap_bail("%s", name);
	return v;
}

static int
set(const char *name, void *v, size_t size)
{
	return mallctl(name, NULL, NULL, v, size);
}

/* A name with an arena's number in it. */
static const char *
of_arena(unsigned arena, const char *leaf)
{
	static char name[2][64];
	static unsigned turn;

	turn = !turn;
	(void)snprintf(
	    name[turn], sizeof name[turn], "arena.%u.%s", arena, leaf);
	return name[turn];
}

static int
act(const char *name)
{
	return mallctl(name, NULL, NULL, NULL, 0);
}

/* ------------------------------------------------------------------ */
/* Is jemalloc there? */

/* folly: all ten functions, and a counter that moves with a malloc of 1. */
static void
folly_finds_it(void)
{
	volatile uint64_t *counter = NULL;
	size_t len = sizeof counter;
	uint64_t before;
	void *p;
	bool ok = mallocx != NULL && rallocx != NULL && xallocx != NULL &&
		  sallocx != NULL && dallocx != NULL && sdallocx != NULL &&
		  nallocx != NULL && mallctl != NULL &&
		  mallctlnametomib != NULL && mallctlbymib != NULL;

	ok = ok && mallctl("thread.allocatedp", &counter, &len, NULL, 0) == 0 &&
	     len == sizeof counter && counter != NULL;
	if (ok) {
		before = *counter;
		p = p_malloc(1);
		ok = p != NULL && *counter != before;
		p_free(p);
	}
	tap_ok(ok, "folly: ten functions, and a counter that moves at once");
}

/* RocksDB: these, usable size and statistics, and a version from 5 on. */
static void
rocksdb_finds_it(void)
{
	const char *s = NULL;

	tap_ok(malloc_stats_print != NULL && JEMALLOC_VERSION_MAJOR >= 5 &&
		   get("version", &s, sizeof s) && s[0] >= '5' &&
		   p_usable(NULL) == 0,
	    "RocksDB: version 5 and what it looks for");
}

/* ------------------------------------------------------------------ */
/* folly */

/* A vector asks what it would get, then grows where it is or moves. */
static void
folly_vector(void)
{
	size_t cap = nallocx(1, 0);
	char *p = p_malloc(cap);
	unsigned in_place = 0;
	bool ok = true;

	memset(p, 'v', cap);
	while (cap < 8 * MIB) {
		size_t want = nallocx(cap * 3 / 2 + 1, 0);
		size_t got = cap >= 4096 ? xallocx(p, want, 0, 0) : 0;

		ok &= want >= cap * 3 / 2 + 1;
		if (got >= want) {
			in_place++;
			ok &= got == sallocx(p, 0);
		} else {
			char *q = p_malloc(want);

			ok &= cap < 4096 || got == sallocx(p, 0);
			memcpy(q, p, cap);
			sdallocx(p, cap, 0);
			p = q;
		}
		ok &= p[0] == 'v' && p[cap - 1] == 'v';
		memset(p, 'v', want);
		cap = want;
	}
	sdallocx(p, cap, 0);
	tap_ok(ok, "folly: a vector grows (%u times where it is)", in_place);
}

enum { HUGE_REGION = 32 * MIB, HUGE_CHUNK = 2 * MIB };

static char *region;
static size_t region_used;
static extent_alloc_t *original_alloc;
static extent_hooks_t region_hooks;

/* Memory of the region while there is some, else the default hook's. */
static void *
from_region(extent_hooks_t *h, void *at, size_t size, size_t align, bool *zero,
    bool *commit, unsigned arena)
{
	size_t begin = (region_used + align - 1) & ~(align - 1);

	if (at == NULL && begin + size <= HUGE_REGION) {
		region_used = begin + size;
		*zero = true;
		*commit = true;
		return region + begin;
	}
	return original_alloc(h, at, size, align, zero, commit, arena);
}

/* Hooks read, copied, one replaced, written: folly and RocksDB alike. */
static bool
replace_alloc(unsigned arena, extent_hooks_t *mine, extent_alloc_t *alloc)
{
	extent_hooks_t *given = NULL;
	extent_hooks_t *now = NULL;
	extent_hooks_t *p = mine;

	if (!get(of_arena(arena, "extent_hooks"), &given, sizeof given))
		return false;
	if (original_alloc != NULL && original_alloc != given->alloc)
		return false;
	original_alloc = given->alloc;
	*mine = *given;
	mine->alloc = alloc;
	return set(of_arena(arena, "extent_hooks"), &p, sizeof p) == 0 &&
	       get(of_arena(arena, "extent_hooks"), &now, sizeof now) &&
	       now == mine;
}

static bool
in_region(const void *p)
{
	return (const char *)p >= region &&
	       (const char *)p < region + HUGE_REGION;
}

static void
folly_huge_pages(void)
{
	size_t limit = HUGE_CHUNK;
	ssize_t never = -1;
	unsigned arena = get_unsigned("arenas.create");
	int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
	char *p;
	char *q;
	bool ok;

	region = mmap(NULL, HUGE_REGION + HUGE_CHUNK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region == MAP_FAILED)
		tap_bail("no region");
	region += -(uintptr_t)region % HUGE_CHUNK;
	ok =
	    replace_alloc(arena, &region_hooks, from_region) &&
	    set(of_arena(arena, "retain_grow_limit"), &limit, sizeof limit) ==
		0 &&
	    set(of_arena(arena, "dirty_decay_ms"), &never, sizeof never) == 0 &&
	    set(of_arena(arena, "muzzy_decay_ms"), &never, sizeof never) == 0;
	p = mallocx(100000, flags);
	ok &= in_region(p);
	memset(p, 'h', 100000);
	q = rallocx(p, 1000000, flags);
	ok &= in_region(q) && q[0] == 'h' && q[99999] == 'h';
	/* Too much for the region: from elsewhere, and freed all the same. */
	p = mallocx(HUGE_REGION + 1, flags);
	ok &= p != NULL && !in_region(p);
	dallocx(p, flags);
	dallocx(q, flags);
	tap_ok(ok, "folly: an arena of huge pages of its own");
}

/* ------------------------------------------------------------------ */
/* RocksDB: no block cache in core dumps */

static extent_hooks_t nodump_hooks;

static void *
nodump(extent_hooks_t *h, void *at, size_t size, size_t align, bool *zero,
    bool *commit, unsigned arena)
{
	void *p = original_alloc(h, at, size, align, zero, commit, arena);

	if (p != NULL && madvise(p, size, MADV_DONTDUMP) != 0)
		return NULL;
	return p;
}

/* Whether the kernel keeps the page of an address out of core dumps. */
static bool
is_left_out(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool here = false;
	bool found = false;

	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		uintptr_t from;
		uintptr_t to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= (uintptr_t)p && (uintptr_t)p < to;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, " dd") != NULL;
	}
	if (f != NULL)
		(void)fclose(f);
	return found;
}

struct nodump_thread {
	unsigned arena;
	bool ok;
};

/* Each thread has a cache, which ends with it. */
static void *
nodump_thread(void *arg)
{
	struct nodump_thread *t = arg;
	unsigned cache = 0;
	int flags;
	void *p[64];

	t->ok = get("tcache.create", &cache, sizeof cache);
	flags = MALLOCX_ARENA(t->arena) | MALLOCX_TCACHE(cache);
	for (unsigned i = 0; i < COUNT(p); i++) {
		p[i] = mallocx(8192 + i * 500, flags);
		memset(p[i], (int)i, 8192);
		t->ok &= p_usable(p[i]) >= 8192 + i * 500;
	}
	t->ok &= is_left_out(p[0]) && is_left_out(p[63]);
	for (unsigned i = 0; i < COUNT(p); i++)
		dallocx(p[i], MALLOCX_TCACHE(cache));
	t->ok &= set("tcache.destroy", &cache, sizeof cache) == 0;
	return NULL;
}

static void
rocksdb_nodump(void)
{
	struct nodump_thread t[3];
	pthread_t id[3];
	unsigned arena = get_unsigned("arenas.create");
	bool ok = replace_alloc(arena, &nodump_hooks, nodump);

	for (unsigned i = 0; i < COUNT(t); i++) {
		t[i].arena = arena;
		(void)pthread_create(&id[i], NULL, nodump_thread, &t[i]);
	}
	for (unsigned i = 0; i < COUNT(t); i++) {
		(void)pthread_join(id[i], NULL);
		ok &= t[i].ok;
	}
	ok &= act(of_arena(arena, "destroy")) == 0;
	tap_ok(ok, "RocksDB: blocks that core dumps leave out");
}

/* ------------------------------------------------------------------ */
/* HHVM: arenas of its own, one a node, numbered without gaps */

static extent_hooks_t node_hooks;

static void
hhvm(void)
{
	unsigned before = get_unsigned("arenas.narenas");
	extent_hooks_t *given = NULL;
	extent_hooks_t *p = &node_hooks;
	unsigned arena = 0;
	size_t len = sizeof arena;
	size_t mib[3];
	size_t depth = 3;
	bool retain = false;
	bool ok = get(of_arena(0, "extent_hooks"), &given, sizeof given);
	void *block;

	node_hooks = *given;
	ok &= mallctl("arenas.create", &arena, &len, &p, sizeof p) == 0 &&
	      arena == before && get_unsigned("arenas.narenas") == before + 1;
	block = mallocx(5000,
	    MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(64));
	ok &= (uintptr_t)block % 64 == 0;
	dallocx(block, MALLOCX_TCACHE_NONE);
	ok &= get("opt.retain", &retain, sizeof retain);
	ok &= mallctlnametomib("arena.0.purge", mib, &depth) == 0;
	mib[1] = MALLCTL_ARENAS_ALL;
	ok &= mallctlbymib(mib, depth, NULL, NULL, NULL, 0) == 0;
	ok &= set("thread.arena", &arena, sizeof arena) == 0 &&
	      get_unsigned("thread.arena") == arena;
	arena = 0;
	ok &= set("thread.arena", &arena, sizeof arena) == 0;
	tap_ok(ok, "HHVM: an arena's index is what narenas was");
}

/* ------------------------------------------------------------------ */
/* Redis */

/* A script's memory: an arena and a cache, and all by flags. */
static void
redis_lua(void)
{
	unsigned arena = get_unsigned("arenas.create");
	unsigned cache = get_unsigned("tcache.create");
	int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE(cache);
	void *p[200] = {NULL};
	uint64_t rng = tap.seed;
	bool ok = true;

	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = (unsigned)(tap_random(&rng) % COUNT(p));
		size_t size = 1 + tap_random(&rng) % 4000;

		if (p[k] == NULL) {
			p[k] = mallocx(size, flags);
		} else if (i % 3 == 0) {
			dallocx(p[k], flags);
			p[k] = NULL;
		} else {
			p[k] = rallocx(p[k], size, flags);
		}
		ok &= p[k] == NULL || sallocx(p[k], flags) <= 4096;
	}
	for (unsigned k = 0; k < COUNT(p); k++)
		if (p[k] != NULL)
			dallocx(p[k], flags);
	ok &= set("tcache.destroy", &cache, sizeof cache) == 0 &&
	      act(of_arena(arena, "destroy")) == 0;
	tap_ok(ok, "Redis: scripts in an arena and a cache of their own");
}

/* It gives the old length as 0, which is no address here. */
static void
redis_background(void)
{
	bool on = true;
	bool was = false;
	bool ok = mallctl("background_thread", NULL, 0, &on, 1) == 0 &&
		  get("background_thread", &was, 1) && was;

	on = false;
	ok &= mallctl("background_thread", NULL, 0, &on, 1) == 0 &&
	      get("background_thread", &was, 1) && !was;
	tap_ok(ok, "Redis: background threads, on and off");
}

/* A block moves past the cache. */
static void
redis_defrag(void)
{
	char *p = p_malloc(100);
	char *q;

	memset(p, 'd', 100);
	q = mallocx(p_usable(p), MALLOCX_TCACHE_NONE);
	memcpy(q, p, 100);
	dallocx(p, MALLOCX_TCACHE_NONE);
	tap_ok(q[99] == 'd' && p_usable(q) == 112,
	    "Redis: a block moves past the cache");
	p_free(q);
}

/* ------------------------------------------------------------------ */
/* Counters */

struct watched {
	struct flag there;
	struct flag go;
	struct flag done;
	struct flag end;
	_Atomic uint64_t *allocated;
	_Atomic uint64_t *deallocated;
};

static void *
watched_thread(void *arg)
{
	struct watched *w = arg;
	void *p[100];

	(void)get("thread.allocatedp", &w->allocated, sizeof w->allocated);
	(void)get(
	    "thread.deallocatedp", &w->deallocated, sizeof w->deallocated);
	flag_set(&w->there);
	while (!flag_is_set(&w->go))
		(void)usleep(1000);
	for (unsigned i = 0; i < COUNT(p); i++)
		p[i] = p_malloc(1000);
	for (unsigned i = 0; i < COUNT(p); i += 2)
		p_free(p[i]);
	flag_set(&w->done);
	while (!flag_is_set(&w->end))
		(void)usleep(1000);
	for (unsigned i = 1; i < COUNT(p); i += 2)
		p_free(p[i]);
	return NULL;
}

/* TiKV and Mesos read those of other threads. */
static void
tikv(void)
{
	static struct watched w;
	uint64_t a;
	uint64_t d;
	pthread_t t;

	(void)pthread_create(&t, NULL, watched_thread, &w);
	while (!flag_is_set(&w.there))
		(void)usleep(1000);
	a = atomic_load(w.allocated);
	d = atomic_load(w.deallocated);
	flag_set(&w.go);
	while (!flag_is_set(&w.done))
		(void)usleep(1000);
	a = atomic_load(w.allocated) - a;
	d = atomic_load(w.deallocated) - d;
	flag_set(&w.end);
	(void)pthread_join(t, NULL);
	tap_ok(a == 102400 && d == 51200,
	    "TiKV, Mesos: another thread's counters (%llu, %llu)",
	    (unsigned long long)a, (unsigned long long)d);
}

static void
arrow_peak(void)
{
	uint64_t peak = 0;
	void *p;
	bool ok = act("thread.peak.reset") == 0;

	p = p_malloc(3 * MIB);
	p_free(p);
	ok &= get("thread.peak.read", &peak, sizeof peak) && peak >= 3 * MIB &&
	      peak < 4 * MIB;
	ok &= act("thread.peak.reset") == 0 &&
	      get("thread.peak.read", &peak, sizeof peak) && peak < MIB;
	tap_ok(ok, "Arrow: a thread's peak");
}

/* ------------------------------------------------------------------ */
/* Whose memory? */

static char *shared;
static size_t shared_used;
enum { SHARED = 16 * MIB };

static void *
from_shared(extent_hooks_t *h, void *at, size_t size, size_t align, bool *zero,
    bool *commit, unsigned arena)
{
	size_t begin = (shared_used + align - 1) & ~(align - 1);

	(void)h;
	(void)arena;
	if (at != NULL || begin + size > SHARED)
		return NULL;
	shared_used = begin + size;
	*zero = true;
	*commit = true;
	return shared + begin;
}

/* vineyard, Flow-IPC: an arena in shared memory, and nothing elsewhere. */
static void
shared_memory(void)
{
	static extent_hooks_t hooks = {.alloc = from_shared};
	extent_hooks_t *p = &hooks;
	int fd = memfd_create("shared", 0);
	unsigned arena = 0;
	size_t len = sizeof arena;
	unsigned n = 0;
	unsigned owner;
	bool ok;

	if (fd < 0 || ftruncate(fd, SHARED + HUGE_CHUNK) != 0)
		tap_bail("no shared memory");
	shared = mmap(NULL, SHARED + HUGE_CHUNK, PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	shared += -(uintptr_t)shared % HUGE_CHUNK;
	ok = mallctl("arenas.create", &arena, &len, &p, sizeof p) == 0;
	for (; ok; n++) {
		char *q =
		    mallocx(60000, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);

		if (q == NULL)
			break;
		len = sizeof owner;
		ok &=
		    q >= shared && q + 60000 <= shared + SHARED &&
		    mallctl("arenas.lookup", &owner, &len, &q, sizeof q) == 0 &&
		    owner == arena;
	}
	/* What is not ours is nobody's. */
	len = sizeof owner;
	p = (void *)&fd;
	ok &= mallctl("arenas.lookup", &owner, &len, &p, sizeof p) == EINVAL;
	tap_ok(ok && n > 150, "vineyard: %u blocks in shared memory", n);
}

/* ------------------------------------------------------------------ */
/* Statistics */

/* ClickHouse translates its names once. */
static void
clickhouse_mibs(void)
{
	static const char *const names[] = {"epoch", "stats.allocated",
	    "stats.resident", "stats.arenas.4096.pactive"};
	size_t mib[COUNT(names)][5];
	size_t depth[COUNT(names)];
	uint64_t v[COUNT(names)];
	uint64_t last = 0;
	bool ok = true;

	for (size_t i = 0; i < COUNT(names); i++) {
		depth[i] = COUNT(mib[i]);
		ok &= mallctlnametomib(names[i], mib[i], &depth[i]) == 0;
	}
	for (unsigned round = 0; round < 5; round++) {
		uint64_t epoch = 0;
		size_t len = sizeof epoch;
		void *p = p_malloc(4 * MIB);

		ok &= mallctlbymib(mib[0], depth[0], &epoch, &len, &epoch,
			  sizeof epoch) == 0 &&
		      epoch > last;
		last = epoch;
		for (size_t i = 1; i < COUNT(names); i++) {
			len = sizeof v[i];
			ok &= mallctlbymib(
				  mib[i], depth[i], &v[i], &len, NULL, 0) == 0;
		}
		ok &= v[1] >= 4 * MIB && v[2] >= v[1] && v[3] * PAGE >= v[1];
		p_free(p);
	}
	tap_ok(ok, "ClickHouse: statistics by mibs");
}

static char report[1 << 16];

static void
keep_report(void *arg, const char *s)
{
	size_t *n = arg;
	size_t len = strlen(s);

	if (len > sizeof report - 1 - *n)
		len = sizeof report - 1 - *n;
	memcpy(report + *n, s, len);
	*n += len;
	report[*n] = '\0';
}

/* CockroachDB logs what stands before the first arena. */
static void
cockroach(void)
{
	size_t n = 0;
	char *end;

	malloc_stats_print(keep_report, &n, "");
	end = strstr(report, "arenas[");
	if (end != NULL)
		*end = '\0';
	tap_ok(end != NULL && strstr(report, "Allocated: ") != NULL &&
		   strstr(report, "resident: ") != NULL,
	    "CockroachDB: the report as far as the first arena");
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(60);
	if (mallctl == NULL || mallocx == NULL)
		tap_bail("no jemalloc");
	folly_finds_it();
	rocksdb_finds_it();
	folly_vector();
	folly_huge_pages();
	/* Before an index is free again. */
	hhvm();
	rocksdb_nodump();
	redis_lua();
	redis_background();
	redis_defrag();
	tikv();
	arrow_peak();
	shared_memory();
	clickhouse_mibs();
	cockroach();
	return tap_end();
}
