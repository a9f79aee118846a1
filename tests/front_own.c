/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * front_own.c - thread.arena, thread.allocated and deallocated, thread.peak:
 * what a thread has of its own.
 *
 * Arguments: "counts", "bound": the essence, under other options; "homes".
 */
#include "allocx_api.h"

#include <sys/time.h>

static unsigned
arena_of(const void *p)
{
	unsigned i = UINT32_MAX;
	size_t n = sizeof i;

	if (x.ctl("arenas.lookup", &i, &n, (void *)&p, sizeof p) != 0)
		return UINT32_MAX;
	return i;
}

static uint64_t
ctl_u64(const char *name)
{
	uint64_t v = 0;
	size_t n = sizeof v;

	if (x.ctl(name, &v, &n, NULL, 0) != 0)
		tap_bail("%s", name);
	return v;
}

static _Atomic uint64_t *
counter(const char *name)
{
	_Atomic uint64_t *p = NULL;
	size_t n = sizeof p;

	if (x.ctl(name, (void *)&p, &n, NULL, 0) != 0 || p == NULL)
		tap_bail("%s", name);
	return p;
}

static void *
run_in(void *(*f)(void *), void *arg)
{
	pthread_t t;
	void *r;

	if (pthread_create(&t, NULL, f, arg) != 0)
		tap_bail("pthread_create");
	(void)pthread_join(t, &r);
	return r;
}

/* ---- counts ---- */

static struct {
	_Atomic uint64_t *in;
	_Atomic uint64_t *out;
	uint64_t took;
	uint64_t gave;
	unsigned faults;
} me;

static bool
agrees(const char *what)
{
	if (atomic_load(me.in) == me.took && atomic_load(me.out) == me.gave)
		return true;
	if (me.faults++ < 5)
		tap_diag("%s: %llu and %llu, counted %llu and %llu", what,
		    (unsigned long long)me.took, (unsigned long long)me.gave,
		    (unsigned long long)atomic_load(me.in),
		    (unsigned long long)atomic_load(me.out));
	return false;
}

static bool
took(void *p, const char *what)
{
	me.took += p_usable(p);
	return agrees(what);
}

static bool
gave(size_t n, const char *what)
{
	me.gave += n;
	return agrees(what);
}

static bool
one_size(size_t size)
{
	void *p = p_malloc(size);
	size_t n = p_usable(p);
	bool held = took(p, "malloc");
	void *q;

	p_free(p);
	held &= gave(n, "free");
	p = p_calloc(size, 1);
	held &= took(p, "calloc");
	q = p_realloc(p, size * 3);
	/* In place or not: the one is taken, the other given back. */
	me.gave += n;
	held &= took(q, "realloc");
	n = p_usable(q);
	p_free(q);
	held &= gave(n, "free");
	p = x.mallocx(size, MALLOCX_ALIGN(64) | MALLOCX_TCACHE_NONE);
	held &= took(p, "mallocx");
	n = p_usable(p);
	x.sdallocx(p, size, MALLOCX_ALIGN(64) | MALLOCX_TCACHE_NONE);
	held &= gave(n, "sdallocx");
	if (posix_memalign(&p, 4096, size) != 0)
		return false;
	held &= took(p, "posix_memalign");
	n = p_usable(p);
	p_free(p);
	return gave(n, "free") && held;
}

static void
ask(void)
{
	me.in = counter("thread.allocatedp");
	me.out = counter("thread.deallocatedp");
	me.took = ctl_u64("thread.allocated");
	me.gave = ctl_u64("thread.deallocated");
}

static void *
count(void *arg)
{
	static const size_t sizes[] = {
	    1, 8, 9, 100, 5000, 14336, 16384, 65536, 65537, 200000, 3 << 20};
	bool held = true;

	ask();
	held &= agrees("at first");
	/* A program that asks whether it is jemalloc's. */
	void *volatile p = p_malloc(1);
	held &= took(p, "malloc(1)");
	p_free(p);
	held &= gave(8, "free");
	for (int i = 0; i < 100; i++)
		for (size_t k = 0; k < COUNT(sizes); k++)
			held &= one_size(sizes[k]);
	(void)arg;
	return held ? NULL : "";
}

