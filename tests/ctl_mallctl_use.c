/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl_mallctl_use.c - mallctl as programs use it, and as many threads do: each
 * program's calls as they stand in its source, arenas, decay, statistics that
 * stand still between two epochs.
 */
#include "probe.h"

#include <sys/time.h>

#include "eddy/eddy.h"

/* The library is preloaded, not linked. */
#pragma weak eddy_arena_malloc
#pragma weak mallctl
#pragma weak mallctlbymib
#pragma weak mallctlnametomib

static size_t
get_size(const char *name)
{
	size_t v = 0;
	size_t len = sizeof v;
	int r = mallctl(name, &v, &len, NULL, 0);

	if (r != 0)
		tap_bail("%s: %d", name, r);
	return v;
}

static unsigned
get_unsigned(const char *name)
{
	unsigned v = 0;
	size_t len = sizeof v;
	int r = mallctl(name, &v, &len, NULL, 0);

	if (r != 0)
		tap_bail("%s: %d", name, r);
	return v;
}

/* The same of a name with a number in it. */
static size_t
size_of_arena(const char *format, unsigned i)
{
	char name[96];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(name, sizeof name, format, i);
#pragma GCC diagnostic pop
	return get_size(name);
}

static int
act(const char *format, unsigned i)
{
	char name[96];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(name, sizeof name, format, i);
#pragma GCC diagnostic pop
	return mallctl(name, NULL, NULL, NULL, 0);
}

static uint64_t
refresh(void)
{
	uint64_t epoch = 1;
	size_t len = sizeof epoch;

	if (mallctl("epoch", &epoch, &len, &epoch, sizeof epoch) != 0)
		tap_bail("epoch");
	return epoch;
}

static bool
near(size_t v, size_t want, size_t slack)
{
	if (v + slack >= want && v <= want + slack)
		return true;
	tap_diag("%zu, not %zu", v, want);
	return false;
}

/* ------------------------------------------------------------------ */
/* Programs */

static void
redis(void)
{
	uint64_t epoch = 1;
	size_t len = sizeof epoch;
	unsigned n;
	bool on = false;
	bool ok = mallctl("epoch", &epoch, &len, &epoch, len) == 0;
	char name[64];

	ok &= get_size("stats.allocated") <= get_size("stats.active") &&
	      get_size("stats.active") <= get_size("stats.resident");
	(void)get_size("stats.retained");
	len = sizeof n;
	ok &= mallctl("arenas.narenas", &n, &len, NULL, 0) == 0 && n > 0;
	/* All arenas by the old form of their number, and by the new one. */
	(void)snprintf(name, sizeof name, "arena.%u.purge", n);
	ok &= mallctl(name, NULL, NULL, NULL, 0) == 0;
	ok &= mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0;
	(void)snprintf(name, sizeof name, "arena.%u.purge", n + 1);
	ok &= mallctl(name, NULL, NULL, NULL, 0) == ENOENT;
	ok &= mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0;
	ok &= mallctl("background_thread", NULL, NULL, &on, 1) == 0;
	for (unsigned j = 0; j < get_unsigned("arenas.nbins"); j++) {
		size_t mib[6];
		size_t depth = 6;
		size_t regs;
		size_t slabs;

		ok &= mallctlnametomib("stats.arenas.4096.bins.0.curregs", mib,
			  &depth) == 0 &&
		      depth == 6;
		mib[4] = j;
		len = sizeof regs;
		ok &= mallctlbymib(mib, depth, &regs, &len, NULL, 0) == 0;
		slabs = size_of_arena("stats.arenas.4096.bins.%u.curslabs", j);
		(void)snprintf(name, sizeof name, "arenas.bin.%u.nregs", j);
		ok &= regs <= slabs * get_unsigned(name);
	}
	/* Asked for, and not there. */
	len = sizeof epoch;
	ok &= mallctl("stats.arenas.0.small.resident", &epoch, &len, NULL, 0) ==
	      ENOENT;
	tap_ok(ok, "Redis: memory info, purge, background thread");
}

/* A command of Redis that tries sizes until one fits. */
static void
redis_debug(void)
{
	static const struct {
		const char *name;
		size_t size;
	} cases[] = {{"opt.tcache", 1}, {"arenas.narenas", 4},
	    {"arenas.page", 8}, {"epoch", 8}};
	bool ok = true;

	for (size_t i = 0; i < COUNT(cases); i++) {
		static const size_t sizes[] = {8, 4, 1};
		size_t fits = 0;

		for (size_t k = 0; k < COUNT(sizes); k++) {
			unsigned char v[8];
			size_t len = sizes[k];

			if (mallctl(cases[i].name, v, &len, NULL, 0) == 0)
				fits += sizes[k];
		}
		ok &= fits == cases[i].size;
	}
	tap_ok(ok, "Redis: of the sizes 8, 4 and 1 the right one fits");
}

