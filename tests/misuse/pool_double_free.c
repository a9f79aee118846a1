/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_double_free.c - an object freed twice: found out when both come to the
 * slab. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE("an object freed twice, with others between", "double free", "",
    "rseq:false")

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
	(void)pools.shrink(pool, NULL, NULL);
	pools.free(pool, p);
	(void)pools.shrink(pool, NULL, NULL);
}
