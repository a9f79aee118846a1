/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_alive_checked.c - a pool ends while it has objects: told in the checked
 * mode. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE("a pool is destroyed with objects",
    "pool destroyed with 3 objects alive", "check:true", NULL)

static void
misuse(void)
{
	struct eddy_pool *pool;
	void *p;

	if (!pool_find_api())
		tap_bail("this malloc has no pools");
	pool = pool_of(64);
	p = pools.alloc(pool);
	(void)pools.alloc(pool);
	(void)pools.alloc(pool);
	pools.free(pool, p);
	(void)pools.alloc(pool);
	announce(pool);
	pools.destroy(pool);
}
