/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pagemap.h - pointer to class and home, in one load.
 *
 * Layer     heap (L3).
 * Progress  wait-free.
 *
 * A tag per page of the range, in one array that runs parallel to it:
 *
 *   bits  0-15  offset of the row header in a CPU's slot:
 *               (home * EDDY_HOME_ROWS + row) * 16; 0: not cached
 *   bits 16-25  slab: this page's number in it.  run: its pages
 *   bits 28-31  kind
 *
 * A free page has tag 0, and so have the inner pages of runs: a pointer into
 * one is told from a block.  A tag is true for whoever has the page in hand or
 * holds an object in it; else it is a hint.
 *
 * Order pairs
 *   SEG-R1 -> SEG-A1  tags up to `limit` are readable.
 */
#ifndef EDDY_PAGEMAP_H
#define EDDY_PAGEMAP_H

#include "lib/heap/heap.h"

#define EDDY_HOME_ROWS 64 /* row numbers set aside for each home */

/* Offset of a row's header in a slot, and 16 times its ring's number. */
static inline uint32_t
eddy_place(uint32_t home, unsigned row)
{
	return (home * EDDY_HOME_ROWS + row) * 16;
}

enum eddy_tag_kind {
	EDDY_TAG_NONE,
	EDDY_TAG_SLAB,
	EDDY_TAG_RUN,  /* pages within a chunk */
	EDDY_TAG_HUGE, /* whole chunks, and pages of one more */
};

static inline uint32_t
eddy_tag(enum eddy_tag_kind kind, uint32_t home, unsigned row, unsigned pages)
{
	uint32_t place = row != 0 ? eddy_place(home, row) : 0;

	return (uint32_t)kind << 28 | (uint32_t)pages << 16 | place;
}

static inline enum eddy_tag_kind
eddy_tag_kind(uint32_t tag)
{
	return (enum eddy_tag_kind)(tag >> 28);
}

/* Offset of the row header in a slot. */
static inline uint32_t
eddy_tag_place(uint32_t tag)
{
	return tag & 0xffff;
}

static inline unsigned
eddy_tag_row(uint32_t tag)
{
	return (tag & 0xffff) / 16 % EDDY_HOME_ROWS;
}

static inline uint32_t
eddy_tag_home(uint32_t tag)
{
	return (tag & 0xffff) / 16 / EDDY_HOME_ROWS;
}

static inline unsigned
eddy_tag_pages(uint32_t tag)
{
	return tag >> 16 & 0x3ff;
}

/* Page number of an address of the range. */
static inline size_t
eddy_page_of(const struct eddy_heap *h, const void *p)
{
	return ((uintptr_t)p - h->base) >> EDDY_LG_PAGE;
}

/*
 * eddy_tag_find - the tag of the page that p lies in, 0 for what is not ours.
 *
 * Safe for any p.  The result is as fresh as the acquire makes it: a pointer
 * that was handed over properly is never missed.
 */
static inline uint32_t
eddy_tag_find(const struct eddy_heap *h, const void *p)
{
	size_t page = eddy_page_of(h, p);

	/* SEG-A1: tags below the limit are readable. */
	if (page >= eddy_load_acquire(&eddy_fast.limit))
		return 0;
	/* relaxed: true for who holds the page or an object in it. */
	return eddy_load_relaxed(&h->tags[page]);
}

/*
 * Ends the process for a pointer that is no live block: "double free" where it
 * lies in a free page, else "foreign pointer".  More cannot be told.
 */
_Noreturn void eddy_fatal_free(struct eddy_heap *h, const void *p);

#endif /* EDDY_PAGEMAP_H */
