/* SPDX-License-Identifier: BSD-2-Clause */
/* foreign_low.c - an address that nothing can have. */
#include "misuse.h"

MISUSE("free of address 16", "foreign pointer", "", NULL)

static void
misuse(void)
{
	p_free(p_malloc(10));
	announce((void *)16);
	p_free((void *)16);
}
