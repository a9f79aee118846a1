/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/hooks.h"

#include <errno.h>
#include <string.h>

#include "lib/base/chars.h"
#include "lib/ctl/conf.h"
#include "lib/data/outmap.h"
#include "lib/heap/backing.h"
#include "lib/heap/chunk.h"
#include "lib/heap/hooks_default.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/region.h"
#include "lib/heap/reset.h"
#include "lib/heap/segment.h"
#include "lib/os/os.h"

/* Chunks by address, of memory that is not in the range. */
static struct eddy_outmap outside;

/* Hooks that this thread is in. */
static __thread unsigned depth;

/* ------------------------------------------------------------------ */
/* Places and addresses */

const void *
eddy_place_outside(const struct eddy_heap *h, const void *p)
{
	uint32_t chunk = eddy_outmap_find(&outside, p);
	unsigned page = (uintptr_t)p % EDDY_CHUNK / EDDY_PAGE;

	/* relaxed: no block lies where pages are absent. */
	if (chunk == EDDY_OUT_NONE ||
	    (eddy_load_relaxed(&h->chunks[chunk].absent[page / 64]) >>
		    page % 64 &
		1) != 0)
		return NULL;
	return (char *)eddy_page_place(h, chunk, 0) + (uintptr_t)p % EDDY_CHUNK;
}

static struct eddy_segment *
segment_of(struct eddy_heap *h, uint32_t chunk)
{
	return &h->segments[chunk / (uint32_t)EDDY_SEGMENT_CHUNKS];
}

static unsigned
word_of(uint32_t chunk)
{
	return chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
}

static uint64_t
bit_of(uint32_t chunk)
{
	return (uint64_t)1 << chunk % 64;
}

static bool
is_ready(struct eddy_heap *h, uint32_t chunk)
{
	/* SEG-A3: pairs with SEG-R3: the descriptor is readable. */
	return (eddy_load_acquire(
		    &segment_of(h, chunk)->map.ready[word_of(chunk)]) &
		   bit_of(chunk)) != 0;
}

/* Whether descriptors of segments are readable there. */
static bool
is_below_limit(struct eddy_heap *h, uint32_t chunk)
{
	return chunk < h->n_chunks && chunk < eddy_chunks_readable();
}

const void *
eddy_address_of(struct eddy_heap *h, const void *place)
{
	uint32_t chunk = (uint32_t)(eddy_page_of(h, place) / EDDY_CHUNK_PAGES);

	if (eddy_page_of(h, place) / EDDY_CHUNK_PAGES >= h->n_chunks ||
	    !is_below_limit(h, chunk) || !is_ready(h, chunk))
		return place;
	return (char *)eddy_page_address(h, chunk, 0) +
	       (uintptr_t)place % EDDY_CHUNK;
}

bool
eddy_hooks_gave(struct eddy_heap *h, const void *p)
{
	const void *place = eddy_place_of(h, p);
	size_t chunk = eddy_page_of(h, place) / EDDY_CHUNK_PAGES;
	uint32_t tied;

	if (place != p)
		return true;
	if (chunk >= h->n_chunks || !is_below_limit(h, (uint32_t)chunk))
		return false;
	/* relaxed: pinned by the block. */
	tied = eddy_load_relaxed(&segment_of(h, (uint32_t)chunk)->tied);
	return tied != 0 &&
	       eddy_arena_at(h, tied)->backing.kind == EDDY_PRIVATE;
}

/* ------------------------------------------------------------------ */
/* Who has hooks */

extent_hooks_t *
eddy_hooks_get(struct eddy_arena *a)
{
	/* HOOK-A1: pairs with HOOK-R1. */
	extent_hooks_t *k = eddy_load_acquire(&a->hooks);

	return k != NULL ? k : &eddy_hooks_default;
}

extent_hooks_t *
eddy_hooks_set(struct eddy_arena *a, extent_hooks_t *hooks)
{
	if (hooks == &eddy_hooks_default)
		hooks = NULL;
	/* relaxed: a hint, until they are called. */
	eddy_store_relaxed(&a->sets, 0);
	/* HOOK-R1: before there are any. */
	if (hooks != NULL)
		eddy_store_release(&a->hooked, true);
	/* HOOK-R1: what the program wrote there.  HOOK-A1: and others. */
	hooks = eddy_xchg_acq_rel(&a->hooks, hooks);
	return hooks != NULL ? hooks : &eddy_hooks_default;
}

/* The program's hooks, NULL: it has none, or this thread is in one. */
static extent_hooks_t *
of_program(struct eddy_arena *a)
{
	extent_hooks_t *k = eddy_hooks_get(a);

	return k != &eddy_hooks_default && depth == 0 ? k : NULL;
}

static unsigned
index_of(const struct eddy_arena *a)
{
	return a->number - 1;
}

/* ------------------------------------------------------------------ */
/* Extents */

