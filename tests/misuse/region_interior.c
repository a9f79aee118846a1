/* SPDX-License-Identifier: BSD-2-Clause */
/* region_interior.c - free within an object of a region, in the checked mode.
 */
#include "misuse.h"

#include "../region_api.h"

MISUSE("free within an object of a region", "no object of its region",
    "check:true", "check:true,rseq:false")

static void
misuse(void)
{
	struct eddy_region *r = new_region();
	char *p = eddy_region_alloc(r, 100);

	announce(p + 32);
	p_free(p + 32);
}
