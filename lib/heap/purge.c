/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/purge.h"

#include "lib/heap/backing.h"
#include "lib/heap/chunk.h"
#include "lib/heap/hook_sets.h"
#include "lib/heap/hooks.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/reset.h"
#include "lib/heap/segment.h"
#include "lib/os/os.h"

/* Calls that the kernel may refuse before a purge gives up, and before it
 * leaves a chunk that is cut: part of the memory may be locked. */
#define MAX_REFUSED     64
#define MAX_REFUSED_RUN 8
/* Runs of so many pages go before shorter ones: 64 KiB. */
#define LONG_RUN 16

enum level {
	CHUNKS,
	LONG_RUNS,
	ALL_RUNS,
	N_LEVELS,
};

/* Highest run of bits in w: its first place and its length; false if none. */
static bool
last_run(uint64_t w, unsigned *pos, unsigned *n)
{
	unsigned end;
	uint64_t rest;

	if (w == 0)
		return false;
	end = 64 - (unsigned)__builtin_clzll(w);
	rest = ~(w << (64 - end));
	*n = rest == 0 ? 64 : (unsigned)__builtin_clzll(rest);
	*pos = end - *n;
	return true;
}

/* Those of word i's units that the purge is for, whether free or not. */
static uint64_t
wanted(const struct eddy_purge *p, _Atomic uint64_t *dirty,
    _Atomic uint64_t *muzzy, unsigned i)
{
	/* relaxed, both: in hand, or a guess that a claim checks. */
	uint64_t d = eddy_load_relaxed(&dirty[i]);
	uint64_t m = eddy_load_relaxed(&muzzy[i]);

	switch (p->kind) {
	case EDDY_PURGE_MUZZY:
		return d & m;
	case EDDY_PURGE_ALL:
		return d;
	default:
		return d & ~m;
	}
}

/* Units of so many bytes that are still wanted. */
static size_t
units(const struct eddy_purge *p, size_t size)
{
	return p->want / size + (p->want % size != 0);
}

static bool
enough(const struct eddy_purge *p)
{
	return p->want == 0 || p->n_refused >= MAX_REFUSED;
}

/* Notes an answer to memory in hand. */
static void
count(struct eddy_heap *h, struct eddy_purge *p, bool taken, size_t size)
{
	/* relaxed, all: statistics. */
	(void)eddy_add_relaxed(&h->n_purges, 1);
	p->n_calls++;
	if (!taken) {
		(void)eddy_add_relaxed(&h->n_refused, 1);
		p->n_refused++;
		return;
	}
	(void)eddy_add_relaxed(&h->n_purged, size);
	p->done += size;
	p->want -= size < p->want ? size : p->want;
}

/* The kernel's answer to memory in hand: true, it is clean, or muzzy. */
static bool
give(struct eddy_heap *h, struct eddy_purge *p, void *at, size_t size)
{
	bool taken = p->kind == EDDY_PURGE_LAZY
			 ? eddy_backing_drop_lazily(h, at, size)
			 : eddy_backing_drop(h, at, size);

	count(h, p, taken, size);
	return taken;
}

/* The same for pages of a cut chunk: what became of them. */
static enum eddy_given
give_pages(struct eddy_heap *h, struct eddy_purge *p, uint32_t chunk,
    unsigned page, unsigned n)
{
	/* relaxed: pinned by the pages in hand. */
	struct eddy_arena *a =
	    eddy_arena_at(h, eddy_load_relaxed(&h->chunks[chunk].map.owner));
	const bool lazily = p->kind == EDDY_PURGE_LAZY;
	enum eddy_given given;

	if (!eddy_hooked(a)) {
		if (!give(h, p, eddy_page_place(h, chunk, page), n * EDDY_PAGE))
			return EDDY_GIVEN_NOT;
		return lazily ? EDDY_GIVEN_LAZY : EDDY_GIVEN_ZERO;
	}
	given = eddy_hooks_give(
	    h, a, chunk, page, n, lazily, p->kind == EDDY_PURGE_MUZZY);
	count(h, p, given != EDDY_GIVEN_NOT, n * EDDY_PAGE);
	return given;
}