static bool
is_joined(struct eddy_heap *h, uint32_t chunk)
{
	/* relaxed: in hand, or constant while part of the extent is. */
	return is_below_limit(h, chunk) &&
	       (eddy_load_relaxed(
		    &segment_of(h, chunk)->joined[word_of(chunk)]) &
		   bit_of(chunk)) != 0;
}

static void
set_joined(struct eddy_heap *h, uint32_t chunk, bool joined)
{
	_Atomic uint64_t *w = &segment_of(h, chunk)->joined[word_of(chunk)];

	/* relaxed, all: in hand. */
	if (joined)
		(void)eddy_or_relaxed(w, bit_of(chunk));
	else if (eddy_load_relaxed(w) & bit_of(chunk))
		(void)eddy_and_relaxed(w, ~bit_of(chunk));
}

struct extent {
	uint32_t chunk;
	uint32_t n;
};

static struct extent
extent_of(struct eddy_heap *h, uint32_t chunk)
{
	struct extent e = {chunk, 1};

	while (is_joined(h, e.chunk))
		e.chunk--;
	while (is_joined(h, chunk + 1))
		chunk++;
	e.n = chunk + 1 - e.chunk;
	return e;
}

static void *
address(struct eddy_heap *h, uint32_t chunk)
{
	return eddy_page_address(h, chunk, 0);
}

/* Whether all of some chunks in hand is committed. */
static bool
is_committed(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	for (uint32_t c = chunk; c < chunk + n; c++)
		for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
			/* relaxed: in hand. */
			if (eddy_load_relaxed(&h->chunks[c].raw[i]) != 0)
				return false;
	return true;
}

/* Whether hooks agree that [p, p + size_a + size_b) becomes two. */
static bool
may_split(struct eddy_arena *a, extent_hooks_t *k, void *p, size_t size_a,
    size_t size_b, bool committed)
{
	bool refused;

	if (k == NULL)
		return eddy_hooks_get(a) == &eddy_hooks_default;
	if (k->split == NULL)
		return false;
	depth++;
	refused = k->split(
	    k, p, size_a + size_b, size_a, size_b, committed, index_of(a));
	depth--;
	return !refused;
}

/* Whether they agree that it becomes one. */
static bool
may_merge(struct eddy_arena *a, extent_hooks_t *k, char *p, size_t size_a,
    size_t size_b, bool committed)
{
	bool refused;

	if (k == NULL)
		return eddy_hooks_get(a) == &eddy_hooks_default;
	if (k->merge == NULL)
		return false;
	depth++;
	refused =
	    k->merge(k, p, size_a, p + size_a, size_b, committed, index_of(a));
	depth--;
	return !refused;
}

/* The same of an extent in hand, behind its first chunks. */
static bool
may_split_chunks(struct eddy_heap *h, struct eddy_arena *a, extent_hooks_t *k,
    struct extent e, uint32_t first)
{
	return may_split(a, k, address(h, e.chunk), first * EDDY_CHUNK,
	    (e.n - first) * EDDY_CHUNK, is_committed(h, e.chunk, e.n));
}

bool
eddy_hooks_cut(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    uint32_t n, uint32_t first)
{
	struct extent e;

	if (!is_joined(h, chunk + first))
		return true;
	e = extent_of(h, chunk);
	if (e.chunk < chunk || e.chunk + e.n > chunk + n)
		return false;
	e = extent_of(h, chunk + first);
	if (!may_split_chunks(h, a, of_program(a), e, chunk + first - e.chunk))
		return false;
	set_joined(h, chunk + first, false);
	return true;
}

/* Whether chunks lie one after the other, and are whole extents. */
static bool
is_straight(struct eddy_heap *h, uint32_t chunk, uint32_t n, uint32_t align)
{
	/* relaxed, both: in hand. */
	ptrdiff_t away = eddy_load_relaxed(&h->chunks[chunk].map.away);

	if ((uintptr_t)address(h, chunk) % (align * EDDY_CHUNK) != 0)
		return false;
	for (uint32_t c = chunk + 1; c < chunk + n; c++)
		if (eddy_load_relaxed(&h->chunks[c].map.away) != away)
			return false;
	return n == 1 || (!is_joined(h, chunk) && !is_joined(h, chunk + n));
}

bool
eddy_hooks_join(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    uint32_t n, uint32_t align, uint32_t live)
{
	extent_hooks_t *k = of_program(a);
	uint32_t c = chunk + 1;

	if (!is_straight(h, chunk, n, align))
		return false;
	while (c < chunk + n) {
		uint32_t m = 1;

		if (is_joined(h, c)) {
			c++;
			continue;
		}
		while (c + m < chunk + n && is_joined(h, c + m))
			m++;
		if (!may_merge(a, k, address(h, chunk),
			(c - chunk) * EDDY_CHUNK, m * EDDY_CHUNK,
			is_committed(h, chunk, c - chunk + m)))
			break;
		set_joined(h, c, true);
		c += m;
	}
	if (c == chunk + n)
		return true;
	/* What was merged in vain, but for what lives; where that is refused it
	 * stays one. */
	if (c > chunk + live && eddy_hooks_cut(h, a, chunk, c - chunk, live))
		eddy_hooks_part(h, a, chunk + live, c - chunk - live);
	return false;
}

