/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_destroyed.c - a pool that has ended is used. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE(
    "a pool is used after its end", "pool that was destroyed", "", "check:true")

static void
misuse(void)
{
	struct eddy_pool *pool;
	void *p;

	if (!pool_find_api())
		tap_bail("this malloc has no pools");
	pool = pool_of(64);
	p = pools.alloc(pool);
	pools.free(pool, p);
	pools.destroy(pool);
	if (pool_of(64) == pool)
		tap_bail("the same pool");
	announce(pool);
	(void)pools.alloc(pool);
}
