/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_reset.c - arena.<i>.reset and arena.<i>.destroy: all blocks of an arena
 * end at once, and arenas end and begin again.
 *
 * Arguments: "late": a block is freed after its arena ended; "small": the same
 * ranges again and again; "race": blocks are freed while the arena is reset.
 */
#include "allocx_api.h"

#define N_THREADS 4
#define NONE      MALLOCX_TCACHE_NONE

static const size_t sizes[] = {
    1, 16, 100, 500, 2048, 14336, 16384, 65536, 100000, MIB, 3 << 20, 64 << 20};

/* A bit of everything, a whole GiB and more if giant. */
static void
fill(unsigned arena, bool giant)
{
	int flags = MALLOCX_ARENA(arena) | NONE;

	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t k = 0; k < (sizes[i] < MIB ? 700 : 3); k++) {
			char *p = x.mallocx(sizes[i], flags);

			if (p == NULL)
				tap_bail("no memory");
			memset(p, 0x61, sizes[i] < MIB ? sizes[i] : 4096);
			/* Holes. */
			if (k % 3 == 0)
				x.dallocx(p, NONE);
		}
	if (giant && x.mallocx((size_t)2500 << 20, flags) == NULL)
		tap_bail("no giant");
}

static bool
is_empty(unsigned arena)
{
	size_t active;

	ctl_epoch();
	active = ctl_size("stats.arenas.%u.pactive", arena);
	if (active != 0)
		tap_diag("%zu pages in use", active);
	return active == 0 &&
	       ctl_size("stats.arenas.%u.small.allocated", arena) == 0 &&
	       ctl_size("stats.arenas.%u.large.allocated", arena) == 0;
}

static size_t
resident_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%*s %ld", &pages) != 1)
		tap_bail("statm");
	(void)fclose(f);
	return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) / KIB;
}

/* ---- reset ---- */

static void
test_reset(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned other = ctl_unsigned("arenas.create");
	unsigned char *kept = x.mallocx(100000, MALLOCX_ARENA(other) | NONE);
	bool empty = true;

	memset(kept, 0x62, 100000);
	for (int i = 0; i < 4; i++) {
		fill(a, i == 2);
		empty &= ctl_do("arena.%u.reset", a) == 0 && is_empty(a);
	}
	tap_ok(empty, "a reset frees blocks of all sizes, four times");
	tap_ok(filled(kept, 0x62, 100000), "and not those of another arena");
	tap_ok(ctl_do("arena.%u.reset", a) == 0 && is_empty(a),
	    "an empty arena stays so");
	fill(a, false);
	tap_ok(!is_empty(a), "and can be used again");
	x.dallocx(kept, NONE);
	tap_ok(ctl_do("arena.%u.destroy", a) == 0 &&
		   ctl_do("arena.%u.destroy", other) == 0,
	    "they end");
}

static void
test_cached(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned id = ctl_unsigned("tcache.create");
	int flags = MALLOCX_ARENA(a) | MALLOCX_TCACHE(id);
	bool distinct = true;
	void *p[200];

	for (size_t i = 0; i < COUNT(p); i++)
		p[i] = x.mallocx(100, flags);
	for (size_t i = 0; i < COUNT(p); i++)
		x.dallocx(p[i], flags);
	tap_ok(ctl_do("arena.%u.reset", a) == 0 && is_empty(a),
	    "what caches of the program hold is freed, too");
	for (size_t i = 0; i < COUNT(p); i++) {
		p[i] = x.mallocx(100, flags);
		for (size_t k = 0; k < i; k++)
			distinct &= p[i] != p[k];
	}
	tap_ok(distinct, "and no block is given out twice after that");
	(void)ctl_do("arena.%u.destroy", a);
	(void)ctl_write_unsigned("tcache.destroy", id);
}

static void
test_rules(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned n = ctl_unsigned("arenas.narenas");

	tap_ok(ctl_do("arena.0.reset") == EFAULT &&
		   ctl_do("arena.0.destroy") == EFAULT &&
		   ctl_do("arena.4096.reset") == EFAULT &&
		   ctl_do("arena.4096.destroy") == EFAULT &&
		   ctl_do("arena.%u.destroy", n) == EFAULT &&
		   ctl_do("arena.%u.destroy", n + 1) == ENOENT,
	    "EFAULT for arenas of malloc, and for all");
	tap_ok(ctl_do("arena.%u.destroy", a) == 0 &&
		   ctl_do("arena.%u.destroy", a) == EFAULT &&
		   ctl_do("arena.%u.reset", a) == EFAULT,
	    "EFAULT for an arena that has ended");
}

