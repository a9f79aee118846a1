/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * freeze.c - the others go on while threads stand still inside malloc.
 *
 * A signal handler parks its thread in a futex: the thread stands at a random
 * instruction, most often inside malloc or free.  Each round freezes any one
 * drummer, or all but one; those left must complete N_OPS operations each, in
 * the same classes, and fork() must return and its child must work on, also
 * with a new thread.  Resident memory stays bounded throughout, and after the
 * last thaw every byte is returned.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "ledger.h"
#include "rig.h"

enum {
	N_DRUMMERS = 4,
	N_OPS = 10000,
	TRIES = 40, /* signals until one finds the thread inside malloc */
	GROWTH_BYTES = 64 << 20,
	LEAK_BYTES = 8192 /* what the C library keeps of ended threads */
};

enum { RUNNING, PARKED, REFUSED };

struct drummer {
	struct drum drum;
	pthread_t thread;
	_Atomic uint32_t parked; /* W: its handler, main before a signal */
	uintptr_t stood_at;      /* published by parked */
};

static struct drummer drummers[N_DRUMMERS];
static struct drum helper; /* the main thread's, and its children's */
static _Thread_local struct drummer *self;
static _Atomic uint32_t frozen; /* the futex: 1 while threads must stand */
static _Atomic uint32_t stop;
static _Atomic uint32_t anywhere; /* park outside the allocator, too */

static uintptr_t
instruction_of(const void *context)
{
	const ucontext_t *uc = context;

#if defined(__x86_64__)
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)uc->uc_mcontext.pc;
#else
	(void)uc;
	return 0;
#endif
}

static void
on_freeze(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	self->stood_at = instruction_of(context);
	if (!rig_in_allocator(self->stood_at) && atomic_load(&anywhere) == 0) {
		atomic_store(&self->parked, REFUSED);
		rig_futex_wake(&self->parked);
		return;
	}
	atomic_store(&self->parked, PARKED);
	rig_futex_wake(&self->parked);
	while (atomic_load(&frozen) != 0)
		(void)rig_futex_wait(&frozen, 1, 0);
	atomic_store(&self->parked, RUNNING);
	rig_futex_wake(&self->parked);
}

static void *
drummer_main(void *arg)
{
	self = arg;
	while (atomic_load_explicit(&stop, memory_order_relaxed) == 0)
		drum_beat(&self->drum);
	return NULL;
}

static uint64_t
ops_of(const struct drummer *d)
{
	return atomic_load_explicit(&d->drum.n_ops, memory_order_relaxed);
}

static uint32_t
await_change(struct drummer *d, uint32_t from)
{
	uint32_t seen;

	while ((seen = atomic_load(&d->parked)) == from)
		(void)rig_futex_wait(&d->parked, from, 1000);
	return seen;
}

static void
freeze_one(struct drummer *d, uint64_t *random)
{
	uint32_t seen = RUNNING;

	rig_deadline(rig.patience_s, "a thread took no signal");
	atomic_store(&anywhere, rig_below(random, 8) == 0);
	for (int i = 0; seen != PARKED; i++) {
		if (i == TRIES)
			atomic_store(&anywhere, 1);
		if (i % 2 != 0)
			rig_sleep_us((unsigned)rig_below(random, 200));
		for (uint64_t n = rig_below(random, 20000); n > 0; n--)
			atomic_signal_fence(memory_order_seq_cst);
		atomic_store(&d->parked, RUNNING);
		(void)pthread_kill(d->thread, SIGUSR1);
		seen = await_change(d, RUNNING);
	}
	rig_deadline(0, NULL);
}

/* Where the frozen threads stand, for the report of a stall. */
static void
describe_frozen(void)
{
	char place[256];

	for (unsigned i = 0; i < N_DRUMMERS; i++)
		if (atomic_load(&drummers[i].parked) == PARKED)
			rig_diag("thread %u stands at %s", i,
			    rig_place(
				drummers[i].stood_at, place, sizeof(place)));
}

static void
await_ops(unsigned round, const bool *is_frozen)
{
	uint64_t start[N_DRUMMERS];
	uint64_t limit = rig_now_ns() + (uint64_t)rig.patience_s * 1000000000;

	for (unsigned i = 0; i < N_DRUMMERS; i++)
		start[i] = ops_of(&drummers[i]);
	for (unsigned i = 0; i < N_DRUMMERS; i++) {
		while (
		    !is_frozen[i] && ops_of(&drummers[i]) - start[i] < N_OPS) {
			if (rig_now_ns() > limit) {
				describe_frozen();
				rig_stalled("round %u: thread %u stood still "
					    "after %llu of %d operations",
				    round, i,
				    (unsigned long long)(ops_of(&drummers[i]) -
							 start[i]),
				    N_OPS);
			}
			rig_sleep_us(200);
		}
	}
}

static void *
child_thread(void *arg)
{
	struct drum *d = arg;

	for (unsigned c = 0; c < d->n_classes; c++)
		drum_burst(d, c);
	return NULL;
}

