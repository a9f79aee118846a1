/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_flow.c - objects that are freed by another thread than took them.
 *
 * Each workload stands against the same work without malloc, in the same
 * process: short slices of either take turns, so that what else the machine
 * does meets both. Results are the median slice with malloc (ns_per_op), the
 * median one without (bare_ns), and the median ratio of neighbours
 * (bare_ratio).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench_ring.h"

enum {
	SLICES = 9, /* of each kind */
	ENDS_MAX = 16,
	READY = 4, /* ready-made objects a producer, per slot of its ring */
};

/* What all threads do now. */
enum { DO_BARE, DO_MALLOC, DO_STOP };

struct end {
	_Alignas(BENCH_LINE) _Atomic uint64_t ops; /* W: this thread */
	unsigned id;
	size_t at_size;
	size_t at_ready;
	char *ready;
	void *handed; /* share: what the main thread took */
	void *(*body)(void *);
	pthread_t thread;
};

/*
 * Producer p and consumer c have ring p * n_consumers + c, and one in which
 * objects go back where that is done by hand.
 */
static struct {
	_Alignas(BENCH_LINE) _Atomic int now; /* W: main thread */
	_Alignas(BENCH_LINE) const struct bench_params *params;
	const uint16_t *sizes;
	struct ring *there;
	struct ring *back; /* NULL: naive frees */
	char *ready;
	size_t n_ready_bytes;
	size_t n_slots;
	unsigned n_producers;
	unsigned n_consumers;
	unsigned spins;
	bool pinned;
	struct end ends[ENDS_MAX]; /* consumers first */
} flow;

static int
now(void)
{
	return atomic_load_explicit(&flow.now, memory_order_relaxed);
}

static void
switch_to(int what)
{
	atomic_store_explicit(&flow.now, what, memory_order_relaxed);
}

/* The owner's increment: no other thread writes the count. */
static void
count(struct end *e)
{
	atomic_store_explicit(&e->ops,
	    atomic_load_explicit(&e->ops, memory_order_relaxed) + 1,
	    memory_order_relaxed);
}

static void
start(struct end *e)
{
	bench_priority_take(BENCH_RANK_WORKER);
	if (flow.pinned)
		bench_pin_to(e->id);
}

/* Spins where each thread has a CPU, else gives it away. */
static void
pause_or_yield(unsigned *n_failed)
{
	if (++*n_failed < flow.spins)
		bench_pause();
	else
		(void)sched_yield();
}

/* Each end takes its rings in turn. */
static unsigned
after(unsigned i, unsigned n)
{
	return i + 1 == n ? 0 : i + 1;
}

/* ------------------------------------------------------------------ */
/* Producers and consumers */

static void *
next_ready(struct end *e)
{
	void *p = e->ready + e->at_ready * flow.params->size;

	e->at_ready =
	    e->at_ready + 1 == READY * flow.n_slots ? 0 : e->at_ready + 1;
	return p;
}

/* Bare slices look the size up as well. */
static size_t
next_size(struct end *e)
{
	size_t size = flow.sizes[e->at_size];

	e->at_size = e->at_size + 1 == BENCH_SIZES ? 0 : e->at_size + 1;
	__asm__ volatile("" : "+r"(size));
	return size;
}

static void *
next_object(size_t size, unsigned ring)
{
	void *p = NULL;

	if (flow.back != NULL)
		p = ring_try_pop(&flow.back[ring], flow.n_slots);
	return p != NULL ? p : malloc(size);
}

static void *
produce(void *arg)
{
	struct end *e = arg;
	const unsigned n = flow.n_consumers;
	const unsigned first = (e->id - n) * n;
	unsigned at = 0, n_tried = 0, n_failed = 0;
	void *p = NULL;
	int what;

	start(e);
	while ((what = now()) != DO_STOP) {
		const unsigned ring = first + at;

		if (p == NULL) {
			const size_t size = next_size(e);

			p = what == DO_BARE ? next_ready(e)
					    : next_object(size, ring);
			bench_use(p);
		}
		at = after(at, n);
		if (ring_try_push(&flow.there[ring], flow.n_slots, p)) {
			p = NULL;
			n_tried = 0;
			n_failed = 0;
		} else if (++n_tried == n) {
			n_tried = 0;
			pause_or_yield(&n_failed);
		}
	}
	return NULL;
}

