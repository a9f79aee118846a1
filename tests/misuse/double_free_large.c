/* SPDX-License-Identifier: BSD-2-Clause */
/* double_free_large.c - a large block freed twice, seen at once. */
#include "misuse.h"

MISUSE("a large block freed twice", "double free", "", "check:true")

static void
misuse(void)
{
	void *p = p_malloc(300000);

	announce(p);
	p_free(p);
	p_free(p);
}
