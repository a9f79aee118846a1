/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/chunk.h"

#include "lib/heap/arena.h"
#include "lib/heap/backing.h"
#include "lib/heap/hooks.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/reset.h"
#include "lib/heap/segment.h"
#include "lib/heap/warm.h"
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

/* Whether the arena of memory in hand keeps what is dirty. */
static bool
stays(const void *p)
{
	struct eddy_heap *h = eddy_heap_peek();
	struct eddy_arena *a = eddy_arena_of(h, p);

	/* relaxed, both: as of some moment. */
	return a != NULL &&
	       (eddy_load_relaxed(&a->reclaim.dirty_decay_ms) < 0 ||
		   eddy_load_relaxed(&a->reclaim.floor) != 0);
}

void
eddy_zeroes_finish(struct eddy_zeroes *z)
{
	if (z->size != 0 && z->end != NULL && z->from + z->size > z->end)
		z->size = z->from < z->end ? (size_t)(z->end - z->from) : 0;
	if (z->size == 0)
		return;
	/* A frozen heap asks the kernel nothing. */
	if (eddy_frozen(eddy_heap_peek()))
		eddy_os_write_zeros(z->from, z->size);
	else
		eddy_backing_zero(
		    eddy_heap_peek(), z->from, z->size, stays(z->from));
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

/* The arena of a chunk of which the caller has pages in hand. */
static struct eddy_arena *
arena_of(struct eddy_heap *h, uint32_t chunk)
{
	/* relaxed: pinned by the pages in hand. */
	return eddy_arena_at(h, eddy_load_relaxed(&h->chunks[chunk].map.owner));
}

/* Pages in hand are muzzy no more; returns how many were. */
static int64_t
unmuzzy(struct eddy_runmap *m, unsigned i, uint64_t mask)
{
	/* relaxed, both: in hand, so nobody else sets or clears these bits. */
	if (eddy_likely((eddy_load_relaxed(&m->muzzy[i]) & mask) == 0))
		return 0;
	return __builtin_popcountll(
	    eddy_and_relaxed(&m->muzzy[i], ~mask) & mask);
}

void
eddy_pages_use(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n, bool zero)
{
	struct eddy_runmap *m = &h->chunks[chunk].map;
	struct eddy_arena *a = arena_of(h, chunk);
	struct eddy_zeroes z = {NULL, 0, NULL};
	int64_t clean = n;
	int64_t muzzy = 0;
	uint64_t mask;

	for_each_word(i, mask, page, n)
	{
		/* relaxed, both: in hand; ordered by the pages' free bits. */
		uint64_t old = eddy_load_relaxed(&m->dirty[i]);

		if ((old & mask) == mask) {
			clean -= here_;
		} else {
			(void)eddy_or_relaxed(&m->dirty[i], mask);
			clean -= __builtin_popcountll(old & mask);
		}
		muzzy += unmuzzy(m, i, mask);
		if (zero)
			add_bits(h, &z, chunk, i, old & mask);
	}
	eddy_reclaim_use(a, n, clean);
	if (muzzy != 0) /* relaxed: a hint. */
		(void)eddy_add_relaxed(&a->reclaim.muzzy, -muzzy);
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
	struct eddy_arena *a = arena_of(h, chunk);
	int64_t cleaned = 0;
	int64_t muzzy = 0;
	uint64_t mask;

	for_each_word(i, mask, page, n)
	{
		muzzy += unmuzzy(m, i, mask);
		/* relaxed: in hand; an RMW, the word holds others' bits. */
		cleaned += __builtin_popcountll(
		    eddy_and_relaxed(&m->dirty[i], ~mask) & mask);
	}
	eddy_reclaim_clean(a, cleaned);
	if (muzzy != 0) /* relaxed: a hint. */
		(void)eddy_add_relaxed(&a->reclaim.muzzy, -muzzy);
}

void
eddy_pages_lazy(struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n)
{
	struct eddy_runmap *m = &h->chunks[chunk].map;
	int64_t muzzy = 0;
	uint64_t mask;

	for_each_word(i, mask, page, n)
	{
		/* relaxed, both: as above.  Somebody may have cleaned some
		 * before they were claimed. */
		mask &= eddy_load_relaxed(&m->dirty[i]);
		muzzy += __builtin_popcountll(
		    ~eddy_or_relaxed(&m->muzzy[i], mask) & mask);
	}
	/* relaxed: a hint. */
	(void)eddy_add_relaxed(&arena_of(h, chunk)->reclaim.muzzy, muzzy);
}

bool
eddy_pages_are_dirty(
    struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n)
{
	uint64_t mask;

	for_each_word(i, mask, page, n)
	{
		/* relaxed: in hand. */
		if (mask & ~eddy_load_relaxed(&h->chunks[chunk].map.dirty[i]))
			return false;
	}
	return true;
}

unsigned
eddy_pages_dirty(struct eddy_heap *h, uint32_t chunk)
{
	unsigned n = 0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* relaxed: in hand. */
		n += (unsigned)__builtin_popcountll(
		    eddy_load_relaxed(&h->chunks[chunk].map.dirty[i]));
	}
	return n;
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

	eddy_chunk_unmuzzy(h, chunk);
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
	int64_t muzzy = 0;

	if (!eddy_runset_retire(&a->pages, chunk))
		return;
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* relaxed: all pages are in hand. */
		dirty |= eddy_load_relaxed(&m->dirty[i]);
		muzzy += unmuzzy(m, i, ~(uint64_t)0);
	}
	/* Now it is the chunk that is dirty. */
	if (muzzy != 0) /* relaxed: a hint. */
		(void)eddy_add_relaxed(&a->reclaim.muzzy, -muzzy);
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
	/* LIFE-A1: after the arena ended.  Else a hint: retirement is a CAS on
	 * every word. */
	uint32_t spare = eddy_xchg_seq_cst(&a->spare, 0);

	if (spare != 0)
		retire(h, a, spare - 1);
}

