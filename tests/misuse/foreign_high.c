/* SPDX-License-Identifier: BSD-2-Clause */
/* foreign_high.c - an address of the kernel half. */
#include "misuse.h"

MISUSE("free of a kernel address", "foreign pointer", "", NULL)

static void
misuse(void)
{
	p_free(p_malloc(10));
	announce((void *)0xffff888000001000u);
	p_free((void *)0xffff888000001000u);
}