static void
clickhouse(void)
{
	static const char *const names[] = {"stats.allocated", "stats.active",
	    "stats.metadata", "stats.metadata_thp", "stats.resident",
	    "stats.mapped", "stats.retained",
	    "stats.background_thread.num_threads", "stats.arenas.4096.pactive",
	    "stats.arenas.4096.pdirty", "stats.arenas.4096.pmuzzy"};
	uint64_t runs;
	size_t len = sizeof runs;
	bool active = true;
	bool ok = true;

	(void)refresh();
	for (size_t i = 0; i < COUNT(names); i++)
		(void)get_size(names[i]);
	ok &= mallctl("stats.background_thread.num_runs", &runs, &len, NULL,
		  0) == 0;
	ok &= mallctl("stats.background_thread.run_intervals", &runs, &len,
		  NULL, 0) == ENOENT;
	len = sizeof active;
	ok &= mallctl("opt.prof", &active, &len, NULL, 0) == 0 && !active;
	ok &= mallctl("prof.active", &active, &len, NULL, 0) == 0 && !active;
	ok &= mallctl("prof.active", NULL, NULL, &active, len) == 0;
	active = true;
	ok &= mallctl("prof.active", NULL, NULL, &active, len) == ENOENT;
	ok &= mallctl("thread.prof.active", &active, &len, NULL, 0) == 0;
	tap_ok(ok, "ClickHouse: asynchronous metrics, profiling that is off");
}

static void
folly_memory_idler(void)
{
	size_t mib[3];
	size_t depth = 3;
	unsigned arena = get_unsigned("thread.arena");
	bool ok = get_unsigned("opt.narenas") <= get_unsigned("arenas.narenas");

	ok &= mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0;
	ok &= mallctlnametomib("arena.0.purge", mib, &depth) == 0 && depth == 3;
	mib[1] = arena;
	ok &= mallctlbymib(mib, depth, NULL, NULL, NULL, 0) == 0;
	ok &= mallctl("arenas.extend", NULL, NULL, NULL, 0) == ENOENT &&
	      mallctl("arena.0.chunk_hooks", NULL, NULL, NULL, 0) == ENOENT;
	tap_ok(ok, "folly: an idle thread purges its arena by mib");
}

static void
other_programs(void)
{
	const char *s = NULL;
	size_t len = sizeof s;
	unsigned n = get_unsigned("arenas.narenas");
	int64_t ms;
	bool ok = mallctl("version", &s, &len, NULL, 0) == 0 &&
		  strncmp(s, "5.3.", 4) == 0 && strchr(s, '-') != NULL;

	tap_ok(ok, "MariaDB: a version");

	ok = size_of_arena("stats.arenas.%u.small.allocated", n) != 0;
	(void)size_of_arena("stats.arenas.%u.large.allocated", n);
	(void)size_of_arena("stats.arenas.%u.small.nmalloc", n);
	(void)size_of_arena("stats.arenas.%u.large.nrequests", n);
	ok &= act("stats.arenas.%u.huge.allocated", n) == ENOENT &&
	      act("stats.arenas.%u.small.ndmalloc", n) == ENOENT;
	tap_ok(ok, "Percona: totals by the number of arenas");

	(void)refresh();
	ok = size_of_arena("stats.arenas.%u.tcache_bytes", 4096) ==
	     get_size("eddy.stranded");
	(void)size_of_arena("stats.arenas.4096.extents.%u.dirty_bytes", 7);
	len = sizeof ms;
	ok &= mallctl("arena.0.dirty_decay_ms", &ms, &len, NULL, 0) == 0 &&
	      mallctl("arena.0.dirty_decay_ms", NULL, NULL, &ms, len) == 0 &&
	      mallctl("arena.4096.decay", NULL, NULL, NULL, 0) == 0;
	/* Of all arenas there is none. */
	ok &=
	    mallctl("arena.4096.dirty_decay_ms", &ms, &len, NULL, 0) == EFAULT;
	tap_ok(ok, "Doris: caches, free runs, decay");

	len = 8;
	ok = mallctl("arenas.narenas", &ms, &len, NULL, 0) == EINVAL &&
	     len == 4 && mallctl("arenas.narenas", &ms, &len, NULL, 0) == 0;
	len = 8;
	ok &= mallctl("arenas.dirty_decay_ms", &ms, &len, NULL, 0) == 0 &&
	      mallctl("arenas.dirty_decay_ms", NULL, NULL, &ms, len) == 0;
	tap_ok(ok, "Arrow: get_stat tries 8 bytes, then 4");
}

/* jemalloc-ctl's keys, and what it believes of their types. */
static void
rust(void)
{
	static const struct {
		const char *name;
		size_t size;
		bool is_string;
	} keys[] = {{"version", 8, true}, {"epoch", 8, false},
	    {"background_thread", 1, false},
	    {"max_background_threads", 8, false},
	    {"config.malloc_conf", 8, true}, {"arenas.narenas", 4, false},
	    {"opt.abort", 1, false}, {"opt.dss", 8, true},
	    {"opt.narenas", 4, false}, {"opt.junk", 8, true},
	    {"opt.zero", 1, false}, {"opt.tcache", 1, false},
	    {"opt.tcache_max", 8, false}, {"opt.background_thread", 1, false},
	    {"opt.prof", 1, false}, {"opt.prof_final", 1, false},
	    {"opt.prof_leak", 1, false}, {"opt.lg_prof_sample", 8, false},
	    {"opt.lg_prof_interval", 8, false}, {"stats.allocated", 8, false},
	    {"stats.active", 8, false}, {"stats.metadata", 8, false},
	    {"stats.resident", 8, false}, {"stats.mapped", 8, false},
	    {"stats.retained", 8, false}, {"arena.0.dss", 8, true},
	    {"arenas.bin.0.size", 8, false}, {"arenas.bin.0.nregs", 4, false},
	    {"arenas.bin.0.slab_size", 8, false},
	    {"thread.tcache.enabled", 1, false}};
	bool ok = true;

	for (size_t i = 0; i < COUNT(keys); i++) {
		const char *v = NULL;
		size_t mib[8];
		size_t depth = 8;
		size_t len = keys[i].size;

		if (mallctlnametomib(keys[i].name, mib, &depth) != 0 ||
		    mallctlbymib(mib, depth, &v, &len, NULL, 0) != 0 ||
		    len != keys[i].size ||
		    (keys[i].is_string && strlen(v) > 100)) {
			tap_diag("%s", keys[i].name);
			ok = false;
		}
	}
	tap_ok(ok, "jemalloc-ctl: every key has its type");
}

