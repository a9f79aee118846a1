/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/bind.h"

#include <errno.h>

#include "lib/heap/arena.h"
#include "lib/heap/purge.h"
#include "numa/policy.h"

/* Chunks that move in one call: page faults beside it wait for so much. */
#define MOVE_CHUNKS 16

uint32_t
eddy_bind_wanted(const struct eddy_heap *h, uint32_t home, uint32_t node)
{
	const struct eddy_placement *places = &h->places;

	if (home != EDDY_HOME_NONE) {
		if (!places->bind)
			return EDDY_BOUND_NOT;
		if (places->interleave)
			return EDDY_BOUND_SPREAD;
		/* What several homes share. */
		return node != EDDY_NO_NODE ? node + 1 : EDDY_BOUND_NOT;
	}
	if (node == EDDY_NO_NODE || h->opts.numa == EDDY_NUMA_OFF ||
	    places->fake ||
	    (places->n_nodes == 1 && eddy_node_in(places->has_memory, node)))
		return EDDY_BOUND_NOT;
	return node + 1;
}

/* The node that an arena is on at this moment, as a policy. */
static uint32_t
wanted_now(struct eddy_heap *h, struct eddy_arena *a)
{
	/* BIND-A1: after the owner or the ready bits, or what was told. */
	return eddy_bind_wanted(h, a->home, eddy_load_seq_cst(&a->node));
}

int
eddy_bind_tell(
    struct eddy_heap *h, void *p, size_t size, uint32_t policy, bool move)
{
	if (policy == EDDY_BOUND_NOT)
		return eddy_policy_reset(p, size);
	if (policy == EDDY_BOUND_SPREAD)
		return eddy_policy_interleave(p, size, h->places.has_memory);
	return move ? eddy_policy_move(p, size, policy - 1)
		    : eddy_policy_bind(p, size, policy - 1);
}

/* ------------------------------------------------------------------ */
/* Segments */

struct share {
	void *p;
	size_t size;
};

/* A segment's part of an array with so many bytes a chunk. */
static struct share
share_of(struct eddy_heap *h, uint32_t segment, void *array, size_t each)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	uint32_t left = h->n_chunks - first;
	size_t n =
	    left < EDDY_SEGMENT_CHUNKS ? left : (size_t)EDDY_SEGMENT_CHUNKS;

	return (struct share){(char *)array + first * each, n * each};
}

static struct share
descriptors(struct eddy_heap *h, uint32_t segment)
{
	return share_of(h, segment, h->chunks, sizeof(h->chunks[0]));
}

static struct share
tags(struct eddy_heap *h, uint32_t segment)
{
	return share_of(h, segment, (void *)(uintptr_t)h->tags,
	    EDDY_CHUNK_PAGES * sizeof(h->tags[0]));
}

static struct share
objects(struct eddy_heap *h, uint32_t segment)
{
	return share_of(h, segment, (void *)h->base, EDDY_CHUNK);
}

/* Ready chunks from pos on in the same word, after those that are not. */
static unsigned
next_ready(struct eddy_segment *s, unsigned *pos)
{
	while (*pos < EDDY_SEGMENT_CHUNKS) {
		/* BIND-A2: after the node. */
		uint64_t w =
		    eddy_load_seq_cst(&s->map.ready[*pos / 64]) >> *pos % 64;

		if (w != 0) {
			*pos += eddy_ctz64(w);
			w >>= eddy_ctz64(w);
			return ~w == 0 ? 64 : eddy_ctz64(~w);
		}
		*pos = (*pos / 64 + 1) * 64;
	}
	return 0;
}

/* The chunks of a segment that are mapped, some at a time. */
static int
tell_ready(struct eddy_heap *h, uint32_t segment, uint32_t policy, bool move)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	unsigned pos = 0;
	unsigned n;
	int result = 0;

	while ((n = next_ready(&h->segments[segment], &pos)) != 0) {
		int err;

		if (n > MOVE_CHUNKS)
			n = MOVE_CHUNKS;
		err = eddy_bind_tell(h, eddy_page_place(h, first + pos, 0),
		    n * EDDY_CHUNK, policy, move);
		/* Unmapped meanwhile: the next owner maps it anew. */
		if (err != 0 && err != -EFAULT && result == 0)
			result = err;
		pos += n;
	}
	return result;
}

/* Tells the kernel the policy of a segment and of what describes it. */
static int
tell_segment(struct eddy_heap *h, uint32_t segment, uint32_t policy, bool move)
{
	const struct share part[] = {
	    descriptors(h, segment), tags(h, segment), objects(h, segment)};
	int result = 0;

	for (unsigned i = 0; i < 3; i++) {
		bool memory = i == 2;
		int err;

		if (memory && !h->reserved)
			break;
		/* What is touched from now on, at once; what is there, later */
		err = eddy_bind_tell(
		    h, part[i].p, part[i].size, policy, move && !memory);
		if (result == 0)
			result = err;
	}
	if (!h->reserved || (move && policy != EDDY_BOUND_NOT)) {
		int err = tell_ready(h, segment, policy, move);

		if (result == 0)
			result = err;
	}
	return result;
}

/* What claimers must not trust any more. */
static void
unknown(struct eddy_segment *s)
{
	/* relaxed: the CAS checks it. */
	uint64_t old = eddy_load_relaxed(&s->bound);

	/* BIND-R3: after the kernel was told, before the owner is looked at. */
	while (!eddy_cas_seq_cst(
	    &s->bound, &old, ((old >> 32) + 1) << 32 | EDDY_BOUND_UNKNOWN))
		continue;
}

