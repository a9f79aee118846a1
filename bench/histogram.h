/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram.h - counts of numbers, three digits each, in fixed memory.
 *
 * Log-linear: numbers below 2,048 have a slot each; above, each doubling has
 * 1,024 slots of equal width, so that a slot is narrower than a thousandth of
 * what it stands for. What is 2^40 or more counts in the last slot; the maximum
 * is kept exactly. One thread adds; histograms of several are merged.
 */
#ifndef EDDY_BENCH_HISTOGRAM_H
#define EDDY_BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
	HISTOGRAM_HALF_BITS = 10, /* slots of a doubling, as a power of two */
	HISTOGRAM_TOP_BITS = 40,
	HISTOGRAM_SLOTS = (HISTOGRAM_TOP_BITS - HISTOGRAM_HALF_BITS + 1)
			  << HISTOGRAM_HALF_BITS,
};

struct histogram {
	uint64_t n;
	uint64_t max;
	uint64_t counts[HISTOGRAM_SLOTS];
};

/* Number v is in slot s where low(s) <= v <= high(s). */
uint64_t histogram_low(size_t slot);
uint64_t histogram_high(size_t slot);

void histogram_merge(struct histogram *to, const struct histogram *from);

/*
 * The number that ppm of a million are at most, as the upper end of its slot;
 * with a million the maximum; 0 if there is none.
 */
uint64_t histogram_at(const struct histogram *h, uint32_t ppm);

static inline size_t
histogram_slot(uint64_t v)
{
	const unsigned bits = 64U - (unsigned)__builtin_clzll(v | 1);
	const unsigned shift =
	    bits > HISTOGRAM_HALF_BITS + 1 ? bits - HISTOGRAM_HALF_BITS - 1 : 0;

	if (bits > HISTOGRAM_TOP_BITS)
		return HISTOGRAM_SLOTS - 1;
	return ((size_t)shift << HISTOGRAM_HALF_BITS) + (size_t)(v >> shift);
}

static inline void
histogram_add(struct histogram *h, uint64_t v)
{
	h->n++;
	h->counts[histogram_slot(v)]++;
	if (v > h->max)
		h->max = v;
}

#endif