/* ------------------------------------------------------------------ */
/* Names as they may be written */

static void
odd_names(void)
{
	static const struct {
		const char *name;
		int err;
	} cases[] = {{"", ENOENT}, {"arena", ENOENT}, {"arena.", ENOENT},
	    {"arena.0", ENOENT}, {"arena.0.", ENOENT}, {"arena..purge", ENOENT},
	    {"arena.purge", ENOENT}, {"arena.-1.purge", ENOENT},
	    {"arena.-0.purge", 0}, {"arena.+0.purge", 0}, {"arena. 0.purge", 0},
	    {"arena.\t 00.purge", 0}, {"arena.0x1.purge", 0},
	    {"arena.0abc.purge", 0}, {"arena.a0.purge", ENOENT},
	    {"arena.4095.purge", ENOENT}, {"arena.4096.purge", 0},
	    {"arena.4097.purge", 0}, {"arena.4098.purge", ENOENT},
	    {"arena.18446744073709551615.purge", ENOENT},
	    {"arena.18446744073709551616.purge", ENOENT},
	    {"arena.99999999999999999999999999.purge", ENOENT},
	    {"arenas.bin.39.size", ENOENT}, {"arenas.bin.35.size", 0},
	    {"arenas.lextent.195.size", 0}, {"arenas.lextent.196.size", ENOENT},
	    {"stats.arenas.0.extents.198.ndirty", 0},
	    {"stats.arenas.0.extents.199.ndirty", ENOENT},
	    {"stats.arenas.4097.pactive", ENOENT},
	    {"stats.arenas.4096.pactive", 0}, {"stats.cactive", ENOENT},
	    {"stats.huge.allocated", ENOENT}, {"opt.lg_chunk", ENOENT},
	    {"opt.lg_dirty_mult", ENOENT}, {"opt.lg_tcache_max", ENOENT},
	    {"arenas.decay_time", ENOENT}, {"arena.0.decay_time", ENOENT},
	    {"Version", ENOENT}, {"version ", ENOENT}, {" version", ENOENT}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		int r = mallctl(cases[i].name, NULL, NULL, NULL, 0);

		tap_ok(r == cases[i].err, "\"%s\": %d",
		    cases[i].name[0] != '\0' && cases[i].name[6] == '\t'
			? "a tab"
			: cases[i].name,
		    r);
	}
}

static void
noise(void)
{
	static const char letters[] = "aenrst.0123456789_<>{}%\t -+x";
	uint64_t rng = tap.seed;
	unsigned found = 0;

	for (unsigned round = 0; round < 100000; round++) {
		char name[40];
		size_t mib[9];
		size_t depth = tap_random(&rng) % 9;
		size_t n = tap_random(&rng) % (sizeof name - 1);
		size_t old[2];
		size_t len = 8;

		for (size_t i = 0; i < n; i++)
			name[i] =
			    letters[tap_random(&rng) % (sizeof letters - 1)];
		name[n] = '\0';
		mib[depth < 9 ? depth : 8] = 77;
		found += mallctlnametomib(name, mib, &depth) == 0 && n > 0;
		for (size_t i = 0; i < 9; i++)
			mib[i] = tap_random(&rng) >> (tap_random(&rng) % 64);
		(void)mallctlbymib(
		    mib, tap_random(&rng) % 10, old, &len, NULL, 0);
	}
	tap_ok(true, "100000 odd names and mibs: %u led somewhere", found);
}

/* ------------------------------------------------------------------ */
/* Statistics */

