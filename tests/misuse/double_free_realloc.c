/* SPDX-License-Identifier: BSD-2-Clause */
/* double_free_realloc.c - a large block that realloc has freed. */
#include "misuse.h"

MISUSE("a block freed after realloc(p, 0)", "double free", "", NULL)

static void
misuse(void)
{
	void *p = p_malloc(200000);

	announce(p);
	(void)p_realloc(p, 0);
	p_free(p);
}
