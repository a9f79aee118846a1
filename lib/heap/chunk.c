/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/chunk.h"

#include "lib/heap/segment.h"
#include "lib/os/fatal.h"
#include "lib/os/zero.h"

static uint64_t
segment_bit(uint32_t chunk)
{
	return (uint64_t)1 << chunk % 64;
}

static unsigned
segment_word(uint32_t chunk)
{
	return chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
}

static struct eddy_segment *
segment_of(struct eddy_heap *h, uint32_t chunk)
{
	return &h->segments[chunk / (uint32_t)EDDY_SEGMENT_CHUNKS];
}

/* ------------------------------------------------------------------ */
/* Dirty pages */

/* Calls for each word of [page, page + n): its mask. */
#define for_each_word(i, mask, page, n)                                  \
	for (unsigned i = (page) / 64, left_ = (n), at_ = (page), here_; \
	     left_ != 0 &&                                               \
	     (here_ = 64 - at_ % 64 < left_ ? 64 - at_ % 64 : left_,     \
	     mask = eddy_mask(at_ % 64, here_), true);                   \
	     i++, at_ += here_, left_ -= here_)

void
eddy_zeroes_add(struct eddy_zeroes *z, void *p, size_t size)
{
	if (z->size != 0 && z->from + z->size == p) {
		z->size += size;
		return;
	}
	eddy_zeroes_finish(z);
	z->from = p;
	z->size = size;
}

void
eddy_zeroes_finish(struct eddy_zeroes *z)
{
	if (z->size != 0 && z->end != NULL && z->from + z->size > z->end)
		z->size = z->from < z->end ? (size_t)(z->end - z->from) : 0;
	if (z->size != 0)
		eddy_os_zero(z->from, z->size);
	z->size = 0;
}

static void
add_bits(struct eddy_heap *h, struct eddy_zeroes *z, uint32_t chunk,
    unsigned word, uint64_t bits)
{
	while (bits != 0) {
		unsigned from = eddy_ctz64(bits);
		uint64_t rest = ~(bits >> from);
		unsigned n = rest == 0 ? 64 - from : eddy_ctz64(rest);

		eddy_zeroes_add(z,
		    eddy_page_address(h, chunk, word * 64 + from),
		    n * EDDY_PAGE);
		bits &= ~eddy_mask(from, n);
	}
}

void
eddy_pages_use(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n, bool zero)
{
	struct eddy_runmap *m = &h->chunks[chunk].map;
	struct eddy_zeroes z = {NULL, 0, NULL};
	uint64_t mask;

	for_each_word(i, mask, page, n)
	{
		/* relaxed: in hand; ordered by the pages' free bits. */
		uint64_t old = eddy_or_relaxed(&m->dirty[i], mask);

		if (zero)
			add_bits(h, &z, chunk, i, old & mask);
	}
	eddy_zeroes_finish(&z);
}

void
eddy_pages_zero(struct eddy_heap *h, uint32_t chunk, struct eddy_zeroes *z)
{
	struct eddy_runmap *m = &h->chunks[chunk].map;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* relaxed: in hand. */
		add_bits(h, z, chunk, i, eddy_load_relaxed(&m->dirty[i]));
	}
}

void
eddy_pages_clean(struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n)
{
	struct eddy_runmap *m = &h->chunks[chunk].map;
	uint64_t mask;

	for_each_word(i, mask, page, n)
	{
		/* relaxed: in hand; an RMW, the word holds others' bits. */
		(void)eddy_and_relaxed(&m->dirty[i], ~mask);
	}
}

/* ------------------------------------------------------------------ */
/* Birth and retirement */

void
eddy_chunk_open(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned kept)
{
	struct eddy_segment *s = segment_of(h, chunk);
	struct eddy_runmap *m = &h->chunks[chunk].map;
	uint64_t bit = segment_bit(chunk);
	unsigned i = segment_word(chunk);

	/*
	 * relaxed, all of them: the chunk is in hand; published by RUN-R2.
	 * The page bits were not kept while it was part of a huge block.
	 */
	if (eddy_and_relaxed(&s->uniform[i], ~bit) & bit) {
		/* relaxed: as above. */
		bool dirty = eddy_load_relaxed(&s->map.dirty[i]) & bit;

		for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++) {
			/* relaxed: as above. */
			eddy_store_relaxed(
			    &m->dirty[k], dirty ? ~(uint64_t)0 : 0);
		}
	}
	/* relaxed: as above. */
	eddy_store_relaxed(&m->owner, a->number);
	eddy_runset_open(
	    &a->pages, chunk, kept, (unsigned)EDDY_CHUNK_PAGES - kept);
}

