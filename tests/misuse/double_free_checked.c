/* SPDX-License-Identifier: BSD-2-Clause */
/* double_free_checked.c - the same, at once, in the checked mode. */
#include "misuse.h"

MISUSE("a block freed twice in a row", "double free", "check:true",
    "check:true,rseq:false")

static void
misuse(void)
{
	void *p = p_malloc(64);

	announce(p);
	p_free(p);
	p_free(p);
}
