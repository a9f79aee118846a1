/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_foreign.c - what is nobody's is freed to a pool. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE("what is on the stack is freed to a pool", "foreign pointer", "",
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
	announce(&p);
	pools.free(pool, &p);
}
