/* SPDX-License-Identifier: BSD-2-Clause */
/* interior_realloc.c - realloc of an address inside a large block. */
#include "misuse.h"

MISUSE_EITHER("realloc of an address inside a large block",
    "misaligned pointer", "foreign pointer", "", NULL)

static void
misuse(void)
{
	char *p = p_malloc(300000);

	announce(p + 4096);
	(void)p_realloc(p + 4096, 1000000);
}
