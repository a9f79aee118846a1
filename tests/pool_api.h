/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_api.h - <eddy/pool.h>'s functions in the library under test. */
#ifndef EDDY_TESTS_POOL_API_H
#define EDDY_TESTS_POOL_API_H

#include "eddy/pool.h"
#include "probe.h"

static struct pool_api {
	int (*create)(const struct eddy_pool_options *, struct eddy_pool **);
	void *(*alloc)(struct eddy_pool *);
	void (*free)(struct eddy_pool *, void *);
	size_t (*shrink)(struct eddy_pool *, void (*)(void *), void *);
	void (*destroy)(struct eddy_pool *);
	unsigned (*arena)(struct eddy_pool *);
} pools;

/* False: another allocator. */
static inline bool
pool_find_api(void)
{
	const struct symbol s[] = {
	    {"eddy_pool_create", (void *)&pools.create},
	    {"eddy_pool_alloc", (void *)&pools.alloc},
	    {"eddy_pool_free", (void *)&pools.free},
	    {"eddy_pool_shrink", (void *)&pools.shrink},
	    {"eddy_pool_destroy", (void *)&pools.destroy},
	    {"eddy_pool_arena", (void *)&pools.arena},
	};

	return find_symbols(s, COUNT(s));
}

/* A pool of such objects; the program ends where there is none. */
static inline struct eddy_pool *
pool_of(size_t size)
{
	struct eddy_pool_options o = EDDY_POOL_OPTIONS;
	struct eddy_pool *p;

	o.object_size = size;
	if (pools.create(&o, &p) != 0)
		tap_bail("no pool");
	return p;
}

#endif /* EDDY_TESTS_POOL_API_H */
