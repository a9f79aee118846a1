/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_steady.c - a program that needs what it has, no more and no less.
 *
 * Each size keeps its number of live objects, and threads replace them, also
 * those of others, at random. Nothing in it makes a system call while the
 * threads run, so those that a tracer counts are the allocator's.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench.h"

enum {
	SIZES_MAX = 128,
	LEAST = 16,
	STEPS = 4,            /* sizes in each doubling */
	LIVE_BYTES = 1 << 20, /* of a size, but */
	LIVE_LEAST = 8,       /* at least, and */
	LIVE_MOST = 1024,     /* at most as many objects */
	BLOCK = 256,
};

/* There under eddy alone. */
extern void eddy_freeze(void) __attribute__((weak));

struct row {
	size_t size;
	size_t first; /* slot */
	size_t n;
};

static struct {
	_Alignas(BENCH_LINE) _Atomic bool stop; /* W: main thread */
	_Alignas(BENCH_LINE) struct row rows[SIZES_MAX];
	unsigned n_rows;
	void *_Atomic *slots; /* W: all threads, by exchange */
	uint64_t ops[BENCH_MAX_THREADS];
	unsigned ids[BENCH_MAX_THREADS];
} steady;

static void
add_row(size_t size, size_t *n_slots)
{
	struct row *r = &steady.rows[steady.n_rows++];

	r->size = size;
	r->first = *n_slots;
	r->n = LIVE_BYTES / size;
	if (r->n < LIVE_LEAST)
		r->n = LIVE_LEAST;
	if (r->n > LIVE_MOST)
		r->n = LIVE_MOST;
	*n_slots += r->n;
}

/* Four sizes in each doubling, whole words: 16, 20, 24, 28, 32, 40 ... */
static size_t
add_rows(size_t most)
{
	size_t n_slots = 0;

	for (size_t low = LEAST; low < most; low *= 2)
		for (unsigned i = 0; i < STEPS; i++)
			add_row(low + i * (low / STEPS), &n_slots);
	add_row(most, &n_slots);
	return n_slots;
}

static void *
next_object(size_t size)
{
	void *p = malloc(size);

	bench_use(p);
	bench_write_all(p, size);
	return p;
}

static void *
churn(void *arg)
{
	const unsigned id = *(unsigned *)arg;
	uint64_t seed = 51 + id;
	uint64_t ops = 0;

	while (!atomic_load_explicit(&steady.stop, memory_order_relaxed)) {
		for (unsigned i = 0; i < BLOCK; i++) {
			const uint64_t r = bench_random(&seed);
			const struct row *row =
			    &steady.rows[(r & 0xffffffffU) % steady.n_rows];
			void *p = next_object(row->size);

			free(atomic_exchange_explicit(
			    &steady.slots[row->first + (r >> 32) % row->n], p,
			    memory_order_acq_rel));
		}
		ops += BLOCK;
	}
	steady.ops[id] = ops;
	return NULL;
}

static void
freeze(const char *mode)
{
	if (mode == NULL)
		return;
	if (strcmp(mode, "freeze") != 0)
		bench_die("mode: freeze");
	if (eddy_freeze == NULL)
		bench_die("this malloc has no eddy_freeze");
	eddy_freeze();
}

/*
 * size: the largest. Runs for ms; led, until told to go on from the steps
 * "run" and "warm". With mode=freeze the heap is frozen between them.
 */
int
bench_steady_run(const struct bench_params *params, struct bench_result *ret)
{
	const size_t most = params->size < 2 * LEAST ? 2 * LEAST : params->size;
	pthread_t threads[BENCH_MAX_THREADS];
	struct bench_span span;
	uint64_t ops = 0;
	size_t n_bytes = 0;

	if (most > (size_t)1 << 30)
		bench_die("size: up to 1g");
	steady.slots = bench_map(SIZES_MAX * LIVE_MOST * sizeof(*steady.slots));
	(void)add_rows(most);
	for (unsigned r = 0; r < steady.n_rows; r++) {
		const struct row *row = &steady.rows[r];

		for (size_t i = 0; i < row->n; i++)
			atomic_store_explicit(&steady.slots[row->first + i],
			    next_object(row->size), memory_order_relaxed);
		n_bytes += row->n * row->size;
	}
	span = bench_span_begin();
	for (unsigned i = 0; i < params->threads; i++) {
		steady.ids[i] = i;
		if (pthread_create(&threads[i], NULL, churn, &steady.ids[i]) !=
		    0)
			bench_die("cannot create a thread");
	}
	/* Where only parents may trace, the script's tracer may too. */
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	bench_step("run");
	freeze(params->mode);
	bench_step("warm");
	if (!bench_is_led())
		bench_sleep_ms(params->ms);
	atomic_store_explicit(&steady.stop, true, memory_order_relaxed);
	for (unsigned i = 0; i < params->threads; i++) {
		(void)pthread_join(threads[i], NULL);
		ops += steady.ops[i];
	}
	bench_set(ret, bench_span_end(span), ops,
	    params->threads < bench_cpus() ? params->threads : bench_cpus());
	bench_extra(ret, ",\"live_kb\":%zu,\"sizes\":%u", n_bytes / 1024,
	    steady.n_rows);
	return 0;
}