/* Puts pages back; true: the chunk's are all free. */
static inline bool
put(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned page,
    unsigned n, const void *blame)
{
	uint32_t old;

	if (!eddy_runset_put(&a->pages, chunk, page, n, blame))
		return false;
	/* LIFE-R1: before the arena is looked at. */
	old = eddy_xchg_seq_cst(&a->spare, chunk + 1);
	if (old != 0 && old != chunk + 1)
		retire(h, a, old - 1);
	eddy_reset_settle(h, a);
	return true;
}

void
eddy_pages_put(uint32_t chunk, unsigned page, unsigned n, const void *blame)
{
	struct eddy_heap *h = eddy_heap();
	/* relaxed: pinned by the pages in hand. */
	uint32_t owner = eddy_load_relaxed(&h->chunks[chunk].map.owner);
	struct eddy_arena *a;

	if (owner == 0)
		eddy_fatal("double free", blame);
	a = eddy_arena_at(h, owner);
	if (!put(h, a, chunk, page, n, blame) && eddy_unlikely(eddy_hooked(a)))
		eddy_pages_settle(h, a, chunk);
}

/* ------------------------------------------------------------------ */
/* Chunks of which hooks took pages */

/* Bits of a chunk. */
static void
look(const _Atomic uint64_t *w, uint64_t *ret)
{
	/* HOOK-A2: after pages were put, or noted as gone. */
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
		ret[i] = eddy_load_seq_cst(&w[i]);
}

/* Whether each page is in one of two sets, and the second is not empty. */
static bool
are_all(const uint64_t *some, const uint64_t *others)
{
	uint64_t every = ~(uint64_t)0;
	uint64_t any = 0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		every &= some[i] | others[i];
		any |= others[i];
	}
	return every == ~(uint64_t)0 && any != 0;
}

/* Takes the runs of `free`, or none; false: somebody else has some. */
static bool
take_runs(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    const uint64_t *free)
{
	unsigned pos = 0;
	unsigned n;

	for (; eddy_next_run(free, &pos, &n); pos += n) {
		unsigned at = 0;
		unsigned m;

		if (eddy_runset_claim_at(&a->pages, chunk, pos, n))
			continue;
		for (; eddy_next_run(free, &at, &m) && at < pos; at += m)
			(void)put(h, a, chunk, at, m, a);
		return false;
	}
	return true;
}

void
eddy_pages_settle(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk)
{
	struct eddy_chunk *d = &h->chunks[chunk];
	uint64_t absent[EDDY_RUNMAP_WORDS];
	uint64_t free[EDDY_RUNMAP_WORDS];
	unsigned pos = 0;
	unsigned n;

	look(d->absent, absent);
	look(d->map.free, free);
	if (eddy_likely(!are_all(free, absent)) ||
	    !take_runs(h, a, chunk, free))
		return;
	/* Read again: by now the chunk may be in another life of its. */
	look(d->absent, absent);
	if (are_all(free, absent) && eddy_hooks_leave_rest(h, a, chunk, free)) {
		eddy_runset_close(&a->pages, chunk);
		eddy_chunks_put(chunk, 1);
		return;
	}
	/* What is refused stays; nothing, if all was taken after all. */
	for (; eddy_next_run(free, &pos, &n); pos += n)
		(void)put(h, a, chunk, pos, n, a);
}

bool
eddy_pages_given(struct eddy_heap *h, uint32_t chunk, unsigned page, unsigned n,
    enum eddy_given given)
{
	struct eddy_chunk *d = &h->chunks[chunk];
	uint64_t mask;

