/* SPDX-License-Identifier: BSD-2-Clause */
/* double_free_checked_page.c - a cached run of pages, in the checked mode. */
#include "misuse.h"

MISUSE("20 KiB freed twice", "double free", "check:true", NULL)

static void
misuse(void)
{
	void *p = p_malloc(20000);

	p_free(p_malloc(20000));
	announce(p);
	p_free(p);
	p_free(p);
}
