/* SPDX-License-Identifier: BSD-2-Clause */
/* histogram.c - counts of numbers, three digits each. */
#include "histogram.h"

/* The first two rows of slots are as wide as each other. */
static unsigned
shift_of(size_t slot)
{
	const unsigned row = (unsigned)(slot >> HISTOGRAM_HALF_BITS);

	return row > 1 ? row - 1 : 0;
}

uint64_t
histogram_low(size_t slot)
{
	const unsigned shift = shift_of(slot);

	return (uint64_t)(slot - ((size_t)shift << HISTOGRAM_HALF_BITS))
	       << shift;
}

uint64_t
histogram_high(size_t slot)
{
	return histogram_low(slot) + ((uint64_t)1 << shift_of(slot)) - 1;
}

void
histogram_merge(struct histogram *to, const struct histogram *from)
{
	to->n += from->n;
	if (from->max > to->max)
		to->max = from->max;
	for (size_t i = 0; i < HISTOGRAM_SLOTS; i++)
		to->counts[i] += from->counts[i];
}

uint64_t
histogram_at(const struct histogram *h, uint32_t ppm)
{
	/* in two parts: n * ppm may be more than 64 bits */
	const uint64_t rank =
	    h->n / 1000000 * ppm + (h->n % 1000000 * ppm + 999999) / 1000000;
	uint64_t sum = 0;

	if (ppm >= 1000000)
		return h->max;
	for (size_t i = 0; i < HISTOGRAM_SLOTS; i++) {
		sum += h->counts[i];
		if (sum >= rank && sum != 0)
			return histogram_high(i) < h->max ? histogram_high(i)
							  : h->max;
	}
	return h->max;
}
