/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/segment.h"

#include <errno.h>

#include "lib/heap/backing.h"
#include "lib/heap/bind.h"
#include "lib/heap/chunk.h"
#include "lib/heap/hook_sets.h"
#include "lib/heap/hooks.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/reset.h"
#include "lib/heap/thp.h"
#include "lib/heap/warm.h"
#include "lib/os/advise.h"
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

/* Chunks of a segment in hand that lie in the range, or in the file behind it:
 * fewer than 512 in the last. */
static unsigned
valid_chunks(struct eddy_heap *h, uint32_t segment)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	uint32_t left = h->n_chunks - first;
	/* relaxed: in hand. */
	uint32_t in_file = eddy_load_relaxed(&segment_at(h, segment)->n_chunks);

	if (in_file != 0)
		return in_file;
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

int
eddy_chunks_commit(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	void *p = eddy_page_place(h, chunk, 0);
	/* A file is mapped already. */
	bool mapped = h->reserved || eddy_backing_of(h, p) != NULL;
	int err;

	if (h->reserved && !within_limit(h, n))
		return -ENOMEM;
	err = eddy_os_commit(&h->chunks[chunk], n * sizeof(struct eddy_chunk));
	if (err != 0)
		return err;
	err = -ENOSYS;
	if (h->opts.hugetlb && h->reserved && eddy_backing_of(h, p) == NULL) {
		err = eddy_os_map_huge(p, n * EDDY_CHUNK);
		/* relaxed: a count. */
		if (err != 0)
			(void)eddy_add_relaxed(&h->n_not_huge, n);
	}
	if (err != 0)
		err = mapped ? eddy_os_commit(p, n * EDDY_CHUNK)
			     : eddy_os_map_at(p, n * EDDY_CHUNK);
	if (err == 0 && !mapped)
		eddy_thp_again(h, p, n * EDDY_CHUNK);
	if (err == 0 && h->opts.lock_memory &&
	    eddy_os_lock(p, n * EDDY_CHUNK) != 0)
		/* relaxed: a count. */
		(void)eddy_add_relaxed(&h->n_unlocked, n);
	return err;
}

bool
eddy_chunks_renew(struct eddy_heap *h, uint32_t chunk, uint32_t n, bool access)
{
	void *p = eddy_page_place(h, chunk, 0);

	if (eddy_os_renew(p, n * EDDY_CHUNK, access) != 0)
		return false;
	if (h->opts.names)
		eddy_os_name(p, n * EDDY_CHUNK, "eddy: objects");
	eddy_thp_again(h, p, n * EDDY_CHUNK);
	for (uint32_t i = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
	     i <= (chunk + n - 1) / (uint32_t)EDDY_SEGMENT_CHUNKS; i++)
		eddy_bind_forget(h, i);
	return true;
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

/* How many of n chunks in hand are. */
static unsigned
n_ready_in(struct eddy_segment *s, unsigned pos, unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = pos; i < pos + n; i++)
		sum += n_ready(s, i) != 0;
	return sum;
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
		err = eddy_chunks_commit(h, first + at, end - at);
		if (err != 0)
			return err;
		set_ready(s, at, end - at);
		if (!h->reserved || h->opts.hugetlb)
			eddy_bind_chunks(
			    h, arena_of(h, segment), first + at, end - at);
		/* relaxed: a statistic. */
		(void)eddy_add_relaxed(&h->n_ready, end - at);
		at = end;
	}
	return 0;
}

/* The same for chunks of a hooked arena, none of which is accessible, in one
 * piece; they may be of several segments. */
static int
make_hooked(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    uint32_t n, uint32_t align, void *at)
{
	int err = eddy_hooks_ready(h, a, chunk, n, align, at);

	if (err != 0)
		return err;
	/* relaxed: a statistic. */
	(void)eddy_add_relaxed(&h->n_ready, n);
	while (n != 0) {
		uint32_t segment = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
		unsigned pos = chunk % (unsigned)EDDY_SEGMENT_CHUNKS;
		unsigned here = (unsigned)EDDY_SEGMENT_CHUNKS - pos;

		if (here > n)
			here = n;
		set_ready(segment_at(h, segment), pos, here);
		/* What was mapped anew. */
		if ((!h->reserved || h->opts.hugetlb || eddy_set_maps(a)) &&
		    eddy_page_address(h, chunk, 0) ==
			eddy_page_place(h, chunk, 0))
			eddy_bind_chunks(h, a, chunk, here);
		chunk += here;
		n -= here;
	}
	return 0;
}