static void *
large_before(void *arg)
{
	uint64_t n;

	p_free(p_malloc(100 << 20));
	n = ctl_u64("thread.allocated");
	(void)arg;
	return n >= (100 << 20) && n < (110 << 20) &&
		       ctl_u64("thread.deallocated") >= (100 << 20)
		   ? NULL
		   : "";
}

static volatile sig_atomic_t n_handled;

static void
handle(int sig)
{
	(void)sig;
	p_free(p_malloc(60));
	n_handled = n_handled + 1;
}

/* A handler interrupts it anywhere, and allocates. */
static void *
interrupted(void *arg)
{
	struct itimerval often = {{0, 200}, {0, 200}};
	struct itimerval never = {{0, 0}, {0, 0}};
	uint64_t n = 0;

	sigset_t prof;

	(void)sigemptyset(&prof);
	(void)sigaddset(&prof, SIGPROF);
	ask();
	(void)signal(SIGPROF, handle);
	/* Here alone: the signal is the process's, and main's counts are
	 * not looked at. */
	(void)pthread_sigmask(SIG_UNBLOCK, &prof, NULL);
	(void)setitimer(ITIMER_PROF, &often, NULL);
	while (n_handled < 300) {
		p_free(p_malloc(100));
		n++;
	}
	(void)setitimer(ITIMER_PROF, &never, NULL);
	(void)signal(SIGPROF, SIG_IGN);
	me.took += n * 112 + (uint64_t)n_handled * 64;
	me.gave += n * 112 + (uint64_t)n_handled * 64;
	(void)arg;
	return agrees("interrupted") ? NULL : "";
}

static void *
peak(void *arg)
{
	void *p[10];
	bool held;

	(void)arg;
	p[0] = p_malloc(5000);
	held = ctl_do("thread.peak.reset") == 0 &&
	       ctl_u64("thread.peak.read") == 0;
	p_free(p[0]);
	for (int i = 0; i < 10; i++)
		p[i] = p_malloc(1000);
	for (int i = 0; i < 10; i++)
		p_free(p[i]);
	held &= ctl_u64("thread.peak.read") == 10 * 1024 - 5120;
	p_free(p_malloc(3 << 20));
	held &= ctl_u64("thread.peak.read") == (3 << 20) - 5120;
	held &= ctl_do("thread.peak.reset") == 0 &&
		ctl_u64("thread.peak.read") == 0;
	return held ? NULL : "";
}

static void
test_counts(void)
{
	tap_ok(run_in(count, NULL) == NULL,
	    "each call moves the counts by what a block really holds");
	tap_ok(run_in(large_before, NULL) == NULL,
	    "what lies above 64 KiB was counted before");
	tap_ok(run_in(peak, NULL) == NULL, "the peak is exact");
}

/* ---- bound ---- */

static bool
all_of(unsigned a)
{
	void *p[] = {p_malloc(1), p_malloc(100), p_malloc(20000),
	    p_malloc(3 << 20), p_calloc(1, 100), p_calloc(1, 100000),
	    x.mallocx(100, 0), x.mallocx(100, MALLOCX_TCACHE_NONE), NULL, NULL};
	bool right = true;

	if (posix_memalign(&p[8], 4096, 100) != 0)
		return false;
	p[9] = p_realloc(p_malloc(10), 1000);
	for (size_t i = 0; i < COUNT(p); i++) {
		if (arena_of(p[i]) != a) {
			tap_diag("block %zu of arena %u", i, arena_of(p[i]));
			right = false;
		}
		p_free(p[i]);
	}
	return right;
}

static unsigned the_arena;

static void *
bound(void *arg)
{
	unsigned was = ctl_unsigned("thread.arena");
	unsigned old = 99;
	size_t n = sizeof old;
	bool held;

	(void)arg;
	held = x.ctl("thread.arena", &old, &n, &the_arena, n) == 0 &&
	       old == was && ctl_unsigned("thread.arena") == the_arena;
	held &= all_of(the_arena) && all_of(the_arena);
	if (ctl_do("arena.%u.destroy", the_arena) != EFAULT)
		held = false;
	ctl_epoch();
	return held ? NULL : "";
}

static void *
unbound(void *arg)
{
	unsigned was = ctl_unsigned("thread.arena");

	(void)arg;
	return ctl_write_unsigned("thread.arena", the_arena) == 0 &&
		       all_of(the_arena) &&
		       ctl_write_unsigned("thread.arena", was) == 0 &&
		       all_of(was)
		   ? NULL
		   : "";
}

