/* SPDX-License-Identifier: BSD-2-Clause */
/* foreign_static.c - an address of static storage. */
#include "misuse.h"

MISUSE("free of a static address", "foreign pointer", "", "rseq:false")

static void
misuse(void)
{
	static _Alignas(64) char here[128];

	announce(here);
	p_free(here);
}