static void
statistics(void)
{
	static unsigned char *p;
	uint64_t epoch = refresh();
	size_t before = get_size("stats.allocated");
	size_t now;
	bool ok;

	p = p_malloc(100 * MIB);
	if (p == NULL)
		tap_bail("no memory");
	memset(p, 1, 100 * MIB);
	tap_ok(get_size("stats.allocated") == before,
	    "statistics stand still until the next epoch");
	tap_ok(refresh() == epoch + 1 && get_size("epoch") == epoch + 1,
	    "an epoch is one more than the last");
	now = get_size("stats.allocated");
	ok = near(now, before + 100 * MIB, 0);
	ok &= get_size("stats.active") >= now &&
	      get_size("stats.resident") >= now &&
	      get_size("stats.mapped") >= get_size("stats.resident");
	tap_ok(ok, "100 MiB more are 100 MiB more");
	ok = size_of_arena("stats.arenas.4096.large.allocated", 0) >= 100 * MIB;
	/* 96 MiB to 112 MiB. */
	ok &=
	    size_of_arena("stats.arenas.4096.lextents.%u.curlextents", 51) == 1;
	tap_ok(ok, "and one large block of their class");
	p_free(p);
	(void)refresh();
	ok = near(get_size("stats.allocated"), before, 0);
	tap_ok(ok, "freed, they are gone");
	ok = mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0;
	(void)refresh();
	ok &= get_size("eddy.dirty") == 0 &&
	      size_of_arena("stats.arenas.4096.pdirty", 0) == 0 &&
	      size_of_arena("stats.arenas.4096.dirty_purged", 0) >=
		  100 * MIB / PAGE;
	tap_ok(ok, "purged, nothing is dirty");
	for (size_t i = 0; i < 1000; i++)
		p_free(p_malloc(8 + 8 * (i % 700)));
	(void)refresh();
	ok = size_of_arena("stats.arenas.4096.tcache_bytes", 0) != 0;
	ok &= mallctl("arena.0.purge", NULL, NULL, NULL, 0) == 0;
	(void)refresh();
	tap_ok(ok && size_of_arena("stats.arenas.4096.tcache_bytes", 0) == 0,
	    "nor does a cache hold anything, and pin its pages");
}

/* Arenas add up to all of them, size classes to the arena. */
static void
sums(void)
{
	unsigned n = get_unsigned("arenas.narenas");
	size_t active = 0;
	size_t small = 0;
	size_t large = 0;
	size_t cached = 0;
	size_t regs = 0;
	size_t blocks = 0;
	void *p[40];
	bool ok;

	for (unsigned i = 0; i < COUNT(p); i++)
		p[i] = p_malloc((size_t)9 << i % 20);
	(void)refresh();
	for (unsigned i = 0; i < n; i++) {
		active += size_of_arena("stats.arenas.%u.pactive", i) * PAGE;
		small += size_of_arena("stats.arenas.%u.small.allocated", i);
		large += size_of_arena("stats.arenas.%u.large.allocated", i);
		cached += size_of_arena("stats.arenas.%u.tcache_bytes", i);
	}
	ok = active == get_size("stats.active") &&
	     small + large == get_size("stats.allocated") &&
	     cached == get_size("eddy.stranded");
	ok &= small == get_size("stats.arenas.4096.small.allocated") &&
	      large == get_size("stats.arenas.4096.large.allocated") &&
	      cached == get_size("stats.arenas.4096.tcache_bytes");
	tap_ok(ok, "arenas add up to all");
	for (unsigned j = 0; j < get_unsigned("arenas.nbins"); j++)
		regs += size_of_arena("stats.arenas.4096.bins.%u.curregs", j) *
			size_of_arena("arenas.bin.%u.size", j);
	for (unsigned j = 0; j < 196; j++)
		blocks += size_of_arena(
		    "stats.arenas.4096.lextents.%u.curlextents", j);
	ok = regs >= small && regs <= small + cached && blocks > 8;
	tap_ok(ok, "size classes add up to their arena");
	for (unsigned i = 0; i < COUNT(p); i++)
		p_free(p[i]);
}

static void
free_runs(void)
{
	size_t dirty = 0;
	size_t pages = 0;

	p_free(p_malloc(300 * KIB));
	(void)refresh();
	for (unsigned j = 0; j < 199; j++) {
		size_t n =
		    size_of_arena("stats.arenas.4096.extents.%u.ndirty", j);
		size_t bytes = size_of_arena(
		    "stats.arenas.4096.extents.%u.dirty_bytes", j);
		size_t least =
		    j < 3 ? (size_t)(j + 1) * PAGE
			  : size_of_arena("arenas.lextent.%u.size", j - 3);

		dirty += bytes;
		pages += n;
		if (bytes < n * least)
			tap_diag("class %u: %zu bytes in %zu", j, bytes, n);
	}
	tap_ok(pages != 0 && dirty <= get_size("eddy.dirty"),
	    "free runs have their classes");
}

