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
 *   bits 16-25  slab: this page's number in it.  run: its pages.  region:
 *               this page's number in its stretch
 *   bits 28-31  kind
 *
 * Slabs of pools have the place of a home without rows: free fails on its hit
 * path, and C ends the process.
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
	EDDY_TAG_RUN,    /* pages within a chunk */
	EDDY_TAG_HUGE,   /* whole chunks, and pages of one more */
	EDDY_TAG_REGION, /* where objects are is in region.h; place 0 */
	EDDY_TAG_POOL,   /* a slab whose objects are a pool's */
	/* Head of such a slab that is being given back, in bits 0 to 27 the
	 * number of who does it: see pool.h. */
	EDDY_TAG_LIMBO,
};

#define EDDY_LIMBO_NUMBERS (((uint32_t)1 << 28) - 1)

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

/* Whether it is a slab's, of whatever use. */
static inline bool
eddy_tag_is_slab(uint32_t tag)
{
	return eddy_tag_kind(tag) == EDDY_TAG_SLAB ||
	       eddy_tag_kind(tag) == EDDY_TAG_POOL;
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

/*
 * Memory of users' hooks may lie anywhere (hooks.h).  Its chunk has a number,
 * and so a place in the range, all the same; nothing lies there.  Inside, it is
 * known by that place: tags, descriptors, bits and all functions that are given
 * an address speak of places.  What is handed out, and what is written, read or
 * told to the kernel, are addresses.  For all other memory they are the same.
 */

/* Page number of a place in the range. */
static inline size_t
eddy_page_of(const struct eddy_heap *h, const void *p)
{
	return ((uintptr_t)p - h->base) >> EDDY_LG_PAGE;
}

/* The place of an address that is not in the range; NULL: it is not ours. */
EDDY_COLD const void *eddy_place_outside(
    const struct eddy_heap *h, const void *p);

/*
 * eddy_tag_seek - the tag of the page that p lies in, 0 for what is not ours.
 *
 * place: where it is inside, p itself for what is not ours.
 * Safe for any p.  The result is as fresh as the acquire makes it: a pointer
 * that was handed over properly is never missed.
 */
static inline uint32_t
eddy_tag_seek(const struct eddy_heap *h, const void *p, const void **place)
{
	size_t page = eddy_page_of(h, p);

	*place = p;
	/* SEG-A1: tags below the limit are readable. */
	if (eddy_unlikely(page >= eddy_load_acquire(&eddy_fast.limit))) {
		const void *inside = eddy_place_outside(h, p);

		if (inside == NULL)
			return 0;
		*place = inside;
		page = eddy_page_of(h, inside);
	}
	/* relaxed: true for who holds the page or an object in it. */
	return eddy_load_relaxed(&h->tags[page]);
}

/* The same where only the tag matters. */
static inline uint32_t
eddy_tag_find(const struct eddy_heap *h, const void *p)
{
	const void *place;

	return eddy_tag_seek(h, p, &place);
}

/* The place of an address; p itself for what is not ours. */
static inline const void *
eddy_place_of(const struct eddy_heap *h, const void *p)
{
	const void *inside = p;

	/* SEG-A1: as above. */
	if (eddy_unlikely(
		eddy_page_of(h, p) >= eddy_load_acquire(&eddy_fast.limit)))
		inside = eddy_place_outside(h, p);
	return inside != NULL ? inside : p;
}

/* The address at a place of the range; of others the same. */
const void *eddy_address_of(struct eddy_heap *h, const void *place);

/*
 * Ends the process for a pointer that is no live block, and whose page has no
 * tag: "foreign pointer" inside a live block of pages, and where eddy never had
 * blocks; else "double free", in whosever hand the page is just now.
 */
_Noreturn void eddy_fatal_free(struct eddy_heap *h, const void *place);

#endif /* EDDY_PAGEMAP_H */
