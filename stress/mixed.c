/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mixed.c - everything at once: sizes, threads, signals, forks, CPUs.
 *
 * Sixteen threads allocate, resize and free blocks of 1 byte to 8 MiB through
 * one ledger, so that half of all frees are of other threads' blocks; they
 * change CPUs; signals interrupt them anywhere and their handlers allocate
 * and free; they fork, and the children verify all stamps, free inherited
 * blocks, start threads and fork again.  At the end every byte is returned.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ledger.h"
#include "rig.h"

enum {
	N_THREADS = 16,
	PER_THREAD = 200,
	N_ENTRIES = N_THREADS * PER_THREAD,
	N_HANDLER_ENTRIES = 64,
	CHILD_OPS = 500,
	CHILD_S = 60,
	LEAK_BYTES = 8192,
	GROWTH_BYTES = 128 << 20
};

struct worker {
	pthread_t thread;
	uint32_t me;
	uint64_t random;
	unsigned first; /* of its own entries */
	_Atomic uint64_t n_ops;
};

/* Handlers have their own part of the ledger, behind the threads'. */
static struct entry ledger[N_ENTRIES + N_HANDLER_ENTRIES];
static struct worker workers[N_THREADS];
static _Atomic uint32_t stop;
static _Atomic uint64_t n_signals;
static _Atomic uint64_t n_forks;

static size_t
random_size(uint64_t *random)
{
	uint64_t p = rig_below(random, 1000);

	if (p < 600)
		return 1 + rig_below(random, 256);
	if (p < 870)
		return 1 + rig_below(random, 4096);
	if (p < 970)
		return 1 + rig_below(random, 65536);
	if (p < 998)
		return 1 + rig_below(random, 1 << 20);
	return 1 + rig_below(random, 8 << 20);
}

static enum how
random_how(uint64_t *random)
{
	uint64_t p = rig_below(random, 10);

	return p == 0 ? BY_CALLOC : p == 1 ? BY_MEMALIGN : BY_MALLOC;
}

static void
work_on(struct entry *e, uint32_t me, uint64_t *random)
{
	if (entry_claim(e, ENTRY_EMPTY, me)) {
		entry_fill(e, random_size(random), random_how(random), random);
	} else if (entry_claim(e, ENTRY_FULL, me)) {
		if (rig_below(random, 8) == 0)
			entry_resize(e, random_size(random), random);
		else
			entry_drain(e);
	}
}

static void
one_op(struct worker *w)
{
	unsigned at =
	    (unsigned)rig_below(&w->random, 2) == 0
		? w->first + (unsigned)rig_below(&w->random, PER_THREAD)
		: (unsigned)rig_below(&w->random, N_ENTRIES);

	work_on(&ledger[at], w->me, &w->random);
	atomic_fetch_add_explicit(&w->n_ops, 1, memory_order_relaxed);
}

static void
on_signal(int signo)
{
	static _Atomic uint64_t salt;
	uint64_t random = rig.seed + atomic_fetch_add(&salt, 1);
	uint32_t me = 1000 + (uint32_t)signo;

	for (int i = 0; i < 4; i++) {
		struct entry *e =
		    &ledger[N_ENTRIES + rig_below(&random, N_HANDLER_ENTRIES)];

		if (entry_claim(e, ENTRY_EMPTY, me))
			entry_fill(e, 1 + rig_below(&random, 20000),
			    random_how(&random), &random);
		else if (entry_claim(e, ENTRY_FULL, me))
			entry_drain(e);
	}
	atomic_fetch_add(&n_signals, 1);
}

static void *
child_thread(void *arg)
{
	struct worker w = {.me = 500, .random = (uintptr_t)arg};

	for (int i = 0; i < CHILD_OPS; i++)
		one_op(&w);
	return NULL;
}

static void
verify_all(void)
{
	for (unsigned i = 0; i < N_ENTRIES + N_HANDLER_ENTRIES; i++)
		if (atomic_load(&ledger[i].state) == ENTRY_FULL)
			entry_verify(&ledger[i]);
}