void
eddy_bind_forget(struct eddy_heap *h, uint32_t segment)
{
	unknown(&h->segments[segment]);
}

void
eddy_bind_segment(struct eddy_heap *h, struct eddy_arena *a, uint32_t segment)
{
	struct eddy_segment *s = &h->segments[segment];
	bool first = true;

	for (;;) {
		uint32_t want = wanted_now(h, a);
		/* BIND-A3: after the owner was written. */
		uint64_t bound = eddy_load_seq_cst(&s->bound);

		if ((uint32_t)bound == want)
			return;
		/* What another arena left there lies on the wrong node. */
		if (first)
			(void)eddy_purge_held(h, segment);
		if (tell_segment(h, segment, want, false) != 0) {
			/* relaxed: a statistic. */
			(void)eddy_add_relaxed(&h->n_unplaced, 1);
		}
		/* BIND-R3: not over what a mover wrote; before 2 again. */
		(void)eddy_cas_seq_cst(
		    &s->bound, &bound, bound - (uint32_t)bound + want);
		first = false;
	}
}

/*
 * Memory in hand, within a segment, that was mapped anew: onto the node of its
 * arena, if that is bound.
 */
static void
bind_part(struct eddy_heap *h, struct eddy_arena *a, void *p, size_t size)
{
	uint32_t segment =
	    (uint32_t)(((uintptr_t)p - h->base) >> EDDY_LG_SEGMENT);
	struct eddy_segment *s = &h->segments[segment];
	uint32_t told;
	uint32_t want = EDDY_BOUND_NOT;

	do {
		uint32_t bound;

		told = want;
		want = wanted_now(h, a);
		if (want != told &&
		    eddy_bind_tell(h, p, size, want, false) != 0) {
			/* relaxed: a statistic. */
			(void)eddy_add_relaxed(&h->n_unplaced, 1);
		}
		/* BIND-A3: the arena has moved, and its mover is on his way. */
		bound = (uint32_t)eddy_load_seq_cst(&s->bound);
		if (bound != want && bound != EDDY_BOUND_UNKNOWN)
			unknown(s);
	} while (want != told);
}

void
eddy_bind_chunks(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned n)
{
	bind_part(h, a, eddy_page_place(h, chunk, 0), n * EDDY_CHUNK);
}

/* ------------------------------------------------------------------ */
/* Blocks */

bool
eddy_bind_alike(struct eddy_heap *h, const void *p, const void *q)
{
	struct eddy_arena *a = eddy_arena_of(h, p);
	struct eddy_arena *b = eddy_arena_of(h, q);

	return a == b ||
	       (a != NULL && b != NULL && wanted_now(h, a) == wanted_now(h, b));
}

void
eddy_bind_again(struct eddy_heap *h, void *p, size_t size)
{
	struct eddy_arena *a = eddy_arena_of(h, p);
	char *at = p;

	while (a != NULL && size != 0) {
		size_t n =
		    EDDY_SEGMENT - ((uintptr_t)at - h->base) % EDDY_SEGMENT;

		if (n > size)
			n = size;
		bind_part(h, a, at, n);
		at += n;
		size -= n;
	}
}

/* ------------------------------------------------------------------ */
/* Moving */

/* Steps 2 to 4 for one segment. */
static int
move_segment(struct eddy_heap *h, uint32_t segment, uint32_t owner)
{
	struct eddy_segment *s = &h->segments[segment];

	for (;;) {
		struct eddy_arena *a = eddy_arena_at(h, owner);
		uint32_t want = wanted_now(h, a);
		uint32_t now;
		int err = 0;

		/* BIND-A3: no policy, and none is wanted: nothing to tell. */
		if (want != EDDY_BOUND_NOT ||
		    (uint32_t)eddy_load_seq_cst(&s->bound) != EDDY_BOUND_NOT) {
			err = tell_segment(h, segment, want, true);
			unknown(s);
		}
		/* BIND-A2: pairs with BIND-R2 of who claimed it. */
		now = eddy_load_seq_cst(&s->map.owner);
		if (now == 0 || (now == owner && wanted_now(h, a) == want))
			return err;
		owner = now;
	}
}

/* The struct and the hints of the arena. */
static int
move_struct(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t want;
	int err;

	do {
		want = wanted_now(h, a);
		err = eddy_bind_tell(h, a, eddy_arena_bytes(a), want, true);
	} while (wanted_now(h, a) != want);
	return err;
}

int
eddy_bind_move(struct eddy_heap *h, struct eddy_arena *a, uint32_t node)
{
	uint32_t want = eddy_bind_wanted(h, a->home, node);
	uint32_t was;
	size_t n;
	int result = 0;

	if (want != EDDY_BOUND_NOT)
		result = eddy_bind_tell(h, a, eddy_arena_bytes(a), want, false);
	if (result != 0)
		return result;
	/* BIND-R1: before the owners are looked at. */
	was = eddy_xchg_seq_cst(&a->node, node);
	if (want == EDDY_BOUND_NOT &&
	    eddy_bind_wanted(h, a->home, was) == EDDY_BOUND_NOT)
		return 0;
	result = move_struct(h, a);
	/* BIND-A2, SEG-A1: the limit is raised before an owner is written. */
	n = eddy_load_seq_cst(&eddy_fast.limit) / (EDDY_SEGMENT / EDDY_PAGE);
	for (uint32_t i = 0; i < n; i++) {
		int err;

		/* BIND-A2: pairs with BIND-R2. */
		if (eddy_load_seq_cst(&h->segments[i].map.owner) != a->number)
			continue;
		err = move_segment(h, i, a->number);
		if (result == 0)
			result = err;
	}
	return result;
}
