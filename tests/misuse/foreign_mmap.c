/* SPDX-License-Identifier: BSD-2-Clause */
/* foreign_mmap.c - memory that the program mapped itself. */
#include "misuse.h"

MISUSE("free of mapped memory", "foreign pointer", "", NULL)

static void
misuse(void)
{
	char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	p_free(p_malloc(10));
	announce(p + 4096);
	p_free(p + 4096);
}