/* ------------------------------------------------------------------ */
/* Dirty pages in numbers */

/* The arena that a segment's dirty pages are counted with. */
static struct eddy_arena *
counted(struct eddy_heap *h, uint32_t segment)
{
	/* relaxed: in hand. */
	return eddy_arena_at(
	    h, eddy_load_relaxed(&segment_at(h, segment)->counted));
}

static uint64_t
bit_of(uint32_t chunk)
{
	return (uint64_t)1 << chunk % 64;
}

/* Dirty pages of a chunk in hand that is not cut. */
static int64_t
dirty_in(struct eddy_heap *h, uint32_t chunk)
{
	struct eddy_segment *s =
	    segment_at(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);
	unsigned i = chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;

	/* relaxed, both: in hand. */
	if ((eddy_load_relaxed(&s->map.dirty[i]) & bit_of(chunk)) == 0)
		return 0;
	if (eddy_load_relaxed(&s->uniform[i]) & bit_of(chunk))
		return (int64_t)EDDY_CHUNK_PAGES;
	return eddy_pages_dirty(h, chunk);
}

/* The same for any chunk. */
static int64_t
dirty_now(struct eddy_heap *h, uint32_t chunk)
{
	struct eddy_segment *s =
	    segment_at(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);

	/* Else its descriptor may not be readable. */
	if (n_ready(s, chunk % (unsigned)EDDY_SEGMENT_CHUNKS) == 0)
		return 0;
	/* relaxed: a guess. */
	if (eddy_load_relaxed(&h->chunks[chunk].map.owner) != 0)
		return eddy_pages_dirty(h, chunk);
	return dirty_in(h, chunk);
}

/* ------------------------------------------------------------------ */
/* What is an arena's */

static uint64_t
segment_bit(uint32_t segment)
{
	return (uint64_t)1 << segment % 64;
}

uint32_t
eddy_segment_from(struct eddy_arena *a, uint32_t at)
{
	uint32_t limit = (uint32_t)eddy_segments_readable();

	while (at < limit) {
		/* relaxed: it is looked at then. */
		uint64_t w =
		    eddy_load_relaxed(&a->segments[at / 64]) >> at % 64;

		if (w != 0) {
			at += eddy_ctz64(w);
			return at < limit ? at : EDDY_ID_NONE;
		}
		at = (at / 64 + 1) * 64;
	}
	return EDDY_ID_NONE;
}

uint32_t
eddy_segment_below(struct eddy_arena *a, uint32_t at)
{
	while (at > 0) {
		uint32_t i = (at - 1) / 64;
		/* relaxed: it is looked at then. */
		uint64_t w = eddy_load_relaxed(&a->segments[i]) &
			     eddy_mask(0, at - i * 64);

		if (w != 0)
			return i * 64 + eddy_log2(w);
		at = i * 64;
	}
	return EDDY_ID_NONE;
}

int64_t
eddy_segments_dirty(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t i = eddy_segment_from(a, 0);
	int64_t sum = 0;

	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1)) {
		if (counted(h, i) != a)
			continue;
		for (unsigned c = 0; c < valid_chunks(h, i); c++)
			sum +=
			    dirty_now(h, i * (uint32_t)EDDY_SEGMENT_CHUNKS + c);
	}
	return sum;
}

void
eddy_chunk_unmuzzy(struct eddy_heap *h, uint32_t chunk)
{
	uint32_t segment = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
	struct eddy_segment *s = segment_at(h, segment);
	unsigned i = chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;

	/* relaxed, all: in hand; a hint. */
	if (eddy_likely((eddy_load_relaxed(&s->muzzy[i]) & bit_of(chunk)) == 0))
		return;
	(void)eddy_and_relaxed(&s->muzzy[i], ~bit_of(chunk));
	(void)eddy_add_relaxed(
	    &counted(h, segment)->reclaim.muzzy, -dirty_in(h, chunk));
}

/* The dirty pages of a segment in hand are counted with another arena.  It can
 * be found there from now on. */
static void
count_with(struct eddy_heap *h, uint32_t segment, struct eddy_arena *a)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	struct eddy_arena *old = counted(h, segment);
	int64_t n = 0;

	if (old == a)
		return;
	for (unsigned c = 0; old != NULL && c < valid_chunks(h, segment); c++) {
		eddy_chunk_unmuzzy(h, first + c);
		n += dirty_in(h, first + c);
	}
	/* relaxed, both: a hint; in hand. */
	if (n != 0) {
		eddy_reclaim_clean(old, n);
		(void)eddy_add_relaxed(&a->reclaim.backed, n);
	}
	eddy_store_relaxed(&segment_at(h, segment)->counted, a->number);
	/* relaxed, both: bits of a segment in hand; others share the word. */
	(void)eddy_or_relaxed(&a->segments[segment / 64], segment_bit(segment));
	if (old != NULL)
		(void)eddy_and_relaxed(
		    &old->segments[segment / 64], ~segment_bit(segment));
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

