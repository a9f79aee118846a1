/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/segment.h"

#include <errno.h>

#include "lib/heap/arena.h"
#include "lib/heap/bind.h"
#include "lib/heap/chunk.h"
#include "lib/os/fatal.h"
#include "lib/os/os.h"

static struct eddy_segment *
segment_at(struct eddy_heap *h, uint32_t segment)
{
	return &h->segments[segment];
}

/* The arena that a segment belongs to; true while chunks of it are in hand. */
static struct eddy_arena *
arena_of(struct eddy_heap *h, uint32_t segment)
{
	/* relaxed: pinned by chunks in hand, else a hint. */
	uint32_t owner = eddy_load_relaxed(&segment_at(h, segment)->map.owner);

	return owner != 0 ? eddy_arena_at(h, owner) : NULL;
}

/* Chunks of a segment that lie in the range: fewer than 512 in the last. */
static unsigned
valid_chunks(const struct eddy_heap *h, uint32_t segment)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	uint32_t left = h->n_chunks - first;

	return left < EDDY_SEGMENT_CHUNKS ? left
					  : (unsigned)EDDY_SEGMENT_CHUNKS;
}

/* ------------------------------------------------------------------ */
/* Access */

/* Gives access to the part of an array that segments [from, to) need. */
static int
commit_share(void *array, size_t each, uint32_t from, uint32_t to)
{
	return eddy_os_commit((char *)array + each * from, each * (to - from));
}

/*
 * Makes tags and descriptors of all segments below `to` accessible and then
 * raises the limit.  Idempotent, so that nobody waits for another.
 */
static bool
raise_limit(struct eddy_heap *h, uint32_t to)
{
	const size_t pages = EDDY_SEGMENT / EDDY_PAGE;
	/* SEG-A1: what is below needs nothing. */
	uintptr_t limit = eddy_load_acquire(&eddy_fast.limit);
	uint32_t from = (uint32_t)(limit / pages);

	if (from >= to)
		return true;
	eddy_heap_fill_fast(h);
	if (commit_share((void *)(uintptr_t)h->tags, pages * sizeof(*h->tags),
		from, to) != 0 ||
	    commit_share(h->segments, sizeof(*h->segments), from, to) != 0)
		return false;
	do {
		if (limit >= to * pages)
			break;
		/* SEG-R1: publishes the access given above. */
	} while (!eddy_cas_release(&eddy_fast.limit, &limit, to * pages));
	return true;
}

/*
 * A limit on the address space that was set after the start: the reservation
 * is older than it, so the kernel does not hold us to it; we do.  The kernel is
 * asked from 128 MiB on, and again when the heap has grown by a quarter: small
 * programs in a sandbox that kills for a system call too many never ask.
 */
static bool
within_limit(struct eddy_heap *h, unsigned n)
{
	/* relaxed, all: statistics; a limit to the quarter will do. */
	uint32_t ready = eddy_load_relaxed(&h->n_ready) + n;
	size_t limit;

	if (ready < eddy_load_relaxed(&h->ask_limit_at))
		return true;
	limit = eddy_os_address_limit();
	if (limit == SIZE_MAX)
		eddy_store_relaxed(&h->ask_limit_at, ready + ready / 4);
	return ready * EDDY_CHUNK <= limit;
}

static int
commit_chunks(struct eddy_heap *h, uint32_t chunk, unsigned n)
{
	void *p = eddy_page_address(h, chunk, 0);
	int err;

	if (h->reserved && !within_limit(h, n))
		return -ENOMEM;
	err = eddy_os_commit(&h->chunks[chunk], n * sizeof(struct eddy_chunk));
	if (err != 0)
		return err;
	return h->reserved ? eddy_os_commit(p, n * EDDY_CHUNK)
			   : eddy_os_map_at(p, n * EDDY_CHUNK);
}

static void
set_ready(struct eddy_segment *s, unsigned pos, unsigned n)
{
	for (unsigned i = pos / 64; n != 0; i++) {
		unsigned here = 64 - pos % 64 < n ? 64 - pos % 64 : n;

		/* SEG-R3: after the access it announces.  BIND-R2. */
		(void)eddy_or_seq_cst(
		    &s->map.ready[i], eddy_mask(pos % 64, here));
		pos += here;
		n -= here;
	}
}

