/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prof_weights.c - the numbers of profiles: gaps, weights, what readers make of
 * sums.
 */
#include "lib/prof/weights.h"
#include "tap.h"

#include <math.h>

static bool
near(double a, double b, double part)
{
	return fabs(a - b) <= part * fabs(b);
}

static void
shares(void)
{
	bool ok = true;

	for (double v = 1e-18; v < 100; v *= 1.01)
		ok &= near(eddy_weights_share(v), -expm1(-v), 1e-12);
	tap_ok(ok, "1 - exp(-x), to 12 digits");
}

static uint64_t
next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* Gaps below x are as frequent as they should be. */
static void
gaps(uint64_t seed)
{
	enum { N = 400000 };
	bool ok = eddy_weights_gap(0, seed) == 0;

	for (unsigned lg = 4; lg <= 24; lg += 10) {
		double period = ldexp(1, (int)lg);
		double sum = 0;
		unsigned below = 0;

		for (unsigned i = 0; i < N; i++) {
			int64_t gap = eddy_weights_gap(lg, next(&seed));

			ok &= gap >= 0;
			sum += (double)gap;
			/* As an allocation of period / 4 bytes would see it. */
			below += gap < (int64_t)1 << (lg - 2);
		}
		ok &= near(below, N * -expm1(-0.25), 0.02);
		/* Whole bytes: half of one is missing. */
		ok &= near(sum / N + 0.5, period, 0.02);
	}
	ok &= eddy_weights_gap(63, 0) > 0 && eddy_weights_gap(63, ~0ull) >= 0;
	tap_ok(ok, "gaps: their mean, and how many are short");
}

static void
weights(void)
{
	bool ok = true;

	for (unsigned lg = 1; lg < 40; lg++)
		for (size_t v = 8; v < (size_t)1 << 40; v = v * 5 / 3) {
			double w = 1 / -expm1(-ldexp((double)v, -(int)lg));

			ok &= near(
			    (double)eddy_weights_of(lg, v) / 65536, w, 1e-5);
		}
	ok &= eddy_weights_of(0, 8) == 65536 &&
	      eddy_weights_of(63, 8) <= (uint64_t)1 << 63;
	tap_ok(ok, "weights");
}

/* As readers do. */
static double
scale(uint64_t n, uint64_t s, unsigned lg)
{
	return 1 / -expm1(-((double)s / (double)n) * ldexp(1, -(int)lg));
}

static void
one_size(void)
{
	bool ok = true;

	for (unsigned lg = 8; lg <= 30; lg++)
		for (size_t size = 8; size < (size_t)1 << 34; size *= 2)
			for (uint64_t k = 1; k < 200; k = k * 3 + 1) {
				uint64_t w = eddy_weights_of(lg, size);
				uint64_t n;
				uint64_t s;

				eddy_weights_to_reader(lg, k * w,
				    (uint64_t)((double)(k * w) / 65536 *
						   (double)size +
					       0.5),
				    k * 0x123456789abcdef, &n, &s);
				/* What was sampled. */
				ok &= n == k &&
				      near((double)s, (double)(k * size), 1e-3);
			}
	tap_ok(ok, "one size: readers are told what was sampled");
}

/* Mixed sizes, many stacks of few samples: no bias. */
static void
mixtures(uint64_t seed)
{
	const unsigned lg = 12;
	double objects = 0;
	double bytes = 0;
	double read_objects = 0;
	double read_bytes = 0;
	bool ok = true;

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t o = 0;
		uint64_t b = 0;
		uint64_t n;
		uint64_t s;

		for (unsigned k = 0; k < 1 + i % 5; k++) {
			size_t size = 8 + next(&seed) % 20000;
			uint64_t w = eddy_weights_of(lg, size);

			o += w;
			b += (uint64_t)((double)w * (double)size / 65536);
		}
		eddy_weights_to_reader(lg, o, b, next(&seed), &n, &s);
		ok &= n >= 1 + i % 5;
		objects += (double)o / 65536;
		bytes += (double)b;
		read_objects += (double)n * scale(n, s, lg);
		read_bytes += (double)s * scale(n, s, lg);
	}
	ok &= near(read_objects, objects, 0.005);
	ok &= near(read_bytes, bytes, 0.005);
	if (!ok)
		tap_diag("%.0f objects of %.0f bytes read as %.0f of %.0f",
		    objects, bytes, read_objects, read_bytes);
	tap_ok(ok, "mixtures: rounding has no bias");
}

static void
odd(void)
{
	uint64_t n = 77;
	uint64_t s = 77;
	bool ok = true;

	eddy_weights_to_reader(19, 0, 0, 1, &n, &s);
	ok &= n == 0 && s == 0;
	eddy_weights_to_reader(19, (uint64_t)-5, (uint64_t)-7, 1, &n, &s);
	ok &= n == 0 && s == 0;
	eddy_weights_to_reader(0, 3 << 16, 24, 1, &n, &s);
	ok &= n == 3 && s == 24;
	tap_ok(ok, "nothing, less than nothing, a period of one byte");
}

int
main(void)
{
	tap_guard(60);
	shares();
	gaps(0x9e3779b97f4a7c15);
	weights();
	one_size();
	mixtures(0x123456789);
	odd();
	return tap_end();
}