/* Whether nothing in a free segment is dirty, as it seems. */
static bool
segment_is_cold(struct eddy_heap *h, uint32_t i)
{
	/* Those above were never used. */
	if (i >= eddy_segments_readable())
		return true;
	for (unsigned w = 0; w < EDDY_RUNMAP_WORDS; w++) {
		/* relaxed: a guess. */
		if (eddy_load_relaxed(&segment_at(h, i)->map.dirty[w]) != 0)
			return false;
	}
	return true;
}

/* Whether a segment is tied to an arena, 0: to none; of segments that are not
 * in hand, a guess. */
static bool
is_of(struct eddy_heap *h, uint32_t i, uint32_t tied)
{
	/* What is above has never been anybody's. */
	if (i >= eddy_segments_readable())
		return tied == 0;
	/* relaxed: as above. */
	return eddy_load_relaxed(&segment_at(h, i)->tied) == tied;
}

/* Whether no chunk of a segment is accessible, as it seems. */
static bool
segment_is_fresh(struct eddy_heap *h, uint32_t i)
{
	/* Those above were never used. */
	if (i >= eddy_segments_readable())
		return true;
	for (unsigned w = 0; w < EDDY_RUNMAP_WORDS; w++) {
		/* relaxed: a guess, or in hand. */
		if (eddy_load_relaxed(&segment_at(h, i)->map.ready[w]) != 0)
			return false;
	}
	return true;
}

/* Which free segments somebody wants. */
struct wish {
	uint32_t tied; /* those of this arena alone, 0: of any */
	bool cold;     /* those in which nothing is dirty */
	bool fresh;    /* those in which nothing is accessible */
};

/*
 * Lowest n adjacent free segments of the wanted kind from `from` on, the first
 * at an address that is a multiple of align segments; false when there are none
 * to be seen.
 */
static bool
find_from(struct eddy_heap *h, uint32_t from, uint32_t n, uint32_t align,
    struct wish w, uint32_t *ret)
{
	uint64_t below = h->base >> EDDY_LG_SEGMENT;
	uint64_t i = eddy_align_up(below + from, align) - below;