bool
eddy_hooks_cut_run(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n_a, unsigned n_b)
{
	return may_split(a, of_program(a), eddy_page_address(h, chunk, page),
	    n_a * EDDY_PAGE, n_b * EDDY_PAGE, true);
}

bool
eddy_hooks_join_run(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n_a, unsigned n_b)
{
	return may_merge(a, of_program(a), eddy_page_address(h, chunk, page),
	    n_a * EDDY_PAGE, n_b * EDDY_PAGE, true);
}

/* ------------------------------------------------------------------ */
/* Memory comes */

static size_t
add(char *to, size_t n, const char *s)
{
	size_t len = eddy_length(s);

	memcpy(to + n, s, len);
	return n + len;
}

/* Whether what alloc says can be memory of the arena's. */
static bool
is_good(struct eddy_heap *h, const void *p, size_t size, size_t align,
    const void *place, const void *at)
{
	uintptr_t u = (uintptr_t)p;
	uintptr_t end = h->base + (size_t)h->n_chunks * EDDY_CHUNK;

	if (u % align != 0 || (u + size - 1) >> EDDY_OUT_LG_ALL != 0 ||
	    u + size < u || (at != NULL && p != at))
		return false;
	return p == place || u + size <= h->base || u >= end;
}

/*
 * A program that aligns to pages alone gets no memory from its hooks at all:
 * once a process it is told why.
 */
static void
say_misaligned(const void *p, size_t align)
{
	/* W, R: any CPU.  O: none: it is said once. */
	static _Atomic bool said;
	char line[160];
	char digits[EDDY_DIGITS_MAX + 1];
	char *end = digits + EDDY_DIGITS_MAX;
	size_t n = 0;

	*end = '\0';
	/* relaxed: as said. */
	if (eddy_xchg_relaxed(&said, true))
		return;
	n = add(line, n, "<eddy>: extent hooks: alloc answered 0x");
	n = add(line, n, eddy_digits_of(end, (uintptr_t)p, 16));
	n = add(line, n, ", which is not aligned to the ");
	n = add(line, n, eddy_digits(end, align));
	n = add(line, n, " bytes it was asked for; refused\n");
	line[n] = '\0';
	eddy_conf_message(line);
}

/* Makes chunks known by their address; false: others lie there. */
static bool
know(const char *p, uint32_t chunk, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!eddy_outmap_put(&outside, p + i * EDDY_CHUNK, chunk + i)) {
			while (i-- > 0)
				eddy_outmap_drop(&outside, p + i * EDDY_CHUNK);
			return false;
		}
	return true;
}

static void
set_words(_Atomic uint64_t *w, bool on)
{
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
		/* relaxed, both: in hand.  What is zero stays untouched. */
		if (on || eddy_load_relaxed(&w[i]) != 0)
			eddy_store_relaxed(&w[i], on ? ~(uint64_t)0 : 0);
}

/* Notes what is known of the memory of a chunk in hand. */
static void
note(
    struct eddy_heap *h, uint32_t chunk, ptrdiff_t away, bool zero, bool commit)
{
	struct eddy_chunk *d = &h->chunks[chunk];

	/* relaxed, both: in hand. */
	if (eddy_load_relaxed(&d->map.away) != away)
		eddy_store_relaxed(&d->map.away, away);
	set_words(d->stale, !zero || !commit);
	set_words(d->raw, !commit);
}

/* What alloc gave and cannot be used. */
static void
refuse(
    struct eddy_arena *a, extent_hooks_t *k, void *p, size_t size, bool commit)
{
	if (k->dalloc == NULL)
		return;
	depth++;
	(void)k->dalloc(k, p, size, commit, index_of(a));
	depth--;
}

static int
ask(struct eddy_heap *h, struct eddy_arena *a, extent_hooks_t *k,
    uint32_t chunk, uint32_t n, uint32_t align, void *at)
{
	const size_t size = n * EDDY_CHUNK;
	char *place = eddy_page_place(h, chunk, 0);
	struct eddy_request r = {.chunk = chunk, .n = n};
	bool zero = false;
	bool commit = true;
	char *p;

	if (k->alloc == NULL)
		return -ENOMEM;
	depth++;
	eddy_request_begin(&r);
	p = k->alloc(
	    k, at, size, align * EDDY_CHUNK, &zero, &commit, index_of(a));
	eddy_request_end(&r);
	depth--;
	if (p != NULL && (uintptr_t)p % (align * EDDY_CHUNK) != 0)
		say_misaligned(p, align * EDDY_CHUNK);
	if (p != NULL && (!is_good(h, p, size, align * EDDY_CHUNK, place, at) ||
			     (p != place && !know(p, chunk, n)))) {
		refuse(a, k, p, size, commit);
		p = NULL;
	}
	/* The place was given to the hook, which has other plans for it. */
	if (r.served && p != place) {
		if (p != NULL) {
			for (uint32_t i = 0; i < n; i++)
				eddy_outmap_drop(&outside, p + i * EDDY_CHUNK);
			refuse(a, k, p, size, commit);
		}
		return -EEXIST;
	}
	if (p == NULL)
		return -ENOMEM;
	for (uint32_t c = chunk; c < chunk + n; c++) {
		note(h, c, p - place, zero, commit);
		set_joined(h, c, c != chunk);
		/* relaxed: a chunk is in hand; RUN-R2. */
		eddy_store_relaxed(&segment_of(h, c)->tied, a->number);
	}
	return 0;
}

