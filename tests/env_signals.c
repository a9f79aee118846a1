/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env_signals.c - handlers that allocate, whatever they interrupt.
 *
 * Another thread sends the signals, so they hit every instruction of malloc
 * and free in turn.  A handler may vfork, too, whose child runs on the same
 * memory.  Only eddy promises this: elsewhere it may hang.
 */
#include "probe.h"

enum { WORKERS = 3 };

static struct own in_handler[WORKERS];
static struct own in_main[WORKERS];
static pthread_t worker[WORKERS];
static __thread int my_index = -1;
static __thread bool in_mine;
static atomic_ulong signals_taken;
static struct flag stop;

static void
on_signal(int sig)
{
	int keep = errno;

	(void)sig;
	if (my_index < 0 || in_mine)
		return;
	in_mine = true;
	for (int i = 0; i < 4; i++)
		own_step(&in_handler[my_index]);
	in_mine = false;
	atomic_fetch_add(&signals_taken, 1);
	errno = keep;
}

static void *
work(void *arg)
{
	intptr_t k = (intptr_t)arg;

	my_index = (int)k;
	while (!flag_is_set(&stop))
		for (int i = 0; i < 100; i++)
			own_step(&in_main[k]);
	my_index = -1;
	own_end(&in_main[k]);
	return NULL;
}

/* A signal in the middle of calloc, realloc, memalign of large blocks. */
static void *
large_work(void *arg)
{
	uint64_t rng = tap.seed;
	intptr_t k = (intptr_t)arg;

	my_index = (int)k;
	while (!flag_is_set(&stop)) {
		size_t n = 1 + (size_t)tap_random(&rng) % (4 * MIB);
		char *p = p_calloc(1, n);

		p[n - 1] = 1;
		p = p_realloc(p, n / 2 + 1);
		p = p_realloc(p, n * 2);
		p_free(p);
	}
	my_index = -1;
	return NULL;
}

static volatile sig_atomic_t vforks;

static void
vforks_in_handler(int sig)
{
	int keep = errno;
	pid_t pid = vfork();

	(void)sig;
	if (pid == 0)
		_exit(0);
	if (pid > 0 && waitpid(pid, NULL, 0) == pid)
		vforks++;
	errno = keep;
}

/*
 * The thread's cache is set aside while a child of vfork runs: a slow path that
 * the handler interrupted must be able to go on.
 */
static int
vfork_in_handler(void)
{
	static struct own o[8];
	struct sigaction sa = {
	    .sa_handler = vforks_in_handler, .sa_flags = SA_RESTART};
	struct sigevent ev = {
	    .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec its = {{0, 300000}, {0, 300000}};
	uint64_t end = probe_ns() + (uint64_t)(probe_seconds(0.8) * 1e9);
	unsigned long bad = 0;
	timer_t timer;

	tap_alarm(30);
	(void)sigaction(SIGUSR1, &sa, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) != 0 ||
	    timer_settime(timer, 0, &its, NULL) != 0)
		return 77;
	/* Many blocks of many sizes: most calls take a slow path. */
	for (unsigned i = 0; i < COUNT(o); i++)
		own_begin(&o[i], i + 1, 16000);
	while (probe_ns() < end || vforks < 500)
		for (unsigned i = 0; i < 8000; i++)
			own_step(&o[i % COUNT(o)]);
	(void)timer_delete(timer);
	for (unsigned i = 0; i < COUNT(o); i++) {
		own_end(&o[i]);
		bad += o[i].doubles + o[i].nulls;
	}
	return bad != 0;
}

int
main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	uint64_t end;
	unsigned long bad = 0;

	tap_begin(argv);
	if (argc > 1)
		return vfork_in_handler();
	tap_guard(30);
	(void)sigaction(SIGUSR1, &sa, NULL);
	for (unsigned i = 0; i < WORKERS; i++) {
		own_begin(&in_main[i], i + 1, 200000);
		own_begin(&in_handler[i], i + 100, 20000);
	}
	for (intptr_t i = 0; i < WORKERS; i++)
		(void)pthread_create(&worker[i], NULL,
		    i == WORKERS - 1 ? large_work : work, (void *)i);
	end = probe_ns() + (uint64_t)(probe_seconds(2) * 1e9);
	while (probe_ns() < end || atomic_load(&signals_taken) <= 500) {
		struct timespec ts = {.tv_nsec = 20000};

		for (int i = 0; i < WORKERS; i++)
			(void)pthread_kill(worker[i], SIGUSR1);
		(void)nanosleep(&ts, NULL);
	}
	flag_set(&stop);
	for (int i = 0; i < WORKERS; i++)
		(void)pthread_join(worker[i], NULL);
	for (int i = 0; i < WORKERS; i++) {
		own_end(&in_handler[i]);
		bad += in_handler[i].doubles + in_main[i].doubles;
	}
	tap_diag("%lu handlers allocated", atomic_load(&signals_taken));
	tap_ok(atomic_load(&signals_taken) > 500, "signals arrive");
	tap_ok(bad == 0, "no block is given to a handler and to its thread");
	tap_ok(probe_again(argv, "vfork", "vfork"),
	    "a handler may vfork in the middle of malloc and free");
	return tap_end();
}
