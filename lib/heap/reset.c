/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/reset.h"

#include <errno.h>

#include "lib/heap/backing.h"
#include "lib/heap/bind.h"
#include "lib/heap/chunk.h"
#include "lib/heap/explicit.h"
#include "lib/heap/hooks.h"
#include "lib/heap/large.h"
#include "lib/heap/own.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/purge.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/segment.h"
#include "lib/heap/slab.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"

static uint64_t
life(enum eddy_arena_phase phase)
{
	return phase == EDDY_ARENA_BUSY
		   ? (uint64_t)(uint32_t)eddy_os_pid() << 2 | phase
		   : (uint64_t)phase;
}

/* ------------------------------------------------------------------ */
/* All that there is */

static uint32_t
tag_at(struct eddy_heap *h, uint32_t chunk, unsigned page)
{
	/* relaxed: a guess; what is freed by it is checked. */
	return eddy_load_relaxed(
	    &h->tags[(size_t)chunk * EDDY_CHUNK_PAGES + page]);
}

static void
empty_pages(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk)
{
	for (unsigned page = 0; page < EDDY_CHUNK_PAGES;) {
		uint32_t tag = tag_at(h, chunk, page);
		unsigned row = eddy_tag_row(tag);
		unsigned n = 0;

		if (eddy_tag_is_slab(tag) && eddy_tag_pages(tag) == 0) {
			n = eddy_classes[row].pages;
			eddy_slab_empty(h, a, chunk, page);
		} else if (eddy_tag_kind(tag) == EDDY_TAG_LIMBO) {
			/* Of who was killed when he shrank the pool. */
			n = eddy_slab_give(
			    h, a, chunk, page, tag & EDDY_LIMBO_NUMBERS);
		} else if (eddy_tag_kind(tag) == EDDY_TAG_RUN) {
			n = eddy_tag_pages(tag);
			eddy_large_discard(h, eddy_page_place(h, chunk, page));
		}
		page += n != 0 ? n : 1;
	}
}

static void
empty_chunk(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk)
{
	/* relaxed: a guess, as above. */
	if (eddy_load_relaxed(&h->chunks[chunk].map.owner) == a->number)
		empty_pages(h, a, chunk);
	else if (eddy_tag_kind(tag_at(h, chunk, 0)) == EDDY_TAG_HUGE)
		eddy_large_discard(h, eddy_page_place(h, chunk, 0));
}

static bool
is_ready(struct eddy_heap *h, uint32_t segment, unsigned pos)
{
	/* SEG-A3: pairs with SEG-R3: the descriptor is readable. */
	return eddy_load_acquire(&h->segments[segment].map.ready[pos / 64]) >>
		   pos % 64 &
	       1;
}

static void
empty_segment(struct eddy_heap *h, struct eddy_arena *a, uint32_t segment)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	unsigned pin = 0;
	bool pinned = false;

	for (unsigned i = 0; i < EDDY_SEGMENT_CHUNKS; i++) {
		/* None can be had while all are in use, as of a giant. */
		if (!pinned)
			pinned = eddy_runset_claim_in(
			    &a->chunks, segment, 1, 1, EDDY_WANT_DIRTY, &pin);
		if (!eddy_segment_is_of(h, segment, a))
			break;
		if (first + i < h->n_chunks && is_ready(h, segment, i))
			empty_chunk(h, a, first + i);
	}
	if (pinned)
		eddy_chunks_put(first + pin, 1);
}

static void
empty(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t i = eddy_segment_from(a, 0);

	(void)eddy_explicit_sweep(h, a);
	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1))
		if (eddy_segment_is_of(h, i, a))
			empty_segment(h, a, i);
}

/* ------------------------------------------------------------------ */