int
eddy_hooks_ready(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    uint32_t n, uint32_t align, void *at)
{
	extent_hooks_t *k = of_program(a);
	int err;

	if (k == NULL)
		return at == NULL || at == eddy_page_place(h, chunk, 0)
			   ? eddy_chunks_commit(h, chunk, n)
			   : -ENOMEM;
	err = eddy_os_commit(&h->chunks[chunk], n * sizeof(struct eddy_chunk));
	return err != 0 ? err : ask(h, a, k, chunk, n, align, at);
}

/* ------------------------------------------------------------------ */
/* Memory goes */

/* Marks of objects of regions go with the pages in hand that they are of. */
static void
drop_marks(struct eddy_heap *h, uint32_t chunk, unsigned page, size_t n)
{
	eddy_region_drop(h, eddy_page_place(h, chunk, page), n * EDDY_PAGE);
}

/* Chunks in hand are as if they had never had memory. */
static void
forget(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	drop_marks(h, chunk, 0, n * EDDY_CHUNK_PAGES);
	eddy_chunks_clean(h, chunk, n);
	for (uint32_t c = chunk; c < chunk + n; c++) {
		note(h, c, 0, true, true);
		set_joined(h, c, false);
		/* relaxed, both: in hand; RUN-R2.  The descriptor stays
		 * readable. */
		(void)eddy_and_relaxed(
		    &segment_of(h, c)->map.ready[word_of(c)], ~bit_of(c));
	}
	(void)eddy_add_relaxed(&h->n_ready, -n); /* relaxed: a statistic. */
}

/* Whether a hook has unmapped its place in the range: then it is ours again. */
static bool
is_hole(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	void *place = eddy_page_place(h, chunk, 0);

	if (eddy_os_reserve_at(place, n * EDDY_CHUNK) != 0)
		return false;
	if (!h->reserved)
		eddy_os_unmap(place, n * EDDY_CHUNK);
	return true;
}

/* Offers whole extents in hand to dalloc; true: it took them. */
static bool
leave(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint32_t n)
{
	extent_hooks_t *k = of_program(a);
	char *p = address(h, chunk);
	bool out = p != eddy_page_place(h, chunk, 0);
	bool commit = is_committed(h, chunk, n);
	struct eddy_request r = {.chunk = chunk, .n = n, .goes = true};
	bool refused;

	if (k == NULL || k->dalloc == NULL)
		return false;
	/* Before somebody else can have it, and tell us. */
	for (uint32_t i = 0; out && i < n; i++)
		eddy_outmap_drop(&outside, p + i * EDDY_CHUNK);
	depth++;
	eddy_request_begin(&r);
	refused = k->dalloc(k, p, n * EDDY_CHUNK, commit, index_of(a));
	eddy_request_end(&r);
	depth--;
	if (refused && (!out || know(p, chunk, n)))
		return false;
	/* One of ours has left the place as it was before. */
	if (!out && !r.served && !is_hole(h, chunk, n))
		return false;
	forget(h, chunk, n);
	return true;
}

void
eddy_hooks_part(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint32_t n)
{
	extent_hooks_t *k = of_program(a);
	uint32_t end = chunk + n;

	if (k == NULL && eddy_hooks_get(a) != &eddy_hooks_default)
		return;
	for (uint32_t c = chunk; c < end;) {
		struct extent e = extent_of(h, c);

		if (e.n == 1 || e.chunk != c || c + e.n > end) {
			c = e.chunk + e.n;
			continue;
		}
		if (may_split_chunks(h, a, k, e, 1)) {
			set_joined(h, ++c, false);
			continue;
		}
		/* Whether it takes them or not: they are one. */
		(void)leave(h, a, c, e.n);
		c += e.n;
	}
}

/* Calls a hook for part of an extent; true: it did what it is for. */
static bool
part(struct eddy_heap *h, struct eddy_arena *a, extent_hooks_t *k,
    extent_purge_t *hook, uint32_t chunk, unsigned page, unsigned n)
{
	struct extent e = extent_of(h, chunk);
	bool refused;

	if (hook == NULL)
		return false;
	depth++;
	refused = hook(k, address(h, e.chunk), e.n * EDDY_CHUNK,
	    (chunk - e.chunk) * EDDY_CHUNK + page * EDDY_PAGE, n * EDDY_PAGE,
	    index_of(a));
	depth--;
	return !refused;
}

