/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_realloc.c - realloc of what is a pool's. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE("a pool's object is resized by realloc",
    "object of a pool, not of malloc", "", "check:true")

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
	p = p_realloc(p, 48);
}