/* ------------------------------------------------------------------ */
/* Pages */

/* A run of pages, rounded inwards to OS pages. */
static void
purge_run(struct eddy_heap *h, struct eddy_purge *p, uint32_t chunk,
    unsigned page, unsigned n)
{
	unsigned unit = (unsigned)(eddy_os_page_size() / EDDY_PAGE);
	size_t most = eddy_align_up(units(p, EDDY_PAGE), LONG_RUN);
	unsigned end = (unsigned)eddy_align_down(page + n, unit);

	page = (unsigned)eddy_align_up(page, unit);
	if (end <= page)
		return;
	/* The upper part is enough. */
	if (end - page > most)
		page = end - (unsigned)most;
	n = end - page;
	if (!eddy_pages_claim_at(h, chunk, page, n))
		return;
	/* Read again: another may have had them, and given them back. */
	if (!eddy_pages_are_dirty(h, chunk, page, n) ||
	    eddy_pages_given(
		h, chunk, page, n, give_pages(h, p, chunk, page, n)))
		eddy_pages_put(chunk, page, n, eddy_page_place(h, chunk, page));
}

static void
purge_pages(
    struct eddy_heap *h, struct eddy_purge *p, uint32_t chunk, unsigned least)
{
	struct eddy_runmap *m = &h->chunks[chunk].map;
	unsigned last = p->n_refused + MAX_REFUSED_RUN;
	uint32_t owner;

	for (unsigned i = EDDY_RUNMAP_WORDS; i-- > 0 && !enough(p);) {
		/* relaxed: a guess that the claim checks. */
		uint64_t left = eddy_load_relaxed(&m->free[i]) &
				wanted(p, m->dirty, m->muzzy, i);
		unsigned pos;
		unsigned n;

		while (!enough(p) && p->n_refused < last &&
		       last_run(left, &pos, &n)) {
			left &= ~eddy_mask(pos, n);
			if (n >= least)
				purge_run(h, p, chunk, i * 64 + pos, n);
		}
	}
	/* relaxed: a guess that the claims check. */
	owner = eddy_load_relaxed(&m->owner);
	if (owner != 0 && eddy_hooked(eddy_arena_at(h, owner)))
		eddy_pages_settle(h, eddy_arena_at(h, owner), chunk);
}

/* Whether a chunk is cut into pages of the arena. */
static bool
is_cut(struct eddy_heap *h, const struct eddy_purge *p, uint32_t chunk)
{
	struct eddy_segment *s =
	    &h->segments[chunk / (uint32_t)EDDY_SEGMENT_CHUNKS];
	unsigned i = chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
	uint32_t owner;

	/* SEG-A3: the descriptor is readable. */
	if ((eddy_load_acquire(&s->map.ready[i]) >> chunk % 64 & 1) == 0)
		return false;
	/* relaxed: a guess that the claim checks. */
	owner = eddy_load_relaxed(&h->chunks[chunk].map.owner);
	return owner != 0 && (p->arena == 0 || owner == p->arena) &&
	       !eddy_set_keeps_pages(eddy_arena_at(h, owner));
}

/* ------------------------------------------------------------------ */
/* Chunks */

/*
 * Descriptors of chunks in hand that hold nothing: all that matters in them is
 * zero.
 */
static void
drop_descriptors(struct eddy_heap *h, uint32_t chunk, unsigned n)
{
	size_t page = eddy_os_page_size();
	uintptr_t from = eddy_align_up((uintptr_t)&h->chunks[chunk], page);
	uintptr_t to = eddy_align_down((uintptr_t)&h->chunks[chunk + n], page);

	/* What is refused costs memory, no more. */
	if (from < to && eddy_os_discard((void *)from, to - from) != 0)
		return;
}