/* The same, and it holds nothing after. */
static enum eddy_given
force(struct eddy_heap *h, struct eddy_arena *a, extent_hooks_t *k,
    uint32_t chunk, unsigned page, unsigned n)
{
	drop_marks(h, chunk, page, n);
	if (part(h, a, k, k->decommit, chunk, page, n))
		return EDDY_GIVEN_RAW;
	if (part(h, a, k, k->purge_forced, chunk, page, n))
		return EDDY_GIVEN_ZERO;
	return EDDY_GIVEN_NOT;
}

/* What the hooks make of part of an extent that stays. */
static enum eddy_given
purge(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned page,
    unsigned n, bool lazily, bool muzzy)
{
	extent_hooks_t *k = eddy_hooks_get(a);
	enum eddy_given given;

	if (depth != 0)
		return EDDY_GIVEN_NOT;
	if (lazily && part(h, a, k, k->purge_lazy, chunk, page, n))
		return EDDY_GIVEN_LAZY;
	given = force(h, a, k, chunk, page, n);
	if (given != EDDY_GIVEN_NOT)
		return given;
	if (!lazily && !muzzy && part(h, a, k, k->purge_lazy, chunk, page, n))
		return EDDY_GIVEN_LAZY;
	return EDDY_GIVEN_NOT;
}

/* ------------------------------------------------------------------ */
/* Bits of pages */

bool
eddy_next_run(const uint64_t *w, unsigned *pos, unsigned *n)
{
	unsigned p = *pos;

	while (p < EDDY_CHUNK_PAGES && (w[p / 64] >> p % 64 & 1) == 0)
		p = w[p / 64] >> p % 64 == 0 ? (p / 64 + 1) * 64 : p + 1;
	if (p >= EDDY_CHUNK_PAGES)
		return false;
	*pos = p;
	while (p < EDDY_CHUNK_PAGES && (w[p / 64] >> p % 64 & 1) != 0)
		p++;
	*n = p - *pos;
	return true;
}

/* Sets or clears bits of [page, page + n) in hand; returns how many changed. */
static unsigned
change(_Atomic uint64_t *w, unsigned page, unsigned n, bool on)
{
	unsigned changed = 0;

	while (n != 0) {
		unsigned here = 64 - page % 64 < n ? 64 - page % 64 : n;
		uint64_t mask = eddy_mask(page % 64, here);
		/* relaxed, both: in hand; the word holds others' bits. */
		uint64_t old = on ? eddy_or_relaxed(&w[page / 64], mask)
				  : eddy_and_relaxed(&w[page / 64], ~mask);

		changed +=
		    (unsigned)__builtin_popcountll((on ? ~old : old) & mask);
		page += here;
		n -= here;
	}
	return changed;
}

/* Bits of words in hand. */
static void
copy(const _Atomic uint64_t *w, uint64_t *ret)
{
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
		/* relaxed: in hand. */
		ret[i] = eddy_load_relaxed(&w[i]);
}

static bool
any(const uint64_t *w)
{
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
		if (w[i] != 0)
			return true;
	return false;
}

/* ------------------------------------------------------------------ */
/* Pages */

/* Whether the hooks agree that pages of a chunk are for themselves. */
static bool
may_split_off(struct eddy_heap *h, struct eddy_arena *a, extent_hooks_t *k,
    uint32_t chunk, unsigned page, unsigned n)
{
	const unsigned all = (unsigned)EDDY_CHUNK_PAGES;

	return k->split != NULL &&
	       (page == 0 ||
		   eddy_hooks_cut_run(h, a, chunk, 0, page, all - page)) &&
	       (page + n == all ||
		   eddy_hooks_cut_run(h, a, chunk, page, n, all - page - n));
}

/* Offers pages in hand to dalloc; true: it took them. */
static bool
offer(struct eddy_heap *h, struct eddy_arena *a, extent_hooks_t *k,
    uint32_t chunk, unsigned page, unsigned n)
{
	bool refused;

	uint64_t raw[EDDY_RUNMAP_WORDS];
	unsigned at = page;
	unsigned m;
	bool commit;

	copy(h->chunks[chunk].raw, raw);
	commit = !eddy_next_run(raw, &at, &m) || at >= page + n;
	depth++;
	refused = k->dalloc(k, eddy_page_address(h, chunk, page), n * EDDY_PAGE,
	    commit, index_of(a));
	depth--;
	if (!refused)
		drop_marks(h, chunk, page, n);
	return !refused;
}

