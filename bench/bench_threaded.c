/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_threaded.c - several threads: local, random and handed-on frees. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench_ring.h"

enum {
	LOCAL_BLOCK = 200, /* operations between two looks at the stop flag */
	FAN = 4,
	SHORT_OBJECTS = 64,
};

struct team;

struct worker {
	_Alignas(BENCH_LINE) _Atomic uint64_t ops; /* W: the worker */
	struct team *team;
	unsigned id;
	size_t at_size;
	size_t at_order;
	const uint16_t *order;
	void **slots;
	pthread_t thread;
};

/* Threads that count operations until told to stop. */
struct team {
	_Alignas(BENCH_LINE) _Atomic bool stop;
	_Alignas(BENCH_LINE) const struct bench_params *params;
	const uint16_t *sizes;
	void *_Atomic *shared;
	struct ring *rings;
	unsigned spins;
	struct worker workers[BENCH_MAX_THREADS];
};

static struct team team;

static bool
stopped(void)
{
	return atomic_load_explicit(&team.stop, memory_order_relaxed);
}

/* The owner's increment: no other thread writes the count. */
static void
count(struct worker *w, uint64_t n)
{
	atomic_store_explicit(&w->ops,
	    atomic_load_explicit(&w->ops, memory_order_relaxed) + n,
	    memory_order_relaxed);
}

static uint64_t
total(unsigned from, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = from; i < from + n; i++)
		sum += atomic_load_explicit(
		    &team.workers[i].ops, memory_order_relaxed);
	return sum;
}

static void *
next_object(struct worker *w)
{
	void *p = malloc(team.sizes[w->at_size]);

	bench_use(p);
	w->at_size = w->at_size + 1 == BENCH_SIZES ? 0 : w->at_size + 1;
	return p;
}

static void *(*team_body)(void *);

static void *
team_member(void *arg)
{
	bench_priority_take(BENCH_RANK_WORKER);
	return team_body(arg);
}

/*
 * Starts n threads on body, lets them warm up until the counting ones, n_count
 * of them from the one numbered from, have all done something and a fifth of
 * ms has gone, then counts for ms. The cost of an operation is CPUs in use
 * times wall time over operations.
 */
static void
team_run(unsigned n, void *(*body)(void *), unsigned from, unsigned n_count,
    struct bench_result *ret)
{
	const unsigned ms = team.params->ms;
	uint64_t before;
	struct bench_span span;

	team_body = body;
	team.spins = bench_cpus() > 1 ? RING_SPINS : 0;
	for (unsigned i = 0; i < n; i++) {
		team.workers[i].id = i;
		team.workers[i].team = &team;
		if (pthread_create(&team.workers[i].thread, NULL, team_member,
			&team.workers[i]) != 0)
			bench_die("cannot create a thread");
	}
	for (unsigned i = from; i < from + n_count; i++)
		while (atomic_load_explicit(
			   &team.workers[i].ops, memory_order_relaxed) == 0)
			bench_sleep_ms(1);
	bench_sleep_ms(ms / 5);
	span = bench_span_begin();
	before = total(from, n_count);
	bench_sleep_ms(ms);
	span = bench_span_end(span);
	bench_set(ret, span, total(from, n_count) - before,
	    n < bench_cpus() ? n : bench_cpus());
	atomic_store_explicit(&team.stop, true, memory_order_relaxed);
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(team.workers[i].thread, NULL);
}

static void
team_init(const struct bench_params *params)
{
	team.params = params;
	team.sizes = bench_table_sizes(params->dist, params->size, 11);
	for (unsigned i = 0; i < BENCH_MAX_THREADS; i++)
		team.workers[i].at_size = (i * 997U) % BENCH_SIZES;
}

static void *
local_body(void *arg)
{
	struct worker *w = arg;

	while (!stopped()) {
		for (size_t i = 0; i < LOCAL_BLOCK; i++) {
			void **slot = &w->slots[w->order[w->at_order]];

			free(*slot);
			*slot = next_object(w);
			w->at_order = (w->at_order + 1) % BENCH_TABLE;
		}
		count(w, LOCAL_BLOCK);
	}
	return NULL;
}