/* The check is the same for either kind of slice. */
static void
done_with(void *p, unsigned ring)
{
	if ((size_t)((char *)p - flow.ready) < flow.n_ready_bytes)
		return;
	if (flow.back == NULL ||
	    !ring_try_push(&flow.back[ring], flow.n_slots, p))
		free(p);
}

static void *
consume(void *arg)
{
	struct end *e = arg;
	const unsigned n = flow.n_producers;
	unsigned at = 0, n_tried = 0, n_failed = 0;

	start(e);
	while (now() != DO_STOP) {
		const unsigned ring = at * flow.n_consumers + e->id;
		void *p = ring_try_pop(&flow.there[ring], flow.n_slots);

		at = after(at, n);
		if (p != NULL) {
			ring_read_object(p);
			done_with(p, ring);
			count(e);
			n_tried = 0;
			n_failed = 0;
		} else if (++n_tried == n) {
			n_tried = 0;
			pause_or_yield(&n_failed);
		}
	}
	return NULL;
}

/* ------------------------------------------------------------------ */
/* Slices */

struct slices {
	double ns[SLICES];
	uint64_t ops;
	uint64_t cpu_ns;
};

static uint64_t
total(unsigned n_counting)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n_counting; i++)
		sum += atomic_load_explicit(
		    &flow.ends[i].ops, memory_order_relaxed);
	return sum;
}

/* A fifth of a slice goes by before the clock starts. */
static void
slice(struct slices *s, unsigned i, int what, unsigned n_counting, unsigned us)
{
	struct bench_span span;
	uint64_t before, ops;

	switch_to(what);
	bench_sleep_us(us / 5);
	span = bench_span_begin();
	before = total(n_counting);
	bench_sleep_us(us);
	ops = total(n_counting) - before;
	span = bench_span_end(span);
	s->ns[i] = (double)span.wall_ns * bench_cpus() / (double)(ops + !ops);
	s->ops += ops;
	s->cpu_ns += span.cpu_ns;
}

