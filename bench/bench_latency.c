/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_latency.c - how long each malloc and each free takes.
 *
 * Threads fill a shared set of slots with objects of all magnitudes and empty
 * it again, as a tide, so that much memory becomes free and much of it is given
 * back meanwhile. Before that they time intervals of NOISE_NS in which nothing
 * is called: what those show beyond their length is the machine's.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench.h"
#include "histogram.h"
#include "ticks.h"

enum {
	LEAST = 32,
	OCTAVES = 16, /* up to 2 MiB */
	TIDE_MS = 100,
	NOISE_NS = 50,
	BLOCK = 64,
	CLOCK_READS = 20000,
};

/* What all threads do now. */
enum { DO_NOISE, DO_WARM, DO_WORK, DO_STOP };

struct times {
	struct histogram mallocs;
	struct histogram frees;
};

struct worker {
	struct histogram noise;
	struct times warm;
	struct times work;
	uint64_t seed;
	pthread_t thread;
};

static struct {
	_Alignas(BENCH_LINE) _Atomic int now;         /* W: main thread */
	_Alignas(BENCH_LINE) _Atomic unsigned n_full; /* W: all */
	_Alignas(BENCH_LINE) void *_Atomic *slots;    /* W: all, by exchange */
	size_t n_slots;
	double tick_ns;
	struct worker *workers;
} lat;

static int
now(void)
{
	return atomic_load_explicit(&lat.now, memory_order_relaxed);
}

static void
stage(int what, unsigned ms)
{
	atomic_store_explicit(&lat.now, what, memory_order_relaxed);
	bench_sleep_ms(ms);
}

static void
time_nothing(struct worker *w)
{
	const uint64_t length = (uint64_t)(NOISE_NS / lat.tick_ns);

	while (now() == DO_NOISE) {
		for (unsigned i = 0; i < BLOCK; i++) {
			const uint64_t begin = ticks_begin();
			uint64_t end;

			do
				end = ticks_end();
			while (end - begin < length);
			histogram_add(&w->noise, end - begin);
		}
	}
}

static void
time_free(void *p, struct times *to)
{
	uint64_t begin;

	if (p == NULL)
		return;
	begin = ticks_begin();
	free(p);
	histogram_add(&to->frees, ticks_end() - begin);
}

static void *
time_malloc(size_t size, struct times *to)
{
	const uint64_t begin = ticks_begin();
	void *p = malloc(size);

	histogram_add(&to->mallocs, ticks_end() - begin);
	bench_use(p);
	bench_write_all(p, size);
	return p;
}

/* One slot: emptied, and at rising tide filled again. */
static void
replace(struct worker *w, bool rises, struct times *to)
{
	const size_t i = (size_t)(bench_random(&w->seed) % lat.n_slots);
	void *p = NULL;

	if (rises)
		p = time_malloc(
		    bench_random_size(&w->seed, LEAST, OCTAVES), to);
	time_free(
	    atomic_exchange_explicit(&lat.slots[i], p, memory_order_acq_rel),
	    to);
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	int what;

	bench_priority_take(BENCH_RANK_WORKER);
	time_nothing(w);
	/* The highest tide, whatever the machine's speed. */
	for (size_t i = 0; i < 2 * lat.n_slots; i++)
		replace(w, true, &w->warm);
	atomic_fetch_add_explicit(&lat.n_full, 1, memory_order_relaxed);
	while ((what = now()) != DO_STOP) {
		const uint64_t tide = bench_now_ns() / (TIDE_MS * 1000000U);

		for (unsigned i = 0; i < BLOCK; i++)
			replace(w, tide % 2 == 0,
			    what == DO_WORK ? &w->work : &w->warm);
	}
	return NULL;
}

/*
 * Sets the length of a tick; returns what the median of two reads takes, and
 * the least that reads differ by: some counters go on by more than one.
 */
static uint64_t
calibrate(uint64_t *ret_step)
{
	struct histogram *h = bench_map(sizeof(*h));
	uint64_t last = 0;
	uint64_t ns = bench_now_ns();
	uint64_t ticks = ticks_begin();

	for (unsigned i = 0; i < CLOCK_READS; i++) {
		const uint64_t begin = ticks_begin();
		const uint64_t took = ticks_end() - begin;

		histogram_add(h, took);
		if (took > last && took - last < *ret_step)
			*ret_step = took - last;
		last = took;
	}
	bench_sleep_ms(20);
	ticks = ticks_end() - ticks;
	ns = bench_now_ns() - ns;
	lat.tick_ns = (double)ns / (double)(ticks + !ticks);
	return histogram_at(h, 500000);
}

static void
report(struct bench_result *ret, const char *name, const struct histogram *h)
{
	static const uint32_t shares[] = {
	    500000, 990000, 999000, 999900, 1000000};

	bench_extra(ret, ",\"n_%s\":%llu,\"%s_ns\":[", name,
	    (unsigned long long)h->n, name);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		bench_extra(ret, "%s%.2f", i != 0 ? "," : "",
		    (double)histogram_at(h, shares[i]) * lat.tick_ns);
	bench_extra(ret, "]");
}

static long
faults(void)
{
	struct rusage use;

	if (getrusage(RUSAGE_SELF, &use) != 0)
		bench_die("getrusage failed");
	return use.ru_minflt + use.ru_majflt;
}

/* count: slots. ms: of the tides, and as much for the intervals of nothing. */
int
bench_latency_run(const struct bench_params *params, struct bench_result *ret)
{
	const unsigned n = params->threads;
	struct worker *sum = bench_map(sizeof(*sum));
	struct bench_span span;
	uint64_t step_ticks = UINT64_MAX;
	uint64_t clock_ticks;
	long n_faults;

	lat.n_slots = params->count;
	lat.slots = bench_map(params->count * sizeof(*lat.slots));
	lat.workers = bench_map(n * sizeof(*lat.workers));
	clock_ticks = calibrate(&step_ticks);
	for (unsigned i = 0; i < n; i++) {
		lat.workers[i].seed = 61 + i;
		if (pthread_create(&lat.workers[i].thread, NULL, work,
			&lat.workers[i]) != 0)
			bench_die("cannot create a thread");
	}
	stage(DO_NOISE, params->ms);
	stage(DO_WARM, 0);
	while (atomic_load_explicit(&lat.n_full, memory_order_relaxed) < n)
		bench_sleep_ms(1);
	bench_sleep_ms(params->ms / 5 + 2 * TIDE_MS);
	n_faults = faults();
	span = bench_span_begin();
	stage(DO_WORK, params->ms);
	span = bench_span_end(span);
	n_faults = faults() - n_faults;
	stage(DO_STOP, 0);
	for (unsigned i = 0; i < n; i++) {
		struct worker *w = &lat.workers[i];

		(void)pthread_join(w->thread, NULL);
		histogram_merge(&sum->noise, &w->noise);
		histogram_merge(&sum->work.mallocs, &w->work.mallocs);
		histogram_merge(&sum->work.frees, &w->work.frees);
	}
	bench_set(ret, span, sum->work.mallocs.n + sum->work.frees.n,
	    n < bench_cpus() ? n : bench_cpus());
	bench_extra(ret, ",\"clock_ns\":%.2f,\"step_ns\":%.2f,\"faults\":%ld",
	    (double)clock_ticks * lat.tick_ns, (double)step_ticks * lat.tick_ns,
	    n_faults);
	report(ret, "noise", &sum->noise);
	report(ret, "malloc", &sum->work.mallocs);
	report(ret, "free", &sum->work.frees);
	return 0;
}
