/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_other.c - an object is freed to a pool that it is not of. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE("an object of another pool is freed", "object of another pool", "",
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
	pools.free(pool_of(64), p);
}
