/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discard.c - memory of a block that goes back while the block stays.
 *
 * Layer     front (L6).
 * Progress  wait-free but for system calls and page faults.
 *
 * The heap is not told: the block's pages are marked dirty as long as it lives,
 * whatever they hold.
 */
#include "eddy/eddy.h"

#include <errno.h>

#include "lib/front/front.h"
#include "lib/heap/backing.h"
#include "lib/heap/large.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/region.h"
#include "lib/heap/slab.h"

/* Whether an object begins at a place that is not in its slab. */
static bool
is_object(struct eddy_heap *h, const void *p, uint32_t tag)
{
	size_t slab = eddy_page_of(h, p) - eddy_tag_pages(tag);
	size_t offset = ((uintptr_t)p - h->base) - (slab << EDDY_LG_PAGE);
	struct eddy_slab_bit bit;

	if (offset % eddy_row_size(eddy_tag_row(tag)) != 0)
		return false;
	bit = eddy_slab_bit_of(h, p, tag);
	/* relaxed: no bit is set while the program has the object. */
	return (eddy_load_relaxed(bit.word) & bit.mask) == 0;
}

/* The size of the block that begins at p; 0: none does. */
static size_t
block_size(struct eddy_heap *h, const void *p)
{
	const void *place;
	uint32_t tag = eddy_tag_seek(h, p, &place);

	switch (eddy_tag_kind(tag)) {
	case EDDY_TAG_SLAB:
		return is_object(h, place, tag)
			   ? eddy_row_size(eddy_tag_row(tag))
			   : 0;
	case EDDY_TAG_RUN:
	case EDDY_TAG_HUGE:
		return (uintptr_t)p % EDDY_PAGE == 0
			   ? eddy_large_size_of(h, place, tag)
			   : 0;
	case EDDY_TAG_REGION:
		return eddy_region_size_if(h, place, tag);
	default:
		return 0;
	}
}

/* Segment by segment. */
static void
give_back(struct eddy_heap *h, char *p, size_t size)
{
	while (size != 0) {
		size_t here = EDDY_SEGMENT - (uintptr_t)p % EDDY_SEGMENT;

		if (here > size)
			here = size;
		eddy_backing_give_back(h, p, here);
		p += here;
		size -= here;
	}
}

EDDY_EXPORT int
eddy_discard(void *p, size_t offset, size_t length)
{
	struct eddy_heap *h = eddy_heap_peek();
	size_t size = h != NULL ? block_size(h, p) : 0;

	if (size == 0 || offset > size || length > size - offset)
		return EINVAL;
	/* A forked child has not the memory of a file. */
	if (!eddy_backing_has(h, p))
		return EINVAL;
	give_back(h, (char *)p + offset, length);
	return 0;
}
