/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_interior.c - a pointer into an object is freed to its pool. */
#include "misuse.h"

#include "../pool_api.h"

MISUSE(
    "the middle of an object is freed", "misaligned pointer", "", "rseq:false")

static void
misuse(void)
{
	struct eddy_pool *pool;
	void *p;

	if (!pool_find_api())
		tap_bail("this malloc has no pools");
	pool = pool_of(64);
	p = pools.alloc(pool);
	p = (char *)p + 16;
	announce(p);
	pools.free(pool, p);
}