/* The same of part of an extent; false: all is as it was. */
static enum eddy_given
offer_part(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n)
{
	extent_hooks_t *k = of_program(a);
	void *place = eddy_page_place(h, chunk, page);

	if (k == NULL || k->dalloc == NULL ||
	    (uintptr_t)place % eddy_os_page_size() != 0 ||
	    n * EDDY_PAGE % eddy_os_page_size() != 0 ||
	    extent_of(h, chunk).n != 1 ||
	    !may_split_off(h, a, k, chunk, page, n) ||
	    !offer(h, a, k, chunk, page, n))
		return EDDY_GIVEN_NOT;
	if (place != eddy_page_address(h, chunk, page))
		return EDDY_GIVEN_AWAY;
	/* A hole in the range is mended, and filled with fresh pages. */
	if (eddy_os_reserve_at(place, n * EDDY_PAGE) == 0 &&
	    eddy_os_commit(place, n * EDDY_PAGE) == 0)
		return EDDY_GIVEN_ZERO;
	return EDDY_GIVEN_NOT;
}

enum eddy_given
eddy_hooks_give(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n, bool lazily, bool muzzy)
{
	enum eddy_given given = EDDY_GIVEN_NOT;

	if (!lazily)
		given = offer_part(h, a, chunk, page, n);
	return given != EDDY_GIVEN_NOT
		   ? given
		   : purge(h, a, chunk, page, n, lazily, muzzy);
}

/* The arena has ended: what is left of a chunk is the hooks'. */
static void
destroy_pages(struct eddy_heap *h, struct eddy_arena *a, extent_hooks_t *k,
    uint32_t chunk, unsigned page, unsigned n)
{
	if (k->destroy == NULL)
		return;
	depth++;
	k->destroy(k, eddy_page_address(h, chunk, page), n * EDDY_PAGE, true,
	    index_of(a));
	depth--;
}

bool
eddy_hooks_leave_rest(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint64_t *pages)
{
	extent_hooks_t *k = of_program(a);
	const bool ended = eddy_arena_phase(a) == EDDY_ARENA_ENDED;
	unsigned pos = 0;
	unsigned n;

	if (k == NULL && !ended)
		return false;
	/* Before somebody else can have it, and tell us. */
	eddy_outmap_drop(&outside, address(h, chunk));
	for (; eddy_next_run(pages, &pos, &n); pos += n) {
		if (k == NULL || k->dalloc == NULL ||
		    !offer(h, a, k, chunk, pos, n)) {
			if (!ended)
				continue;
			if (k != NULL)
				destroy_pages(h, a, k, chunk, pos, n);
		}
		eddy_pages_clean(h, chunk, pos, n);
		(void)change(h->chunks[chunk].absent, pos, n, true);
		for (unsigned i = pos; i < pos + n; i++)
			pages[i / 64] &= ~((uint64_t)1 << i % 64);
	}
	if (!any(pages)) {
		set_words(h->chunks[chunk].absent, false);
		forget(h, chunk, 1);
		return true;
	}
	/* Where another has it by now, it is nobody's. */
	(void)know(address(h, chunk), chunk, 1);
	return false;
}

/* ------------------------------------------------------------------ */
/* Whole chunks */

/* The page bits of a chunk in hand that is not cut say what its own says. */
static void
spread(struct eddy_heap *h, uint32_t chunk)
{
	struct eddy_segment *s = segment_of(h, chunk);
	struct eddy_runmap *m = &h->chunks[chunk].map;
	/* relaxed, all: in hand. */
	bool dirty =
	    eddy_load_relaxed(&s->map.dirty[word_of(chunk)]) & bit_of(chunk);

	if (dirty && (eddy_load_relaxed(&s->uniform[word_of(chunk)]) &
			 bit_of(chunk)) == 0)
		return;
	/* relaxed: in hand. */
	(void)eddy_and_relaxed(&s->uniform[word_of(chunk)], ~bit_of(chunk));
	set_words(m->dirty, dirty);
}

static struct eddy_arena *
counted(struct eddy_heap *h, uint32_t chunk)
{
	/* relaxed: in hand. */
	return eddy_arena_at(
	    h, eddy_load_relaxed(&segment_of(h, chunk)->counted));
}

static bool
is_dirty(struct eddy_heap *h, uint32_t chunk)
{
	/* relaxed: in hand. */
	return (eddy_load_relaxed(
		    &segment_of(h, chunk)->map.dirty[word_of(chunk)]) &
		   bit_of(chunk)) != 0;
}

void
eddy_hooks_raw(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n)
{
	(void)change(h->chunks[chunk].raw, page, n, true);
	(void)change(h->chunks[chunk].stale, page, n, true);
	/* relaxed: a part is in hand; RUN-R2.  Others would not commit them. */
	eddy_store_relaxed(&segment_of(h, chunk)->tied, a->number);
}

/*
 * A chunk in hand goes in one piece, for its pages may be huge; not lazily, for
 * then what is clean would not be known to be zero.  False: refused.
 */
