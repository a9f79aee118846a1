/* SPDX-License-Identifier: BSD-2-Clause */
/* foreign_usable_size.c - malloc_usable_size of what malloc never gave. */
#include "misuse.h"

MISUSE("malloc_usable_size of a static address", "foreign pointer", "", NULL)

static void
misuse(void)
{
	static _Alignas(64) char here[128];

	p_free(p_malloc(10));
	announce(here);
	(void)p_usable(here);
}