/* The classes that jemalloc has. */
static void
classes(void)
{
	static const struct {
		unsigned short size, nregs, pages;
	} want[] = {{8, 512, 1}, {16, 256, 1}, {24, 512, 3}, {32, 128, 1},
	    {40, 512, 5}, {48, 256, 3}, {56, 512, 7}, {64, 64, 1}, {80, 256, 5},
	    {96, 128, 3}, {112, 256, 7}, {128, 32, 1}, {160, 128, 5},
	    {192, 64, 3}, {224, 128, 7}, {256, 16, 1}, {320, 64, 5},
	    {384, 32, 3}, {448, 64, 7}, {512, 8, 1}, {640, 32, 5}, {768, 16, 3},
	    {896, 32, 7}, {1024, 4, 1}, {1280, 16, 5}, {1536, 8, 3},
	    {1792, 16, 7}, {2048, 2, 1}, {2560, 8, 5}, {3072, 4, 3},
	    {3584, 8, 7}, {4096, 1, 1}, {5120, 4, 5}, {6144, 2, 3},
	    {7168, 4, 7}, {8192, 1, 2}, {10240, 2, 5}, {12288, 1, 3},
	    {14336, 2, 7}};
	size_t size = 16384;
	/* Those that a quantum of 16 does not have. */
	const unsigned n_odd = get_size("arenas.quantum") == 8 ? 0 : 3;
	bool ok = get_unsigned("arenas.nbins") == COUNT(want) - n_odd;

	for (unsigned k = 0, i = 0; k < COUNT(want); k++) {
		char name[40];

		if (n_odd != 0 && want[k].size < 64 && want[k].size % 16 == 8 &&
		    want[k].size != 8)
			continue;
		(void)snprintf(name, sizeof name, "arenas.bin.%u.nregs", i);
		ok &= get_unsigned(name) == want[k].nregs &&
		      size_of_arena("arenas.bin.%u.size", i) == want[k].size &&
		      size_of_arena("arenas.bin.%u.slab_size", i) ==
			  (size_t)want[k].pages * PAGE;
		i++;
	}
	tap_ok(ok, "small size classes are jemalloc's");
	ok = get_unsigned("arenas.nlextents") == 196;
	for (unsigned i = 0; i < 196; i++) {
		ok &= size_of_arena("arenas.lextent.%u.size", i) == size;
		/* Four steps in each doubling. */
		size += ((size_t)4096 << i / 4);
	}
	tap_ok(ok && size_of_arena("arenas.lextent.%u.size", 195) == (size_t)7
									 << 60,
	    "large ones, too");
}

/* ------------------------------------------------------------------ */
/* Arenas */

static void
decay_times(void)
{
	int64_t ms = -2;
	int64_t old = 0;
	size_t len = 8;
	bool ok;

	ok = mallctl("arena.0.dirty_decay_ms", NULL, NULL, &ms, 8) == EFAULT &&
	     mallctl("arenas.muzzy_decay_ms", NULL, NULL, &ms, 8) == EFAULT;
	ms = -1;
	ok &= mallctl("arena.0.dirty_decay_ms", &old, &len, &ms, 8) == 0 &&
	      old == 10000;
	ms = 10000;
	ok &= mallctl("arena.0.dirty_decay_ms", &old, &len, &ms, 8) == 0 &&
	      old == -1;
	tap_ok(ok, "decay times from -1 on, the old one is read");
	ms = 77;
	ok = mallctl("arenas.muzzy_decay_ms", &old, &len, &ms, 8) == 0 &&
	     old == 0 &&
	     mallctl("arena.0.muzzy_decay_ms", &old, &len, NULL, 0) == 0 &&
	     old == 0;
	tap_ok(ok, "a new default leaves the arenas that are there");
}

/* After decay_times. */
static void
created(void)
{
	unsigned n = get_unsigned("arenas.narenas");
	unsigned arena = 0;
	unsigned other;
	int64_t ms;
	size_t len = sizeof arena;
	char *p;
	char text[32];
	char *name = text;
	const char *given = "tables, of which there are many";
	bool ok = mallctl("arenas.create", &arena, &len, NULL, 0) == 0;

	tap_ok(ok && arena == n && get_unsigned("arenas.narenas") == n + 1,
	    "a created arena has the next index");
	ok = size_of_arena("stats.arenas.%u.pactive", arena) == 0;
	p = eddy_arena_malloc(arena + 1, 1000);
	if (p == NULL)
		tap_bail("nothing from an arena");
	ok &= size_of_arena("stats.arenas.%u.pactive", arena) == 0;
	(void)refresh();
	ok &= size_of_arena("stats.arenas.%u.pactive", arena) == 1 &&
	      size_of_arena("stats.arenas.%u.small.allocated", arena) == 1024;
	tap_ok(ok, "what it holds is in the next statistics");
	len = 8;
	(void)snprintf(text, sizeof text, "arena.%u.muzzy_decay_ms", arena);
	tap_ok(mallctl(text, &ms, &len, NULL, 0) == 0 && ms == 77,
	    "it has the new default of decay times");

	len = sizeof other;
	ok = mallctl("arenas.lookup", &other, &len, &p, sizeof p) == 0 &&
	     other == arena;
	p += 999;
	ok &= mallctl("arenas.lookup", &other, &len, &p, sizeof p) == 0 &&
	      other == arena;
	p -= 999;
	tap_ok(ok, "a pointer into its block leads to it");

	len = sizeof name;
	(void)snprintf(text, sizeof text, "arena.%u.name", arena);
	ok = mallctl(text, &name, &len, NULL, 0) == 0;
	(void)snprintf(text, sizeof text, "arena.%u.name", arena);
	ok &= mallctl(text, NULL, NULL, &given, sizeof given) == 0;
	ok &= mallctl(text, &name, &len, NULL, 0) == 0 &&
	      strcmp(text, given) == 0;
	(void)snprintf(text, sizeof text, "arena.%u.name", arena);
	given = "a name of so many letters is too long";
	ok &= mallctl(text, NULL, NULL, &given, sizeof given) == 0;
	ok &= mallctl(text, &name, &len, NULL, 0) == 0 &&
	      strcmp(text, "a name of so many letters is to") == 0;
	ok &= mallctl("arena.4096.name", &name, &len, NULL, 0) == EINVAL;
	tap_ok(ok, "it is named by 31 bytes at most");
	ok = mallctl("arena.0.name", &name, &len, NULL, 0) == 0 &&
	     strcmp(text, "auto_0") == 0;
	tap_ok(ok, "arena 0 is named auto_0");
	p_free(p);
}

