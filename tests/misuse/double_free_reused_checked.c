/* SPDX-License-Identifier: BSD-2-Clause */
/* double_free_reused_checked.c - freed twice with other work between. */
#include "misuse.h"

MISUSE("a block freed again much later", "double free", "check:true", NULL)

static void
misuse(void)
{
	void *p = p_malloc(200);
	void *q[50];

	announce(p);
	p_free(p);
	/* Other sizes: nobody gets p meanwhile. */
	for (size_t i = 0; i < 50; i++)
		q[i] = p_malloc(1000 + i * 100);
	for (int i = 0; i < 50; i++)
		p_free(q[i]);
	p_free(p);
}