/* n chunks in hand: whether the kernel took them. */
static bool
purge_held(struct eddy_heap *h, struct eddy_purge *p, uint32_t c, unsigned n)
{
	if (!give(h, p, eddy_page_place(h, c, 0), n * EDDY_CHUNK))
		return false;
	if (p->kind == EDDY_PURGE_LAZY) {
		eddy_chunks_lazy(h, c, n);
	} else {
		eddy_chunks_clean(h, c, n);
		drop_descriptors(h, c, n);
	}
	return true;
}

/*
 * The runs of `bits`, claiming them first or not.  A run that is refused is
 * tried by halves, for one locked page keeps all of it.
 */
static void
purge_word(struct eddy_heap *h, struct eddy_purge *p, uint32_t first,
    uint64_t bits, bool claim)
{
	unsigned at_once = 64;
	unsigned pos;
	unsigned n;

	while (!enough(p) && last_run(bits, &pos, &n)) {
		size_t most = units(p, EDDY_CHUNK);
		bool taken;
		uint32_t c;

		if (most > at_once)
			most = at_once;
		if (n > most) {
			pos += n - (unsigned)most;
			n = (unsigned)most;
		}
		c = first + pos;
		p->at = c;
		if (claim && !eddy_chunks_claim_at(h, c, n)) {
			bits &= ~eddy_mask(pos, n);
			continue;
		}
		taken = purge_held(h, p, c, n);
		if (claim)
			eddy_chunks_put(c, n);
		if (taken || n == 1)
			bits &= ~eddy_mask(pos, n);
		at_once = taken ? 64 : (n + 1) / 2;
	}
}

/* The same where hooks are asked, extent by extent. */
static void
purge_hooked(struct eddy_heap *h, struct eddy_purge *p, struct eddy_arena *a,
    uint32_t first, uint64_t bits, bool claim)
{
	unsigned pos;
	unsigned n;

	for (; !enough(p) && last_run(bits, &pos, &n);
	     bits &= ~eddy_mask(pos, n)) {
		unsigned refused = 0;
		size_t done;

		p->at = first + pos;
		if (claim && !eddy_chunks_hold(h, first + pos, n))
			continue;
		done = eddy_hooks_give_chunks(h, a, first + pos, n,
		    p->kind == EDDY_PURGE_LAZY, p->kind == EDDY_PURGE_ALL,
		    &refused);
		if (claim)
			eddy_chunks_put(first + pos, n);
		if (done != 0)
			count(h, p, true, done);
		for (; refused > 0; refused--)
			count(h, p, false, 0);
	}
}

/* Whole chunks of a segment below the n-th: all those in hand, or those that
 * can be had. */
static void
purge_chunks(struct eddy_heap *h, struct eddy_purge *p, uint32_t segment,
    unsigned n, bool held)
{
	struct eddy_segment *s = &h->segments[segment];
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	/* relaxed, both: in hand, or a guess.  A segment of no arena's is its
	 * last one's no more, unless it is tied. */
	struct eddy_arena *a = eddy_arena_at(
	    h, eddy_load_relaxed(held ? &s->tied : &s->map.owner));
	const bool hooked = a != NULL && eddy_hooked(a);

	for (unsigned i = (n + 63) / 64; i-- > 0 && !enough(p);) {
		uint64_t bits = wanted(p, s->map.dirty, s->muzzy, i);

		/* All that is there is offered to hooks when all is to go. */
		if (hooked && p->kind == EDDY_PURGE_ALL) /* relaxed: a guess. */
			bits |= eddy_load_relaxed(&s->map.ready[i]);
		if (n - i * 64 < 64)
			bits &= eddy_mask(0, n - i * 64);

		/* relaxed: a guess that the claim checks. */
		if (!held)
			bits &= eddy_load_relaxed(&s->map.free[i]);
		if (hooked)
			purge_hooked(h, p, a, first + i * 64, bits, !held);
		else
			purge_word(h, p, first + i * 64, bits, !held);
	}
}