/* ---- destroy ---- */

static void
test_again(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned b = ctl_unsigned("arenas.create");
	unsigned n = ctl_unsigned("arenas.narenas");
	char name[32] = "";
	char *into = name;
	size_t len = sizeof into;
	const char *given = "mine";
	char ctl[64];
	ssize_t ms = 77;
	bool is = true;
	size_t one = sizeof is;
	size_t size;
	size_t eight = sizeof size;

	(void)snprintf(ctl, sizeof ctl, "arena.%u.name", a);
	(void)x.ctl(ctl, NULL, NULL, &given, sizeof given);
	(void)snprintf(ctl, sizeof ctl, "arena.%u.dirty_decay_ms", a);
	(void)x.ctl(ctl, NULL, NULL, &ms, sizeof ms);
	fill(a, true);
	tap_ok(ctl_do("arena.%u.destroy", a) == 0, "an arena ends");
	(void)snprintf(ctl, sizeof ctl, "arena.%u.initialized", a);
	tap_ok(x.ctl(ctl, &is, &one, NULL, 0) == 0 && !is,
	    "and is not initialized");
	(void)snprintf(ctl, sizeof ctl, "stats.arenas.%u.pactive", a);
	tap_ok(x.ctl(ctl, &size, &eight, NULL, 0) == ENOENT,
	    "nor has it statistics");
	(void)snprintf(ctl, sizeof ctl, "arena.%u.dirty_decay_ms", a);
	tap_ok(x.ctl(ctl, &ms, &eight, NULL, 0) == EFAULT, "nor a decay time");
	tap_ok(x.mallocx(10, MALLOCX_ARENA(a) | NONE) != NULL,
	    "a call that names it gets memory all the same");
	tap_ok(ctl_unsigned("arenas.create") == a &&
		   ctl_unsigned("arenas.narenas") == n,
	    "its number is that of the next");
	ms = 77;
	(void)x.ctl(ctl, &ms, &eight, NULL, 0);
	(void)snprintf(ctl, sizeof ctl, "arena.%u.name", a);
	(void)x.ctl(ctl, &into, &len, NULL, 0);
	(void)snprintf(ctl, sizeof ctl, "manual_%u", a);
	tap_ok(ms == 10000 && strcmp(name, ctl) == 0,
	    "which has neither its decay time nor its name");
	tap_ok(is_empty(a), "nor its blocks");
	fill(a, false);
	tap_ok(ctl_do("arena.%u.destroy", a) == 0 &&
		   ctl_do("arena.%u.destroy", b) == 0,
	    "and ends as well");
	tap_ok(ctl_unsigned("arenas.create") == a &&
		   ctl_unsigned("arenas.create") == b,
	    "the lowest number first");
	(void)ctl_do("arena.%u.destroy", a);
	(void)ctl_do("arena.%u.destroy", b);
}

/* What was kept though empty goes as well. */
static void
test_addresses(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	void *p = x.mallocx(100, MALLOCX_ARENA(a) | NONE);
	unsigned of = 0;
	size_t n = sizeof of;

	(void)ctl_do("arena.%u.destroy", a);
	tap_ok(x.ctl("arenas.lookup", &of, &n, &p, sizeof p) == EINVAL,
	    "its addresses are nobody's");
}

static void
test_memory(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	size_t before = resident_kib();
	size_t during;
	size_t after;

	for (int i = 0; i < 4000; i++)
		memset(x.mallocx(50000, MALLOCX_ARENA(a) | NONE), 1, 50000);
	during = resident_kib();
	(void)ctl_do("arena.%u.destroy", a);
	after = resident_kib();
	tap_ok(during > before + 150000 && after < before + 20000,
	    "its memory goes back to the kernel: %zu, %zu, %zu KiB", before,
	    during, after);
}

