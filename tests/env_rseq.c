/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_rseq.c - rseq registered by glibc, by nobody, by the program itself, or
 * refused: no block is handed out twice in any of them.
 */
#include "probe.h"

enum { THREADS = 8 };

static struct flag stop;
static bool own_area;
static __thread struct {
	uint32_t word[8];
} area __attribute__((aligned(32)));

static void
register_area(void)
{
	/* 0x53053053: the signature that glibc and librseq use on x86 */
	if (own_area)
		(void)syscall(SYS_rseq, &area, 32, 0, 0x53053053);
}

static void *
work(void *arg)
{
	struct own *o = arg;

	register_area();
	for (unsigned i = 1; !flag_is_set(&stop); i++) {
		own_step(o);
		if (i % 1000 == 0)
			(void)sched_yield();
	}
	own_end(o);
	return NULL;
}

static int
mode(const char *name)
{
	static const int rseq[] = {SYS_rseq};
	static const int barrier[] = {SYS_membarrier};
	static const int both[] = {SYS_rseq, SYS_membarrier};
	static struct own o[THREADS];
	pthread_t t[THREADS];
	unsigned long bad = 0;

	own_area = strcmp(name, "own") == 0;
	if (strncmp(name, "deny-", 5) == 0) {
		char done[] = "denied";
		bool set = strcmp(name, "deny-rseq") == 0
			       ? probe_refuse(rseq, 1, ENOSYS)
			   : strcmp(name, "deny-barrier") == 0
			       ? probe_refuse(barrier, 1, EPERM)
			       : probe_refuse(both, 2, EPERM);

		if (!set)
			return 77;
		tap_exec(done, done);
	}
	p_free(p_malloc(10));
	register_area();
	for (unsigned i = 0; i < THREADS; i++) {
		own_begin(&o[i], i + 1, 50000);
		(void)pthread_create(&t[i], NULL, work, &o[i]);
	}
	(void)usleep((useconds_t)(probe_seconds(0.8) * 1e6));
	flag_set(&stop);
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(t[i], NULL);
		bad += o[i].doubles + o[i].nulls;
	}
	return bad == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *tunables;
		const char *arg;
		const char *name;
	} run[] = {
	    {"glibc.pthread.rseq=1", "plain", "rseq registered by glibc"},
	    {"glibc.pthread.rseq=0", "plain", "rseq left to the library"},
	    {"glibc.pthread.rseq=0", "own", "rseq taken by the program"},
	    {"glibc.pthread.rseq=0", "deny-rseq", "rseq refused"},
	    {"glibc.pthread.rseq=1", "deny-barrier", "membarrier refused"},
	    {"glibc.pthread.rseq=1", "deny-both", "both refused"},
	};

	tap_begin(argv);
	if (argc > 1)
		return mode(argv[1]);
	tap_guard(60);
	for (size_t i = 0; i < COUNT(run); i++) {
		(void)setenv("GLIBC_TUNABLES", run[i].tunables, 1);
		tap_ok(probe_again(argv, run[i].arg, run[i].name),
		    "%s: eight threads share no block", run[i].name);
	}
	return tap_end();
}