static void
purge_segment(
    struct eddy_heap *h, struct eddy_purge *p, uint32_t segment, unsigned n)
{
	struct eddy_segment *s = &h->segments[segment];
	bool whole;

	/* relaxed: a guess; an arena's neighbour may be purged too. */
	if (p->arena != 0 && eddy_load_relaxed(&s->counted) != p->arena)
		return;
	whole = eddy_segment_claim_at(h, segment);
	purge_chunks(h, p, segment, n, whole);
	if (whole)
		eddy_segments_put(h, segment, 1);
}

size_t
eddy_purge_held(struct eddy_heap *h, uint32_t segment)
{
	struct eddy_purge p = {.kind = EDDY_PURGE_ALL, .want = SIZE_MAX};

	/* relaxed: in hand.  Where hooks put it, it stays. */
	if (eddy_load_relaxed(&h->segments[segment].tied) != 0)
		return 0;
	purge_chunks(h, &p, segment, (unsigned)EDDY_SEGMENT_CHUNKS, true);
	return p.done;
}

/* ------------------------------------------------------------------ */

/* Chunks that are kept although they are empty. */
static void
retire_spares(struct eddy_heap *h, uint32_t arena)
{
	/* relaxed: one that is made just now has nothing to give. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);

	if (arena != 0) {
		eddy_chunk_retire_spare(h, eddy_arena_at(h, arena));
		return;
	}
	for (uint32_t i = 1; i <= n && i <= EDDY_MAX_ARENAS; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a != NULL)
			eddy_chunk_retire_spare(h, a);
	}
}

/*
 * The task as the file behind a segment allows it, a guess where the segment is
 * not in hand.  Returns whether there is anything to do.
 */
static bool
adapt(struct eddy_heap *h, struct eddy_purge *p, uint32_t segment)
{
	const struct eddy_backing *b = eddy_backing_of(
	    h, eddy_page_place(h, segment * (uint32_t)EDDY_SEGMENT_CHUNKS, 0));

	if (b == NULL)
		return true;
	if (!eddy_backing_here(b))
		return false;
	if (b->kind == EDDY_FILE_PUNCHED) {
		/* There is no later. */
		if (p->kind == EDDY_PURGE_LAZY)
			p->kind = EDDY_PURGE_DIRTY;
		return true;
	}
	/* Nor anything beyond it. */
	if (p->kind == EDDY_PURGE_MUZZY)
		return false;
	p->kind = EDDY_PURGE_LAZY;
	return true;
}

/* One segment's part below chunk `end`, which begins in it or after it. */
static void
purge_level(struct eddy_heap *h, struct eddy_purge *p, enum level level,
    uint32_t segment, uint32_t end)
{
	uint32_t first = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
	enum eddy_purge_kind kind = p->kind;

	p->at = first;
	if (!adapt(h, p, segment))
		return;
	if (level == CHUNKS)
		purge_segment(h, p, segment, end - first);
	else
		for (uint32_t c = end; c-- > first && !enough(p);) {
			p->at = c;
			if (c < h->n_chunks && is_cut(h, p, c))
				purge_pages(
				    h, p, c, level == LONG_RUNS ? LONG_RUN : 1);
		}
	p->kind = kind;
}

/* The segment that comes below chunk `end`; what is not of the purge's arena is
 * passed by.  false: there is none. */
static bool
next_segment(struct eddy_heap *h, const struct eddy_purge *p, uint32_t *end,
    uint32_t *ret)
{
	const uint32_t n = (uint32_t)EDDY_SEGMENT_CHUNKS;

	if (*end == 0)
		return false;
	*ret = (*end - 1) / n;
	if (p->arena == 0)
		return true;
	*ret = eddy_segment_below(eddy_arena_at(h, p->arena), *ret + 1);
	if (*ret == EDDY_ID_NONE)
		return false;
	if (*end > (*ret + 1) * n)
		*end = (*ret + 1) * n;
	return true;
}

static void
go_on(struct eddy_heap *h, struct eddy_purge *p)
{
	uint32_t n = (uint32_t)eddy_chunks_readable();
	uint32_t level = (uint32_t)(p->cursor >> 32);
	uint32_t end = (uint32_t)p->cursor;
	/* Huge pages go back whole. */
	uint32_t n_levels = h->opts.hugetlb ? LONG_RUNS : N_LEVELS;

	if (enough(p))
		return;
	/* It has never had memory. */
	if (p->arena != 0 && eddy_arena_at(h, p->arena) == NULL)
		return;
	if (p->cursor == 0 && p->want >= EDDY_CHUNK)
		retire_spares(h, p->arena);
	if (end == 0 || end > n)
		end = n;
	for (; level < n_levels; level++, end = n) {
		uint32_t segment;

		while (next_segment(h, p, &end, &segment)) {
			purge_level(h, p, (enum level)level, segment, end);
			end = segment * (uint32_t)EDDY_SEGMENT_CHUNKS;
			if (!enough(p))
				continue;
			/* That chunk once more: it may have others.  Not if it
			 * was refused. */
			end = p->at + (p->want == 0);
			if (end == 0)
				level++;
			p->cursor = (uint64_t)level << 32 | end;
			return;
		}
	}
	p->cursor = 0;
}

/* Arenas with hooks that have ended while part of them was in hand here. */
static void
end_ended(struct eddy_heap *h, uint32_t arena)
{
	/* relaxed: a guess. */
	uint32_t n = arena != 0 ? arena : eddy_load_relaxed(&h->n_arenas);

	for (uint32_t i = arena != 0 ? arena : 1;
	     i <= n && i <= EDDY_MAX_ARENAS; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a != NULL && eddy_hooked(a) &&
		    eddy_arena_phase(a) == EDDY_ARENA_ENDED)
			eddy_hooks_end(h, a);
	}
}

