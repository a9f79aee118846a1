/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sizes.h - large sizes by number, as jemalloc numbers them.
 *
 * Layer heap (L3).  Pure functions.
 *
 * From 16 KiB on there are four classes in each doubling, up to 7 * 2^60.  The
 * classes of free runs are these with 4, 8 and 12 KiB before them.  Blocks are
 * of whole pages: most belong to no class exactly.
 */
#ifndef EDDY_SIZES_H
#define EDDY_SIZES_H

#include "lib/heap/sizeclass.h"

#define EDDY_N_LARGE   196
#define EDDY_N_EXTENTS (EDDY_N_LARGE + 3)

/* Bytes of a class. */
static inline size_t
eddy_sizes_large(unsigned i)
{
	return i == 0 ? EDDY_LARGE_MIN
		      : ((size_t)(4 + (i - 1) % 4 + 1)
			    << (EDDY_LG_PAGE + (i - 1) / 4));
}

/* The smallest class of at least so many bytes, 1 to 7 * 2^60. */
static inline unsigned
eddy_sizes_large_of(size_t size)
{
	unsigned lg;

	if (size <= EDDY_LARGE_MIN)
		return 0;
	lg = eddy_log2(size - 1);
	return (lg - 14) * 4 + (unsigned)((size - 1) >> (lg - 2)) - 4 + 1;
}

/* The largest class of at most so many pages. */
static inline unsigned
eddy_sizes_extent_of(size_t pages)
{
	size_t size = pages * EDDY_PAGE;
	unsigned i;

	if (size <= EDDY_LARGE_MIN)
		return (unsigned)pages - 1;
	i = eddy_sizes_large_of(size);
	return i + 3 - (eddy_sizes_large(i) > size);
}

#endif /* EDDY_SIZES_H */