static int
by_value(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(const double *v)
{
	double sorted[SLICES];

	memcpy(sorted, v, sizeof(sorted));
	qsort(sorted, SLICES, sizeof(sorted[0]), by_value);
	return sorted[SLICES / 2];
}

/*
 * Starts n threads, lets them warm up with malloc until those that count, the
 * first n_counting, have all done something and a fifth of ms has gone, then
 * measures for ms. The cost of an operation is CPUs in use times wall time
 * over operations.
 */
static void
run(unsigned n, unsigned n_counting, struct bench_result *ret)
{
	static struct slices bare, test;
	const unsigned us = flow.params->ms * 1000 / (2 * SLICES);
	double ratio[SLICES];

	flow.spins = n <= bench_cpus() ? RING_SPINS : 0;
	flow.pinned = n <= bench_cpus();
	switch_to(DO_MALLOC);
	for (unsigned i = 0; i < n; i++) {
		struct end *e = &flow.ends[i];

		e->id = i;
		if (pthread_create(&e->thread, NULL, e->body, e) != 0)
			bench_die("cannot create a thread");
	}
	for (unsigned i = 0; i < n_counting; i++)
		while (atomic_load_explicit(
			   &flow.ends[i].ops, memory_order_relaxed) == 0)
			bench_sleep_us(1000);
	bench_sleep_us(flow.params->ms * 200);
	for (unsigned i = 0; i < SLICES; i++) {
		slice(&bare, i, DO_BARE, n_counting, us);
		slice(&test, i, DO_MALLOC, n_counting, us);
		ratio[i] = test.ns[i] / bare.ns[i];
	}
	switch_to(DO_STOP);
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(flow.ends[i].thread, NULL);
	ret->ops = test.ops;
	ret->ns_per_op = median(test.ns);
	ret->cpu_ns_per_op =
	    (double)test.cpu_ns / (double)(test.ops + !test.ops);
	bench_extra(ret, ",\"bare_ns\":%.4f,\"bare_ratio\":%.4f",
	    median(bare.ns), median(ratio));
}

/*
 * threads=PRODUCERS+CONSUMERS, mode=CONSUMERS, or CONSUMERSback where objects
 * go back by hand. count slots a ring, a ring for each pair; each end takes
 * its rings in turn.
 */
static int
flow_run(const struct bench_params *params, struct bench_result *ret)
{
	const char *mode = params->mode != NULL ? params->mode : "1";
	const unsigned n = params->threads;
	char *end;
	size_t n_ready;

	flow.params = params;
	flow.sizes = bench_table_sizes(params->dist, params->size, 11);
	flow.n_slots = params->count;
	flow.n_consumers = (unsigned)strtoul(mode, &end, 10);
	if (n > ENDS_MAX || flow.n_consumers == 0 || flow.n_consumers >= n ||
	    (*end != '\0' && strcmp(end, "back") != 0))
		bench_die(
		    "threads: up to 16; mode: how many consume, \"back\"");
	if (params->count == 0 || params->count > RING_MAX ||
	    (params->count & (params->count - 1)) != 0)
		bench_die("count: a power of two up to 4096");
	flow.n_producers = n - flow.n_consumers;
	flow.there = bench_map(
	    flow.n_producers * flow.n_consumers * sizeof(struct ring));
	if (*end != '\0')
		flow.back = bench_map(
		    flow.n_producers * flow.n_consumers * sizeof(struct ring));
	n_ready = READY * params->count;
	flow.n_ready_bytes = flow.n_producers * n_ready * params->size;
	flow.ready = bench_map_sparse(flow.n_ready_bytes, params->size);
	for (unsigned i = 0; i < n; i++) {
		struct end *e = &flow.ends[i];

		e->body = i < flow.n_consumers ? consume : produce;
		e->at_size = i * 997 % BENCH_SIZES;
		if (i >= flow.n_consumers)
			e->ready = flow.ready + (i - flow.n_consumers) *
						    n_ready * params->size;
	}
	run(n, flow.n_consumers, ret);
	return 0;
}

/* ------------------------------------------------------------------ */
/* False sharing */

static void
write_often(volatile size_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*p += i;
}

static void *
share(void *arg)
{
	struct end *e = arg;
	int what;

	start(e);
	free(e->handed);
	while ((what = now()) != DO_STOP) {
		void *p =
		    what == DO_BARE ? e->ready : malloc(flow.params->size);

		bench_keep(p);
		write_often(p, flow.params->count);
		if (what != DO_BARE)
			free(p);
		count(e);
	}
	return NULL;
}

/*
 * Each thread takes an object, writes it count times and frees it, again and
 * again. Costs more than bare where objects of two threads are on one line.
 * mode=passive: the main thread took an object for each, which they free
 * first. Bare objects have lines of their own.
 */
static int
share_run(const struct bench_params *params, struct bench_result *ret)
{
	const unsigned n = params->threads;
	bool passive =
	    params->mode != NULL && strcmp(params->mode, "passive") == 0;

	if (n > ENDS_MAX)
		bench_die("threads: up to 16");
	flow.params = params;
	flow.ready = bench_map((size_t)n * BENCH_LINE);
	for (unsigned i = 0; i < n; i++) {
		struct end *e = &flow.ends[i];

		e->body = share;
		e->ready = flow.ready + (size_t)i * BENCH_LINE;
		if (passive) {
			e->handed = malloc(params->size);
			bench_use(e->handed);
		}
	}
	run(n, n, ret);
	return 0;
}

const struct bench_workload bench_flow[] = {
    {"flow", flow_run, "producers and mode=N[back] consumers, against bare"},
    {"share", share_run,
	"threads write small objects count times (mode=passive)"},
    {NULL, NULL, NULL},
};