	if (given == EDDY_GIVEN_AWAY) {
		struct eddy_arena *a = arena_of(h, chunk);

		eddy_pages_clean(h, chunk, page, n);
		for_each_word(i, mask, page, n)
		{
			/* HOOK-R2: before the others are looked at. */
			(void)eddy_or_seq_cst(&d->absent[i], mask);
		}
		eddy_pages_settle(h, a, chunk);
		return false;
	}
	if (given == EDDY_GIVEN_LAZY)
		eddy_pages_lazy(h, chunk, page, n);
	if (given == EDDY_GIVEN_RAW)
		eddy_hooks_raw(h, arena_of(h, chunk), chunk, page, n);
	if (given == EDDY_GIVEN_RAW || given == EDDY_GIVEN_ZERO)
		eddy_pages_clean(h, chunk, page, n);
	return true;
}

/* Pages in hand that nobody uses any more go at once; false: for good. */
static EDDY_COLD bool
give_now(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n)
{
	if (eddy_hooked(a))
		return eddy_pages_given(h, chunk, page, n,
		    eddy_hooks_give(h, a, chunk, page, n, false, false));
	if (eddy_backing_drop(
		h, eddy_page_place(h, chunk, page), n * EDDY_PAGE))
		eddy_pages_clean(h, chunk, page, n);
	return true;
}

void
eddy_pages_free(uint32_t chunk, unsigned page, unsigned n, const void *blame)
{
	struct eddy_heap *h = eddy_heap();
	struct eddy_arena *a = arena_of(h, chunk);

	if (a == NULL)
		eddy_fatal("double free", blame);
	if (!eddy_unlikely(eddy_reclaim_at_once(a)) || eddy_frozen(h) ||
	    give_now(h, a, chunk, page, n))
		eddy_pages_put(chunk, page, n, blame);
	eddy_reclaim_free(h, a, n);
	eddy_reclaim_share(h);
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
grow(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    enum eddy_run_want want, struct eddy_run *ret)
{
	if (!eddy_chunks_claim(h, a, 1, 1, want, &ret->id))
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
    unsigned align, enum eddy_run_want want, struct eddy_run *ret,
    uint64_t *seen)
{
	size_t limit = eddy_chunks_readable();

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
			&a->pages, c, n, align, want, &ret->pos)) {
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

	if (claim_anywhere(h, a, n, align, EDDY_WANT_DIRTY, ret, &seen))
		return true;
	do {
		before = seen;
		if (grow(h, a, n, EDDY_WANT_WARM, ret) ||
		    claim_anywhere(h, a, n, align, EDDY_WANT_DIRTY, ret, &seen))
			return true;
	} while (before != seen);
	return false;
}

/* Chunks that have memory are cut until such a run is found: part of a chunk
 * may be clean. */
static bool
grow_warm(struct eddy_heap *h, struct eddy_arena *a, unsigned n, unsigned align,
    struct eddy_run *ret)
{
	while (eddy_chunks_claim(h, a, 1, 1, EDDY_ONLY_DIRTY, &ret->id)) {
		eddy_chunk_open(h, a, ret->id, 0);
		if (eddy_runset_claim_in(&a->pages, ret->id, n, align,
			EDDY_ONLY_DIRTY, &ret->pos))
			return true;
	}
	return false;
}

/* Pages that have memory, or none. */
static bool
claim_warm(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, struct eddy_run *ret)
{
	const enum eddy_run_want want = EDDY_ONLY_DIRTY;
	uint64_t seen;

	return eddy_runset_claim(&a->pages, n, align, want, ret) ||
	       grow_warm(h, a, n, align, ret) ||
	       claim_anywhere(h, a, n, align, want, ret, &seen);
}

static bool
claim(struct eddy_heap *h, struct eddy_arena *a, unsigned n, unsigned align,
    enum eddy_run_want want, struct eddy_run *ret)
{
	if (eddy_warm_tight(h, n)) {
		if (claim_warm(h, a, n, align, ret))
			return true;
		if (!eddy_warm_may_grow(h, n))
			return false;
	}
	return eddy_runset_claim(&a->pages, n, align, want, ret) ||
	       grow(h, a, n, EDDY_WANT_WARM, ret) ||
	       search_all(h, a, n, align, ret);
}

bool
eddy_pages_fill(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n)
{
	void *p = eddy_page_place(h, chunk, page);

	if (eddy_unlikely(eddy_hooked(a))) {
		if (eddy_hooks_fill(h, a, chunk, page, n))
			return true;
		eddy_pages_put(chunk, page, n, p);
		return false;
	}
	if (eddy_likely(!a->backing.fill) ||
	    eddy_pages_are_dirty(h, chunk, page, n) ||
	    eddy_backing_fill(p, n * EDDY_PAGE))
		return true;
	/* They hold nothing: room that some have got is for others. */
	if (eddy_backing_drop(h, p, n * EDDY_PAGE))
		eddy_pages_clean(h, chunk, page, n);
	eddy_pages_put(chunk, page, n, p);
	return false;
}

bool
eddy_pages_claim(struct eddy_heap *h, struct eddy_arena *a, unsigned n,
    unsigned align, enum eddy_run_want want, struct eddy_run *ret)
{
	return claim(h, a, n, align, want, ret) &&
	       eddy_pages_fill(h, a, ret->id, ret->pos, n);
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