static void
retire(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk)
{
	struct eddy_segment *s = segment_of(h, chunk);
	struct eddy_runmap *m = &h->chunks[chunk].map;
	uint64_t bit = segment_bit(chunk);
	uint64_t dirty = 0;

	if (!eddy_runset_retire(&a->pages, chunk))
		return;
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* relaxed: all pages are in hand. */
		dirty |= eddy_load_relaxed(&m->dirty[i]);
	}
	/* relaxed, both: the chunk is in hand until it is put. */
	if (dirty != 0)
		(void)eddy_or_relaxed(&s->map.dirty[segment_word(chunk)], bit);
	else
		(void)eddy_and_relaxed(
		    &s->map.dirty[segment_word(chunk)], ~bit);
	eddy_chunks_put(chunk, 1);
}

void
eddy_chunk_retire_spare(struct eddy_heap *h, struct eddy_arena *a)
{
	/* relaxed: a hint; retirement is a CAS on every word. */
	uint32_t spare = eddy_xchg_relaxed(&a->spare, 0);

	if (spare != 0)
		retire(h, a, spare - 1);
}

void
eddy_pages_put(uint32_t chunk, unsigned page, unsigned n, const void *blame)
{
	struct eddy_heap *h = eddy_heap();
	/* relaxed: pinned by the pages in hand. */
	uint32_t owner = eddy_load_relaxed(&h->chunks[chunk].map.owner);
	struct eddy_arena *a;
	uint32_t old;

	if (owner == 0)
		eddy_fatal("double free", blame);
	a = eddy_arena_at(h, owner);
	if (!eddy_runset_put(&a->pages, chunk, page, n, blame))
		return;
	/* relaxed: a hint; retirement is a CAS on every word. */
	old = eddy_xchg_relaxed(&a->spare, chunk + 1);
	if (old != 0 && old != chunk + 1)
		retire(h, a, old - 1);
}

void
eddy_pages_put_run(uint32_t chunk, unsigned page, unsigned n)
{
	eddy_pages_put(
	    chunk, page, n, eddy_page_address(eddy_heap(), chunk, page));
}

/* ------------------------------------------------------------------ */
/* Claims */

static bool
grow(
    struct eddy_heap *h, struct eddy_arena *a, unsigned n, struct eddy_run *ret)
{
	if (!eddy_chunks_claim(h, a, 1, 1, EDDY_WANT_READY, &ret->id))
		return false;
	ret->pos = 0;
	eddy_chunk_open(h, a, ret->id, n);
	return true;
}

/*
 * Looks into every chunk of the arena for a run, hints or not.  *seen: a sum
 * over all that was looked at.
 */
static bool
claim_anywhere(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, struct eddy_run *ret, uint64_t *seen)
{
	/* SEG-A1: descriptors below the limit are readable. */
	size_t limit = eddy_load_acquire(&eddy_fast.limit) / EDDY_CHUNK_PAGES;

	*seen = limit;
	for (uint32_t c = 0; c < limit && c < h->n_chunks; c++) {
		struct eddy_segment *s = segment_of(h, c);
		struct eddy_runmap *m = &h->chunks[c].map;
		uint32_t owner;

		/* SEG-A3: pairs with SEG-R3: the descriptor is readable. */
		if ((eddy_load_acquire(&s->map.ready[segment_word(c)]) &
			segment_bit(c)) == 0)
			continue;
		/* relaxed: a claimer checks it again. */
		owner = eddy_load_relaxed(&m->owner);
		*seen = *seen * 31 + owner;
		if (owner != a->number)
			continue;
		for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
			/* RUN-A1: after our own failure to find a run. */
			*seen = *seen * 0x9e3779b97f4a7c15u +
				eddy_load_seq_cst(&m->free[i]);
		}
		if (eddy_runset_claim_in(
			&a->pages, c, n, align, EDDY_WANT_DIRTY, &ret->pos)) {
			ret->id = c;
			return true;
		}
	}
	return false;
}

/*
 * The kernel gives no more.  NULL is the answer when two looks at everything
 * saw the same; not while somebody frees.
 */
static bool
search_all(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, struct eddy_run *ret)
{
	uint64_t before;
	uint64_t seen;

	if (claim_anywhere(h, a, n, align, ret, &seen))
		return true;
	do {
		before = seen;
		if (grow(h, a, n, ret) ||
		    claim_anywhere(h, a, n, align, ret, &seen))
			return true;
	} while (before != seen);
	return false;
}

bool
eddy_pages_claim(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, struct eddy_run *ret)
{
	return eddy_runset_claim(&a->pages, n, align, want, ret) ||
	       grow(h, a, n, ret) || search_all(h, a, n, align, ret);
}

bool
eddy_pages_claim_at(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n)
{
	/* relaxed: pinned by the caller's pages in the same chunk. */
	uint32_t owner = eddy_load_relaxed(&h->chunks[chunk].map.owner);

	return page + n <= EDDY_CHUNK_PAGES && owner != 0 &&
	       eddy_runset_claim_at(
		   &eddy_arena_at(h, owner)->pages, chunk, page, n);
}