static void
test_sum(void)
{
	size_t before = ctl_size("stats.arenas.4097.small.ndalloc");
	unsigned a = ctl_unsigned("arenas.create");
	bool is = false;
	size_t one = sizeof is;

	for (int i = 0; i < 123; i++)
		(void)x.mallocx(100, MALLOCX_ARENA(a) | NONE);
	(void)ctl_do("arena.%u.destroy", a);
	ctl_epoch();
	tap_ok(ctl_size("stats.arenas.4097.small.ndalloc") == before + 123 &&
		   ctl_size("stats.arenas.4097.small.allocated") == 0 &&
		   ctl_size("stats.arenas.4097.bins.%u.nmalloc",
		       ctl_bin(100)) >= 123,
	    "4097 counts what arenas had when they ended");
	tap_ok(x.ctl("arena.4097.initialized", &is, &one, NULL, 0) == 0 && is,
	    "and is there since the first did");
}

/* ---- threads ---- */

static void *
rounds(void *arg)
{
	for (int k = 0; k < 60; k++) {
		unsigned a = ctl_unsigned("arenas.create");
		int flags = MALLOCX_ARENA(a) | NONE;
		unsigned char *p[300];

		for (size_t i = 0; i < COUNT(p); i++) {
			p[i] = x.mallocx(16 + i * 50, flags);
			memset(p[i], (int)(uintptr_t)arg, 16 + i * 50);
		}
		for (size_t i = 0; i < COUNT(p); i++)
			if (!filled(p[i], (int)(uintptr_t)arg, 16 + i * 50))
				return "torn";
		for (size_t i = 0; i < COUNT(p); i += 2)
			x.dallocx(p[i], NONE);
		if (k % 2 == 1 && (ctl_do("arena.%u.reset", a) != 0 ||
				      x.mallocx(5000, flags) == NULL))
			return "reset";
		if (ctl_do("arena.%u.destroy", a) != 0)
			return "destroy";
		p_free(p_malloc(3000));
	}
	return NULL;
}

static void
test_threads(void)
{
	unsigned before = ctl_unsigned("arenas.narenas");
	pthread_t t[N_THREADS];
	const char *fault = NULL;
	unsigned after;

	for (uintptr_t i = 0; i < N_THREADS; i++)
		if (pthread_create(&t[i], NULL, rounds, (void *)(i + 1)) != 0)
			tap_bail("pthread_create");
	for (int i = 0; i < N_THREADS; i++) {
		void *r;

		(void)pthread_join(t[i], &r);
		fault = r != NULL ? r : fault;
	}
	after = ctl_unsigned("arenas.narenas");
	tap_ok(fault == NULL, "4 threads make and end 240 arenas%s%s",
	    fault != NULL ? ": " : "", fault != NULL ? fault : "");
	tap_ok(after <= before + N_THREADS, "of %u numbers", after);
}

/* ---- surroundings ---- */

static int
late(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	void *p = x.mallocx(100, MALLOCX_ARENA(a) | NONE);

	(void)ctl_do("arena.%u.destroy", a);
	p_free(p);
	return 0;
}

static int
late_reset(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	void *p = x.mallocx(100000, MALLOCX_ARENA(a) | NONE);

	(void)ctl_do("arena.%u.reset", a);
	p_free(p);
	return 0;
}

/* 8 GiB of addresses, hundreds of GiB in all. */
static int
small(void)
{
	for (int i = 0; i < 300; i++) {
		unsigned a = ctl_unsigned("arenas.create");
		int flags = MALLOCX_ARENA(a) | NONE;
		char *p = x.mallocx((size_t)1500 << 20, flags);
		char *q = x.mallocx((size_t)700 << 20, flags);

		if (p == NULL || q == NULL || x.mallocx(100, flags) == NULL)
			return 1;
		*p = *q = 1;
		if (ctl_do("arena.%u.destroy", a) != 0)
			return 2;
	}
	return ctl_unsigned("arenas.narenas") < 5 ? 0 : 3;
}

static struct {
	void *block[20000];
	atomic_int go;
} race;

static void *
free_late(void *arg)
{
	(void)arg;
	while (atomic_load(&race.go) == 0)
		;
	for (size_t i = 0; i < COUNT(race.block); i++)
		x.dallocx(race.block[i], NONE);
	return NULL;
}

