/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_threads.c - threads that libc does not know, or not wholly: raw clone
 * with its own TLS, vfork children; threads that hop between CPUs.
 */
#include "probe.h"

#ifdef __x86_64__
#	include <asm/prctl.h>
#endif

static struct flag stop;

static void *
hammer(void *arg)
{
	struct own *o = arg;

	while (!flag_is_set(&stop))
		own_step(o);
	own_end(o);
	return NULL;
}

#define HAMMERS 4

struct team {
	struct own own[HAMMERS];
	pthread_t t[HAMMERS];
};

static void
team_start(struct team *team)
{
	flag_clear(&stop);
	for (unsigned i = 0; i < HAMMERS; i++) {
		own_begin(&team->own[i], i + 1, 100000);
		(void)pthread_create(&team->t[i], NULL, hammer, &team->own[i]);
	}
}

static bool
team_stop(struct team *team)
{
	unsigned long bad = 0;

	flag_set(&stop);
	for (int i = 0; i < HAMMERS; i++) {
		(void)pthread_join(team->t[i], NULL);
		bad += team->own[i].doubles;
	}
	return bad == 0;
}

static struct team team;

#ifdef __x86_64__
/*
 * A raw thread: a static TLS block from the loader, no struct pthread set up,
 * no rseq registered.  It calls malloc and free and nothing else of libc.
 */
enum { RAW = 4, RAW_STACK = 256 * KIB };

static struct own raw_own[RAW];
static int raw_tid[RAW];

static int
raw_main(void *arg)
{
	struct own *o = arg;

	for (int i = 0; i < 60000; i++)
		own_step(o);
	own_end(o);
	(void)syscall(SYS_exit, 0);
	return 0;
}

static void
raw_tcb(void *tcb)
{
	uintptr_t *w = tcb;
	uintptr_t self;

	if (syscall(SYS_arch_prctl, ARCH_GET_FS, &self) != 0)
		tap_bail("arch_prctl");
	w[0] = (uintptr_t)tcb;         /* the ABI's self pointer */
	w[2] = (uintptr_t)tcb;         /* glibc's */
	w[5] = ((uintptr_t *)self)[5]; /* stack guard */
	w[6] = ((uintptr_t *)self)[6]; /* pointer guard */
}