static bool
give_whole(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, bool lazily)
{
	extent_hooks_t *k = eddy_hooks_get(a);
	enum eddy_given given;

	if (depth != 0 || (lazily && k->purge_lazy != NULL) ||
	    !is_committed(h, chunk, 1))
		return false;
	given = force(h, a, k, chunk, 0, EDDY_CHUNK_PAGES);
	if (given == EDDY_GIVEN_NOT)
		return false;
	if (given == EDDY_GIVEN_RAW)
		eddy_hooks_raw(h, a, chunk, 0, EDDY_CHUNK_PAGES);
	else
		set_words(h->chunks[chunk].stale, false);
	eddy_chunks_clean(h, chunk, 1);
	return true;
}

/* Dirty pages of a chunk in hand go, run by run; returns how many went. */
static unsigned
give_pages(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    bool lazily, unsigned *refused)
{
	struct eddy_segment *s = segment_of(h, chunk);
	struct eddy_chunk *d = &h->chunks[chunk];
	/* relaxed: in hand. */
	bool muzzy =
	    eddy_load_relaxed(&s->muzzy[word_of(chunk)]) & bit_of(chunk);
	bool lazy = muzzy;
	uint64_t dirty[EDDY_RUNMAP_WORDS];
	unsigned cleaned = 0;
	unsigned done = 0;
	unsigned pos = 0;
	unsigned n;

	spread(h, chunk);
	eddy_chunk_unmuzzy(h, chunk);
	if (give_whole(h, a, chunk, lazily))
		return (unsigned)EDDY_CHUNK_PAGES;
	copy(d->map.dirty, dirty);
	for (; eddy_next_run(dirty, &pos, &n); pos += n) {
		switch (purge(h, a, chunk, pos, n, lazily, muzzy)) {
		case EDDY_GIVEN_RAW:
			eddy_hooks_raw(h, a, chunk, pos, n);
			/* fallthrough */
		case EDDY_GIVEN_ZERO:
			cleaned += change(d->map.dirty, pos, n, false);
			done += n;
			break;
		case EDDY_GIVEN_LAZY:
			lazy = true;
			done += n;
			break;
		default:
			++*refused;
		}
	}
	copy(d->map.dirty, dirty);
	if (!any(dirty)) /* relaxed: in hand. */
		(void)eddy_and_relaxed(
		    &s->map.dirty[word_of(chunk)], ~bit_of(chunk));
	eddy_reclaim_clean(counted(h, chunk), cleaned);
	if (lazy)
		eddy_chunks_lazy(h, chunk, 1);
	return done;
}

size_t
eddy_hooks_give_chunks(struct eddy_heap *h, struct eddy_arena *a,
    uint32_t chunk, uint32_t n, bool lazily, bool all, unsigned *refused)
{
	uint32_t end = chunk + n;
	size_t done = 0;

	if (depth != 0)
		return 0;
	for (uint32_t c = chunk; c < end;) {
		struct extent e;
		bool dirty = false;

		if (!is_ready(h, c)) {
			c++;
			continue;
		}
		e = extent_of(h, c);
		for (uint32_t i = c; i < e.chunk + e.n && i < end; i++)
			dirty |= is_dirty(h, i);
		if (!lazily && (dirty || all) && e.chunk == c &&
		    c + e.n <= end && leave(h, a, c, e.n)) {
			done += e.n * EDDY_CHUNK;
			c += e.n;
			continue;
		}
		for (; c < e.chunk + e.n && c < end; c++)
			if (is_dirty(h, c))
				done += give_pages(h, a, c, lazily, refused) *
					EDDY_PAGE;
	}
	return done;
}

/* ------------------------------------------------------------------ */
/* Memory is used */

/* Commits the raw pages among those in hand. */
static bool
commit(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned page,
    unsigned n)
{
	extent_hooks_t *k = eddy_hooks_get(a);
	struct eddy_chunk *d = &h->chunks[chunk];
	uint64_t raw[EDDY_RUNMAP_WORDS];
	unsigned end = page + n;

	copy(d->raw, raw);
	while (eddy_next_run(raw, &page, &n) && page < end) {
		if (page + n > end)
			n = end - page;
		if (depth != 0 || !part(h, a, k, k->commit, chunk, page, n))
			return false;
		(void)change(d->raw, page, n, false);
		page += n;
	}
	return true;
}

/* What is stale among pages in hand is dirty; returns how many were not. */
static int64_t
unstale(struct eddy_chunk *d, unsigned page, unsigned n)
{
	uint64_t stale[EDDY_RUNMAP_WORDS];
	unsigned end = page + n;
	int64_t more = 0;

	copy(d->stale, stale);
	while (eddy_next_run(stale, &page, &n) && page < end) {
		if (page + n > end)
			n = end - page;
		(void)change(d->stale, page, n, false);
		more += change(d->map.dirty, page, n, true);
		page += n;
	}
	return more;
}

bool
eddy_hooks_fill(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, unsigned n)
{
	if (!commit(h, a, chunk, page, n))
		return false;
	/* relaxed: a hint. */
	(void)eddy_add_relaxed(
	    &a->reclaim.backed, unstale(&h->chunks[chunk], page, n));
	return true;
}