/* What no program may do: another arena does not suffer. */
static int
race_with_reset(void)
{
	unsigned a = ctl_unsigned("arenas.create");
	unsigned b = ctl_unsigned("arenas.create");
	unsigned char *kept[2000];
	pthread_t t;

	for (size_t i = 0; i < COUNT(race.block); i++)
		race.block[i] =
		    x.mallocx(16 + i % 2000, MALLOCX_ARENA(a) | NONE);
	for (size_t i = 0; i < COUNT(kept); i++) {
		kept[i] = x.mallocx(500, MALLOCX_ARENA(b) | NONE);
		memset(kept[i], 0x63, 500);
	}
	if (pthread_create(&t, NULL, free_late, NULL) != 0)
		return 1;
	atomic_store(&race.go, 1);
	(void)ctl_do("arena.%u.reset", a);
	(void)pthread_join(t, NULL);
	for (size_t i = 0; i < COUNT(kept); i++) {
		if (!filled(kept[i], 0x63, 500))
			return 2;
		x.dallocx(kept[i], NONE);
	}
	return is_empty(b) ? 0 : 3;
}

/* Runs the argument; whether it ends as by a double free, or by exit(0). */
static bool
aborts(char **argv, char *arg, bool or_not)
{
	char text[256] = "";
	int fd[2];
	int st;
	pid_t pid;

	if (pipe(fd) != 0)
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		struct rlimit none = {0, 0};

		probe_child_begin(20);
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)dup2(fd[1], STDERR_FILENO);
		(void)setenv("EDDY_TAP_CHILD", "1", 1);
		tap_exec(argv[0], arg);
	}
	(void)close(fd[1]);
	if (read(fd[0], text, sizeof text - 1) < 0)
		tap_bail("read");
	(void)close(fd[0]);
	if (waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) &&
	    WTERMSIG(st) == SIGABRT && strstr(text, "double free") != NULL)
		return true;
	if (or_not && WIFEXITED(st) && WEXITSTATUS(st) == 0)
		return true;
	tap_diag("%s: status 0x%x, \"%s\"", arg, st, text);
	return false;
}

static void
test_surroundings(char **argv)
{
	char arg1[] = "late";
	char arg2[] = "late_reset";
	char arg3[] = "race";
	bool held = true;

	tap_ok(aborts(argv, arg1, false),
	    "a block freed after its arena ended is a double free");
	tap_ok(aborts(argv, arg2, false), "and after it was reset");
	for (int i = 0; i < 10; i++)
		held &= aborts(argv, arg3, true);
	tap_ok(held, "blocks freed during a reset: a double free, or nothing");
	(void)setenv("EDDY_CONF", "lg_range:33", 1);
	tap_ok(probe_again(argv, "small", "small"),
	    "its addresses are others' after");
	(void)setenv("EDDY_CONF", "dirty_decay_ms:0,rseq:false", 1);
	tap_ok(probe_again(argv, "all", "all"),
	    "the same without decay, in claim mode");
	(void)setenv("EDDY_CONF", "check:true", 1);
	tap_ok(probe_again(argv, "all", "all"), "and with check:true");
	(void)unsetenv("EDDY_CONF");
}

/* Argument "all": the essence of it. */
static int
all(void)
{
	unsigned a = ctl_unsigned("arenas.create");

	for (int i = 0; i < 3; i++) {
		fill(a, i == 1);
		if (ctl_do("arena.%u.reset", a) != 0 || !is_empty(a))
			return 1;
	}
	fill(a, true);
	if (ctl_do("arena.%u.destroy", a) != 0)
		return 2;
	return ctl_unsigned("arenas.create") == a && is_empty(a) ? 0 : 3;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *arg;
		int (*run)(void);
	} parts[] = {{"late", late}, {"late_reset", late_reset},
	    {"small", small}, {"race", race_with_reset}, {"all", all}};

	tap_begin(argv);
	if (!find_allocx())
		tap_skip_all("no mallocx here");
	for (size_t i = 0; i < COUNT(parts); i++)
		if (argc > 1 && strcmp(argv[1], parts[i].arg) == 0)
			return parts[i].run();
	tap_guard(240);
	test_reset();
	test_cached();
	test_rules();
	test_again();
	test_addresses();
	test_memory();
	test_sum();
	test_threads();
	test_surroundings(argv);
	return tap_end();
}