static _Noreturn void
child_main(void)
{
	struct drum *d = &helper;
	pthread_t t;

	(void)alarm(rig.patience_s);
	for (unsigned c = 0; c < d->n_classes; c++)
		drum_burst(d, c);
	if (pthread_create(&t, NULL, child_thread, d) != 0 ||
	    pthread_join(t, NULL) != 0)
		rig_fail_now("no thread in the child");
	_exit(0);
}

/* The main thread forks; a hang of fork itself meets the deadline. */
static void
fork_once(void)
{
	int status = -1;
	pid_t pid;

	rig_deadline(rig.patience_s, "fork() while threads were frozen");
	pid = fork();
	if (pid == 0)
		child_main();
	rig_deadline(2 * rig.patience_s, "the forked child did not end");
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		rig_fail_now("fork or waitpid failed");
	if (WIFEXITED(status) && WEXITSTATUS(status) == RIG_OVERDUE)
		rig_stalled("the forked child hung");
	if (status != 0)
		rig_fail_now("the forked child ended with %#x", status);
	rig_deadline(0, NULL);
}

static unsigned
freeze_round(unsigned round, uint64_t *random)
{
	bool is_frozen[N_DRUMMERS];
	unsigned one = (unsigned)rig_below(random, N_DRUMMERS);
	unsigned in_allocator = 0;

	atomic_store(&frozen, 1);
	for (unsigned i = 0; i < N_DRUMMERS; i++) {
		is_frozen[i] = (i == one) == (round % 2 == 0);
		if (!is_frozen[i])
			continue;
		freeze_one(&drummers[i], random);
		in_allocator += rig_in_allocator(drummers[i].stood_at);
	}
	await_ops(round, is_frozen);
	if (round % 4 < 2)
		fork_once();
	atomic_store(&frozen, 0);
	rig_futex_wake(&frozen);
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		if (is_frozen[i])
			(void)await_change(&drummers[i], PARKED);
	return in_allocator;
}

static void
start_drummers(struct entry *ledger)
{
	for (unsigned i = 0; i <= N_DRUMMERS; i++) {
		struct drum *d = i == N_DRUMMERS ? &helper : &drummers[i].drum;

		d->ledger = ledger;
		d->n_windows = N_DRUMMERS + 1;
		d->window = i;
		d->me = i + 1;
		d->n_classes = drum_class_count();
		d->random = rig.seed * 1000 + i;
	}
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		if (pthread_create(&drummers[i].thread, NULL, drummer_main,
			&drummers[i]) != 0)
			rig_fail_now("no thread");
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		while (ops_of(&drummers[i]) == 0)
			rig_sleep_us(100);
}

int
main(int argc, char **argv)
{
	struct sigaction sa = {
	    .sa_sigaction = on_freeze, .sa_flags = SA_SIGINFO};
	struct entry *ledger;
	unsigned frozen_total = 0;
	unsigned inside = 0;
	unsigned round = 0;
	size_t base = 0;
	size_t peak = 0;
	size_t in_use;
	size_t cap;
	size_t leak;
	uint64_t end;

	rig_start(argc, argv, 5);
	(void)sigaction(SIGUSR1, &sa, NULL);
	ledger = ledger_create(N_DRUMMERS + 1);
	in_use = rig_in_use_bytes();
	start_drummers(ledger);
	end = rig_now_ns() + (uint64_t)(rig.seconds * 1e9);
	for (; round < 8 || rig_now_ns() < end; round++) {
		size_t rss;

		inside += freeze_round(round, &helper.random);
		frozen_total += round % 2 == 0 ? 1 : N_DRUMMERS - 1;
		rss = rig_rss_bytes();
		if (round < 16 && rss > base)
			base = rss;
		if (rss > peak)
			peak = rss;
	}
	atomic_store(&stop, 1);
	rig_deadline(rig.patience_s, "the threads did not end");
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		(void)pthread_join(drummers[i].thread, NULL);
	rig_deadline(0, NULL);
	rig_ok(true,
	    "%u rounds: each unfrozen thread did %d operations, fork returned",
	    round, N_OPS);
	rig_ok(frozen_total < 50 || inside > 0,
	    "%u of %u freezes were inside %s", inside, frozen_total,
	    rig.library);
	cap = (N_DRUMMERS + 1) * drum_window_bytes(drum_class_count()) * 3 / 2 +
	      GROWTH_BYTES;
	rig_ok(peak < cap && peak < base + GROWTH_BYTES,
	    "resident memory: %zu MiB in the first rounds, %zu MiB at most",
	    base >> 20, peak >> 20);
	(void)ledger_drain(
	    ledger, (N_DRUMMERS + 1) * drum_window_entries(), helper.me);
	leak = rig_in_use_bytes() - in_use;
	rig_ok((ptrdiff_t)leak < LEAK_BYTES,
	    "%td bytes in use after the last free", (ptrdiff_t)leak);
	return rig_end();
}
