/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_totals.c - what profiles say is true within 5 %: of live blocks of every
 * size, of mixtures, of what comes and goes in caches alone.
 *
 * Periods are so short that 5 % is six standard deviations or more.
 */
#include "prof_api.h"

static bool
near(const char *what, double said, double truth)
{
	if (fabs(said - truth) <= 0.05 * truth)
		return true;
	tap_diag("%s: %.0f instead of %.0f", what, said, truth);
	return false;
}

/*
 * n blocks of about `size` bytes, of varying ones if `spread`.  None is far
 * smaller than the period: a single sample of it would stand for so many that
 * it alone is off by more than 5 %.
 */
static void
live(size_t size, size_t n, size_t lg, bool spread)
{
	void **p = x.mallocx(n * sizeof *p, MALLOCX_ZERO);
	double bytes = 0;
	struct profile f;
	bool ok;

	prof_reset(lg);
	for (size_t i = 0; i < n; i++) {
		size_t s = spread ? size / 4 + i * 7919 % (2 * size) : size;

		p[i] = p_malloc(s);
		if (p[i] == NULL)
			tap_bail("no memory");
		bytes += (double)p_usable(p[i]);
	}
	f = prof_now(NULL);
	ok = f.good && near("bytes", f.bytes, bytes) &&
	     near("objects", f.objects, (double)n) &&
	     near("ever", f.ever_bytes, bytes);
	for (size_t i = 0; i < n; i++)
		p_free(p[i]);
	f = prof_now(NULL);
	ok &= f.good && f.objects == 0 && f.bytes == 0 &&
	      near("ever, freed", f.ever_bytes, bytes) &&
	      near("ever, freed", f.ever_objects, (double)n);
	tap_ok(ok, "%zu blocks of %s%zu bytes, period 2^%zu", n,
	    spread ? "1/4 to 9/4 x " : "", size, lg);
	x.dallocx(p, 0);
}

static void
churn(size_t size, size_t n, size_t lg)
{
	struct profile f;
	double bytes = (double)(x.nallocx(size, 0) * n);

	prof_reset(lg);
	for (size_t i = 0; i < n; i++)
		p_free(p_malloc(size));
	f = prof_now(NULL);
	tap_ok(f.good && f.objects == 0 && near("bytes", f.ever_bytes, bytes) &&
		   near("objects", f.ever_objects, (double)n),
	    "%zu times a block of %zu bytes that only caches see", n, size);
}

/* Half of a live set is freed: what is left is told. */
static void
halves(void)
{
	enum { N = 200000 };
	static void *p[N];
	double bytes = 0;
	struct profile f;

	prof_reset(10);
	for (size_t i = 0; i < N; i++)
		p[i] = p_malloc(1 + i % 700);
	for (size_t i = 0; i < N; i += 2)
		p_free(p[i]);
	for (size_t i = 1; i < N; i += 2)
		bytes += (double)p_usable(p[i]);
	f = prof_now(NULL);
	tap_ok(f.good && near("bytes", f.bytes, bytes) &&
		   near("objects", f.objects, N / 2),
	    "every second block freed: the rest is told");
	for (size_t i = 1; i < N; i += 2)
		p_free(p[i]);
}

/* A period so short that each block is one: no estimate. */
static void
all(void)
{
	enum { N = 1000 };
	static void *p[N];
	unsigned long long bytes = 0;
	struct profile f;

	prof_reset(0);
	for (size_t i = 0; i < N; i++) {
		p[i] = p_malloc(i * 37);
		bytes += p_usable(p[i]);
	}
	f = prof_now(NULL);
	tap_ok(f.good && f.period == 1 && f.head[0] == N && f.head[1] == bytes,
	    "period 1: all, exactly");
	for (size_t i = 0; i < N; i++)
		p_free(p[i]);
	f = prof_now(NULL);
	tap_ok(f.head[0] == 0 && f.head[1] == 0 && f.head[2] >= N &&
		   f.head[3] >= bytes,
	    "and nothing is left of them");
}

