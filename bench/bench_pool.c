/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_pool.c - objects of a pool beside blocks of malloc of the same size.
 *
 * Slices of either take turns in one process, so that what else the machine
 * does meets both.  ns_per_op is the median slice on the pool, malloc_ns the
 * one on malloc, pool_ratio the median of their ratios.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "eddy/pool.h"

#include "bench_ring.h"

enum { SLICES = 9, FLOW_SLOTS = 1024 };

static struct {
	struct eddy_pool *pool;
	void *(*alloc)(struct eddy_pool *);
	void (*free)(struct eddy_pool *, void *);
	size_t size;
	struct ring *ring;
	_Atomic bool stop;
} b;

static void
open_pool(const struct bench_params *params)
{
	struct eddy_pool_options o = EDDY_POOL_OPTIONS;
	int (*create)(const struct eddy_pool_options *, struct eddy_pool **);

	*(void **)&create = dlsym(RTLD_DEFAULT, "eddy_pool_create");
	*(void **)&b.alloc = dlsym(RTLD_DEFAULT, "eddy_pool_alloc");
	*(void **)&b.free = dlsym(RTLD_DEFAULT, "eddy_pool_free");
	b.size = params->size;
	o.object_size = params->size;
	if (create == NULL || create(&o, &b.pool) != 0)
		bench_die("no pool");
}

static uint64_t
pool_pairs(void *ctx)
{
	(void)ctx;
	for (size_t i = 0; i < 2000; i++) {
		void *p = b.alloc(b.pool);

		bench_use(p);
		b.free(b.pool, p);
	}
	return 2000;
}

static uint64_t
malloc_pairs(void *ctx)
{
	(void)ctx;
	for (size_t i = 0; i < 2000; i++) {
		void *p = malloc(b.size);

		bench_use(p);
		free(p);
	}
	return 2000;
}

static void *
next_object(bool on_pool)
{
	void *p = on_pool ? b.alloc(b.pool) : malloc(b.size);

	bench_use(p);
	return p;
}

static void
drop(bool on_pool, void *p)
{
	if (on_pool)
		b.free(b.pool, p);
	else
		free(p);
}

/* Frees what comes; the lowest bit of a pointer says whose it is. */
static void *
consume(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&b.stop, memory_order_relaxed)) {
		char *p = ring_try_pop(b.ring, FLOW_SLOTS);

		if (p == NULL)
			(void)sched_yield();
		else
			drop((uintptr_t)p & 1, p - ((uintptr_t)p & 1));
	}
	return NULL;
}

static uint64_t
produce(bool on_pool)
{
	for (size_t i = 0; i < 2000; i++) {
		char *p = next_object(on_pool);

		while (!ring_try_push(b.ring, FLOW_SLOTS, p + on_pool))
			(void)sched_yield();
	}
	return 2000;
}

static uint64_t
pool_flow(void *ctx)
{
	(void)ctx;
	return produce(true);
}

static uint64_t
malloc_flow(void *ctx)
{
	(void)ctx;
	return produce(false);
}

static int
compare(const void *a, const void *c)
{
	double x = *(const double *)a;
	double y = *(const double *)c;

	return (x > y) - (x < y);
}

static double
median(double *v)
{
	qsort(v, SLICES, sizeof(*v), compare);
	return v[SLICES / 2];
}

static void
take_turns(bench_block *one, bench_block *other,
    const struct bench_params *params, struct bench_result *ret)
{
	static struct bench_result with[SLICES];
	static struct bench_result without;
	unsigned ms = params->ms / SLICES / 2 + 1;
	double pool[SLICES];
	double plain[SLICES];
	double ratio[SLICES];

	for (unsigned i = 0; i < SLICES; i++) {
		bench_run_blocks(one, NULL, ms, &with[i]);
		bench_run_blocks(other, NULL, ms, &without);
		pool[i] = with[i].ns_per_op;
		plain[i] = without.ns_per_op;
		ratio[i] = pool[i] / plain[i];
		ret->ops += with[i].ops;
	}
	ret->ns_per_op = median(pool);
	ret->cpu_ns_per_op = with[SLICES / 2].cpu_ns_per_op;
	bench_extra(ret, ",\"malloc_ns\":%.4f,\"pool_ratio\":%.4f",
	    median(plain), median(ratio));
}

/* Pairs by one thread, or objects that another one frees. */
static int
pool_run(const struct bench_params *params, struct bench_result *ret)
{
	pthread_t consumer;

	open_pool(params);
	if (params->mode == NULL || strcmp(params->mode, "pair") == 0) {
		take_turns(pool_pairs, malloc_pairs, params, ret);
		return 0;
	}
	if (strcmp(params->mode, "flow") != 0)
		bench_die("mode: pair or flow");
	b.ring = bench_map(sizeof(*b.ring));
	if (pthread_create(&consumer, NULL, consume, NULL) != 0)
		bench_die("no thread");
	take_turns(pool_flow, malloc_flow, params, ret);
	atomic_store(&b.stop, true);
	(void)pthread_join(consumer, NULL);
	return 0;
}

const struct bench_workload bench_pool[] = {
    {"pool", pool_run,
	"a pool beside malloc: pairs, or freed by another thread (size, "
	"mode=pair|flow)"},
    {NULL, NULL, NULL},
};
