/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sizeclass.h - what a request is rounded up to, and which row serves it.
 *
 * Layer heap (L3).  Tables that are constant once there is a heap.
 *
 * Small classes: four per doubling, those of jemalloc, from 8 bytes to 14 KiB;
 * a slab is the smallest number of pages that the objects fill exactly.  With a
 * quantum of 8 there are three more: 24, 40 and 56 bytes.
 * Page runs: from 16 KiB on every multiple of a page, as in jemalloc 5.3.1.
 * Those of up to 64 KiB have a row in the CPU caches too.
 */
#ifndef EDDY_SIZECLASS_H
#define EDDY_SIZECLASS_H

#include "lib/arch/layout.h"
#include "lib/base/base.h"

#define EDDY_LG_PAGE   12
#define EDDY_PAGE      ((size_t)1 << EDDY_LG_PAGE)
#define EDDY_SMALL_MAX ((size_t)14336)
#define EDDY_LARGE_MIN ((size_t)16384)
#define EDDY_ROW_MAX   ((size_t)65536) /* the largest cached size */

#define EDDY_QUANTUM ((size_t)1 << EDDY_LG_QUANTUM)

/* Row 0 belongs to nothing and is closed for ever. */
#if EDDY_LG_QUANTUM == 3
#	define EDDY_N_FINE 8 /* 24, 40 and 56 among them */
#else
#	define EDDY_N_FINE 5 /* rows 1 to 5: up to 64 bytes */
#endif
#define EDDY_N_SMALL (EDDY_N_FINE + 31) /* rows 1 to 36 */
#define EDDY_ROW_RUN (EDDY_N_SMALL + 1) /* 37 to 49: runs of 4 to 16 pages */
#define EDDY_N_ROWS  (EDDY_ROW_RUN + 13)

/* The largest request: what a pointer difference can express, less a page. */
#define EDDY_SIZE_LIMIT ((size_t)0x7000000000000000)

struct eddy_class {
	uint32_t size;
	uint32_t magic; /* ceil(2^32 / size): offset to index */
	uint16_t pages; /* of a slab, or of the run */
	uint16_t n_objects;
	uint16_t batch; /* objects that travel together */
	uint16_t depth; /* pointers a CPU's row may hold at most */
};

static_assert(sizeof(struct eddy_class) == (size_t)1 << EDDY_LG_CLASS &&
		  offsetof(struct eddy_class, size) == EDDY_CLASS_SIZE,
    "assembly agrees");

/*
 * Indexed by row; rows of runs have one object.
 * W: who builds the heap (option slab_sizes), all the same values.  R: any.
 * O: none: published with the heap.
 */
extern struct eddy_class eddy_classes[EDDY_N_ROWS];

#define EDDY_SLAB_OBJECTS 512 /* at most */
#define EDDY_SLAB_PAGES   64

/* Whether s is "from-to:number|from-to:number", one at least. */
bool eddy_class_list(const char *s);

/*
 * eddy_class_slabs - sets the pages of slabs, as option slab_sizes has them:
 * "from-to:pages|from-to:pages".
 *
 * Returns: 0; -EINVAL: not of this form, and nothing is set.
 */
EDDY_MUST_USE int eddy_class_slabs(const char *list);

/* (size + 7) / 8 to row, for sizes up to EDDY_ROW_MAX. */
extern const uint8_t eddy_size_rows[EDDY_ROW_MAX / 8 + 1];
/* The same with the classes of jemalloc 5.3.0 from 16 KiB on. */
extern const uint8_t eddy_size_rows_530[EDDY_ROW_MAX / 8 + 1];

/* Size of a row's objects. */
static inline size_t
eddy_row_size(unsigned row)
{
	return eddy_classes[row].size;
}

/*
 * eddy_large_size - the real size of a request above EDDY_SMALL_MAX.
 *
 * classes: round to four classes per doubling, as jemalloc 5.3.0 does, and
 *          not only to pages.
 * Returns: 0 when there is no such size.
 */
static inline size_t
eddy_large_size(size_t size, bool classes)
{
	size_t step = EDDY_PAGE;

	if (size > EDDY_SIZE_LIMIT)
		return 0;
	if (size <= EDDY_LARGE_MIN)
		return EDDY_LARGE_MIN;
	if (classes) {
		step = (size_t)1 << (eddy_log2(size - 1) - 2);
		if (step < EDDY_PAGE)
			step = EDDY_PAGE;
	}
	return eddy_align_up(size, step);
}

#endif /* EDDY_SIZECLASS_H */
