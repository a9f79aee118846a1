/* SPDX-License-Identifier: BSD-2-Clause */
/* interior_small.c - an address inside a small block; seen at once when
 * checked. */
#include "misuse.h"

MISUSE("free of an address inside a small block", "misaligned pointer",
    "check:true", NULL)

static void
misuse(void)
{
	char *p = p_malloc(192);

	announce(p + 16);
	p_free(p + 16);
}
