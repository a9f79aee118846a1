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
	void *twice;

	for (int i = 0; i < N; i++)
		p[i] = p_malloc(64);
	twice = p[N / 2];
	announce(twice);
	/* Apart, so that each copy goes home in a batch of its own. */
	p_free(twice);
	for (int i = 0; i < N; i++)
		p_free(p[i]);
	/* Whatever still lies in a cache goes out with these. */
	for (int i = 0; i < N; i++)
		p[i] = p_malloc(64);
	for (int i = 0; i < N; i++)
		p_free(p[i]);
}
