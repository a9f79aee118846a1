/* SPDX-License-Identifier: BSD-2-Clause */
/* double_free_small.c - a small block freed twice; seen when its batch goes
 * home. */
#include "misuse.h"

MISUSE("a small block freed twice", "double free", "", NULL)

static void
misuse(void)
{
	enum { N = 20000 };
	static void *p[N];
	uint64_t rng = tap.seed;

	for (int i = 0; i < N; i++)
		p[i] = p_malloc(64);
	announce(p[N / 2]);
	p_free(p[N / 2]);
	/*
	 * One of the two copies may lie in a cache for long: blocks go and
	 * come in an order that stirs them until both have met.
	 */
	for (int round = 0; round < 40; round++) {
		for (size_t i = N - 1; i > 0; i--) {
			size_t k = (size_t)tap_random(&rng) % (i + 1);
			void *q = p[i];

			p[i] = p[k];
			p[k] = q;
		}
		for (int i = 0; i < N; i++)
			p_free(p[i]);
		for (int i = 0; i < N; i++)
			p[i] = p_malloc(64);
	}
}
