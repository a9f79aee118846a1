/* SPDX-License-Identifier: BSD-2-Clause */
/* double_free_huge.c - a block of many chunks freed twice. */
#include "misuse.h"

MISUSE("64 MiB freed twice", "double free", "", "rseq:false")

static void
misuse(void)
{
	void *p = p_malloc(64 * MIB);

	announce(p);
	p_free(p);
	p_free(p);
}