/* How many chunks from pos on, in the same word, are accessible. */
static unsigned
n_ready(struct eddy_segment *s, unsigned pos)
{
	/* SEG-A3: pairs with SEG-R3. */
	uint64_t w = eddy_load_acquire(&s->map.ready[pos / 64]) >> pos % 64;

	return ~w == 0 ? 64 : eddy_ctz64(~w);
}

/*
 * Makes n chunks in hand accessible, and no others, so that what is not ready
 * is touched by its owner alone.  Returns 0; -EEXIST: something foreign lies
 * there; else the kernel gives no more.
 */
static int
make_ready(struct eddy_heap *h, uint32_t segment, unsigned pos, unsigned n)
{
	struct eddy_segment *s = segment_at(h, segment);
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;

	for (unsigned at = pos; at < pos + n;) {
		unsigned end = at + 1;
		int err;

		if (n_ready(s, at) != 0) {
			at += n_ready(s, at);
			continue;
		}
		while (end < pos + n && n_ready(s, end) == 0)
			end++;
		err = commit_chunks(h, first + at, end - at);
		if (err != 0)
			return err;
		set_ready(s, at, end - at);
		if (!h->reserved)
			eddy_bind_chunks(
			    h, arena_of(h, segment), first + at, end - at);
		/* relaxed: a statistic. */
		(void)eddy_add_relaxed(&h->n_ready, end - at);
		at = end;
	}
	return 0;
}

/* ------------------------------------------------------------------ */
/* Segments */

static void
put_bits(struct eddy_heap *h, uint32_t segment, uint32_t n)
{
	for (uint32_t i = segment; i < segment + n; i++) {
		/* SEG-R2: the segment's state, to its next owner. */
		(void)eddy_or_seq_cst(
		    &h->free_segments[i / 64], (uint64_t)1 << i % 64);
	}
}

/* Takes n adjacent bits, ascending; puts back what it got on a conflict. */
static bool
take_segments(struct eddy_heap *h, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++) {
		_Atomic uint64_t *w = &h->free_segments[i / 64];
		uint64_t bit = (uint64_t)1 << i % 64;

		/* SEG-A2: pairs with SEG-R2 of the last owner. */
		if ((eddy_and_seq_cst(w, ~bit) & bit) == 0) {
			if (i != first)
				put_bits(h, first, i - first);
			return false;
		}
	}
	return true;
}

static bool
segment_is_free(struct eddy_heap *h, uint32_t i)
{
	/* relaxed: a guess; the bit is taken by an RMW. */
	return eddy_load_relaxed(&h->free_segments[i / 64]) >> i % 64 & 1;
}

/*
 * Lowest n adjacent free segments from `from` on, the first at an address that
 * is a multiple of align segments; false when there are none to be seen.
 */
static bool
find_from(struct eddy_heap *h, uint32_t from, uint32_t n, uint32_t align,
    uint32_t *ret)
{
	uint64_t below = h->base >> EDDY_LG_SEGMENT;
	uint64_t i = eddy_align_up(below + from, align) - below;

	while (i + n <= h->n_segments) {
		uint32_t k = 0;

		while (k < n && segment_is_free(h, (uint32_t)i + k))
			k++;
		if (k == n) {
			*ret = (uint32_t)i;
			return true;
		}
		i = eddy_align_up(below + i + k + 1, align) - below;
	}
	return false;
}

/* The first segment is left to small blocks, as long as there are others. */
static bool
find_segments(struct eddy_heap *h, uint32_t n, uint32_t align, uint32_t *ret)
{
	return (n > 1 && find_from(h, 1, n, align, ret)) ||
	       find_from(h, 0, n, align, ret);
}

/*
 * What the arena needs of segments in hand: hints that it may write, its name
 * on them, memory on its node.
 */
