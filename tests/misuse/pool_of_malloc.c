/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_of_malloc.c - a block of malloc's is freed to a pool. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE("a block of malloc's is freed to a pool", "not an object of a pool", "",
    "check:true")

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
	p = p_malloc(64);
	announce(p);
	pools.free(pool, p);
}