static void
raw_round(void *(*tls_new)(void *), void (*tls_free)(void *, bool))
{
	void *tcb[RAW];
	char *stack[RAW];

	for (unsigned i = 0; i < RAW; i++) {
		own_begin(&raw_own[i], i + 50, 100000);
		tcb[i] = tls_new(NULL);
		raw_tcb(tcb[i]);
		stack[i] = mmap(NULL, RAW_STACK, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		raw_tid[i] = 1;
		if (clone(raw_main, stack[i] + RAW_STACK,
			CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			    CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
			    CLONE_CHILD_CLEARTID,
			&raw_own[i], NULL, tcb[i], &raw_tid[i]) < 0)
			tap_bail("clone: errno %d", errno);
	}
	for (int i = 0; i < RAW; i++) {
		while (*(int volatile *)&raw_tid[i] != 0)
			(void)usleep(1000);
		tls_free(tcb[i], true);
		(void)munmap(stack[i], RAW_STACK);
	}
}

static void
test_raw_clone(void)
{
	void *(*tls_new)(void *) =
	    (void *(*)(void *))dlsym(RTLD_DEFAULT, "_dl_allocate_tls");
	void (*tls_free)(void *, bool) =
	    (void (*)(void *, bool))dlsym(RTLD_DEFAULT, "_dl_deallocate_tls");
	const char *name = "raw clone threads with their own TLS allocate";
	unsigned long bad = 0;

	if (tls_new == NULL || tls_free == NULL) {
		tap_skip(name, "the loader gives no TLS block");
		return;
	}
	team_start(&team);
	for (int k = 0; k < 5; k++) {
		raw_round(tls_new, tls_free);
		for (int i = 0; i < RAW; i++)
			bad += raw_own[i].doubles + raw_own[i].nulls;
	}
	tap_ok(team_stop(&team) && bad == 0, "%s", name);
}
#else
static void
test_raw_clone(void)
{
	tap_skip("raw clone threads with their own TLS allocate",
	    "written for x86-64");
}
#endif

/* The child shares memory and TLS with the thread that waits for it. */
__attribute__((noinline)) static int
vfork_child(void)
{
	uint64_t *q[64];

	for (int k = 0; k < 100; k++) {
		for (size_t i = 0; i < 64; i++) {
			q[i] = p_malloc(16 + i * 8);
			q[i][0] = 99;
			q[i][1] = (uintptr_t)q[i];
		}
		for (int i = 0; i < 64; i++) {
			if (q[i][0] != 99 || q[i][1] != (uintptr_t)q[i])
				return 7;
			p_free(q[i]);
		}
	}
	return 0;
}

static void
test_vfork(void)
{
	bool held = true;
	char why[64];

	team_start(&team);
	for (int k = 0; held && k < 300; k++) {
		char *before = p_malloc(100);
		char *after;
		pid_t pid;

		memset(before, 8, 100);
		pid = vfork();
		if (pid == 0)
			_exit(vfork_child());
		held = pid > 0 && probe_wait(pid, why, sizeof why);
		if (!held)
			tap_diag("round %d: %s", k, why);
		/* The parent goes on in the fast path, with its own state. */
		after = p_malloc(100);
		held = held && after != before && before[99] == 8;
		p_free(before);
		p_free(after);
	}
	tap_ok(team_stop(&team) && held,
	    "vfork children allocate while four threads do");
}

static void *
hopper(void *arg)
{
	struct own *o = arg;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (unsigned n = 1; !flag_is_set(&stop); n++) {
		own_step(o);
		if (n % 64 == 0) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET((n / 64 + o->id) % (unsigned long)cpus, &set);
			(void)sched_setaffinity(0, sizeof set, &set);
		}
	}
	own_end(o);
	return NULL;
}

static void
test_hopping(void)
{
	enum { N = 8 };
	static struct own o[N];
	pthread_t t[N];
	unsigned long bad = 0;

	flag_clear(&stop);
	for (unsigned i = 0; i < N; i++) {
		own_begin(&o[i], i + 1, 100000);
		(void)pthread_create(&t[i], NULL, hopper, &o[i]);
	}
	(void)usleep((useconds_t)(probe_seconds(2) * 1e6));
	flag_set(&stop);
	for (int i = 0; i < N; i++) {
		(void)pthread_join(t[i], NULL);
		bad += o[i].doubles;
	}
	tap_ok(bad == 0, "threads that hop between CPUs share no block");
}

/* Started on the last CPU alone, so that it counts one; then on all. */
static int
widened(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	cpu_set_t set;

	p_free(p_malloc(100));
	CPU_ZERO(&set);
	for (long i = 0; i < cpus; i++)
		CPU_SET((unsigned long)i, &set);
	(void)sched_setaffinity(0, sizeof set, &set);
	team_start(&team);
	(void)usleep(500000);
	return team_stop(&team) ? 0 : 1;
}

static void
test_pinned_start(char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	cpu_set_t keep;
	cpu_set_t set;

	(void)sched_getaffinity(0, sizeof keep, &keep);
	CPU_ZERO(&set);
	CPU_SET((unsigned long)cpus - 1, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		tap_skip("a start on one CPU", "errno %d", errno);
	else
		tap_ok(probe_again(argv, "widen", "pinned start"),
		    "a process started on the last CPU alone uses all later");
	(void)sched_setaffinity(0, sizeof keep, &keep);
}

int
main(int argc, char **argv)
{
	tap_begin(argv);
	if (argc > 1)
		return widened();
	tap_guard(60);
	test_raw_clone();
	test_vfork();
	test_hopping();
	test_pinned_start(argv);
	return tap_end();
}
