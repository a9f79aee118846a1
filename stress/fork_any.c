/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork_any.c - forks at any instant, also inside malloc and free.
 *
 * Threads beat bursts and fork between them; besides, a signal handler forks
 * wherever it interrupts its thread, so that the child begins in the middle
 * of a malloc or free and must complete it.  Every child verifies all blocks
 * that were whole at the fork, works on, starts threads, forks again, frees
 * everything and ends.
 *
 * The handler uses _Fork(), which may be called in one, and so do the children:
 * other threads may hold the C library's own fork lock.  No thread is created
 * in the parent meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger.h"
#include "rig.h"

enum {
	N_DRUMMERS = 6,
	N_CLASSES = 10,
	N_CHILD_THREADS = 2,
	MAX_CHILDREN = 8,
	CHILD_S = 60,
	LEAK_BYTES = 8192
};

static struct entry *ledger;
static struct drum drums[N_DRUMMERS];
static struct drum child_drums[N_CHILD_THREADS];
static pthread_t threads[N_DRUMMERS];
static pid_t parent;
static _Atomic uint32_t stop;
static _Atomic uint32_t n_children; /* alive */
static _Atomic uint64_t n_forks;
static _Atomic uint64_t n_handler_forks;
static _Thread_local struct drum *self;

static size_t
n_entries(void)
{
	return drum_window_entries() * N_DRUMMERS;
}

static void
verify_all(void)
{
	for (size_t i = 0; i < n_entries(); i++)
		if (atomic_load(&ledger[i].state) == ENTRY_FULL)
			entry_verify(&ledger[i]);
}

static void *
child_thread(void *arg)
{
	for (unsigned c = 0; c < N_CLASSES; c++)
		drum_burst(arg, c);
	return NULL;
}

static _Noreturn void
child_main(struct drum *d)
{
	pthread_t t[N_CHILD_THREADS];
	int status = 0;
	pid_t pid;

	(void)alarm(CHILD_S * rig.patience);
	verify_all();
	drum_beat(d);
	for (unsigned i = 0; i < N_CHILD_THREADS; i++) {
		struct drum *other = &child_drums[i];

		other->ledger = ledger;
		other->n_windows = N_DRUMMERS;
		other->window = (d->window + i + 1) % N_DRUMMERS;
		other->me = 100 + i;
		other->n_classes = N_CLASSES;
		other->random = d->random + i;
		if (pthread_create(&t[i], NULL, child_thread, other) != 0)
			rig_fail_now("no thread in the child");
	}
	pid = _Fork(); /* another may have held the C library's fork lock */
	if (pid == 0) {
		verify_all();
		drum_beat(d);
		(void)ledger_drain(ledger, n_entries(), d->me);
		_exit(0);
	}
	for (unsigned i = 0; i < N_CHILD_THREADS; i++)
		(void)pthread_join(t[i], NULL);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		rig_fail_now("the grandchild ended with %#x", status);
	(void)ledger_drain(ledger, n_entries(), d->me);
	_exit(0);
}

static bool
may_fork(void)
{
	if (atomic_fetch_add(&n_children, 1) < MAX_CHILDREN)
		return true;
	atomic_fetch_sub(&n_children, 1);
	return false;
}

static void
on_signal(int signo, siginfo_t *info, void *context)
{
	int kept = errno;
	pid_t pid;

	(void)signo;
	(void)info;
	(void)context;
	if (getpid() != parent || !may_fork())
		return;
	pid = _Fork();
	if (pid == 0)
		(void)alarm(CHILD_S * rig.patience);
	else if (pid < 0)
		rig_fail_now("_Fork: errno %d", errno);
	else
		atomic_fetch_add(&n_handler_forks, 1);
	errno = kept;
}

static void
fork_between(struct drum *d)
{
	sigset_t all;
	sigset_t old;
	pid_t pid;

	if (!may_fork())
		return;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old);
	pid = fork();
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (pid == 0)
		child_main(d);
	if (pid < 0)
		rig_fail_now("fork: errno %d", errno);
	atomic_fetch_add(&n_forks, 1);
}

static void *
drummer_main(void *arg)
{
	self = arg;
	while (atomic_load_explicit(&stop, memory_order_relaxed) == 0) {
		drum_beat(self);
		if (getpid() != parent)
			child_main(self); /* born in the handler */
		if (rig_below(&self->random, 50) == 0)
			fork_between(self);
	}
	return NULL;
}

static unsigned
reap(int options)
{
	unsigned n = 0;
	int status;

	while (waitpid(-1, &status, options) > 0) {
		if (WIFEXITED(status) && WEXITSTATUS(status) == RIG_OVERDUE)
			rig_stalled("a child hung");
		if (status != 0)
			rig_fail_now("a child ended with %#x", status);
		atomic_fetch_sub(&n_children, 1);
		n++;
	}
	return n;
}

static void
start(void)
{
	struct sigaction sa = {
	    .sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};

	(void)sigaction(SIGUSR1, &sa, NULL);
	ledger = ledger_create(N_DRUMMERS);
	for (unsigned i = 0; i < N_DRUMMERS; i++) {
		struct drum *d = &drums[i];

		d->ledger = ledger;
		d->n_windows = N_DRUMMERS;
		d->window = i;
		d->me = i + 1;
		d->n_classes = N_CLASSES;
		d->random = rig.seed * 1000 + i;
		if (pthread_create(&threads[i], NULL, drummer_main, d) != 0)
			rig_fail_now("no thread");
	}
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		while (atomic_load(&drums[i].n_ops) == 0)
			rig_sleep_us(100);
}

int
main(int argc, char **argv)
{
	uint64_t random;
	uint64_t end;
	unsigned n_ended = 0;
	size_t in_use;
	ptrdiff_t leak;

	rig_start(argc, argv, 5);
	parent = getpid();
	random = rig.seed;
	in_use = rig_in_use_bytes();
	start();
	end = rig_now_ns() + (uint64_t)(rig.seconds * 1e9);
	while (rig_now_ns() < end) {
		unsigned i = (unsigned)rig_below(&random, N_DRUMMERS);

		rig_sleep_us((unsigned)rig_below(&random, 4000));
		if (!rig.no_signals)
			(void)pthread_kill(threads[i], SIGUSR1);
		n_ended += reap(WNOHANG);
	}
	atomic_store(&stop, 1);
	rig_deadline(CHILD_S * rig.patience + rig.patience_s,
	    "threads or children hung");
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		(void)pthread_join(threads[i], NULL);
	n_ended += reap(0);
	rig_deadline(0, NULL);
	rig_ok(n_ended > 0,
	    "%u children worked on and ended: %llu forks, %llu in a handler",
	    n_ended, (unsigned long long)atomic_load(&n_forks),
	    (unsigned long long)atomic_load(&n_handler_forks));
	(void)ledger_drain(ledger, n_entries(), 1);
	leak = (ptrdiff_t)(rig_in_use_bytes() - in_use);
	rig_ok(leak < LEAK_BYTES, "%td bytes in use after the last free", leak);
	return rig_end();
}