/* Each thread replaces random objects of its own live set of count. */
static int
local_run(const struct bench_params *params, struct bench_result *ret)
{
	const uint16_t *order = bench_table_index(params->count, 5);

	team_init(params);
	for (unsigned i = 0; i < params->threads; i++) {
		team.workers[i].order = order;
		team.workers[i].at_order = (i * 1013U) % BENCH_TABLE;
		team.workers[i].slots =
		    bench_map(params->count * sizeof(void *));
	}
	team_run(params->threads, local_body, 0, params->threads, ret);
	return 0;
}

static void *
random_body(void *arg)
{
	struct worker *w = arg;

	while (!stopped()) {
		for (size_t i = 0; i < LOCAL_BLOCK; i++) {
			void *p = next_object(w);

			free(atomic_exchange_explicit(
			    &team.shared[w->order[w->at_order]], p,
			    memory_order_acq_rel));
			w->at_order = (w->at_order + 1) % BENCH_TABLE;
		}
		count(w, LOCAL_BLOCK);
	}
	return NULL;
}

/* All threads replace random objects of one shared set of count. */
static int
random_run(const struct bench_params *params, struct bench_result *ret)
{
	const uint16_t *order = bench_table_index(params->count, 6);

	team_init(params);
	team.shared = bench_map(params->count * sizeof(void *));
	for (unsigned i = 0; i < params->threads; i++) {
		team.workers[i].order = order;
		team.workers[i].at_order =
		    (unsigned)(i * (BENCH_TABLE / params->threads + 1U)) %
		    BENCH_TABLE;
	}
	team_run(params->threads, random_body, 0, params->threads, ret);
	return 0;
}

/* Spins, then gives the CPU away: rings may have more ends than CPUs. */
static void
ring_wait(unsigned *n)
{
	if (++*n < team.spins)
		bench_pause();
	else
		(void)sched_yield();
}

/* Thread 0 consumes and counts, thread 1 produces. */
static void *
ring_body(void *arg)
{
	struct worker *w = arg;
	const size_t n_slots = team.params->count;
	bool bare = w->slots != NULL;
	struct ring *r = team.rings;
	size_t at = 0;
	unsigned n = 0;

	bench_pin_to(w->id);
	while (!stopped()) {
		void *p;

		if (w->id == 0) {
			p = ring_try_pop(r, n_slots);
			if (p == NULL) {
				ring_wait(&n);
				continue;
			}
			n = 0;
			ring_read_object(p);
			if (!bare)
				free(p);
			count(w, 1);
			continue;
		}
		p = bare ? w->slots[at++ % (4 * n_slots)] : next_object(w);
		bench_use(p);
		for (n = 0; !stopped() && !ring_try_push(r, n_slots, p);)
			ring_wait(&n);
	}
	return NULL;
}

/*
 * A producer and a consumer with count slots between them; mode bare passes
 * ready-made objects and shows what the ring alone costs.
 */
static int
ring_run(const struct bench_params *params, struct bench_result *ret)
{
	team_init(params);
	if (params->count == 0 || params->count > RING_MAX ||
	    (params->count & (params->count - 1)) != 0)
		bench_die("count: a power of two up to 4096");
	team.rings = bench_map(sizeof(*team.rings));
	if (params->mode != NULL && strcmp(params->mode, "bare") == 0) {
		const size_t n = 4 * params->count;
		void **slots = bench_map(n * sizeof(void *));
		char *objects = bench_map(n * params->size);

		for (size_t i = 0; i < n; i++)
			slots[i] = objects + i * params->size;
		team.workers[0].slots = slots;
		team.workers[1].slots = slots;
	}
	team_run(2, ring_body, 0, 1, ret);
	return 0;
}