static void *
forked(void *arg)
{
	int st = 1;
	pid_t pid;

	(void)arg;
	(void)ctl_write_unsigned("thread.arena", the_arena);
	pid = fork();
	if (pid == 0) {
		bool held = all_of(the_arena) &&
			    ctl_do("arena.%u.destroy", the_arena) == EFAULT &&
			    ctl_write_unsigned("thread.arena", 0) == 0 &&
			    ctl_do("arena.%u.destroy", the_arena) == 0;

		_exit(!held);
	}
	if (waitpid(pid, &st, 0) != pid || st != 0)
		return "";
	return all_of(the_arena) ? NULL : "";
}

static unsigned
n_bound(void)
{
	char name[64];

	(void)snprintf(
	    name, sizeof name, "stats.arenas.%u.nthreads", the_arena);
	return ctl_unsigned(name);
}

static void *
look(void *arg)
{
	unsigned *n = arg;

	(void)ctl_write_unsigned("thread.arena", the_arena);
	*n = n_bound();
	return NULL;
}

static void
test_bound(void)
{
	unsigned gone = ctl_unsigned("arenas.create");
	unsigned n = 0;

	(void)ctl_do("arena.%u.destroy", gone);
	the_arena = ctl_unsigned("arenas.create");
	tap_ok(ctl_write_unsigned("thread.arena", 4000) == EFAULT &&
		   ctl_write_unsigned("thread.arena", UINT32_MAX) == EFAULT,
	    "EFAULT for an arena that is none");
	tap_ok(run_in(bound, NULL) == NULL,
	    "a bound thread allocates from its arena, which cannot end");
	tap_ok(all_of(ctl_unsigned("thread.arena")), "the others do not");
	(void)run_in(look, &n);
	tap_ok(n == 1 && n_bound() == 0, "it is counted while it lives");
	tap_ok(run_in(unbound, NULL) == NULL, "and may go back");
	tap_ok(run_in(forked, NULL) == NULL, "a forked child stays bound");
	tap_ok(ctl_do("arena.%u.destroy", the_arena) == 0,
	    "an arena that nobody is bound to may end");
	tap_ok(ctl_write_unsigned("thread.arena", the_arena) == EFAULT,
	    "and nobody is bound to it then");
}

/* ---- surroundings ---- */

static int
counts(void)
{
	return run_in(count, NULL) != NULL;
}

static int
bind(void)
{
	the_arena = ctl_unsigned("arenas.create");
	return run_in(bound, NULL) != NULL || run_in(unbound, NULL) != NULL;
}

static int
homes(void)
{
	unsigned here = ctl_unsigned("thread.arena");

	the_arena = !here;
	return run_in(unbound, NULL) != NULL ||
	       ctl_write_unsigned("thread.arena", !here) != 0 || !all_of(!here);
}

static void
test_surroundings(char **argv)
{
	static const char *const conf[] = {
	    "rseq:false", "check:true", "tcache:false"};

	for (size_t i = 0; i < COUNT(conf); i++) {
		(void)setenv("EDDY_CONF", conf[i], 1);
		tap_ok(probe_again(argv, "counts", "counts"), "counts, %s",
		    conf[i]);
		tap_ok(
		    probe_again(argv, "bound", "bound"), "bound, %s", conf[i]);
	}
	(void)setenv("EDDY_CONF", "topology:2x1x1", 1);
	tap_ok(probe_again(argv, "homes", "homes"), "bound to the other home");
	(void)unsetenv("EDDY_CONF");
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *arg;
		int (*run)(void);
	} parts[] = {{"counts", counts}, {"bound", bind}, {"homes", homes}};

	sigset_t prof;

	tap_begin(argv);
	if (!find_allocx())
		tap_skip_all("no mallocx here");
	for (size_t i = 0; i < COUNT(parts); i++)
		if (argc > 1 && strcmp(argv[1], parts[i].arg) == 0)
			return parts[i].run();
	tap_guard(120);
	test_bound();
	test_counts();
	(void)sigemptyset(&prof);
	(void)sigaddset(&prof, SIGPROF);
	(void)sigprocmask(SIG_BLOCK, &prof, NULL);
	tap_ok(run_in(interrupted, NULL) == NULL,
	    "calls of signal handlers are counted");
	test_surroundings(argv);
	return tap_end();
}
