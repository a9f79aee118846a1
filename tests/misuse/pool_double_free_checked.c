/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_double_free_checked.c - an object freed twice, at once in the checked
 * mode. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE("an object freed twice in a row", "double free", "check:true",
    "check:true,rseq:false")

static void
misuse(void)
{
	struct eddy_pool *pool;
	void *p;

	if (!pool_find_api())
		tap_bail("this malloc has no pools");
	pool = pool_of(64);
	p = pools.alloc(pool);
	announce(p);
	pools.free(pool, p);
	pools.free(pool, p);
}
