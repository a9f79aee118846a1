/* SPDX-License-Identifier: BSD-2-Clause */
/* interior_large.c - an address inside a large block. */
#include "misuse.h"

MISUSE_EITHER("free of an address inside a large block", "misaligned pointer",
    "foreign pointer", "", "check:true")

static void
misuse(void)
{
	char *p = p_malloc(300000);

	announce(p + 8192);
	p_free(p + 8192);
}