/* The arena is the caller's to reset. */
static int
take(struct eddy_arena *a)
{
	/* LIFE-A2: pairs with LIFE-R2. */
	uint64_t seen = eddy_load_seq_cst(&a->life);

	do {
		/* relaxed, both: who makes a region meanwhile was told; a pool
		 * ends by itself alone. */
		if (a->home != EDDY_HOME_NONE || seen % 4 == EDDY_ARENA_ENDED ||
		    eddy_load_relaxed(&a->n_regions) != 0 ||
		    eddy_load_relaxed(&a->pooled))
			return -EFAULT;
		if (seen == life(EDDY_ARENA_BUSY))
			return -EAGAIN;
		/* relaxed: nothing is handed over. */
	} while (!eddy_cas_relaxed(&a->life, &seen, life(EDDY_ARENA_BUSY)));
	return 0;
}

static void
leave(struct eddy_arena *a, enum eddy_arena_phase phase)
{
	/* LIFE-R1: what it became, before what it keeps is looked at.
	 * LIFE-R2: what it was given. */
	(void)eddy_xchg_seq_cst(&a->life, life(phase));
}

int
eddy_reset(struct eddy_heap *h, struct eddy_arena *a)
{
	int err = take(a);

	if (err != 0)
		return err;
	empty(h, a);
	leave(a, EDDY_ARENA_LIVE);
	return 0;
}

int
eddy_reset_destroy(struct eddy_heap *h, struct eddy_arena *a)
{
	int err = take(a);

	if (err == 0 && eddy_own_n_bound(a) != 0) {
		leave(a, EDDY_ARENA_LIVE);
		err = -EFAULT;
	}
	if (err != 0)
		return err;
	empty(h, a);
	eddy_chunk_unreserve(a);
	leave(a, EDDY_ARENA_ENDED);
	eddy_reset_settle(h, a);
	if (!eddy_frozen(h))
		(void)eddy_purge_arena(h, a);
	if (eddy_hooked(a))
		eddy_hooks_end(h, a);
	return 0;
}

void
eddy_reset_settle(struct eddy_heap *h, struct eddy_arena *a)
{
	/* LIFE-A1: after what became empty was noted. */
	if (eddy_likely(eddy_arena_phase(a) != EDDY_ARENA_ENDED))
		return;
	eddy_chunk_retire_spare(h, a);
	eddy_segment_retire_spare(h, a);
}

static int
begin(struct eddy_heap *h, struct eddy_arena *a, uint32_t node)
{
	int err = 0;

	/* relaxed, both: it has no memory; LIFE-R2. */
	eddy_store_relaxed(&a->stillborn, false);
	eddy_store_relaxed(&a->backing.apart, false);
	if (eddy_hooked(a))
		(void)eddy_hooks_set(a, NULL);
	/* relaxed: nobody else may move it. */
	if (eddy_load_relaxed(&a->node) != node)
		err = eddy_bind_move(h, a, node);
	/* relaxed: a statistic. */
	eddy_store_relaxed(&a->tally.begun, eddy_os_milliseconds());
	if (err == 0)
		eddy_reclaim_decay(
		    h, a, h->opts.dirty_decay_ms, h->opts.muzzy_decay_ms);
	leave(a, err == 0 ? EDDY_ARENA_LIVE : EDDY_ARENA_ENDED);
	return err;
}

static bool
has_segments(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t i = eddy_segment_from(a, 0);

	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1))
		if (eddy_segment_is_of(h, i, a))
			return true;
	return false;
}

int
eddy_reset_revive(struct eddy_heap *h, uint32_t node, bool bare, uint32_t *ret)
{
	/* relaxed: one that is made just now has not ended. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);

	for (uint32_t i = h->n_homes + 1; i <= n && i <= EDDY_MAX_ARENAS; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);
		uint64_t seen = life(EDDY_ARENA_ENDED);

		/* What has a file has its segments alone; what a parent has
		 * stays there; of others' hooks nothing is used. */
		if (a == NULL || a->backing.kind != EDDY_PRIVATE ||
		    !eddy_backing_here(&a->backing) ||
		    eddy_arena_phase(a) != EDDY_ARENA_ENDED ||
		    eddy_hooks_left(h, a) || (bare && has_segments(h, a)))
			continue;
		*ret = i;
		/* relaxed: nothing is handed over. */
		if (eddy_cas_relaxed(&a->life, &seen, life(EDDY_ARENA_BUSY)))
			return begin(h, a, node);
	}
	*ret = 0;
	return 0;
}