/* Alone in a copy of the process; entries that were busy stay as they are. */
static _Noreturn void
child_main(uint64_t random)
{
	struct worker w = {.me = 400, .random = random};
	pthread_t t[2];
	int status = 0;
	pid_t pid;

	(void)alarm(CHILD_S * rig.patience);
	verify_all();
	(void)ledger_drain(ledger, N_ENTRIES / 2, w.me);
	for (uintptr_t i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, child_thread,
			(void *)(uintptr_t)(random + i)) != 0)
			rig_fail_now("no thread in the child");
	for (int i = 0; i < CHILD_OPS; i++)
		one_op(&w);
	pid = fork();
	if (pid == 0) {
		verify_all();
		for (int i = 0; i < CHILD_OPS; i++)
			one_op(&w);
		_exit(0);
	}
	for (int i = 0; i < 2; i++)
		(void)pthread_join(t[i], NULL);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		rig_fail_now("the grandchild ended with %#x", status);
	(void)ledger_drain(ledger, N_ENTRIES + N_HANDLER_ENTRIES, w.me);
	_exit(0);
}

static void
fork_once(struct worker *w)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		child_main(w->random);
	if (pid < 0)
		rig_fail_now("fork failed");
	while (waitpid(pid, &status, 0) != pid)
		;
	if (status != 0)
		rig_fail_now("a child ended with %#x", status);
	atomic_fetch_add(&n_forks, 1);
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;

	while (atomic_load_explicit(&stop, memory_order_relaxed) == 0) {
		uint64_t p = rig_below(&w->random, 100000);

		if (p < 100)
			rig_pin((unsigned)rig_below(&w->random, rig_cpus()));
		else if (p < 103)
			fork_once(w);
		one_op(w);
	}
	return NULL;
}

static void
start(sigset_t *handled)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	(void)sigaction(SIGUSR1, &sa, NULL);
	(void)sigaction(SIGUSR2, &sa, NULL);
	for (unsigned i = 0; i < N_THREADS; i++) {
		workers[i].me = i + 1;
		workers[i].random = rig.seed * 100 + i;
		workers[i].first = i * PER_THREAD;
		if (pthread_create(&workers[i].thread, NULL, worker_main,
			&workers[i]) != 0)
			rig_fail_now("no thread");
	}
	/* the main thread's own work is no part of this */
	(void)sigemptyset(handled);
	(void)sigaddset(handled, SIGUSR1);
	(void)sigaddset(handled, SIGUSR2);
	(void)pthread_sigmask(SIG_BLOCK, handled, NULL);
}

/* Signals by a timer, to whom the kernel likes, and to chosen threads. */
static size_t
conduct(void)
{
	struct sigevent event = {
	    .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	struct itimerspec each = {{0, 3000000}, {0, 3000000}};
	uint64_t end = rig_now_ns() + (uint64_t)(rig.seconds * 1e9);
	uint64_t random = rig.seed;
	size_t peak = 0;
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		rig_fail_now("no timer");
	if (!rig.no_signals)
		(void)timer_settime(timer, 0, &each, NULL);
	while (rig_now_ns() < end) {
		unsigned i = (unsigned)rig_below(&random, N_THREADS);
		size_t rss = rig_rss_bytes();

		peak = rss > peak ? rss : peak;
		if (!rig.no_signals)
			(void)pthread_kill(workers[i].thread, SIGUSR1);
		rig_sleep_us(2000);
	}
	(void)timer_delete(timer);
	return peak;
}

int
main(int argc, char **argv)
{
	uint64_t ops = 0;
	sigset_t handled;
	size_t in_use;
	size_t live = 0;
	size_t peak;
	ptrdiff_t leak;

	rig_start(argc, argv, 6);
	in_use = rig_in_use_bytes();
	start(&handled);
	peak = conduct();
	atomic_store(&stop, 1);
	rig_deadline(
	    CHILD_S * rig.patience + rig.patience_s, "the threads did not end");
	for (unsigned i = 0; i < N_THREADS; i++) {
		(void)pthread_join(workers[i].thread, NULL);
		ops += workers[i].n_ops;
	}
	rig_deadline(0, NULL);
	for (unsigned i = 0; i < N_ENTRIES + N_HANDLER_ENTRIES; i++)
		live += atomic_load(&ledger[i].state) == ENTRY_FULL
			    ? ledger[i].size
			    : 0;
	(void)ledger_drain(ledger, N_ENTRIES + N_HANDLER_ENTRIES, 1);
	rig_ok(ops > 0, "%llu operations, %llu signals, %llu forks",
	    (unsigned long long)ops,
	    (unsigned long long)atomic_load(&n_signals),
	    (unsigned long long)atomic_load(&n_forks));
	leak = (ptrdiff_t)(rig_in_use_bytes() - in_use);
	rig_ok(leak < LEAK_BYTES, "%td bytes in use after the last free", leak);
	rig_ok(peak < 3 * live + GROWTH_BYTES,
	    "%zu MiB resident at most, %zu MiB live at the end", peak >> 20,
	    live >> 20);
	return rig_end();
}
