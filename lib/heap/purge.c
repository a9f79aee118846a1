/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/purge.h"

#include "lib/heap/chunk.h"
#include "lib/heap/segment.h"
#include "lib/os/zero.h"

/* Lowest run of bits in w: its first place and its length; false if none. */
static bool
first_run(uint64_t w, unsigned *pos, unsigned *n)
{
	uint64_t rest;

	if (w == 0)
		return false;
	*pos = eddy_ctz64(w);
	rest = ~(w >> *pos);
	*n = rest == 0 ? 64 - *pos : eddy_ctz64(rest);
	return true;
}

/* Free dirty units of word i. */
static uint64_t
candidates(struct eddy_runmap *m, unsigned i)
{
	/* relaxed, both: a guess that the claim checks. */
	return eddy_load_relaxed(&m->free[i]) & eddy_load_relaxed(&m->dirty[i]);
}

static size_t
purge_pages(struct eddy_heap *h, uint32_t chunk)
{
	struct eddy_runmap *m = &h->chunks[chunk].map;
	size_t done = 0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		uint64_t left = candidates(m, i);
		unsigned pos;
		unsigned n;

		while (first_run(left, &pos, &n)) {
			unsigned page = i * 64 + pos;
			void *p = eddy_page_address(h, chunk, page);

			left &= ~eddy_mask(pos, n);
			if (!eddy_pages_claim_at(h, chunk, page, n))
				continue;
			if (eddy_os_drop(p, n * EDDY_PAGE)) {
				eddy_pages_clean(h, chunk, page, n);
				done += n * EDDY_PAGE;
			}
			eddy_pages_put(chunk, page, n, p);
		}
	}
	return done;
}

/* Drops n chunks in hand. */
static size_t
drop_chunks(struct eddy_heap *h, uint32_t chunk, unsigned n)
{
	if (!eddy_os_drop(eddy_page_address(h, chunk, 0), n * EDDY_CHUNK))
		return 0;
	eddy_chunks_clean(h, chunk, n);
	return n * EDDY_CHUNK;
}

/* Calls drop_chunks for the runs of `bits`, claiming them first or not. */
static size_t
purge_word(struct eddy_heap *h, uint32_t first, uint64_t bits, bool claim,
    size_t *keep)
{
	size_t done = 0;
	unsigned pos;
	unsigned n;

	while (first_run(bits, &pos, &n)) {
		bits &= ~eddy_mask(pos, n);
		if (*keep >= n * EDDY_CHUNK) {
			*keep -= n * EDDY_CHUNK;
			continue;
		}
		if (claim && !eddy_chunks_claim_at(h, first + pos, n))
			continue;
		done += drop_chunks(h, first + pos, n);
		if (claim)
			eddy_chunks_put(first + pos, n);
	}
	return done;
}

/* Whole chunks that are in no arena, and segments in which there are none. */
static size_t
purge_segment(struct eddy_heap *h, uint32_t segment, size_t *keep)
{
	struct eddy_runmap *m = &h->segments[segment].map;
	bool whole = eddy_segment_claim_at(h, segment);
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	size_t done = 0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* relaxed: in hand, or a guess that the claim checks. */
		uint64_t bits =
		    whole ? eddy_load_relaxed(&m->dirty[i]) : candidates(m, i);

		done += purge_word(h, first + i * 64, bits, !whole, keep);
	}
	if (whole)
		eddy_segments_put(h, segment, 1);
	return done;
}

size_t
eddy_purge_held(struct eddy_heap *h, uint32_t segment)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	size_t keep = 0;
	size_t done = 0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* relaxed: in hand. */
		uint64_t bits =
		    eddy_load_relaxed(&h->segments[segment].map.dirty[i]);

		done += purge_word(h, first + i * 64, bits, false, &keep);
	}
	return done;
}

static size_t
dirty_bytes(struct eddy_heap *h, uint32_t chunk)
{
	struct eddy_runmap *m = &h->chunks[chunk].map;
	size_t n = 0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
		n += (size_t)__builtin_popcountll(candidates(m, i));
	return n * EDDY_PAGE;
}

size_t
eddy_purge(struct eddy_heap *h, size_t keep)
{
	/* SEG-A1: descriptors below the limit are readable. */
	size_t limit = eddy_load_acquire(&eddy_fast.limit) / EDDY_CHUNK_PAGES;
	size_t done = 0;

	for (uint32_t c = 0; c < limit && c < h->n_chunks; c++) {
		struct eddy_segment *s =
		    &h->segments[c / (uint32_t)EDDY_SEGMENT_CHUNKS];
		unsigned i = c % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
		size_t here;

		if (c % EDDY_SEGMENT_CHUNKS == 0)
			done += purge_segment(
			    h, c / (uint32_t)EDDY_SEGMENT_CHUNKS, &keep);
		/* SEG-A3: the descriptor is readable. */
		if ((eddy_load_acquire(&s->map.ready[i]) >> c % 64 & 1) == 0 ||
		    /* relaxed: a guess that the claim checks. */
		    eddy_load_relaxed(&h->chunks[c].map.owner) == 0)
			continue;
		here = dirty_bytes(h, c);
		if (keep >= here) {
			keep -= here;
			continue;
		}
		done += purge_pages(h, c);
	}
	return done;
}
