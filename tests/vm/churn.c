/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * churn.c - threads that allocate, exchange and free until SIGTERM, for
 * somebody who changes the machine meanwhile.
 *
 *   churn [THREADS]   8 threads
 *
 * Prints "round N" whenever each thread has made so many steps more, and exits
 * with 1 if a block was ever damaged, handed out twice or refused.
 */
#include "tests/probe.h"

#include <limits.h>

enum { MAX_THREADS = 64, ROUND = 1000, MAILBOX = 256, WORDS = 12 };

struct worker {
	pthread_t id;
	_Atomic unsigned long steps;
	struct own own;
	unsigned long damaged;
	unsigned long refused;
};

static struct worker worker[MAX_THREADS];
static _Atomic(uint64_t *) mailbox[MAILBOX];
static volatile sig_atomic_t over;

static void
on_term(int sig)
{
	(void)sig;
	over = 1;
}

/* A block for whoever comes next; what lay there is freed here. */
static void
exchange(struct worker *w)
{
	uint64_t *p = p_malloc(WORDS * sizeof *p);
	uint64_t *q;

	if (p == NULL) {
		w->refused++;
		return;
	}
	for (unsigned i = 0; i < WORDS; i++)
		p[i] = (uintptr_t)p + i;
	/* acq_rel: the content goes along. */
	q = atomic_exchange_explicit(
	    &mailbox[tap_random(&w->own.rng) % MAILBOX], p,
	    memory_order_acq_rel);
	if (q == NULL)
		return;
	for (unsigned i = 0; i < WORDS; i++)
		w->damaged += q[i] != (uintptr_t)q + i;
	memset(q, 0, WORDS * sizeof *q);
	p_free(q);
}

static void *
work(void *arg)
{
	struct worker *w = arg;

	while (!over) {
		own_step(&w->own);
		exchange(w);
		/* relaxed: a count that main looks at. */
		atomic_fetch_add_explicit(&w->steps, 1, memory_order_relaxed);
	}
	own_end(&w->own);
	return NULL;
}

static unsigned long
least_steps(int n)
{
	unsigned long least = ULONG_MAX;

	for (int i = 0; i < n; i++) {
		unsigned long steps = atomic_load_explicit(
		    &worker[i].steps, memory_order_relaxed);

		least = steps < least ? steps : least;
	}
	return least;
}

static void
say_round(unsigned long n)
{
	char line[32];
	int length = snprintf(line, sizeof line, "round %lu\n", n);

	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		over = 1;
}

int
main(int argc, char **argv)
{
	int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 8;
	unsigned long rounds = 0;
	unsigned long bad = 0;

	tap_begin(argv);
	if (n < 1 || n > MAX_THREADS)
		tap_bail("1 to %d threads", MAX_THREADS);
	signal(SIGTERM, on_term);
	for (int i = 0; i < n; i++) {
		own_begin(&worker[i].own, (uint64_t)i + 1, 200000);
		if (pthread_create(&worker[i].id, NULL, work, &worker[i]) != 0)
			tap_bail("pthread_create");
	}
	while (!over) {
		(void)usleep(10000);
		while (least_steps(n) / ROUND > rounds) {
			rounds++;
			say_round(rounds);
		}
	}
	for (int i = 0; i < n; i++) {
		struct worker *w = &worker[i];

		(void)pthread_join(w->id, NULL);
		bad += w->damaged + w->refused + w->own.doubles + w->own.nulls;
	}
	tap_diag("%lu rounds, %lu blocks damaged or refused", rounds, bad);
	return bad != 0;
}
