/* SPDX-License-Identifier: BSD-2-Clause */
/* freeze_target.c - victim, helper and forker that freeze_step steers. */
#include "freeze_target.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

enum { MAX_BURST = 600, N_WINDOWS = 3 };

static struct stage *stage;
static struct entry *ledger;
static struct drum victim;
static struct drum forker;
static unsigned char *held[MAX_BURST];

static void
await_turn(const _Atomic uint32_t *go, uint32_t done)
{
	while (atomic_load(go) == done)
		(void)rig_futex_wait(go, done, 0);
}

static void
announce(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	rig_futex_wake(word);
}

/* A burst as bare as can be: only malloc and free are to be stepped. */
static void
script(unsigned class)
{
	unsigned n = drum_class_burst(class);
	size_t size = drum_class_size(class);

	atomic_store(&stage->victim_class, class);
	for (unsigned i = 0; i < n; i++) {
		atomic_fetch_add(&stage->victim_op, 1);
		held[i] = malloc(size);
		atomic_fetch_add(&stage->victim_op, 1);
		if (held[i] == NULL)
			rig_fail_now("no memory for the victim");
		held[i][0] = (unsigned char)i;
		held[i][size - 1] = (unsigned char)i;
	}
	for (unsigned i = 0; i < n; i++) {
		if (held[i][0] != (unsigned char)i ||
		    held[i][size - 1] != (unsigned char)i)
			rig_fail_now("the victim's block was spoilt");
		atomic_fetch_add(&stage->victim_op, 1);
		free(held[i]);
		atomic_fetch_add(&stage->victim_op, 1);
	}
}

/* Leaves blocks of the victim's making for the helper to free. */
static void
restock(void)
{
	for (unsigned c = 0; c < victim.n_classes; c++)
		drum_burst(&victim, c);
}

static void *
victim_main(void *arg)
{
	rig_pin(0);
	restock();
	announce(&stage->victim_tid, (uint32_t)gettid());
	await_turn(&stage->tracer_victim_go, 0);
	for (;;) {
		/* the largest first: few blocks, but they claim chunks */
		for (unsigned c = victim.n_classes; c-- > 0;) {
			(void)syscall(
			    SYS_tgkill, getpid(), gettid(), STEP_AGAIN);
			script(c);
			atomic_store(&stage->victim_between, 1);
			restock();
			atomic_store(&stage->victim_between, 0);
		}
		atomic_fetch_add(&stage->victim_pass, 1);
	}
	return arg;
}

static void *
helper_main(void *arg)
{
	struct drum *d = &stage->helper;

	for (uint32_t turn = 0;; turn++) {
		uint64_t until;

		await_turn(&stage->tracer_helper_go, turn);
		rig_pin(turn / 2 % rig_cpus());
		until =
		    atomic_load(&d->n_ops) + atomic_load(&stage->tracer_n_ops);
		drum_burst(d, atomic_load(&stage->victim_class));
		while (atomic_load(&d->n_ops) < until)
			drum_beat(d);
		announce(&stage->helper_done, turn + 1);
	}
	return arg;
}

static void *
child_thread(void *arg)
{
	drum_burst(arg, atomic_load(&stage->victim_class));
	return NULL;
}

static void
fork_once(void)
{
	int status = -1;
	pid_t pid = fork();
	pthread_t t;

	if (pid == 0) {
		(void)alarm(rig.patience_s);
		drum_burst(&forker, atomic_load(&stage->victim_class));
		if (pthread_create(&t, NULL, child_thread, &forker) != 0 ||
		    pthread_join(t, NULL) != 0)
			rig_fail_now("no thread in the child");
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		rig_fail_now("the forked child ended with %#x", status);
}

static void
set_up(struct drum *d, unsigned window)
{
	d->ledger = ledger;
	d->n_windows = N_WINDOWS;
	d->window = window;
	d->me = window + 1;
	d->n_classes = drum_class_count();
	d->random = rig.seed * 10 + window;
}

void
freeze_target(struct stage *shared)
{
	pthread_t t;

	stage = shared;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	ledger = ledger_create(N_WINDOWS);
	set_up(&victim, 0);
	set_up(&stage->helper, 1);
	set_up(&forker, 2);
	if (pthread_create(&t, NULL, victim_main, NULL) != 0 ||
	    pthread_create(&t, NULL, helper_main, NULL) != 0)
		rig_fail_now("no thread");
	for (uint32_t turn = 0;; turn++) {
		await_turn(&stage->tracer_fork_go, turn);
		fork_once();
		announce(&stage->main_fork_done, turn + 1);
	}
}
