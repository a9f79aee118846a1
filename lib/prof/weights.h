/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weights.h - how far apart samples are, what each stands for, and what readers
 * of profiles make of it.
 *
 * Layer prof (L4).  Pure functions; no libm.
 *
 * The period is R = 2^lg bytes.  A block of x bytes is sampled with the chance
 * 1 - exp(-x / R), so it stands for 1 / (1 - exp(-x / R)) of its kind; with lg
 * 0 each is sampled and stands for itself.  Sums of these are right whatever
 * sizes are mixed.
 *
 * Readers are given n objects of s bytes and multiply both by
 * 1 / (1 - exp(-(s / n) / R)): eddy_weights_to_reader finds n and s of which
 * that makes the sums.
 */
#ifndef EDDY_WEIGHTS_H
#define EDDY_WEIGHTS_H

#include "lib/base/base.h"

/* 1 - exp(-x), x >= 0. */
double eddy_weights_share(double x);

/* Bytes to the next sample, by 64 random bits. */
int64_t eddy_weights_gap(unsigned lg, uint64_t random);

/* Blocks that a sample of x bytes stands for, in 65,536ths. */
uint64_t eddy_weights_of(unsigned lg, size_t x);

/*
 * Sums (objects in 65,536ths) as readers want them.  n is rounded up or down
 * as chance, a hash, will have it, so that many of them have no bias.
 */
void eddy_weights_to_reader(unsigned lg, uint64_t objects, uint64_t bytes,
    uint64_t hash, uint64_t *ret_n, uint64_t *ret_s);

#endif /* EDDY_WEIGHTS_H */