static bool
adapt_segments(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t first, uint32_t n)
{
	const size_t share = EDDY_SEGMENT_CHUNKS / 64 * EDDY_N_HINTS * 8;
	uintptr_t hints = (uintptr_t)a->hints.level[0];

	if (commit_share((void *)hints, share, first, first + n) != 0)
		return false;
	for (uint32_t i = first; i < first + n; i++) {
		/* BIND-R2: before the arena's node is looked at. */
		(void)eddy_xchg_seq_cst(
		    &segment_at(h, i)->map.owner, a->number);
		eddy_bind_segment(h, a, i);
	}
	return true;
}

/* Segments and chunks that are kept although they are empty. */
static void
retire_spares(struct eddy_heap *h)
{
	/* relaxed: one that is made just now keeps its spares. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);

	for (uint32_t i = 1; i <= n; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);
		uint32_t spare;

		if (a == NULL)
			continue;
		eddy_chunk_retire_spare(h, a);
		/* relaxed: a hint; retirement is a CAS on every word. */
		spare = eddy_xchg_relaxed(&a->spare_segment, 0);
		if (spare != 0 && eddy_runset_retire(&a->chunks, spare - 1))
			eddy_segments_put(h, spare - 1, 1);
	}
}

static bool
claim_segments(struct eddy_heap *h, struct eddy_arena *a, uint32_t n,
    uint32_t align, uint32_t *ret)
{
	if (!find_segments(h, n, align, ret))
		retire_spares(h);
	/* Goes round only where another took or put a segment. */
	while (find_segments(h, n, align, ret)) {
		if (!take_segments(h, *ret, n))
			continue;
		if (!raise_limit(h, *ret + n)) {
			/* Their descriptors may not be accessible. */
			put_bits(h, *ret, n);
			return false;
		}
		if (adapt_segments(h, a, *ret, n))
			return true;
		eddy_segments_put(h, *ret, n);
		return false;
	}
	return false;
}

void
eddy_segments_put(struct eddy_heap *h, uint32_t segment, uint32_t n)
{
	for (uint32_t i = segment; i < segment + n; i++) {
		/* relaxed: in hand; published by SEG-R2. */
		eddy_store_relaxed(&segment_at(h, i)->map.owner, 0);
	}
	put_bits(h, segment, n);
}

/*
 * A giant that came to nothing under a limit on the address space: what was
 * mapped for it is unmapped, all of it in hand.
 */
static void
unmap_segment(struct eddy_heap *h, uint32_t segment)
{
	struct eddy_segment *s = segment_at(h, segment);

	if (h->reserved)
		return;
	for (unsigned c = 0; c < EDDY_SEGMENT_CHUNKS; c++) {
		if (n_ready(s, c) == 0)
			continue;
		eddy_os_unmap(
		    eddy_page_address(
			h, segment * (uint32_t)EDDY_SEGMENT_CHUNKS + c, 0),
		    EDDY_CHUNK);
		/* relaxed: a statistic. */
		(void)eddy_add_relaxed(&h->n_ready, (uint32_t)-1);
	}
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* relaxed, all: the segment is in hand. */
		(void)eddy_and_relaxed(&s->map.ready[i], 0);
		(void)eddy_or_relaxed(&s->uniform[i], ~(uint64_t)0);
		(void)eddy_and_relaxed(&s->map.dirty[i], 0);
	}
}

/* n chunks from the first of a run of segments in hand on. */
static bool
ready_segments(struct eddy_heap *h, uint32_t segment, uint32_t n)
{
	for (; n > EDDY_SEGMENT_CHUNKS; segment++) {
		if (make_ready(h, segment, 0, EDDY_SEGMENT_CHUNKS) != 0)
			return false;
		n -= (uint32_t)EDDY_SEGMENT_CHUNKS;
	}
	return n <= valid_chunks(h, segment) &&
	       make_ready(h, segment, 0, n) == 0;
}