	while (i + n <= h->n_segments) {
		uint32_t k = 0;

		while (k < n && segment_is_free(h, (uint32_t)i + k) &&
		       is_of(h, (uint32_t)i + k, w.tied) &&
		       (!w.cold || segment_is_cold(h, (uint32_t)i + k)) &&
		       (!w.fresh || segment_is_fresh(h, (uint32_t)i + k)))
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
find_segments(struct eddy_heap *h, uint32_t n, uint32_t align, struct wish w,
    uint32_t *ret)
{
	return (n > 1 && find_from(h, 1, n, align, w, ret)) ||
	       find_from(h, 0, n, align, w, ret);
}

/*
 * Takes segments that were found, and makes what describes them accessible.
 * Returns 0; -EAGAIN: they were another's by then; -ENOMEM.
 */
static int
take_found(struct eddy_heap *h, uint32_t first, uint32_t n, struct wish w)
{
	if (!take_segments(h, first, n))
		return -EAGAIN;
	if (!raise_limit(h, first + n)) {
		/* Their descriptors may not be accessible. */
		put_bits(h, first, n);
		return -ENOMEM;
	}
	for (uint32_t i = first; i < first + n; i++)
		if (!is_of(h, i, w.tied) ||
		    (w.fresh && !segment_is_fresh(h, i))) {
			put_bits(h, first, n);
			return -EAGAIN;
		}
	return 0;
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
		count_with(h, i, a);
		eddy_bind_segment(h, a, i);
	}
	return true;
}

void
eddy_segment_retire_spare(struct eddy_heap *h, struct eddy_arena *a)
{
	/* LIFE-A1: after the arena ended.  Else a hint: retirement is a CAS on
	 * every word. */
	uint32_t spare = eddy_xchg_seq_cst(&a->spare_segment, 0);

	if (spare != 0 && eddy_runset_retire(&a->chunks, spare - 1))
		eddy_segments_put(h, spare - 1, 1);
}

/* Segments and chunks that are kept although they are empty. */
static void
retire_spares(struct eddy_heap *h)
{
	/* relaxed: one that is made just now keeps its spares. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);

	for (uint32_t i = 1; i <= n; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a == NULL)
			continue;
		eddy_chunk_retire_spare(h, a);
		eddy_segment_retire_spare(h, a);
	}
}

static bool
claim_wished(struct eddy_heap *h, struct eddy_arena *a, uint32_t n,
    uint32_t align, struct wish w, uint32_t *ret)
{
	/* Goes round only where another took or put a segment. */
	while (find_segments(h, n, align, w, ret)) {
		int err = take_found(h, *ret, n, w);

		if (err == -EAGAIN)
			continue;
		if (err != 0)
			return false;
		if (adapt_segments(h, a, *ret, n))
			return true;
		eddy_segments_put(h, *ret, n);
		return false;
	}
	return false;
}

static void forget_segment(struct eddy_heap *h, uint32_t segment);

static bool
claim_segments(struct eddy_heap *h, struct eddy_arena *a, uint32_t n,
    uint32_t align, bool cold, uint32_t *ret)
{
	struct wish w = {
	    .tied = a->backing.kind != EDDY_PRIVATE ? a->number : 0,
	    .cold = cold,
	    /* Others' memory is no hook's. */
	    .fresh = eddy_hooks_are_set(a),
	};

	if (!find_segments(h, n, align, w, ret))
		retire_spares(h);
	if (claim_wished(h, a, n, align, w, ret))
		return true;
	/* Under a limit on addresses there may be none: what is mapped on
	 * demand can be unmapped. */
	if (!w.fresh || h->reserved)
		return false;
	w.fresh = false;
	if (!claim_wished(h, a, n, align, w, ret))
		return false;
	for (uint32_t k = *ret; k < *ret + n; k++)
		forget_segment(h, k);
	return true;
}

/* A segment in hand is tied to its hooked arena while that has memory there. */
static void
untie(struct eddy_heap *h, uint32_t i)
{
	/* relaxed, all: in hand. */
	uint32_t tied = eddy_load_relaxed(&segment_at(h, i)->tied);

	if (eddy_unlikely(tied != 0) &&
	    eddy_arena_at(h, tied)->backing.kind == EDDY_PRIVATE &&
	    segment_is_fresh(h, i))
		eddy_store_relaxed(&segment_at(h, i)->tied, 0);
}

void
eddy_segments_put(struct eddy_heap *h, uint32_t segment, uint32_t n)
{
	for (uint32_t i = segment; i < segment + n; i++) {
		untie(h, i);
		/* relaxed: in hand; published by SEG-R2. */
		eddy_store_relaxed(&segment_at(h, i)->map.owner, 0);
	}
	put_bits(h, segment, n);
}

/* Chunks in hand that nobody uses any more go at once. */
static EDDY_COLD void
give_now(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint32_t n)
{
	unsigned refused = 0;

	if (eddy_hooked(a))
		(void)eddy_hooks_give_chunks(
		    h, a, chunk, n, false, false, &refused);
	else if (eddy_backing_drop(
		     h, eddy_page_place(h, chunk, 0), n * EDDY_CHUNK))
		eddy_chunks_clean(h, chunk, n);
}

void
eddy_segment_free(struct eddy_heap *h, uint32_t segment)
{
	struct eddy_arena *a = counted(h, segment);
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	unsigned n = valid_chunks(h, segment);

	if (eddy_unlikely(eddy_reclaim_at_once(a)) && !eddy_frozen(h))
		give_now(h, a, first, n);
	eddy_segments_put(h, segment, 1);
	eddy_reclaim_free(h, a, (int64_t)(n * EDDY_CHUNK_PAGES));
}

/*
 * A segment in hand that holds nothing becomes as if it had never been used;
 * what is mapped on demand is unmapped, what is reserved is left to the caller.
 */
static void
forget_segment(struct eddy_heap *h, uint32_t segment)
{
	struct eddy_segment *s = segment_at(h, segment);
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;

	if (counted(h, segment) != NULL)
		eddy_chunks_clean(h, first, valid_chunks(h, segment));
	for (unsigned c = 0; c < EDDY_SEGMENT_CHUNKS; c++) {
		if (n_ready(s, c) == 0)
			continue;
		if (!h->reserved)
			eddy_os_unmap(
			    eddy_page_place(h, first + c, 0), EDDY_CHUNK);
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

/* A giant that came to nothing under a limit on the address space. */
static void
unmap_segment(struct eddy_heap *h, uint32_t segment)
{
	/* relaxed: in hand. */
	if (!h->reserved &&
	    eddy_load_relaxed(&segment_at(h, segment)->tied) == 0)
		forget_segment(h, segment);
}

/* n chunks from the first of a run of segments in hand on.  Returns as
 * make_ready. */
static int
ready_segments(struct eddy_heap *h, uint32_t segment, uint32_t n)
{
	int err;

	for (; n > EDDY_SEGMENT_CHUNKS; segment++) {
		err = make_ready(h, segment, 0, EDDY_SEGMENT_CHUNKS);
		if (err != 0)
			return err;
		n -= (uint32_t)EDDY_SEGMENT_CHUNKS;
	}
	return n <= valid_chunks(h, segment) ? make_ready(h, segment, 0, n)
					     : -ENOMEM;
}

/* The same of an arena with hooks: by one call of them, if all is fresh. */
static int
ready_giant(struct eddy_heap *h, struct eddy_arena *a, uint32_t segment,
    uint32_t n, uint32_t align)
{
	uint32_t end = segment + (n - 1) / (uint32_t)EDDY_SEGMENT_CHUNKS;

	for (uint32_t i = segment; i <= end; i++)
		if (!segment_is_fresh(h, i))
			return ready_segments(h, segment, n);
	if (n - (end - segment) * (uint32_t)EDDY_SEGMENT_CHUNKS >
	    valid_chunks(h, end))
		return -ENOMEM;
	return make_hooked(
	    h, a, segment * (uint32_t)EDDY_SEGMENT_CHUNKS, n, align, NULL);
}

bool
eddy_segments_claim(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunks,
    uint32_t align, uint32_t *ret)
{
	uint32_t n = (chunks + (uint32_t)EDDY_SEGMENT_CHUNKS - 1) /
		     (uint32_t)EDDY_SEGMENT_CHUNKS;
	uint32_t last = chunks - (n - 1) * (uint32_t)EDDY_SEGMENT_CHUNKS;
	int err;

	if (eddy_warm_tight(h, chunks * EDDY_CHUNK_PAGES) &&
	    !eddy_warm_may_grow(h, chunks * EDDY_CHUNK_PAGES))
		return false;
	retire_spares(h);
	if (!claim_segments(h, a, n, align, false, ret))
		return false;
	err = eddy_hooked(a) ? ready_giant(h, a, *ret, chunks,
				   align * (uint32_t)EDDY_SEGMENT_CHUNKS)
			     : ready_segments(h, *ret, chunks);
	if (err != 0) {
		/* What a hook has other plans for stays claimed for good. */
		if (err == -EEXIST && eddy_hooked(a))
			return false;
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
eddy_segments_lend(struct eddy_heap *h, uint32_t n, uint32_t *ret)
{
	const struct wish w = {.tied = 0};

	/* As in claim_segments.  The first is left to small blocks. */
	while (find_from(h, 1, n, 1, w, ret)) {
		int err = take_found(h, *ret, n, w);

		if (err == -EAGAIN)
			continue;
		for (uint32_t i = 0; err == 0 && i < n; i++)
			forget_segment(h, *ret + i);
		return err == 0;
	}
	return false;
}

void
eddy_segments_give(
    struct eddy_heap *h, uint32_t segment, uint32_t chunks, uint32_t tied)
{
	uint32_t n = (chunks + (uint32_t)EDDY_SEGMENT_CHUNKS - 1) /
		     (uint32_t)EDDY_SEGMENT_CHUNKS;

	for (uint32_t i = segment; i < segment + n; i++) {
		uint32_t here = chunks < EDDY_SEGMENT_CHUNKS
				    ? chunks
				    : (uint32_t)EDDY_SEGMENT_CHUNKS;

		/* relaxed, both: in hand; published by SEG-R2. */
		eddy_store_relaxed(&segment_at(h, i)->tied, tied);
		eddy_store_relaxed(&segment_at(h, i)->n_chunks, here);
		chunks -= here;
	}
	eddy_segments_put(h, segment, n);
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
    bool cold, struct eddy_run *ret)
{
	unsigned valid;

	if (!claim_segments(h, a, 1, 1, cold, &ret->id))
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
	uint32_t i = eddy_segment_from(a, 0);

	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1)) {
		ret->id = i;
		/* A claimer checks it again. */
		if (eddy_segment_is_of(h, i, a) &&
		    eddy_runset_claim_in(
			&a->chunks, i, n, align, want, &ret->pos))
			return true;
	}
	return false;
}

static bool
find_chunks(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, struct eddy_run *ret)
{
	return eddy_runset_claim(&a->chunks, n, align, want, ret) ||
	       grow(h, a, n, align, want == EDDY_ONLY_COLD, ret) ||
	       search_segments(h, a, n, align, want, ret);
}

/* ------------------------------------------------------------------ */
/* Chunks of hooked arenas */

/* Chunks that are ready, all of them one extent. */
static bool
claim_joined(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, uint32_t *ret)
{
	struct eddy_run r;

	if (!eddy_runset_claim(&a->chunks, n, align, want, &r) &&
	    !search_segments(h, a, n, align, want, &r))
		return false;
	*ret = r.id * (uint32_t)EDDY_SEGMENT_CHUNKS + r.pos;
	/* Read again: they may not be by now. */
	if (n_ready_in(segment_at(h, r.id), r.pos, n) == n &&
	    eddy_hooks_join(h, a, *ret, n, align, 0))
		return true;
	eddy_chunks_put(*ret, n);
	return false;
}

/* Chunks none of which is ready, from a fresh segment if need be. */
static bool
claim_fresh(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, struct eddy_run *ret)
{
	const enum eddy_run_want want = EDDY_ONLY_FRESH;

	if (eddy_runset_claim(&a->chunks, n, align, want, ret))
		return true;
	if (!claim_segments(h, a, 1, 1, false, &ret->id))
		return search_segments(h, a, n, align, want, ret);
	eddy_segment_open(h, a, ret->id, 0);
	return eddy_runset_claim_in(
	    &a->chunks, ret->id, n, align, want, &ret->pos);
}

/* A free segment that is tied to the arena is open again; false: none is. */
static bool
open_own(struct eddy_heap *h, struct eddy_arena *a)
{
	const struct wish own = {.tied = a->number};
	uint32_t segment;

	if (!claim_wished(h, a, 1, 1, own, &segment))
		return false;
	eddy_segment_open(h, a, segment, 0);
	return true;
}

/* Tries that hooks may spoil by using up the places of chunks. */
#define MAX_SPOILT 4

static bool
claim_new(struct eddy_heap *h, struct eddy_arena *a, unsigned n, unsigned align,
    uint32_t *ret)
{
	for (unsigned i = 0; i < MAX_SPOILT; i++) {
		struct eddy_run r;
		int err;

		if (!claim_fresh(h, a, n, align, &r))
			return false;
		*ret = r.id * (uint32_t)EDDY_SEGMENT_CHUNKS + r.pos;
		/* Read again: somebody may have had them meanwhile. */
		if (n_ready_in(segment_at(h, r.id), r.pos, n) != 0) {
			eddy_chunks_put(*ret, n);
			continue;
		}
		err = make_hooked(h, a, *ret, n, align, NULL);
		if (err == 0)
			return true;
		/* Else they stay claimed for good. */
		if (err != -EEXIST) {
			eddy_chunks_put(*ret, n);
			return false;
		}
	}
	return false;
}

static bool
claim_hooked(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, uint32_t *ret)
{
	uint32_t spare;

	do {
		if (want != EDDY_WANT_READY && want != EDDY_ONLY_COLD &&
		    claim_joined(h, a, n, align, EDDY_ONLY_DIRTY, ret))
			return true;
		if (want != EDDY_ONLY_DIRTY && want != EDDY_ONLY_COLD &&
		    claim_joined(h, a, n, align, EDDY_ONLY_READY, ret))
			return true;
	} while (open_own(h, a));
	if (want == EDDY_ONLY_DIRTY)
		return false;
	if (claim_new(h, a, n, align, ret)) {
		/* relaxed: a count. */
		(void)eddy_add_relaxed(&a->n_grown, 1);
		return true;
	}
	if (want == EDDY_ONLY_COLD)
		return false;
	/* relaxed: it was in hand from its first moment on. */
	spare = eddy_xchg_relaxed(&a->reserve, 0);
	if (spare == 0)
		return false;
	*ret = spare - 1;
	if (n == 1 && align == 1)
		return true;
	eddy_chunks_put(*ret, 1);
	return claim_joined(h, a, n, align, EDDY_ONLY_READY, ret);
}

bool
eddy_chunk_reserve(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t chunk;

	if (!claim_new(h, a, 1, 1, &chunk))
		return false;
	/* relaxed: in hand. */
	eddy_store_relaxed(&a->reserve, chunk + 1);
	return true;
}

void
eddy_chunk_unreserve(struct eddy_arena *a)
{
	/* relaxed: in hand. */
	uint32_t spare = eddy_xchg_relaxed(&a->reserve, 0);

	if (spare != 0)
		eddy_chunks_put(spare - 1, 1);
}

/* ------------------------------------------------------------------ */

bool
eddy_chunks_claim(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, uint32_t *ret_chunk)
{
	struct eddy_run r;

	if (eddy_unlikely(eddy_hooked(a)))
		return claim_hooked(h, a, n, align, want, ret_chunk);
	if (want == EDDY_ONLY_DIRTY) {
		/* No growth: what is dirty is accessible. */
		if (!eddy_runset_claim(&a->chunks, n, align, want, &r) &&
		    !search_segments(h, a, n, align, want, &r))
			return false;
		*ret_chunk = r.id * (uint32_t)EDDY_SEGMENT_CHUNKS + r.pos;
		return true;
	}
	while (find_chunks(h, a, n, align, want, &r)) {
		int err = make_ready(h, r.id, r.pos, n);

		if (err == 0) {
			/* relaxed: a count. */
			(void)eddy_add_relaxed(&a->n_grown, 1);
			*ret_chunk =
			    r.id * (uint32_t)EDDY_SEGMENT_CHUNKS + r.pos;
			if (eddy_unlikely(h->opts.prefault_ahead != 0) &&
			    want != EDDY_ONLY_COLD)
				eddy_reclaim_call(h, a);
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

bool
eddy_chunks_hold(struct eddy_heap *h, uint32_t chunk, unsigned n)
{
	uint32_t segment = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
	struct eddy_arena *a = arena_of(h, segment);

	return a != NULL && eddy_runset_claim_at(&a->chunks, segment,
				chunk % (unsigned)EDDY_SEGMENT_CHUNKS, n);
}

bool
eddy_chunks_grow(struct eddy_heap *h, uint32_t chunk, uint32_t n, uint32_t more)
{
	uint32_t segment = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
	unsigned pos = chunk % (unsigned)EDDY_SEGMENT_CHUNKS + n;
	/* Pinned by the block. */
	struct eddy_arena *a = arena_of(h, segment);
	unsigned ready;
	int err = 0;

	if (pos + more > EDDY_SEGMENT_CHUNKS)
		return false;
	if (!eddy_hooked(a))
		return eddy_chunks_claim_at(h, chunk + n, more);
	if (!eddy_chunks_hold(h, chunk + n, more))
		return false;
	ready = n_ready_in(segment_at(h, segment), pos, more);
	if (ready == 0)
		err = make_hooked(h, a, chunk + n, more, 1,
		    (char *)eddy_page_address(h, chunk, 0) + n * EDDY_CHUNK);
	else if (ready != more)
		err = -ENOMEM;
	if (err == 0 && eddy_hooks_join(h, a, chunk, n + more, 1, n))
		return true;
	/* What came to nothing is the arena's all the same; or stays claimed
	 * for good. */
	if (err != -EEXIST)
		eddy_chunks_put(chunk + n, more);
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
	void *p = eddy_page_place(h, chunk, 0);
	/* Pinned by the chunks in hand. */
	struct eddy_arena *a = arena_of(h, segment);
	uint32_t old;

	if (a == NULL)
		eddy_fatal("double free", p);
	if (!eddy_runset_put(&a->chunks, segment,
		chunk % (unsigned)EDDY_SEGMENT_CHUNKS, n, p))
		return;
	/* LIFE-R1: before the arena is looked at. */
	old = eddy_xchg_seq_cst(&a->spare_segment, segment + 1);
	if (old != 0 && old != segment + 1 &&
	    eddy_runset_retire(&a->chunks, old - 1))
		eddy_segments_put(h, old - 1, 1);
	if (eddy_unlikely(eddy_arena_phase(a) == EDDY_ARENA_ENDED))
		eddy_segment_retire_spare(h, a);
}

/* ------------------------------------------------------------------ */
/* Zero */

/*
 * Of dirty chunks in hand, in the word that begins at chunk `first`: how many
 * dirty pages there are.  Adds what is to be cleared to z, if there is one.
 */
static int64_t
use_word(struct eddy_heap *h, struct eddy_segment *s, uint32_t first,
    uint64_t dirty, uint64_t uniform, struct eddy_zeroes *z)
{
	unsigned i = first % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
	/* relaxed: in hand. */
	uint64_t look = eddy_load_relaxed(&s->muzzy[i]) | ~uniform;
	int64_t n = 0;

	if (z == NULL) {
		/* One by one only where there is something to be seen. */
		n = __builtin_popcountll(dirty & ~look) *
		    (int64_t)EDDY_CHUNK_PAGES;
		dirty &= look;
	}
	for (; dirty != 0; dirty &= dirty - 1) {
		uint32_t c = first + eddy_ctz64(dirty);

		eddy_chunk_unmuzzy(h, c);
		n += dirty_in(h, c);
		if (z == NULL)
			continue;
		if (uniform & bit_of(c))
			eddy_zeroes_add(
			    z, eddy_page_address(h, c, 0), EDDY_CHUNK);
		else
			eddy_pages_zero(h, c, z);
	}
	return n;
}

void
eddy_chunks_use(struct eddy_heap *h, uint32_t chunk, uint32_t n, size_t zero)
{
	struct eddy_arena *a =
	    counted(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);
	struct eddy_zeroes z = {
	    .end = (char *)eddy_page_address(h, chunk, 0) + zero};
	const int64_t pages = (int64_t)(n * EDDY_CHUNK_PAGES);
	int64_t clean = pages;

	while (n != 0) {
		struct eddy_segment *s =
		    segment_at(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);
		unsigned i = chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
		unsigned here = 64 - chunk % 64 < n ? 64 - chunk % 64 : n;
		uint64_t mask = eddy_mask(chunk % 64, here);
		/* relaxed, all: in hand; ordered by the free bits. */
		uint64_t dirty = eddy_load_relaxed(&s->map.dirty[i]) & mask;
		uint64_t uniform = eddy_load_relaxed(&s->uniform[i]) & mask;

		clean -= use_word(h, s, chunk / 64 * 64, dirty, uniform,
		    zero != 0 ? &z : NULL);
		if (uniform != mask)
			(void)eddy_or_relaxed(&s->uniform[i], mask);
		if (dirty != mask)
			(void)eddy_or_relaxed(&s->map.dirty[i], mask);
		chunk += here;
		n -= here;
	}
	eddy_reclaim_use(a, pages, clean);
	eddy_zeroes_finish(&z);
}

void
eddy_chunks_free(struct eddy_heap *h, uint32_t chunk, unsigned n)
{
	struct eddy_arena *a =
	    counted(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);

	if (eddy_unlikely(eddy_reclaim_at_once(a)) && !eddy_frozen(h))
		give_now(h, a, chunk, n);
	eddy_chunks_put(chunk, n);
	eddy_reclaim_free(h, a, (int64_t)(n * EDDY_CHUNK_PAGES));
}

int64_t
eddy_chunks_missing(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	int64_t clean = (int64_t)(n * EDDY_CHUNK_PAGES);

	for (uint32_t c = chunk; c < chunk + n; c++)
		clean -= dirty_in(h, c);
	return clean;
}

void
eddy_chunks_lazy(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	struct eddy_arena *a =
	    counted(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);

	for (uint32_t c = chunk; c < chunk + n; c++) {
		struct eddy_segment *s =
		    segment_at(h, c / (uint32_t)EDDY_SEGMENT_CHUNKS);
		unsigned i = c % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
		int64_t dirty = dirty_in(h, c);

		/* Somebody may have cleaned it before it was claimed. */
		if (dirty == 0)
			continue;
		/* relaxed, both: in hand; a hint. */
		if ((eddy_or_relaxed(&s->muzzy[i], bit_of(c)) & bit_of(c)) == 0)
			(void)eddy_add_relaxed(&a->reclaim.muzzy, dirty);
	}
}

void
eddy_chunks_clean(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	struct eddy_arena *a =
	    counted(h, chunk / (uint32_t)EDDY_SEGMENT_CHUNKS);
	int64_t cleaned = 0;

	for (uint32_t c = chunk; c < chunk + n; c++) {
		struct eddy_segment *s =
		    segment_at(h, c / (uint32_t)EDDY_SEGMENT_CHUNKS);
		unsigned i = c % (unsigned)EDDY_SEGMENT_CHUNKS / 64;

		eddy_chunk_unmuzzy(h, c);
		cleaned += dirty_in(h, c);
		/*
		 * relaxed, both: in hand.  Uniform as well, since the page
		 * bits of its descriptor are of an earlier life.
		 */
		(void)eddy_or_relaxed(&s->uniform[i], bit_of(c));
		(void)eddy_and_relaxed(&s->map.dirty[i], ~bit_of(c));
	}
	eddy_reclaim_clean(a, cleaned);
}
