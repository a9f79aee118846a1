/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_histogram.c - bench/histogram against what sorting says. */
#include "tests/tap.h"

#include "bench/histogram.h"

enum { N = 20000 };

static struct histogram h;
static struct histogram part[2];
static uint64_t all[N];

static int
by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
clear(void)
{
	memset(&h, 0, sizeof h);
	memset(part, 0, sizeof part);
}

static void
slots(void)
{
	size_t apart = 0;
	size_t lost = 0;
	size_t wide = 0;
	size_t i;

	for (i = 0; i < HISTOGRAM_SLOTS; i++) {
		const uint64_t low = histogram_low(i);
		const uint64_t high = histogram_high(i);

		apart += low != (i == 0 ? 0 : histogram_high(i - 1) + 1);
		lost += histogram_slot(low) != i || histogram_slot(high) != i;
		wide += low < 2048 ? low != high : (high - low) > low / 1000;
	}
	tap_ok(apart == 0, "each slot begins where the one before ends");
	tap_ok(lost == 0, "both ends of a slot are in it");
	tap_ok(wide == 0, "a slot has three digits, and below 2048 all");
	tap_ok(histogram_high(i - 1) == ((uint64_t)1 << 40) - 1,
	    "the last slot ends before 2^40");
	tap_ok(histogram_slot((uint64_t)1 << 40) == i - 1 &&
		   histogram_slot(UINT64_MAX) == i - 1,
	    "what is beyond is in the last slot");
}

static void
counted(void)
{
	clear();
	tap_ok(histogram_at(&h, 500000) == 0 && histogram_at(&h, 1000000) == 0,
	    "nothing counted, nothing told");
	for (uint64_t v = 1; v <= 1000; v++)
		histogram_add(&h, v);
	tap_ok(h.n == 1000 && histogram_at(&h, 500000) == 500 &&
		   histogram_at(&h, 990000) == 990 &&
		   histogram_at(&h, 999000) == 999 &&
		   histogram_at(&h, 999001) == 1000 && histogram_at(&h, 1) == 1,
	    "of 1 to 1000, each share is its number");
	histogram_add(&h, UINT64_MAX);
	tap_ok(histogram_at(&h, 1000000) == UINT64_MAX,
	    "the maximum is exact where the slots have ended");
}

/* Numbers of all magnitudes, as many in each doubling. */
static void
sorted(void)
{
	static const uint32_t shares[] = {
	    1, 10000, 250000, 500000, 900000, 990000, 999000, 999900, 999999};
	uint64_t seed = tap.seed;
	bool held = true;

	clear();
	for (size_t i = 0; i < N; i++) {
		all[i] = tap_random(&seed) >> (25 + tap_random(&seed) % 39);
		histogram_add(&part[i % 2], all[i]);
	}
	histogram_merge(&h, &part[0]);
	histogram_merge(&h, &part[1]);
	qsort(all, N, sizeof all[0], by_value);
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
		const size_t rank =
		    ((size_t)N * shares[i] + 999999) / 1000000 - 1;
		const uint64_t want = all[rank];
		const uint64_t have = histogram_at(&h, shares[i]);

		if (have < want || have - want > want / 1000) {
			tap_diag("%u ppm: %llu, sorted %llu", shares[i],
			    (unsigned long long)have, (unsigned long long)want);
			held = false;
		}
	}
	tap_ok(held, "shares of two merged are those of all, to three digits");
	tap_ok(h.n == N && h.max == all[N - 1],
	    "merged: the number and the maximum");
	clear();
	h.n = (uint64_t)1 << 60;
	h.counts[7] = h.n / 2;
	h.counts[9] = h.n / 2;
	h.max = 9;
	tap_ok(histogram_at(&h, 500000) == 7 && histogram_at(&h, 500001) == 9,
	    "counts of 2^60 do not overflow");
}

int
main(int argc, char **argv)
{
	(void)argc;
	tap_begin(argv);
	tap_guard(60);
	slots();
	counted();
	sorted();
	return tap_end();
}
