/* SPDX-License-Identifier: BSD-2-Clause */
/* region_destroy.c - a region destroyed twice, in the checked mode. */
#include "misuse.h"

#include "../region_api.h"

MISUSE("a region destroyed twice", "destroyed region", "check:true",
    "check:true,rseq:false")

static void
misuse(void)
{
	struct eddy_region *r = new_region();

	(void)rg.destroy(r);
	/* Another does not come in its place. */
	(void)new_region();
	announce(r);
	(void)rg.destroy(r);
}