bool
eddy_segments_claim(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunks,
    uint32_t align, uint32_t *ret)
{
	uint32_t n = (chunks + (uint32_t)EDDY_SEGMENT_CHUNKS - 1) /
		     (uint32_t)EDDY_SEGMENT_CHUNKS;
	uint32_t last = chunks - (n - 1) * (uint32_t)EDDY_SEGMENT_CHUNKS;

	retire_spares(h);
	if (!claim_segments(h, a, n, align, ret))
		return false;
	if (!ready_segments(h, *ret, chunks)) {
		for (uint32_t i = 0; i < n; i++)
			unmap_segment(h, *ret + i);
		eddy_segments_put(h, *ret, n);
		return false;
	}
	/* Even if all of it is kept: the block may shrink. */
	eddy_segment_open(h, a, *ret + n - 1, last);
	return true;
}

bool
eddy_segment_claim_at(struct eddy_heap *h, uint32_t segment)
{
	return segment_is_free(h, segment) && take_segments(h, segment, 1);
}

void
eddy_segment_open(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t segment, unsigned kept)
{
	eddy_runset_open(
	    &a->chunks, segment, kept, valid_chunks(h, segment) - kept);
}

/* A fresh segment whose first n chunks the caller keeps. */
static bool
grow(struct eddy_heap *h, struct eddy_arena *a, unsigned n, unsigned align,
    struct eddy_run *ret)
{
	unsigned valid;

	if (!claim_segments(h, a, 1, 1, &ret->id))
		return false;
	valid = valid_chunks(h, ret->id);
	/* What lies below a random place of the first segment is not used. */
	ret->pos =
	    ret->id == 0 ? (unsigned)eddy_align_up(h->first_chunk, align) : 0;
	if (ret->pos + n > valid)
		ret->pos = 0;
	if (n > valid) {
		eddy_segments_put(h, ret->id, 1);
		return false;
	}
	eddy_segment_open(h, a, ret->id, ret->pos + n);
	return true;
}

/* ------------------------------------------------------------------ */
/* Chunks */

/* Looks into every segment of the arena, hints or not. */
static bool
search_segments(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, struct eddy_run *ret)
{
	/* SEG-A1: descriptors below the limit are readable. */
	size_t limit =
	    eddy_load_acquire(&eddy_fast.limit) / (EDDY_SEGMENT / EDDY_PAGE);

	for (ret->id = 0; ret->id < limit; ret->id++) {
		struct eddy_runmap *m = &segment_at(h, ret->id)->map;

		/* relaxed: a claimer checks it again. */
		if (eddy_load_relaxed(&m->owner) == a->number &&
		    eddy_runset_claim_in(
			&a->chunks, ret->id, n, align, want, &ret->pos))
			return true;
	}
	return false;
}

static bool
find_chunks(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, struct eddy_run *ret)
{
	return eddy_runset_claim(&a->chunks, n, align, want, ret) ||
	       grow(h, a, n, align, ret) ||
	       search_segments(h, a, n, align, want, ret);
}

bool
eddy_chunks_claim(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, uint32_t *ret_chunk)
{
	struct eddy_run r;

	while (find_chunks(h, a, n, align, want, &r)) {
		int err = make_ready(h, r.id, r.pos, n);

		if (err == 0) {
			/* relaxed: a count. */
			(void)eddy_add_relaxed(&a->n_grown, 1);
			*ret_chunk =
			    r.id * (uint32_t)EDDY_SEGMENT_CHUNKS + r.pos;
			return true;
		}
		if (err == -EEXIST) {
			/*
			 * Something of the program's lies there: these chunks
			 * stay claimed for good.  Single ones, lest one
			 * intruder cost a whole run of addresses.
			 */
			for (unsigned i = 0; i < n; i++)
				if (n > 1 && make_ready(h, r.id, r.pos + i,
						 1) != -EEXIST)
					eddy_chunks_put(
					    r.id * (uint32_t)
							EDDY_SEGMENT_CHUNKS +
						r.pos + i,
					    1);
			continue;
		}
		/* The kernel gives no more: what is accessible already? */
		eddy_chunks_put(
		    r.id * (uint32_t)EDDY_SEGMENT_CHUNKS + r.pos, n);
		if (!search_segments(h, a, n, align, EDDY_ONLY_READY, &r))
			return false;
		/* Read again: they may have been unmapped in between. */
		if (make_ready(h, r.id, r.pos, n) != 0) {
			eddy_chunks_put(
			    r.id * (uint32_t)EDDY_SEGMENT_CHUNKS + r.pos, n);
			return false;
		}
		*ret_chunk = r.id * (uint32_t)EDDY_SEGMENT_CHUNKS + r.pos;
		return true;
	}
	return false;
}

