/* SPDX-License-Identifier: BSD-2-Clause */
/* region_realloc.c - realloc of an object of a destroyed region, in the checked
 * mode. */
#include "misuse.h"

#include "../region_api.h"

MISUSE("realloc of an object of a destroyed region",
    "object of a destroyed region", "check:true", "check:true,rseq:false")

static void
misuse(void)
{
	struct eddy_region *r = new_region();
	void *p = eddy_region_alloc(r, 100);

	(void)rg.destroy(r);
	/* Another does not come in its place. */
	(void)new_region();
	announce(p);
	(void)p_realloc(p, 100000);
}