/* Threads 0..n_in-1 consume and count, the others produce. */
static void *
fan_body(void *arg)
{
	struct worker *w = arg;
	const size_t n_slots = team.params->count;
	bool in = strcmp(team.params->mode, "in") == 0;
	unsigned n_consumers = in ? 1 : FAN;
	bool consumer = w->id < n_consumers;
	/* the single end goes over all rings, the others have one each */
	bool single = consumer == in;
	unsigned mine = consumer ? w->id : w->id - n_consumers;
	unsigned at = single ? 0 : mine;
	unsigned n = 0;
	void *p = NULL;

	while (!stopped()) {
		if (!consumer && p == NULL)
			p = next_object(w);
		if (consumer) {
			p = ring_try_pop(&team.rings[at], n_slots);
			if (p != NULL) {
				ring_read_object(p);
				free(p);
				count(w, 1);
				n = 0;
				continue;
			}
		} else if (ring_try_push(&team.rings[at], n_slots, p)) {
			p = NULL;
			n = 0;
			if (!single)
				continue;
			at = (at + 1) % FAN;
			continue;
		}
		if (single)
			at = (at + 1) % FAN;
		if (!single || ++n % FAN == 0)
			(void)sched_yield();
	}
	return NULL;
}

/* mode in: four producers, one consumer; mode out: one and four. */
static int
fan_run(const struct bench_params *params, struct bench_result *ret)
{
	bool in = params->mode != NULL && strcmp(params->mode, "in") == 0;

	if (!in && (params->mode == NULL || strcmp(params->mode, "out") != 0))
		bench_die("mode: in or out");
	if (params->count == 0 || params->count > RING_MAX ||
	    (params->count & (params->count - 1)) != 0)
		bench_die("count: a power of two up to 4096");
	team_init(params);
	team.rings = bench_map(FAN * sizeof(*team.rings));
	team_run(FAN + 1, fan_body, 0, in ? 1 : FAN, ret);
	return 0;
}

struct brief {
	void *left[SHORT_OBJECTS]; /* what the thread before did not free */
	bool others;
	size_t at_size;
};

static void *
brief_body(void *arg)
{
	struct brief *b = arg;
	void *mine[SHORT_OBJECTS];

	for (size_t i = 0; i < SHORT_OBJECTS; i++) {
		mine[i] = malloc(team.sizes[b->at_size]);
		bench_use(mine[i]);
		b->at_size = b->at_size + 1 == BENCH_SIZES ? 0 : b->at_size + 1;
	}
	for (size_t i = 0; i < SHORT_OBJECTS; i++) {
		void *p = b->others ? b->left[i] : mine[i];

		b->left[i] = mine[i];
		free(p);
	}
	return NULL;
}

static uint64_t
brief_block(void *ctx)
{
	pthread_t t;

	for (unsigned i = 0; i < 10; i++) {
		if (pthread_create(&t, NULL, brief_body, ctx) != 0)
			bench_die("cannot create a thread");
		(void)pthread_join(t, NULL);
	}
	return 10;
}

/*
 * A thread is made, allocates 64 objects, frees its own (mode own) or those
 * of the thread before it (mode others), ends. One operation is one thread.
 */
static int
brief_run(const struct bench_params *params, struct bench_result *ret)
{
	static struct brief b;

	team_init(params);
	b.others = params->mode != NULL && strcmp(params->mode, "others") == 0;
	bench_run_blocks(brief_block, &b, params->ms, ret);
	return 0;
}

const struct bench_workload bench_threaded[] = {
    {"local", local_run, "mixed by threads, each with a live set of count"},
    {"random", random_run,
	"threads replace objects of one shared set of count"},
    {"ring", ring_run, "one producer, one consumer, count slots (mode=bare)"},
    {"fan", fan_run, "mode=in: 4 producers, 1 consumer; mode=out: 1 and 4"},
    {"brief", brief_run, "short-lived threads (mode=own, others)"},
    {NULL, NULL, NULL},
};