static void
creation_refused(void)
{
	unsigned n = get_unsigned("arenas.narenas");
	unsigned v[2] = {7, 7};
	void *hooks = v;
	size_t len = 2;
	bool ok =
	    mallctl("arenas.create", v, &len, NULL, 0) == EINVAL && len == 0;

	len = 8;
	ok &= mallctl("arenas.create", v, &len, NULL, 0) == EINVAL && len == 0;
	len = 4;
	ok &=
	    mallctl("arenas.create", NULL, &len, NULL, 0) == EINVAL && len == 0;
	ok &= mallctl("arenas.create", NULL, NULL, NULL, 0) == EINVAL;
	len = 4;
	ok &= mallctl("arenas.create", v, &len, &hooks, 4) == EINVAL;
	len = 4;
	ok &= mallctl("experimental.arenas_create_ext", v, &len, &hooks, 8) ==
	      EINVAL;
	tap_ok(ok && v[0] == 7 && get_unsigned("arenas.narenas") == n,
	    "what cannot take its index creates no arena");
}

static void
created_ext(void)
{
	struct {
		void *hooks;
		bool for_metadata;
	} config = {NULL, false};
	unsigned n = get_unsigned("arenas.narenas");
	unsigned arena;
	size_t *active = NULL;
	size_t len = sizeof arena;
	char name[64];
	void *p;
	bool ok = mallctl("experimental.arenas_create_ext", &arena, &len,
		      &config, sizeof config) == 0 &&
		  arena == n;

	len = sizeof active;
	(void)snprintf(
	    name, sizeof name, "experimental.arenas.%u.pactivep", arena);
	ok &= mallctl(name, &active, &len, NULL, 0) == 0 && *active == 0;
	p = eddy_arena_malloc(arena + 1, 64 * KIB);
	ok &= *active == 16;
	p_free(p);
	ok &= *active == 0;
	tap_ok(ok, "another has a word that tells its pages in use");
}

static void
lookups(void)
{
	static int at;
	uint64_t rng = tap.seed;
	unsigned arena = 7;
	size_t len = sizeof arena;
	void *p = NULL;
	unsigned found = 0;
	bool ok = mallctl("arenas.lookup", &arena, &len, &p, 8) == EINVAL;

	p = &at;
	ok &= mallctl("arenas.lookup", &arena, &len, &p, 8) == EINVAL;
	p = &len;
	ok &= mallctl("arenas.lookup", &arena, &len, &p, 8) == EINVAL;
	ok &= arena == 7 &&
	      mallctl("arenas.lookup", &arena, &len, NULL, 0) == EINVAL;
	for (unsigned i = 0; i < 100000; i++) {
		p = (void *)(uintptr_t)(tap_random(&rng) >>
					tap_random(&rng) % 64);
		found += mallctl("arenas.lookup", &arena, &len, &p, 8) == 0;
	}
	tap_ok(ok, "no address is too foreign to be looked up (%u were not)",
	    found);
}

static void
kept_settings(void)
{
	size_t v = 5000;
	size_t old;
	size_t len = 8;
	bool ok =
	    mallctl("arena.0.retain_grow_limit", &old, &len, &v, 8) == 0 &&
	    old == (size_t)7 << 60;

	ok &= mallctl("arena.0.retain_grow_limit", &old, &len, NULL, 0) == 0 &&
	      old == 4096;
	v = 4095;
	ok &= mallctl("arena.0.retain_grow_limit", NULL, NULL, &v, 8) == EFAULT;
	v = SIZE_MAX;
	ok &= mallctl("arena.0.retain_grow_limit", NULL, NULL, &v, 8) == 0 &&
	      get_size("arena.0.retain_grow_limit") == (size_t)7 << 60;
	v = 12345;
	ok &= mallctl("arena.0.oversize_threshold", &old, &len, &v, 8) == 0 &&
	      old == get_size("opt.oversize_threshold") &&
	      get_size("arena.0.oversize_threshold") == 12345;
	ok &= mallctl("arena.4096.oversize_threshold", &old, &len, NULL, 0) ==
	      EFAULT;
	tap_ok(ok, "a limit of growth and a threshold are kept");
}

/* ------------------------------------------------------------------ */
/* Utilization */

struct use {
	size_t nfree, nregs, size;
};