void
eddy_purge_some(struct eddy_heap *h, struct eddy_purge *p)
{
	unsigned calls = p->n_calls;
	size_t done = p->done;
	struct eddy_arena *a;

	go_on(h, p);
	if (p->n_calls != calls)
		end_ended(h, p->arena);
	if (p->arena == 0 || p->n_calls == calls)
		return;
	a = eddy_arena_at(h, p->arena);
	eddy_tally_purge(
	    p->kind == EDDY_PURGE_MUZZY ? &a->tally.muzzy : &a->tally.dirty,
	    p->n_calls - calls, (p->done - done) / EDDY_PAGE);
}

size_t
eddy_purge(struct eddy_heap *h, size_t keep)
{
	struct eddy_purge p = {.kind = EDDY_PURGE_ALL, .want = SIZE_MAX};

	if (keep != 0) {
		/* relaxed: a guess. */
		uint32_t n = eddy_load_relaxed(&h->n_arenas);
		size_t idle = 0;

		for (uint32_t i = 1; i <= n && i <= EDDY_MAX_ARENAS; i++) {
			struct eddy_arena *a = eddy_arena_at(h, i);

			if (a == NULL)
				continue;
			/* relaxed: a hint. */
			idle +=
			    ((size_t)eddy_reclaim_dirty(&a->reclaim) +
				(size_t)eddy_load_relaxed(&a->reclaim.muzzy)) *
			    EDDY_PAGE;
		}
		p.want = idle > keep ? idle - keep : 0;
	}
	eddy_purge_some(h, &p);
	return p.done;
}

size_t
eddy_purge_arena(struct eddy_heap *h, struct eddy_arena *a)
{
	struct eddy_purge p = {
	    .kind = EDDY_PURGE_ALL, .arena = a->number, .want = SIZE_MAX};

	eddy_purge_some(h, &p);
	return p.done;
}