/* The same of whole chunks. */
static void
unstale_chunks(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	for (uint32_t c = chunk; c < chunk + n; c++) {
		struct eddy_segment *s = segment_of(h, c);
		uint64_t stale[EDDY_RUNMAP_WORDS];

		copy(h->chunks[c].stale, stale);
		if (!any(stale))
			continue;
		spread(h, c);
		/* relaxed, both: in hand; a hint. */
		(void)eddy_or_relaxed(&s->map.dirty[word_of(c)], bit_of(c));
		(void)eddy_add_relaxed(&counted(h, c)->reclaim.backed,
		    unstale(&h->chunks[c], 0, EDDY_CHUNK_PAGES));
	}
}

bool
eddy_hooks_fill_chunks(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint32_t n)
{
	for (uint32_t c = chunk; c < chunk + n; c++)
		if (!commit(h, a, c, 0, EDDY_CHUNK_PAGES))
			return false;
	unstale_chunks(h, chunk, n);
	return true;
}

void
eddy_hooks_unfill(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	for (uint32_t c = chunk; c < chunk + n; c++) {
		struct eddy_chunk *d = &h->chunks[c];
		uint64_t raw[EDDY_RUNMAP_WORDS];
		unsigned cleaned = 0;
		unsigned pos = 0;
		unsigned m;

		copy(d->raw, raw);
		if (!any(raw))
			continue;
		spread(h, c);
		for (; eddy_next_run(raw, &pos, &m); pos += m) {
			cleaned += change(d->map.dirty, pos, m, false);
			(void)change(d->stale, pos, m, true);
		}
		eddy_reclaim_clean(counted(h, c), cleaned);
	}
}

/* ------------------------------------------------------------------ */
/* The end */

/* Chunks in the range that hold nothing any more are as those of others. */
static void
keep(struct eddy_heap *h, uint32_t chunk, uint32_t n)
{
	void *place = eddy_page_place(h, chunk, 0);
	bool zero = eddy_os_commit(place, n * EDDY_CHUNK) == 0 &&
		    eddy_hooks_drop(h, place, n * EDDY_CHUNK);

	drop_marks(h, chunk, 0, n * EDDY_CHUNK_PAGES);
	for (uint32_t c = chunk; c < chunk + n; c++) {
		set_joined(h, c, false);
		set_words(h->chunks[c].raw, false);
		set_words(h->chunks[c].stale, !zero);
	}
	if (zero)
		eddy_chunks_clean(h, chunk, n);
	else
		unstale_chunks(h, chunk, n);
}

/* An extent in hand, or what of it is in this segment. */
static void
destroy(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, uint32_t n)
{
	extent_hooks_t *k = of_program(a);
	char *p = address(h, chunk);
	bool out = p != eddy_page_place(h, chunk, 0);
	bool ours = true;

	for (uint32_t i = 0; out && i < n; i++)
		eddy_outmap_drop(&outside, p + i * EDDY_CHUNK);
	if (k != NULL && k->destroy != NULL) {
		struct eddy_request r = {.chunk = chunk, .n = n, .goes = true};

		depth++;
		eddy_request_begin(&r);
		k->destroy(k, p, n * EDDY_CHUNK, is_committed(h, chunk, n),
		    index_of(a));
		eddy_request_end(&r);
		depth--;
		ours = r.served;
	}
	if (out || (!ours && is_hole(h, chunk, n)))
		forget(h, chunk, n);
	else
		keep(h, chunk, n);
}

static void
end_segment(struct eddy_heap *h, struct eddy_arena *a, uint32_t segment)
{
	uint32_t end = (segment + 1) * (uint32_t)EDDY_SEGMENT_CHUNKS;

	for (uint32_t c = end - (uint32_t)EDDY_SEGMENT_CHUNKS; c < end;) {
		struct extent e;

		if (!is_ready(h, c)) {
			c++;
			continue;
		}
		e = extent_of(h, c);
		e.n -= c - e.chunk;
		if (c + e.n > end)
			e.n = end - c;
		destroy(h, a, c, e.n);
		c += e.n;
	}
	/* relaxed: in hand. */
	eddy_store_relaxed(&h->segments[segment].tied, 0);
}

void
eddy_hooks_end(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t i = eddy_segment_from(a, 0);

	/* A child that does not have it: nobody gets these segments again. */
	if (!eddy_backing_here(&a->backing))
		return;
	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1)) {
		/* relaxed: a guess, and in hand. */
		if (eddy_load_relaxed(&h->segments[i].tied) != a->number ||
		    !eddy_segment_claim_at(h, i))
			continue;
		if (eddy_load_relaxed(&h->segments[i].tied) == a->number)
			end_segment(h, a, i);
		eddy_segments_put(h, i, 1);
	}
}

bool
eddy_hooks_left(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t i = eddy_hooked(a) ? eddy_segment_from(a, 0) : EDDY_ID_NONE;

	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1))
		/* relaxed: what is in hand of a purge stays tied. */
		if (eddy_load_relaxed(&h->segments[i].tied) == a->number)
			return true;
	return false;
}
