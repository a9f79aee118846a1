/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kill.c - threads die at random instants; the rest go on and lose little.
 *
 * A signal handler ends its thread by the bare exit system call: no cleanup,
 * no destructor, most often from inside malloc or free.  The kernel clears
 * the thread's id word, so pthread_join still sees the end.  Each victim is
 * replaced by a new thread.  What a dead thread held in its own hands, one
 * entry of the ledger, is the test's loss; whatever else is missing when all
 * has been freed is the allocator's, and must stay within CAP_BYTES a death.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger.h"
#include "rig.h"

enum {
	N_DRUMMERS = 6,
	N_CLASSES = 9,     /* to 200,000 bytes */
	CAP_BYTES = 65536, /* a batch; larger things are in hand less often */
	WARM_OPS = 50000,
	SLACK_BYTES = 16 << 20
};

struct drummer {
	struct drum drum;
	pthread_t thread;
};

static struct drummer drummers[N_DRUMMERS];
static struct entry *ledger;
static _Atomic uint32_t stop;

static void
on_kill(int signo)
{
	(void)signo;
	(void)syscall(SYS_exit, 0);
}

static void *
drummer_main(void *arg)
{
	struct drummer *d = arg;

	while (atomic_load_explicit(&stop, memory_order_relaxed) == 0)
		drum_beat(&d->drum);
	return NULL;
}

static void
start_drummer(unsigned i, uint32_t me)
{
	struct drum *d = &drummers[i].drum;

	d->ledger = ledger;
	d->n_windows = N_DRUMMERS;
	d->window = i;
	d->me = me;
	d->n_classes = N_CLASSES;
	d->random = rig.seed * 100000 + me;
	rig_deadline(rig.patience_s, "a new thread could not start");
	if (pthread_create(
		&drummers[i].thread, NULL, drummer_main, &drummers[i]) != 0)
		rig_fail_now("no thread");
}

static size_t
n_entries(void)
{
	return drum_window_entries() * N_DRUMMERS;
}

/* Lets go of the dead thread's entry; returns the bytes lost with it. */
static size_t
bury(uint32_t me)
{
	for (size_t i = 0; i < n_entries(); i++)
		if (entry_held_by(&ledger[i], me)) {
			size_t size = ledger[i].size;

			entry_forget(&ledger[i]);
			return size;
		}
	return 0;
}

static uint64_t
ops_total(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < N_DRUMMERS; i++)
		n += atomic_load_explicit(
		    &drummers[i].drum.n_ops, memory_order_relaxed);
	return n;
}

/* Everyone still gets on: each thread completes some operations. */
static void
await_everyone(uint64_t n)
{
	uint64_t limit = rig_now_ns() + (uint64_t)rig.patience_s * 1000000000;
	uint64_t start[N_DRUMMERS];

	for (unsigned i = 0; i < N_DRUMMERS; i++)
		start[i] = atomic_load(&drummers[i].drum.n_ops);
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		while (atomic_load(&drummers[i].drum.n_ops) < start[i] + n) {
			if (rig_now_ns() > limit)
				rig_stalled("a thread stood still after "
					    "others had died");
			rig_sleep_us(100);
		}
}

static void
stop_all(void)
{
	atomic_store(&stop, 1);
	rig_deadline(rig.patience_s, "the threads did not end");
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		(void)pthread_join(drummers[i].thread, NULL);
	(void)ledger_drain(ledger, n_entries(), UINT32_MAX >> 2);
	rig_deadline(0, NULL);
	atomic_store(&stop, 0);
}

/* The same work without a death: what stays resident by itself. */
static size_t
warm_up(uint32_t *me)
{
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		start_drummer(i, ++*me);
	rig_deadline(0, NULL);
	rig_sleep_us(700000);
	/* Which is no time where others have the CPUs. */
	await_everyone(WARM_OPS);
	stop_all();
	return rig_rss_bytes();
}

static void
report(uint64_t n_deaths, size_t in_hand, size_t in_use, size_t rss)
{
	ptrdiff_t lost = (ptrdiff_t)(rig_in_use_bytes() - in_use);
	ptrdiff_t grown = (ptrdiff_t)(rig_rss_bytes() - rss);
	ptrdiff_t deaths = (ptrdiff_t)n_deaths;
	ptrdiff_t own = (ptrdiff_t)in_hand;

	rig_ok(true, "%td deaths, the other threads went on each time", deaths);
	rig_diag(
	    "in the test's own hands: at most %td bytes a death", own / deaths);
	rig_ok(lost < own + deaths * CAP_BYTES + SLACK_BYTES,
	    "in use after the last free: %td bytes a death", lost / deaths);
	rig_ok(grown < own + deaths * CAP_BYTES + SLACK_BYTES,
	    "resident memory grew by %td bytes a death (%td MiB)",
	    grown / deaths, grown / (1 << 20));
}

int
main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_kill};
	uint32_t me = 0;
	uint64_t n_deaths = 0;
	uint64_t random;
	uint64_t end;
	size_t in_hand = 0;
	size_t in_use;
	size_t rss;

	rig_start(argc, argv, 5);
	random = rig.seed;
	(void)sigaction(SIGUSR1, &sa, NULL);
	ledger = ledger_create(N_DRUMMERS);
	in_use = rig_in_use_bytes();
	rss = warm_up(&me);
	for (unsigned i = 0; i < N_DRUMMERS; i++)
		start_drummer(i, ++me);
	end = rig_now_ns() + (uint64_t)(rig.seconds * 1e9);
	while (rig_now_ns() < end || n_deaths < 10) {
		unsigned i = (unsigned)rig_below(&random, N_DRUMMERS);
		struct drummer *d = &drummers[i];
		uint64_t before = atomic_load(&d->drum.n_ops);

		rig_sleep_us((unsigned)rig_below(&random, 1000));
		if (n_deaths % 32 == 0)
			await_everyone(1000);
		rig_deadline(rig.patience_s, "a thread did not get on, or die");
		while (atomic_load(&d->drum.n_ops) == before)
			rig_sleep_us(50);
		(void)pthread_kill(d->thread, SIGUSR1);
		(void)pthread_join(d->thread, NULL);
		in_hand += bury(d->drum.me);
		n_deaths++;
		start_drummer(i, ++me);
	}
	await_everyone(1000);
	stop_all();
	rig_diag("%llu operations", (unsigned long long)ops_total());
	report(n_deaths, in_hand, in_use, rss);
	return rig_end();
}