/* ---- the first samples of threads ---- */

static _Atomic unsigned n_seen;

static void
on_sample(const void *p, size_t size, void **bt, unsigned n, size_t usable)
{
	(void)p;
	(void)bt;
	(void)n;
	(void)usable;
	if (size == 72)
		atomic_fetch_add(&n_seen, 1);
}

static void *
be_young(void *arg)
{
	for (unsigned i = 0; i < 8; i++)
		p_free(p_malloc(72));
	return arg;
}

/* A thread begins in the midst of a gap like any other. */
static void
young(void)
{
	const double expected = 1500 * 8 * -expm1(-80.0 / 1024);
	void *f = (void *)on_sample;

	prof_reset(10);
	if (x.ctl("experimental.hooks.prof_sample", NULL, NULL, &f, sizeof f) !=
	    0)
		tap_bail("prof_sample");
	for (unsigned i = 0; i < 1500; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, be_young, NULL) != 0)
			tap_bail("pthread_create");
		(void)pthread_join(t, NULL);
	}
	f = NULL;
	(void)x.ctl("experimental.hooks.prof_sample", NULL, NULL, &f, sizeof f);
	tap_ok(fabs(n_seen - expected) < 0.16 * expected,
	    "1500 threads that hardly allocate: %u samples of %.0f", n_seen,
	    expected);
}

/* ---- size classes ---- */

struct samples {
	uint64_t size;
	uint64_t count;
};

static struct samples
samples_in(const char *name)
{
	struct samples k = {0};
	size_t n = sizeof k;

	if (x.ctl(name, &k, &n, NULL, 0) != 0 || n != sizeof k)
		tap_bail("%s", name);
	return k;
}

/* Requested sizes of samples, by class: row 4 of 48 bytes, 40 of them wanted.
 */
static void
classes(void)
{
	enum { N = 500 };
	void *p[N];
	struct samples live = samples_in("prof.stats.bins.3.live");
	struct samples ever = samples_in("prof.stats.bins.3.accum");
	struct samples k;
	bool ok;

	prof_reset(0);
	for (size_t i = 0; i < N; i++)
		p[i] = p_malloc(40);
	k = samples_in("prof.stats.bins.3.live");
	ok = k.count - live.count == N && k.size - live.size == N * 40;
	for (size_t i = 0; i < N; i++)
		p_free(p[i]);
	k = samples_in("prof.stats.bins.3.live");
	ok &= k.count == live.count && k.size == live.size;
	k = samples_in("prof.stats.bins.3.accum");
	ok &= k.count - ever.count == N && k.size - ever.size == N * 40;
	tap_ok(ok, "samples by class: what was asked for");
	live = samples_in("prof.stats.lextents.4.live");
	p[0] = p_malloc(20001);
	k = samples_in("prof.stats.lextents.1.live");
	tap_ok(k.count == 1 && k.size == 20001 && live.count == 0,
	    "large ones as well");
	p_free(p[0]);
}

int
main(int argc, char **argv)
{
	(void)argc;
	prof_begin(argv,
	    "prof:true,prof_accum:true,prof_stats:true,lg_prof_sample:12");
	tap_guard(300);
	live(1, 2000000, 10, false);
	live(24, 1000000, 11, false);
	live(100, 400000, 11, false);
	live(1000, 60000, 12, false);
	live(5000, 20000, 13, false);
	live(14000, 10000, 14, false);
	live(20000, 6000, 14, false);
	live(70000, 3000, 15, false);
	live(300000, 1000, 14, false);
	live((size_t)3 << 20, 30, 14, false);
	live(300, 300000, 12, true);
	live(5000, 40000, 13, true);
	live(60000, 6000, 14, true);
	churn(8, 5000000, 12);
	churn(64, 3000000, 13);
	churn(1000, 300000, 14);
	churn(50000, 20000, 16);
	churn(200000, 4000, 17);
	halves();
	all();
	classes();
	young();
	return tap_end();
}
