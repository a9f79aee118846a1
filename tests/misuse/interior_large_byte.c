/* SPDX-License-Identifier: BSD-2-Clause */
/* interior_large_byte.c - a few bytes into a large block. */
#include "misuse.h"

MISUSE_EITHER("free of 16 bytes into a large block", "misaligned pointer",
    "foreign pointer", "", NULL)

static void
misuse(void)
{
	char *p = p_malloc(300000);

	announce(p + 16);
	p_free(p + 16);
}
