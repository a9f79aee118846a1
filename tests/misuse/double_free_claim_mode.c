/* SPDX-License-Identifier: BSD-2-Clause */
/* double_free_claim_mode.c - a small block freed twice where rseq is off. */
#include "misuse.h"

MISUSE(
    "a small block freed twice without rseq", "double free", "rseq:false", NULL)

static void
misuse(void)
{
	enum { N = 20000 };
	static void *p[N];

	for (int i = 0; i < N; i++)
		p[i] = p_malloc(64);
	announce(p[N / 2]);
	p_free(p[N / 2]);
	for (int i = 0; i < N; i++)
		p_free(p[i]);
	for (int i = 0; i < N; i++)
		p[i] = p_malloc(64);
	for (int i = 0; i < N; i++)
		p_free(p[i]);
}