bool
eddy_chunks_claim_at(struct eddy_heap *h, uint32_t chunk, unsigned n)
{
	uint32_t segment = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
	unsigned pos = chunk % (unsigned)EDDY_SEGMENT_CHUNKS;
	struct eddy_arena *a = arena_of(h, segment);

	if (a == NULL || pos + n > EDDY_SEGMENT_CHUNKS ||
	    !eddy_runset_claim_at(&a->chunks, segment, pos, n))
		return false;
	if (make_ready(h, segment, pos, n) == 0)
		return true;
	eddy_chunks_put(chunk, n);
	return false;
}

void
eddy_segment_put(uint32_t segment, unsigned pos, unsigned n)
{
	eddy_chunks_put(segment * (uint32_t)EDDY_SEGMENT_CHUNKS + pos, n);
}

void
eddy_chunks_put(uint32_t chunk, unsigned n)
{
	struct eddy_heap *h = eddy_heap();
	uint32_t segment = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
	void *p = eddy_page_address(h, chunk, 0);
	/* Pinned by the chunks in hand. */
	struct eddy_arena *a = arena_of(h, segment);
	uint32_t old;

	if (a == NULL)
		eddy_fatal("double free", p);
	if (!eddy_runset_put(&a->chunks, segment,
		chunk % (unsigned)EDDY_SEGMENT_CHUNKS, n, p))
		return;
	/* relaxed: a hint; retirement is a CAS on every word. */
	old = eddy_xchg_relaxed(&a->spare_segment, segment + 1);
	if (old == 0 || old == segment + 1 ||
	    !eddy_runset_retire(&a->chunks, old - 1))
		return;
	eddy_segments_put(h, old - 1, 1);
}

/* ------------------------------------------------------------------ */
/* Zero */

void
eddy_chunks_use(struct eddy_heap *h, uint32_t chunk, uint32_t n, size_t zero)
{
	struct eddy_zeroes z = {
	    .end = (char *)eddy_page_address(h, chunk, 0) + zero};

	while (n != 0) {
		struct eddy_segment *s =
		    segment_at(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);
		unsigned i = chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
		unsigned here = 64 - chunk % 64 < n ? 64 - chunk % 64 : n;
		uint64_t mask = eddy_mask(chunk % 64, here);
		/* relaxed, both: in hand; ordered by the free bits. */
		uint64_t uniform = eddy_or_relaxed(&s->uniform[i], mask);
		uint64_t dirty = eddy_or_relaxed(&s->map.dirty[i], mask);

		dirty = zero != 0 ? dirty & mask : 0;
		for (; dirty != 0; dirty &= dirty - 1) {
			unsigned bit = eddy_ctz64(dirty);
			uint32_t c = chunk / 64 * 64 + bit;

			if (uniform >> bit & 1)
				eddy_zeroes_add(
				    &z, eddy_page_address(h, c, 0), EDDY_CHUNK);
			else
				eddy_pages_zero(h, c, &z);
		}
		chunk += here;
		n -= here;
	}
	eddy_zeroes_finish(&z);
}

void
eddy_chunks_clean(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	for (uint32_t c = chunk; c < chunk + n; c++) {
		struct eddy_segment *s =
		    segment_at(h, c / (uint32_t)EDDY_SEGMENT_CHUNKS);
		uint64_t bit = (uint64_t)1 << c % 64;
		unsigned i = c % (unsigned)EDDY_SEGMENT_CHUNKS / 64;

		/*
		 * relaxed, both: in hand.  Uniform as well, since the page
		 * bits of its descriptor are of an earlier life.
		 */
		(void)eddy_or_relaxed(&s->uniform[i], bit);
		(void)eddy_and_relaxed(&s->map.dirty[i], ~bit);
	}
}
