/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_decay.c - a peak, and what a program does when it is over.
 *
 * The script bench/decay leads it: "base" before the peak, "peak" at its top,
 * "freed BEGIN END" (ns of CLOCK_MONOTONIC) when all of it has been freed. The
 * process then lives for ms, and the script looks at its memory from outside.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum {
	PEAK_LEAST = 64,   /* bytes of the smallest objects */
	PEAK_OCTAVES = 16, /* up to 4 MiB */
	IDLE_MS = 50,
};

struct peak {
	void **objects;
	size_t n;
	size_t room;
	size_t n_bytes;
};

static void
peak_build(struct peak *p, size_t n_bytes)
{
	uint64_t seed = 41;

	while (p->n_bytes < n_bytes) {
		const size_t size =
		    bench_random_size(&seed, PEAK_LEAST, PEAK_OCTAVES);
		void *object = malloc(size);

		if (object == NULL || p->n == p->room)
			bench_die("no room for the peak");
		bench_write_all(object, size);
		p->objects[p->n++] = object;
		p->n_bytes += size;
	}
}

/* In the order of allocation, so that memory is free as soon as it can be. */
static void
peak_free(struct peak *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->objects[i]);
}

static void *
rest(void *arg)
{
	(void)arg;
	for (;;)
		(void)pause();
	return NULL;
}

/* An event loop to which little happens. */
static void
idle(uint64_t end)
{
	while (bench_now_ns() < end) {
		void *p = malloc(64);

		bench_use(p);
		free(p);
		bench_sleep_ms(IDLE_MS);
	}
}

static void
live_on(const char *mode, void *mixed, unsigned ms)
{
	const uint64_t end = bench_now_ns() + (uint64_t)ms * 1000000U;

	if (strcmp(mode, "idle") == 0)
		idle(end);
	else if (strcmp(mode, "asleep") == 0)
		bench_sleep_ms(ms);
	else
		while (bench_now_ns() < end)
			(void)bench_mixed_block(mixed);
}

/*
 * size: bytes of the peak. count: objects of the live set that a busy program
 * churns. threads: with 2 there is a second thread, which sleeps.
 */
static int
decay_run(const struct bench_params *params, struct bench_result *ret)
{
	const char *mode = params->mode != NULL ? params->mode : "busy";
	const struct bench_params live = {
	    .count = params->count, .dist = "mixed"};
	struct bench_span span = bench_span_begin();
	struct peak p = {.room = params->size / 512 + 1};
	uint64_t begin;
	pthread_t t;
	void *mixed;

	if (strcmp(mode, "busy") != 0 && strcmp(mode, "idle") != 0 &&
	    strcmp(mode, "asleep") != 0)
		bench_die("mode: busy, idle or asleep");
	mixed = bench_mixed_create(&live);
	p.objects = bench_map(p.room * sizeof(*p.objects));
	if (params->threads > 1 && pthread_create(&t, NULL, rest, NULL) != 0)
		bench_die("cannot create a thread");
	for (unsigned i = 0; i < 10; i++)
		(void)bench_mixed_block(mixed);
	bench_step("base");
	peak_build(&p, params->size);
	bench_step("peak");
	begin = bench_now_ns();
	peak_free(&p);
	bench_tell("freed %llu %llu\n", (unsigned long long)begin,
	    (unsigned long long)bench_now_ns());
	live_on(mode, mixed, params->ms);
	bench_set(ret, bench_span_end(span), p.n, 1);
	return 0;
}

const struct bench_workload bench_reclaim[] = {
    {"decay", decay_run,
	"a peak of size bytes, freed (mode=busy, idle, asleep; threads=1, 2)"},
    {"latency", bench_latency_run,
	"how long each malloc and free takes while memory is given back"},
    {"steady", bench_steady_run,
	"threads replace objects of all sizes of a shared set"},
    {"thp", bench_thp_run,
	"a table of size bytes, read at random (mode=arena: eddy's)"},
    {NULL, NULL, NULL},
};
