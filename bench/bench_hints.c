/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_hints.c - blocks that live long among blocks that do not: what stays
 * when the latter are gone; and what a hint costs.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "eddy/eddy.h"

/* There under eddy alone. */
#pragma weak eddy_alloc_short
#pragma weak eddy_alloc_long
#pragma weak eddy_alloc_near
#pragma weak eddy_alloc_at_least

static void *
near_itself(size_t size)
{
	static void *last;

	/* Where the last block was, whether it is live or not. */
	return last = eddy_alloc_near(size, last);
}

static void *
at_least(size_t size)
{
	size_t real;
	void *p = eddy_alloc_at_least(size, &real);

	__asm__ volatile("" : : "r"(real));
	return p;
}

typedef void *allocate(size_t);

/* In code and not in a table, where the linker takes weak names for 0. */
static allocate *
named(const char *mode)
{
	if (mode == NULL || strcmp(mode, "plain") == 0)
		return malloc;
	if (eddy_alloc_short == NULL)
		bench_die("this malloc takes no hints");
	if (strcmp(mode, "short") == 0)
		return eddy_alloc_short;
	if (strcmp(mode, "long") == 0)
		return eddy_alloc_long;
	if (strcmp(mode, "near") == 0)
		return near_itself;
	if (strcmp(mode, "at_least") == 0)
		return at_least;
	bench_die("mode: plain, short, long, near, at_least");
}

struct lives {
	allocate *brief;
	allocate *lasting;
	const uint16_t *sizes;
	void **window;
	void **kept;
	size_t n;      /* of the window */
	size_t n_kept; /* of one that lasts in 64 */
	size_t live_bytes;
};

enum { ONE_IN = 64, TURNS = 16 };

static char *
made(allocate *how, size_t size)
{
	char *p = how(size);

	bench_use(p);
	p[size - 1] = 1;
	return p;
}

static void
live(struct lives *l)
{
	uint64_t seed = 71;
	size_t total = l->n * TURNS;

	for (size_t i = 0; i < total; i++) {
		size_t size = l->sizes[i % BENCH_SIZES];
		size_t at = bench_random(&seed) % l->n;

		if (i % ONE_IN == 0) {
			l->kept[l->n_kept++] = made(l->lasting, size);
			l->live_bytes += size;
			continue;
		}
		free(l->window[at]);
		l->window[at] = made(l->brief, size);
	}
	for (size_t i = 0; i < l->n; i++)
		free(l->window[i]);
}

/*
 * count blocks that live for a while, replaced at random, 16 times over, and
 * one in 64 that stays; then the former are freed, and what can be is given
 * back.  mode=hints: both kinds are told.
 */
int
bench_lives_run(const struct bench_params *params, struct bench_result *ret)
{
	bool hints = params->mode != NULL && strcmp(params->mode, "hints") == 0;
	struct lives l = {.brief = named(hints ? "short" : NULL),
	    .lasting = named(hints ? "long" : NULL),
	    .sizes = bench_table_sizes(params->dist, params->size, 72),
	    .n = params->count};
	struct bench_memory_use base;
	struct bench_memory_use full;
	struct bench_memory_use after;
	struct bench_span span;

	l.window = bench_map(l.n * sizeof(void *));
	l.kept = bench_map((l.n * TURNS / ONE_IN + 1) * sizeof(void *));
	if (bench_memory_read(0, false, &base) != 0)
		bench_die("cannot read /proc/self/status");
	span = bench_span_begin();
	live(&l);
	bench_set(ret, bench_span_end(span), 2 * l.n * TURNS, 1);
	(void)bench_memory_read(0, false, &full);
	(void)malloc_trim(0);
	(void)bench_memory_read(0, false, &after);
	bench_extra(ret, ",\"full_kb\":%zu,\"after_kb\":%zu,\"live_kb\":%zu",
	    full.hwm_kb - base.rss_kb, after.rss_kb - base.rss_kb,
	    l.live_bytes / 1024);
	return 0;
}

struct pairs {
	allocate *how;
	size_t size;
};

static uint64_t
pair_block(void *ctx)
{
	enum { PAIRS = 1024 };
	struct pairs *p = ctx;

	for (unsigned i = 0; i < PAIRS; i++) {
		void *q = p->how(p->size);

		bench_use(q);
		free(q);
	}
	return PAIRS;
}

/* A pair of an allocation of that mode and free. */
int
bench_hint_run(const struct bench_params *params, struct bench_result *ret)
{
	struct pairs p = {named(params->mode), params->size};

	bench_run_blocks(pair_block, &p, params->ms, ret);
	return 0;
}
