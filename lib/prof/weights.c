/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/prof/weights.h"

#include <string.h>

#define LN2 0.693147180559945309417
/* No sum of 2^16 such weights overflows. */
#define MAX_WEIGHT ((double)((uint64_t)1 << 47))
#define MAX_GAP    ((double)((int64_t)1 << 62))

/* 1 / i: a product takes a fourth of a quotient's time. */
static const double part[40] = {0, 1, 1 / 2., 1 / 3., 1 / 4., 1 / 5., 1 / 6.,
    1 / 7., 1 / 8., 1 / 9., 1 / 10., 1 / 11., 1 / 12., 1 / 13., 1 / 14.,
    1 / 15., 1 / 16., 1 / 17., 1 / 18., 1 / 19., 1 / 20., 1 / 21., 1 / 22.,
    1 / 23., 1 / 24., 1 / 25., 1 / 26., 1 / 27., 1 / 28., 1 / 29., 1 / 30.,
    1 / 31., 1 / 32., 1 / 33., 1 / 34., 1 / 35., 1 / 36., 1 / 37., 1 / 38.,
    1 / 39.};

static double
power_of_2(int n)
{
	uint64_t bits = (uint64_t)(1023 + n) << 52;
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

double
eddy_weights_share(double x)
{
	double term = 1;
	double sum = 0;
	double rest;
	int k;

	if (x > 45)
		return 1;
	if (x < 0.5) {
		/* x - x^2 / 2 + ..., which cancels nothing. */
		for (int i = 1; i < 16; i++) {
			term *= -x * part[i];
			sum -= term;
		}
		return sum;
	}
	k = (int)(x / LN2);
	rest = x - k * LN2;
	for (int i = 1; i < 20; i++) {
		sum += term;
		term *= -rest * part[i];
	}
	return 1 - sum * power_of_2(-k);
}

/* Natural logarithm of u, 0 < u <= 1. */
static double
log_of(double u)
{
	uint64_t bits;
	double s;
	double power;
	double sum = 0;
	int e;

	memcpy(&bits, &u, sizeof(bits));
	e = (int)(bits >> 52) - 1023;
	u *= power_of_2(-e);
	/* 1 <= u < 2: log(u) = 2 artanh((u - 1) / (u + 1)). */
	s = (u - 1) / (u + 1);
	power = s;
	for (int i = 1; i < 36; i += 2) {
		sum += power * part[i];
		power *= s * s;
	}
	return 2 * sum + e * LN2;
}

int64_t
eddy_weights_gap(unsigned lg, uint64_t random)
{
	/* 53 bits: from 2^-53 to 1. */
	double u = (double)((random >> 11) + 1) * power_of_2(-53);
	double gap;

	if (lg == 0)
		return 0;
	gap = -log_of(u) * power_of_2((int)lg);
	return gap < MAX_GAP ? (int64_t)gap : (int64_t)MAX_GAP;
}

uint64_t
eddy_weights_of(unsigned lg, size_t x)
{
	double w;

	if (lg == 0)
		return (uint64_t)1 << 16;
	w = 1 / eddy_weights_share((double)x * power_of_2(-(int)lg));
	if (w > MAX_WEIGHT)
		w = MAX_WEIGHT;
	return (uint64_t)(w * 65536 + 0.5);
}

static uint64_t
whole(double d)
{
	return d < 9.2e18 ? (uint64_t)(d + 0.5) : (uint64_t)1 << 63;
}

void
eddy_weights_to_reader(unsigned lg, uint64_t objects, uint64_t bytes,
    uint64_t hash, uint64_t *ret_n, uint64_t *ret_s)
{
	double mean;
	double n;
	double rest;

	*ret_n = 0;
	*ret_s = 0;
	/* What is taken off while it is read may be below zero for a moment. */
	if (objects == 0 || bytes == 0 || (int64_t)objects < 0 ||
	    (int64_t)bytes < 0)
		return;
	mean = (double)bytes * 65536 / (double)objects;
	n = (double)objects / 65536 *
	    eddy_weights_share(mean * power_of_2(-(int)lg));
	if (n < 1)
		n = 1;
	if (n < 9e15) {
		rest = n - (double)(uint64_t)n;
		n -= rest;
		/* As good as whole: weights are rounded. */
		if (rest > 0.998 ||
		    (rest > 0.002 &&
			(double)(hash >> 11) * power_of_2(-53) < rest))
			n++;
	}
	*ret_n = whole(n);
	*ret_s = whole(n * mean);
}
