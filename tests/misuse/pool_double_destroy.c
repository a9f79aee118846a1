/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_double_destroy.c - a pool ends twice. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE("a pool is destroyed twice", "pool that was destroyed", "", "check:true")

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
	announce(pool);
	pools.destroy(pool);
}
