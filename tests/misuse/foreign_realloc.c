/* SPDX-License-Identifier: BSD-2-Clause */
/* foreign_realloc.c - realloc of what malloc never gave. */
#include "misuse.h"

MISUSE("realloc of a static address", "foreign pointer", "", NULL)

static void
misuse(void)
{
	static _Alignas(64) char here[128];

	p_free(p_malloc(10));
	announce(here);
	(void)p_realloc(here, 500);
}