static void
utilization(void)
{
	static int at;
	char *small = p_malloc(1000);
	char *large = p_malloc(100 * KIB);
	char *huge = p_malloc(5 * MIB);
	void *p[6] = {small, small + 500, large, large + 5000, &at, NULL};
	struct use u[6];
	struct {
		void *slab;
		struct use use;
		size_t bin_nfree, bin_nregs;
	} one;
	size_t len = sizeof u;
	size_t mapped = 100 * KIB;
	bool ok;

	ok = mallctl("experimental.utilization.batch_query", u, &len, p,
		 sizeof p) == 0;
	ok &= u[0].nregs == 4 && u[0].size == PAGE && u[0].nfree < 4;
	ok &= memcmp(&u[0], &u[1], sizeof u[0]) == 0;
	ok &= u[2].nfree == 0 && u[2].nregs == 1 && u[2].size == mapped;
	for (size_t i = 3; i < 6; i++)
		ok &= u[i].nfree == 0 && u[i].nregs == 0 && u[i].size == 0;
	p[0] = huge;
	len = sizeof u[0];
	ok &= mallctl("experimental.utilization.batch_query", u, &len, p,
		  sizeof p[0]) == 0 &&
	      u[0].nregs == 1 && u[0].size == 5 * MIB;
	tap_ok(ok, "slabs of pointers, foreign ones too");
	len = sizeof u - 1;
	ok = mallctl("experimental.utilization.batch_query", u, &len, p,
		 sizeof p) == EINVAL;
	len = sizeof u;
	ok &= mallctl("experimental.utilization.batch_query", u, &len, p, 9) ==
		  EINVAL &&
	      mallctl("experimental.utilization.batch_query", u, &len, NULL,
		  0) == EINVAL &&
	      mallctl("experimental.utilization.batch_query", NULL, NULL, p,
		  sizeof p) == EINVAL;
	tap_ok(ok, "sizes that do not go together are refused");
	(void)refresh();
	p[0] = small;
	len = sizeof one;
	ok = mallctl("experimental.utilization.query", &one, &len, p, 8) == 0;
	ok &= one.use.nregs == 4 && one.bin_nregs >= 4 &&
	      one.bin_nregs % 4 == 0 && one.bin_nfree < one.bin_nregs;
	len = 8;
	ok &= mallctl("experimental.utilization.query", &one, &len, p, 8) ==
	      EINVAL;
	tap_ok(ok, "one pointer, and its class");
	p_free(small);
	p_free(large);
	p_free(huge);
}

/* ------------------------------------------------------------------ */
/* The calling thread */

static void
without_cache(void)
{
	bool on = false;
	bool was = false;
	size_t len = sizeof was;
	size_t cached;
	void *p[100];
	bool ok =
	    mallctl("thread.tcache.enabled", &was, &len, &on, 1) == 0 && was;

	(void)refresh();
	cached = get_size("eddy.stranded");
	for (unsigned i = 0; i < COUNT(p); i++)
		p[i] = p_malloc(640);
	for (unsigned i = 0; i < COUNT(p); i++)
		p_free(p[i]);
	(void)refresh();
	ok &= get_size("eddy.stranded") == cached;
	ok &= mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == EFAULT;
	tap_ok(ok, "a thread may do without caches");
	on = true;
	ok = mallctl("thread.tcache.enabled", &was, &len, &on, 1) == 0 && !was;
	for (unsigned i = 0; i < COUNT(p); i++)
		p[i] = p_malloc(640);
	for (unsigned i = 0; i < COUNT(p); i++)
		p_free(p[i]);
	(void)refresh();
	tap_ok(ok && get_size("eddy.stranded") > cached, "and have them back");
}

static void
thread_arena(void)
{
	unsigned n = get_unsigned("arenas.narenas");
	unsigned old;
	size_t len = sizeof old;
	unsigned v = n;
	bool ok = mallctl("thread.arena", NULL, NULL, &v, 4) == EFAULT;

	v = n - 1; /* created */
	ok &= mallctl("thread.arena", &old, &len, &v, 4) == 0 && old == 0;
	ok &= get_unsigned("thread.arena") == v;
	ok &= mallctl("thread.arena", &v, &len, &old, 4) == 0 && v == n - 1;
	tap_ok(ok, "a thread may be bound to an arena");
}

static void
zero_reallocs(void)
{
	size_t before = get_size("stats.zero_reallocs");

	(void)p_realloc(p_malloc(10), 0);
	tap_ok(get_size("stats.zero_reallocs") == before + 1,
	    "realloc to nothing is counted at once");
}

/* ------------------------------------------------------------------ */
/* Many at once */

enum { WORKERS = 3, BLOCK = 3 * MIB };

static struct flag over;
static atomic_uint wrong;

/* What a thread did before an epoch is in what it reads after. */
static void *
asks(void *arg)
{
	uint64_t last = 0;

	(void)arg;
	while (!flag_is_set(&over)) {
		void *p = p_malloc(BLOCK);
		uint64_t epoch = refresh();

		/* All others may have freed theirs, not this one. */
		if (get_size("stats.allocated") < BLOCK || epoch <= last ||
		    get_size("epoch") < epoch)
			atomic_fetch_add(&wrong, 1);
		last = epoch;
		p_free(p);
	}
	return NULL;
}

static void
on_timer(int sig)
{
	size_t v = 0;
	size_t len = sizeof v;
	uint64_t epoch = 1;

	(void)sig;
	if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0 ||
	    mallctl("stats.active", &v, &len, NULL, 0) != 0 || v == 0)
		atomic_fetch_add(&wrong, 1);
}

/* Arenas are created, so that buffers are replaced. */
static void *
creates(void *arg)
{
	for (unsigned i = 0; i < 100 && !flag_is_set(&over); i++) {
		unsigned arena;
		size_t len = sizeof arena;

		(void)mallctl("arenas.create", &arena, &len, NULL, 0);
		(void)refresh();
		if (size_of_arena("stats.arenas.%u.pactive", arena) != 0)
			atomic_fetch_add(&wrong, 1);
	}
	return arg;
}

