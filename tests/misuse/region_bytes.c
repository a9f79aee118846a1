/* SPDX-License-Identifier: BSD-2-Clause */
/* region_bytes.c - a look at a destroyed region, in the checked mode. */
#include "misuse.h"

#include "../region_api.h"

MISUSE("a look at a destroyed region", "destroyed region", "check:true",
    "check:true,rseq:false")

static void
misuse(void)
{
	struct eddy_region *r = new_region();

	(void)rg.destroy(r);
	/* Another does not come in its place. */
	(void)new_region();
	announce(r);
	(void)rg.bytes(r);
}
