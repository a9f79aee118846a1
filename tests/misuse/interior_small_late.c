/* SPDX-License-Identifier: BSD-2-Clause */
/* interior_small_late.c - the same unchecked: seen when its batch goes home. */
#include "misuse.h"

MISUSE(
    "free of an address inside a small block", "misaligned pointer", "", NULL)

static void
misuse(void)
{
	enum { N = 20000 };
	static char *p[N];

	for (int i = 0; i < N; i++)
		p[i] = p_malloc(192);
	p[N / 2] += 16;
	announce(p[N / 2]);
	for (int i = 0; i < N; i++)
		p_free(p[i]);
}
