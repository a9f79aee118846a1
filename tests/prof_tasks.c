/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_tasks.c - profiles of a process with many threads, signal handlers that
 * allocate within samples, children by fork, threads that are killed within a
 * sample; dumps and resets meanwhile.
 */
#include "prof_api.h"

#include "tasks.h"

#include <sys/time.h>

enum { THREADS = 8, SLOTS = 512 };

static _Atomic(void *) slots[SLOTS];
static struct flag stop;

/* A block into a slot, what was there is freed: from thread to thread. */
static void
swap(uint64_t *seed)
{
	void *p;

	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	p = p_malloc(1 + (*seed >> 33) % 2000);
	p_free(atomic_exchange(&slots[(*seed >> 20) % SLOTS], p));
}

static void
empty_slots(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		p_free(atomic_exchange(&slots[i], NULL));
}

static void *
swap_all_the_time(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	for (unsigned i = 0; !flag_is_set(&stop); i++)
		swap(&seed);
	return NULL;
}

static void
run(pthread_t *t, void *(*f)(void *))
{
	flag_clear(&stop);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, f, (void *)(i + 1)) != 0)
			tap_bail("pthread_create");
}

static void
finish(pthread_t *t)
{
	flag_set(&stop);
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(t[i], NULL);
}

/* What is live in the profile, but for what the process has all the time. */
static double
rest(struct profile before)
{
	return (double)prof_now(NULL).head[0] - (double)before.head[0];
}

static void
threads(void)
{
	struct profile before = prof_now(NULL);
	pthread_t t[THREADS];
	bool ok = true;

	run(t, swap_all_the_time);
	for (unsigned i = 0; i < 30; i++) {
		struct profile f = prof_now(NULL);

		ok &= f.good && f.head[0] < 10 * SLOTS + before.head[0];
		(void)usleep(20000);
	}
	finish(t);
	tap_ok(ok, "dumps while %d threads hand blocks on", THREADS);
	empty_slots();
	/* libc keeps stacks and what belongs to them. */
	tap_ok(rest(before) <= 2 * THREADS, "and nothing is left in the end");
}

static void
resets(void)
{
	pthread_t t[THREADS];
	bool ok = true;

	run(t, swap_all_the_time);
	for (unsigned i = 0; i < 200; i++) {
		prof_reset(i % 4);
		(void)usleep(1000);
		if (i % 20 == 0)
			ok &= prof_now(NULL).good;
	}
	prof_reset(0);
	finish(t);
	empty_slots();
	tap_ok(ok && prof_now(NULL).head[0] <= 2 * THREADS,
	    "200 resets meanwhile");
}

/* Threads that come and go do not pile up. */
static void *
short_life(void *arg)
{
	p_free(p_malloc(1000));
	return arg;
}

static void
short_lives(void)
{
	size_t before = 0;
	size_t n;

	for (unsigned i = 0; i < 3000; i++) {
		pthread_t t;

		if (i == 500)
			before = ctl_size("prof.memory");
		if (pthread_create(&t, NULL, short_life, NULL) != 0)
			tap_bail("pthread_create");
		(void)pthread_join(t, NULL);
	}
	n = ctl_size("prof.memory");
	tap_ok(n - before <= MIB, "3000 short threads cost no memory: %zu KiB",
	    (n - before) / KIB);
	/* Room for records was made for as many as were live at once. */
	tap_ok(ctl_size("prof.lost") == 0, "no sample was lost");
}

/* ---- signals ---- */

static volatile sig_atomic_t n_signals;

static void
on_signal(int sig)
{
	void *p[8];

	(void)sig;
	for (unsigned i = 0; i < 8; i++)
		p[i] = p_malloc(1 + 300 * i);
	for (unsigned i = 0; i < 8; i++)
		p_free(p[i]);
	n_signals++;
}

static void
signals(void)
{
	struct itimerval every = {{0, 300}, {0, 300}};
	struct itimerval never = {{0, 0}, {0, 0}};
	struct sigaction act = {
	    .sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct profile before = prof_now(NULL);
	uint64_t seed = 1;

	(void)sigaction(SIGPROF, &act, NULL);
	(void)setitimer(ITIMER_PROF, &every, NULL);
	while (n_signals < 300)
		for (unsigned i = 0; i < 100; i++)
			swap(&seed);
	(void)setitimer(ITIMER_PROF, &never, NULL);
	empty_slots();
	tap_ok(rest(before) <= 0, "%d handlers that allocate within samples",
	    (int)n_signals);
}

/* ---- fork ---- */

static void
forks(void)
{
	struct profile before = prof_now(NULL);
	pthread_t t[THREADS];
	bool ok = true;

	run(t, swap_all_the_time);
	for (unsigned i = 0; i < 50; i++) {
		pid_t child = fork();
		int status = -1;

		if (child == 0) {
			uint64_t seed = i + 1;
			struct profile f;

			tap_alarm(20);
			for (unsigned k = 0; k < 2000; k++)
				swap(&seed);
			f = prof_now(NULL);
			empty_slots();
			_exit(f.good ? 0 : 1);
		}
		ok &= child > 0 && waitpid(child, &status, 0) == child &&
		      status == 0;
	}
	finish(t);
	empty_slots();
	tap_ok(ok, "50 children, forked within samples, profile on");
	tap_ok(rest(before) <= 2 * THREADS, "their parent has lost nothing");
}

/* ---- killed ---- */

static void
end_here(int sig)
{
	(void)sig;
	(void)syscall(SYS_exit, 0);
}

static void *
killed(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	while (!flag_is_set(&stop))
		swap(&seed);
	return NULL;
}

/* In a child of its own, since libc is never told of these ends. */
static int
kill_threads(void)
{
	struct sigaction act = {.sa_handler = end_here};
	struct profile before = prof_now(NULL);
	unsigned n = 0;
	uint64_t seed = 3;
	double left;

	tap_alarm(60);
	flag_clear(&stop);
	(void)sigaction(SIGUSR1, &act, NULL);
	for (unsigned i = 0; i < 100; i++) {
		pthread_t t;

		if (pthread_create(
			&t, NULL, killed, (void *)(uintptr_t)(i + 1)) != 0)
			break;
		(void)usleep(500 + i * 13 % 400);
		(void)pthread_kill(t, SIGUSR1);
		n++;
	}
	(void)usleep(100000);
	for (unsigned k = 0; k < 20000; k++)
		swap(&seed);
	empty_slots();
	left = rest(before);
	/* A block each that was in hand, its record, and its libc's thread. */
	tap_diag("%u threads killed, %.0f samples left", n, left);
	return n == 100 && left <= 5 * n && prof_now(NULL).good ? 0 : 1;
}

static void
kills(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(kill_threads());
	(void)waitpid(child, &status, 0);
	tap_ok(status == 0, "100 threads killed: each costs its own at most");
}

int
main(int argc, char **argv)
{
	(void)argc;
	prof_begin(argv, "prof:true,lg_prof_sample:0");
	tap_guard(300);
	threads();
	resets();
	short_lives();
	signals();
	forks();
	kills();
	return tap_end();
}
