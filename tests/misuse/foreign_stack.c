/* SPDX-License-Identifier: BSD-2-Clause */
/* foreign_stack.c - an address on the stack. */
#include "misuse.h"

MISUSE("free of a stack address", "foreign pointer", "", "check:true")

static void
misuse(void)
{
	_Alignas(64) char here[128];

	p_free(p_malloc(10));
	announce(here);
	p_free(here);
}