/* Names of one letter, so that a mixture shows. */
static void *
names_arena(void *arg)
{
	char name[32] = {0};
	char read[32];
	const char *given = name;
	char *into = read;
	size_t len = sizeof into;

	for (unsigned i = 0; !flag_is_set(&over); i++) {
		memset(name, 'a' + (int)(i % 26), 31);
		if (mallctl("arena.0.name", NULL, NULL, &given, 8) != 0 ||
		    mallctl("arena.0.name", &into, &len, NULL, 0) != 0)
			atomic_fetch_add(&wrong, 1);
		for (unsigned k = 1; k < 31; k++)
			if (read[k] != read[0])
				atomic_fetch_add(&wrong, 1);
	}
	return arg;
}

static void
many_at_once(void)
{
	struct itimerval every = {{0, 3000}, {0, 3000}};
	struct itimerval never = {{0, 0}, {0, 0}};
	pthread_t t[WORKERS + 3];
	unsigned n = 0;

	signal(SIGALRM, SIG_DFL);
	signal(SIGPROF, on_timer);
	for (; n < WORKERS; n++)
		(void)pthread_create(&t[n], NULL, asks, NULL);
	(void)pthread_create(&t[n++], NULL, names_arena, NULL);
	(void)pthread_create(&t[n++], NULL, names_arena, NULL);
	(void)pthread_create(&t[n++], NULL, creates, NULL);
	(void)setitimer(ITIMER_PROF, &every, NULL);
	for (unsigned i = 0; i < 30; i++) {
		int status = 0;
		pid_t pid = fork();

		/* The child is a process whose other threads are gone. */
		if (pid == 0) {
			for (unsigned k = 0; k < 3; k++)
				(void)refresh();
			_exit(get_size("stats.active") == 0);
		}
		(void)waitpid(pid, &status, 0);
		if (status != 0)
			atomic_fetch_add(&wrong, 1);
		(void)usleep(20000);
	}
	(void)setitimer(ITIMER_PROF, &never, NULL);
	flag_set(&over);
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(t[i], NULL);
	tap_ok(wrong == 0,
	    "threads, handlers and children refresh at once (%u wrong)", wrong);
}

/* ------------------------------------------------------------------ */
/* Threads that stop, or end, at any instruction of a refresh */

enum { VICTIMS = 20 };

static struct flag thaw;
static atomic_uint stopped;

static void
on_stop(int sig)
{
	if (sig == SIGUSR2)
		(void)syscall(SYS_exit, 0); /* this thread alone */
	atomic_fetch_add(&stopped, 1);
	while (!flag_is_set(&thaw))
		(void)usleep(1000);
}

static void *
refreshes(void *arg)
{
	struct flag *go = arg;

	while (flag_is_set(go))
		(void)refresh();
	return NULL;
}

static void
stopped_in_a_refresh(int sig)
{
	static struct flag go;
	pthread_t t[VICTIMS];
	uint64_t rng = tap.seed;
	uint64_t epoch = refresh();
	bool ok = true;

	flag_set(&go);
	flag_clear(&thaw);
	atomic_store(&stopped, 0);
	(void)signal(sig, on_stop);
	for (unsigned i = 0; i < VICTIMS; i++) {
		(void)pthread_create(&t[i], NULL, refreshes, &go);
		(void)usleep((useconds_t)(1000 + tap_random(&rng) % 2000));
		(void)pthread_kill(t[i], sig);
		for (unsigned k = 0;
		     sig == SIGUSR1 && k < 5000 && atomic_load(&stopped) <= i;
		     k++)
			(void)usleep(1000);
	}
	for (unsigned i = 0; i < 100; i++) {
		uint64_t next = refresh();

		ok &= next > epoch && get_size("epoch") == next &&
		      get_size("stats.active") != 0;
		epoch = next;
	}
	flag_clear(&go);
	flag_set(&thaw);
	if (sig == SIGUSR1)
		for (unsigned i = 0; i < VICTIMS; i++)
			(void)pthread_join(t[i], NULL);
	tap_ok(ok, "%d threads %s at a refresh hold nobody up", VICTIMS,
	    sig == SIGUSR1 ? "stopped" : "killed");
}

int
main(int argc, char **argv)
{
	void *keep;

	(void)argc;
	tap_begin(argv);
	tap_guard(120);
	if (mallctl == NULL)
		tap_bail("no mallctl");
	tap_ok(get_size("epoch") == 1, "the first epoch is 1");
	tap_ok(act("arena.%u.dirty_decay_ms", 0) == 0,
	    "arena 0 is there before anything is allocated");
	p_free(p_malloc(100));
	keep = p_malloc(100);
	redis();
	redis_debug();
	clickhouse();
	folly_memory_idler();
	other_programs();
	rust();
	odd_names();
	noise();
	classes();
	statistics();
	sums();
	free_runs();
	decay_times();
	created();
	creation_refused();
	created_ext();
	lookups();
	kept_settings();
	utilization();
	p_free(p_malloc(640));
	(void)refresh();
	if (get_size("eddy.stranded") != 0)
		without_cache();
	thread_arena();
	zero_reallocs();
	many_at_once();
	stopped_in_a_refresh(SIGUSR1);
	stopped_in_a_refresh(SIGUSR2);
	p_free(keep);
	return tap_end();
}
