/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_sized.c - calloc, and the cost of each size up to 1 GiB. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

enum { STRIDE = 4096 };

struct sized {
	size_t size;
	size_t n_times;
	bool touch;
};

static void
touch_pages(char *p, size_t size)
{
	for (size_t at = 0; at < size; at += STRIDE)
		p[at] = 1;
}

static uint64_t
calloc_block(void *ctx)
{
	const struct sized *s = ctx;

	for (size_t i = 0; i < s->n_times; i++) {
		char *p = calloc(1, s->size);

		bench_keep(p);
		if (s->touch) {
			if ((p[0] | p[s->size / 2] | p[s->size - 1]) != 0)
				bench_die("calloc: not zero");
			touch_pages(p, s->size);
			p[s->size - 1] = 1;
		}
		free(p);
	}
	return s->n_times;
}

/* calloc and free; touch writes a word to every page. */
static int
calloc_run(const struct bench_params *params, struct bench_result *ret)
{
	struct sized s = {
	    .size = params->size,
	    .n_times = params->size <= 65536 ? 500 : 1,
	    .touch = params->touch,
	};

	bench_run_blocks(calloc_block, &s, params->ms, ret);
	return 0;
}

static uint64_t
curve_block(void *ctx)
{
	const struct sized *s = ctx;

	for (size_t i = 0; i < s->n_times; i++) {
		char *p = malloc(s->size);

		bench_keep(p);
		if (s->touch)
			touch_pages(p, s->size);
		free(p);
	}
	return s->n_times;
}

/*
 * Each power of two from 8 bytes to size: malloc and free, ms in all; the
 * result is the geometric mean, the points follow as "points".
 */
static int
curve_run(const struct bench_params *params, struct bench_result *ret)
{
	struct bench_result one = {0};
	unsigned n_points = 0;
	double sum = 0;
	double sum_cpu = 0;
	uint64_t ops = 0;

	for (size_t n = 8; n <= params->size; n *= 2)
		n_points++;
	if (n_points == 0)
		bench_die("size: 8 or more");
	for (size_t n = 8; n <= params->size; n *= 2) {
		struct sized s = {
		    .size = n,
		    .n_times = n <= 65536 ? 500 : 1,
		    .touch = params->touch,
		};

		bench_run_blocks(
		    curve_block, &s, params->ms / n_points + 1, &one);
		sum += log(one.ns_per_op);
		sum_cpu += log(one.cpu_ns_per_op);
		ops += one.ops;
		bench_extra(ret, "%s[%zu,%.3f]", n == 8 ? ",\"points\":[" : ",",
		    n, one.ns_per_op);
	}
	bench_extra(ret, "]");
	ret->ns_per_op = exp(sum / n_points);
	ret->cpu_ns_per_op = exp(sum_cpu / n_points);
	ret->ops = ops;
	return 0;
}

const struct bench_workload bench_sized[] = {
    {"calloc", calloc_run, "calloc, free (size, touch)"},
    {"curve", curve_run,
	"malloc, free of each power of two from 8 to size (touch)"},
    {NULL, NULL, NULL},
};
