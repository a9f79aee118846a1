/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region_api.h - regions, as found in the library that the test was preloaded
 * with.
 */
#ifndef EDDY_TESTS_REGION_API_H
#define EDDY_TESTS_REGION_API_H

#include "allocx_api.h"

/* The inline function of the header calls one of ours, by a name of its own:
 * the library's may be linked as well. */
#define eddy_region_alloc_slow region_alloc_slow
#include "eddy/region.h"
#undef eddy_region_alloc_slow

static struct {
	int (*create)(
	    const struct eddy_region_options *, struct eddy_region **);
	void *(*slow)(struct eddy_region *, size_t);
	void *(*aligned)(struct eddy_region *, size_t, size_t);
	int (*reset)(struct eddy_region *);
	int (*destroy)(struct eddy_region *);
	size_t (*bytes)(const struct eddy_region *);
	int (*enter)(struct eddy_region *);
	int (*leave)(struct eddy_region *);
} rg;

void *
region_alloc_slow(struct eddy_region *region, size_t size)
{
	return rg.slow(region, size);
}

/* False: another allocator. */
static inline bool
find_regions(void)
{
	static const struct symbol f[] = {
	    {"eddy_region_create", &rg.create},
	    {"eddy_region_alloc_slow", &rg.slow},
	    {"eddy_region_alloc_aligned", &rg.aligned},
	    {"eddy_region_reset", &rg.reset},
	    {"eddy_region_destroy", &rg.destroy},
	    {"eddy_region_bytes", &rg.bytes},
	    {"eddy_region_enter", &rg.enter},
	    {"eddy_region_leave", &rg.leave},
	};

	return find_symbols(f, COUNT(f)) && find_allocx();
}

static inline struct eddy_region *
new_region(void)
{
	struct eddy_region *r;

	if (rg.create == NULL && !find_regions())
		tap_bail("no regions in this malloc");
	if (rg.create(NULL, &r) != 0)
		tap_bail("no region");
	return r;
}

#endif /* EDDY_TESTS_REGION_API_H */
