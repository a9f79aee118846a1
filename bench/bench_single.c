/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_single.c - pair, burst, mixed, realloc: one thread, small objects. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct single {
	size_t size;
	size_t count;
	void **slots;
	const uint16_t *sizes;
	const uint16_t *order;
	size_t at_size;
	size_t at_order;
};

static uint64_t
pair_block(void *ctx)
{
	const size_t size = ((struct single *)ctx)->size;

	for (size_t i = 0; i < 2000; i++) {
		void *p = malloc(size);

		bench_use(p);
		free(p);
	}
	return 2000;
}

/* One malloc and its free at once. */
static int
pair_run(const struct bench_params *params, struct bench_result *ret)
{
	struct single s = {.size = params->size};

	bench_run_blocks(pair_block, &s, params->ms, ret);
	return 0;
}

static uint64_t
burst_block(void *ctx)
{
	struct single *s = ctx;
	void **slots = s->slots;
	const size_t n = s->count;

	for (size_t round = 0; round < 10; round++) {
		size_t at = s->at_size;

		for (size_t i = 0; i < n; i++) {
			slots[i] = malloc(s->sizes[at]);
			bench_use(slots[i]);
			at = at + 1 == BENCH_SIZES ? 0 : at + 1;
		}
		s->at_size = at;
		for (size_t i = 0; i < n; i++)
			free(slots[s->order[i]]);
	}
	return 10 * n;
}

/* A permutation of n; straight, or shuffled. */
static uint16_t *
permutation(size_t n, bool shuffled)
{
	uint16_t *t = bench_map(n * sizeof(*t));
	uint64_t seed = 7;

	if (n > 65536)
		bench_die("count: too large");
	for (size_t i = 0; i < n; i++)
		t[i] = (uint16_t)i;
	for (size_t i = n; shuffled && i-- > 1;) {
		size_t k = bench_random(&seed) % (i + 1);
		uint16_t x = t[i];

		t[i] = t[k];
		t[k] = x;
	}
	return t;
}

/* count mallocs, then as many frees, in order or shuffled. */
static int
burst_run(const struct bench_params *params, struct bench_result *ret)
{
	bool shuffled =
	    params->mode != NULL && strcmp(params->mode, "shuffled") == 0;
	struct single s = {
	    .count = params->count,
	    .slots = bench_map(params->count * sizeof(void *)),
	    .sizes = bench_table_sizes(params->dist, params->size, 1),
	    .order = permutation(params->count, shuffled),
	};

	bench_run_blocks(burst_block, &s, params->ms, ret);
	return 0;
}

/* Replaces 2,000 random objects of a live set that bench_mixed_create made. */
uint64_t
bench_mixed_block(void *mixed)
{
	struct single *s = mixed;
	void **slots = s->slots;
	size_t at_size = s->at_size;
	size_t at_order = s->at_order;

	for (size_t i = 0; i < 2000; i++) {
		void **slot = &slots[s->order[at_order]];
		void *p;

		free(*slot);
		p = malloc(s->sizes[at_size]);
		bench_use(p);
		*slot = p;
		at_size = at_size + 1 == BENCH_SIZES ? 0 : at_size + 1;
		at_order = (at_order + 1) % BENCH_TABLE;
	}
	s->at_size = at_size;
	s->at_order = at_order;
	return 2000;
}

void *
bench_mixed_create(const struct bench_params *params)
{
	struct single *s = bench_map(sizeof(*s));

	s->slots = bench_map(params->count * sizeof(void *));
	s->sizes = bench_table_sizes(params->dist, params->size, 2);
	s->order = bench_table_index(params->count, 3);
	for (size_t i = 0; i < params->count; i++) {
		s->slots[i] = malloc(s->sizes[i % BENCH_SIZES]);
		bench_use(s->slots[i]);
	}
	return s;
}

/* A live set of count objects; each operation replaces a random one. */
static int
mixed_run(const struct bench_params *params, struct bench_result *ret)
{
	bench_run_blocks(
	    bench_mixed_block, bench_mixed_create(params), params->ms, ret);
	return 0;
}

struct growth {
	size_t from;
	size_t to;
	size_t step; /* 0: doubles */
	bool touch;
};

/*
 * Grows two blocks in turn from the first to the last size, then frees them:
 * two, because a program's growing buffer seldom has the end of the heap to
 * itself.
 */
static uint64_t
realloc_block(void *ctx)
{
	const struct growth *g = ctx;
	char *p[2] = {NULL, NULL};
	uint64_t ops = 0;
	size_t old = 0;

	for (size_t n = g->from; n <= g->to;
	     n = g->step != 0 ? n + g->step : 2 * n) {
		for (unsigned k = 0; k < 2; k++) {
			p[k] = realloc(p[k], n);
			bench_use(p[k]);
			for (size_t at = old; g->touch && at < n; at += 4096)
				p[k][at] = 1;
			p[k][n - 1] = 1;
		}
		old = n;
		ops += 2;
	}
	free(p[0]);
	free(p[1]);
	return ops;
}

/* mode double: from 16 bytes; mode step: by count bytes; up to size. */
static int
realloc_run(const struct bench_params *params, struct bench_result *ret)
{
	bool step = params->mode != NULL && strcmp(params->mode, "step") == 0;
	struct growth g = {
	    .from = step ? params->count : 16,
	    .to = params->size,
	    .step = step ? params->count : 0,
	    .touch = params->touch,
	};

	if (g.from == 0)
		bench_die("count: the step must not be 0");
	bench_run_blocks(realloc_block, &g, params->ms, ret);
	return 0;
}

const struct bench_workload bench_single[] = {
    {"pair", pair_run, "malloc, free at once (size)"},
    {"burst", burst_run,
	"count mallocs, then their frees (size|dist, mode=shuffled)"},
    {"mixed", mixed_run, "replaces random objects of a live set (count, dist)"},
    {"realloc", realloc_run,
	"grows two blocks to size (mode=double, or step by count; touch)"},
    {NULL, NULL, NULL},
};
