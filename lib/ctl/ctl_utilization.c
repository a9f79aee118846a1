/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_utilization.c - how full the slabs of given objects are. */
#include <errno.h>
#include <string.h>

#include "lib/ctl/ctl_gen_names.h"
#include "lib/ctl/snapshot.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/large.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/slab.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"

/* What the caller gets; zeros for what is no block. */
struct use {
	size_t nfree;
	size_t nregs;
	size_t size;
};

/* Free objects of the slab that has its head at a page. */
static unsigned
free_in(struct eddy_chunk *c, unsigned page, const struct eddy_class *class)
{
	unsigned n = 0;

	for (unsigned k = 0; k * 64 < class->n_objects; k++)
		/* relaxed: a statistic. */
		n += (unsigned)__builtin_popcountll(
		    eddy_load_relaxed(&c->slab[page][k]));
	return n < class->n_objects ? n : class->n_objects;
}

/*
 * Of the block that p points to or, in a slab, into.  ret_row: the row of its
 * slab, 0 for other blocks.
 */
static struct use
use_of(struct eddy_heap *h, const void *p, unsigned *ret_row)
{
	const void *place;
	uint32_t tag = eddy_tag_seek(h, p, &place);
	size_t page = eddy_page_of(h, place);
	unsigned row = eddy_tag_row(tag);
	unsigned in_chunk = page % EDDY_CHUNK_PAGES;
	struct eddy_chunk *c;

	*ret_row = 0;
	if (eddy_arena_of(h, p) == NULL)
		return (struct use){0};
	c = &h->chunks[page / EDDY_CHUNK_PAGES];
	switch (eddy_tag_kind(tag)) {
	case EDDY_TAG_SLAB:
	case EDDY_TAG_POOL:
		if (row == 0 || row > EDDY_N_SMALL ||
		    eddy_tag_pages(tag) > in_chunk)
			return (struct use){0};
		*ret_row = row;
		return (struct use){
		    .nfree = free_in(
			c, in_chunk - eddy_tag_pages(tag), &eddy_classes[row]),
		    .nregs = eddy_classes[row].n_objects,
		    .size = eddy_classes[row].pages * EDDY_PAGE,
		};
	case EDDY_TAG_RUN:
	case EDDY_TAG_HUGE:
		if ((uintptr_t)p % EDDY_PAGE != 0)
			return (struct use){0};
		return (struct use){
		    .nregs = 1, .size = eddy_large_size_of(h, place, tag)};
	default:
		return (struct use){0};
	}
}

/*
 * Who asks object by object is about to move some, and what the caches of CPUs
 * hold keeps slabs from becoming empty: they are emptied, once a second at
 * most.
 */
static void
empty_caches(struct eddy_heap *h)
{
	/* In seconds.  W, R: any.  O: none: a rule of thumb. */
	static _Atomic uint32_t time;
	/* relaxed, both: as said. */
	uint32_t last = eddy_load_relaxed(&time);
	uint32_t now = eddy_os_seconds();

	if (now == last || eddy_frozen(h) ||
	    !eddy_cas_relaxed(&time, &last, now))
		return;
	eddy_cache_flush(h);
	eddy_gather_all(h);
}

int
eddy_ctl_batch_query(struct eddy_ctl *c)
{
	size_t n = c->newlen / sizeof(void *);

	if (c->newp == NULL || c->newlen == 0 ||
	    c->newlen % sizeof(void *) != 0 || c->oldp == NULL ||
	    c->oldlenp == NULL || *c->oldlenp != n * sizeof(struct use))
		return EINVAL;
	empty_caches(c->h);
	for (size_t i = 0; i < n; i++) {
		struct use u;
		unsigned row;
		const void *p;

		memcpy(&p, (const char *)c->newp + i * sizeof(p), sizeof(p));
		u = use_of(c->h, p, &row);
		memcpy((char *)c->oldp + i * sizeof(u), &u, sizeof(u));
	}
	return 0;
}

/* One object, and its class in its arena. */
struct answer {
	void *slabcur;
	struct use use;
	size_t bin_nfree;
	size_t bin_nregs;
};

static int
read_bin(struct eddy_ctl *c, const struct eddy_arena *a, unsigned row,
    size_t offset, uint64_t *ret)
{
	return -eddy_snapshot_read_arena(c->h, a->number,
	    offsetof(struct eddy_snapshot_arena, bins) +
		(row - 1) * sizeof(struct eddy_snapshot_bin) + offset,
	    ret);
}

/*
 * Slabs are refilled from the lowest address on, so who moves an object moves
 * it down.  What lies in a slab that is fuller than an eighth above the average
 * stays: the slab would not become empty soon.
 */
bool
eddy_ctl_defrag_hint(struct eddy_heap *h, const void *p)
{
	struct eddy_ctl c = {.h = h};
	unsigned row;
	struct use u = use_of(h, p, &row);
	struct eddy_arena *a = eddy_arena_of(h, p);
	const void *place;
	uint32_t tag = eddy_tag_seek(h, p, &place);
	size_t page = eddy_page_of(h, place) - eddy_tag_pages(tag);
	uint64_t live;
	uint64_t slabs;

	empty_caches(h);
	/* Nor may what is a pool's move. */
	if (row == 0 || u.nfree == 0 || a == NULL ||
	    eddy_tag_kind(tag) == EDDY_TAG_POOL)
		return false;
	if (!eddy_slab_below(h, a, row, (uint32_t)(page / EDDY_CHUNK_PAGES),
		page % EDDY_CHUNK_PAGES))
		return false;
	if (read_bin(&c, a, row, offsetof(struct eddy_snapshot_bin, curslabs),
		&slabs) != 0 ||
	    read_bin(&c, a, row, offsetof(struct eddy_snapshot_bin, curregs),
		&live) != 0)
		return true;
	return 8 * (u.nregs - u.nfree) * slabs <= 9 * live;
}

int
eddy_ctl_query(struct eddy_ctl *c)
{
	struct answer ret = {0};
	struct eddy_arena *a;
	uint64_t slabs;
	uint64_t regs;
	unsigned row;
	const void *p;
	int err;

	if (c->newp == NULL || c->newlen != sizeof(p) || c->oldp == NULL ||
	    c->oldlenp == NULL || *c->oldlenp != sizeof(ret))
		return EINVAL;
	memcpy(&p, c->newp, sizeof(p));
	ret.use = use_of(c->h, p, &row);
	a = eddy_arena_of(c->h, p);
	if (row != 0 && a != NULL) {
		err = read_bin(c, a, row,
		    offsetof(struct eddy_snapshot_bin, curslabs), &slabs);
		if (err == 0)
			err = read_bin(c, a, row,
			    offsetof(struct eddy_snapshot_bin, curregs), &regs);
		if (err != 0)
			return err;
		ret.bin_nregs = slabs * eddy_classes[row].n_objects;
		ret.bin_nfree = ret.bin_nregs > regs ? ret.bin_nregs - regs : 0;
	}
	memcpy(c->oldp, &ret, sizeof(ret));
	return 0;
}
