/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/slab.h"

#include "lib/heap/chunk.h"
#include "lib/heap/pagemap.h"
#include "lib/os/fatal.h"

/* A head page: what the protocol speaks of. */
struct head {
	struct eddy_chunk *c;
	uint32_t chunk;
	unsigned page;
};

static _Atomic uint32_t *
tag_at(struct eddy_heap *h, struct head s)
{
	return &h->tags[(size_t)s.chunk * EDDY_CHUNK_PAGES + s.page];
}

/* All objects of word k of a slab of this class. */
static uint64_t
full(const struct eddy_class *class, unsigned k)
{
	unsigned n = class->n_objects;

	if (k * 64 >= n)
		return 0;
	return eddy_mask(0, n - k * 64 < 64 ? n - k * 64 : 64);
}

static unsigned
n_words(const struct eddy_class *class)
{
	return (class->n_objects + 63u) / 64;
}

static void *
object_at(struct eddy_heap *h, struct head s, unsigned row, unsigned index)
{
	return (char *)eddy_page_address(h, s.chunk, s.page) +
	       (size_t)index * eddy_row_size(row);
}

/* Row of the live slab whose head this is, 0 if it is none. */
static unsigned
row_of(uint32_t tag)
{
	if (!eddy_tag_is_slab(tag) || eddy_tag_pages(tag) != 0)
		return 0;
	return eddy_tag_row(tag);
}

/* Whether the arena's slabs of that row are a pool's. */
static bool
is_pool(struct eddy_arena *a, unsigned row)
{
	/* relaxed, both: the arena's since before it had slabs. */
	return eddy_load_relaxed(&a->pooled) &&
	       eddy_load_relaxed(&a->pool_row) == row;
}

static struct eddy_arena *
arena_of(struct eddy_heap *h, struct eddy_chunk *c)
{
	/* relaxed: pinned by bits in hand, else a hint. */
	uint32_t owner = eddy_load_relaxed(&c->map.owner);

	return owner != 0 ? eddy_arena_at(h, owner) : NULL;
}

/* ------------------------------------------------------------------ */
/* Hints */

static bool
any_word(struct eddy_chunk *c, unsigned page)
{
	for (unsigned k = 0; k < EDDY_SLAB_WORDS; k++) {
		/* SLAB-A1: after the clear of the hint. */
		if (eddy_load_seq_cst(&c->slab[page][k]) != 0)
			return true;
	}
	return false;
}

static bool
any_head(struct eddy_chunk *c, unsigned row)
{
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* SLAB-A1: after the clear of the chunk's hint. */
		if (eddy_load_seq_cst(&c->index[row - 1][i]) != 0)
			return true;
	}
	return false;
}

static void
hint(struct eddy_arena *a, struct head s, unsigned row)
{
	_Atomic uint64_t *w = &s.c->index[row - 1][s.page / 64];
	uint64_t bit = (uint64_t)1 << s.page % 64;

	/* SLAB-R1: after the free bits it announces. */
	if ((eddy_load_seq_cst(w) & bit) == 0 &&
	    (eddy_or_seq_cst(w, bit) & bit) == 0 && a != NULL)
		eddy_tally_partial(&a->tally, row, 1);
	if (a != NULL)
		eddy_idset_set(&a->hints, EDDY_HINT_CLASS(row), s.chunk);
}

/* Nothing of this class in the chunk, as far as a knows. */
static void
unhint_chunk(struct eddy_heap *h, struct eddy_arena *a, unsigned row,
    struct eddy_chunk *c, uint32_t chunk)
{
	eddy_idset_clear(&a->hints, EDDY_HINT_CLASS(row), chunk);
	if (any_head(c, row) && arena_of(h, c) == a)
		eddy_idset_set(&a->hints, EDDY_HINT_CLASS(row), chunk);
}

/* Nothing in this slab: clear, look again, set again (I-SLAB-3's partner). */
static void
unhint(struct eddy_heap *h, struct eddy_arena *a, struct head s, unsigned row)
{
	_Atomic uint64_t *w = &s.c->index[row - 1][s.page / 64];
	uint64_t bit = (uint64_t)1 << s.page % 64;

	/* SLAB-R1: a clear is an RMW in the same total order. */
	if ((eddy_and_seq_cst(w, ~bit) & bit) != 0)
		eddy_tally_partial(&a->tally, row, -1);
	/*
	 * relaxed, the tag: read after the words; a word seen non-zero
	 * carries (SLAB-A2) the tag that it was published with.
	 */
	if (any_word(s.c, s.page) &&
	    row_of(eddy_load_relaxed(tag_at(h, s))) == row) {
		hint(arena_of(h, s.c), s, row);
		return;
	}
	if (!any_head(s.c, row))
		unhint_chunk(h, a, row, s.c, s.chunk);
}

/* ------------------------------------------------------------------ */
/* Put and retire */

static void put(struct eddy_heap *h, struct head s, unsigned k, uint64_t mask);

/* The slab looked free: takes all of it; false: it is not. */
static bool
take_whole(struct eddy_heap *h, struct head s, unsigned row)
{
	const struct eddy_class *class = &eddy_classes[row];
	_Atomic uint32_t *tag = tag_at(h, s);
	unsigned k;

	for (k = 0; k < n_words(class); k++) {
		uint64_t all = full(class, k);

		/* SLAB-A2: pairs with SLAB-R2 of all who put. */
		if (!eddy_cas_acquire(&s.c->slab[s.page][k], &all, 0))
			break;
		/* relaxed: pinned now; it may be another slab (I-SLAB-2). */
		if (k == 0 && row_of(eddy_load_relaxed(tag)) != row) {
			put(h, s, 0, full(class, 0));
			return false;
		}
	}
	if (k == n_words(class))
		return true;
	while (k-- > 0)
		put(h, s, k, full(class, k));
	return false;
}

/* A slab that is in one hand is none any more. */
static void
end(struct eddy_arena *a, struct head s, unsigned row)
{
	const uint64_t bit = (uint64_t)1 << s.page % 64;

	/* relaxed: nobody else has a bit to put. */
	if ((eddy_and_relaxed(&s.c->index[row - 1][s.page / 64], ~bit) & bit) !=
	    0)
		eddy_tally_partial(&a->tally, row, -1);
	eddy_tally_retired(&a->tally, row);
}

/* And its pages go back. */
static void
give_pages(struct eddy_heap *h, struct head s, unsigned row)
{
	const struct eddy_class *class = &eddy_classes[row];

	for (unsigned i = 0; i < class->pages; i++) {
		/* relaxed: published with the pages' free bits (RUN-R2). */
		eddy_store_relaxed(&tag_at(h, s)[i], 0);
	}
	eddy_pages_free(s.chunk, s.page, class->pages, object_at(h, s, row, 0));
}

static void
retire(struct eddy_heap *h, struct head s, unsigned row)
{
	struct eddy_arena *a;

	if (!take_whole(h, s, row))
		return;
	a = arena_of(h, s.c);
	/* Of a pool, where a slab of its class was when we looked. */
	if (eddy_unlikely(is_pool(a, row))) {
		for (unsigned k = 0; k < n_words(&eddy_classes[row]); k++)
			put(h, s, k, full(&eddy_classes[row], k));
		return;
	}
	end(a, s, row);
	give_pages(h, s, row);
}

/* blame: an object that was free already is a fault. */
static void
put_as(
    struct eddy_heap *h, struct head s, unsigned k, uint64_t mask, bool blame)
{
	_Atomic uint64_t *word = &s.c->slab[s.page][k];
	/* relaxed: pinned by the bits in hand. */
	unsigned row = row_of(eddy_load_relaxed(tag_at(h, s)));
	struct eddy_arena *a = arena_of(h, s.c);
	const struct eddy_class *class = &eddy_classes[row];
	/* A pool's memory is never anything else. */
	bool keeps = a != NULL && is_pool(a, row);
	uint64_t old;

	if (row == 0 && !blame)
		return;
	if (row == 0)
		eddy_fatal(
		    "double free", eddy_page_address(h, s.chunk, s.page));
	/*
	 * SLAB-R2: the objects' last writes.  SLAB-R1: first half of two
	 * store-load pairs, with the hint and with the other words.
	 */
	old = eddy_or_seq_cst(word, mask);
	if ((old & mask) != 0 && blame)
		eddy_fatal("double free",
		    object_at(h, s, row, k * 64 + eddy_ctz64(old & mask)));
	/* From here on the slab may be gone; what follows are hints. */
	hint(a, s, row);
	if ((old | mask) != full(class, k) || eddy_unlikely(keeps))
		return;
	for (unsigned i = 0; i < n_words(class); i++) {
		/* SLAB-A1: of two last freers one sees all words full. */
		if (i != k &&
		    eddy_load_seq_cst(&s.c->slab[s.page][i]) != full(class, i))
			return;
	}
	retire(h, s, row);
}

static void
put(struct eddy_heap *h, struct head s, unsigned k, uint64_t mask)
{
	put_as(h, s, k, mask, true);
}

void
eddy_slab_empty(
    struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk, unsigned page)
{
	struct head s = {&h->chunks[chunk], chunk, page};
	/* relaxed: a guess, checked below. */
	unsigned row = row_of(eddy_load_relaxed(tag_at(h, s)));
	const struct eddy_class *class = &eddy_classes[row];
	uint64_t held[EDDY_SLAB_WORDS];
	unsigned n = class->n_objects;

	if (row == 0)
		return;
	/* SLAB-A2: with the free ones in hand the slab stays what it is. */
	for (unsigned k = 0; k < n_words(class); k++)
		held[k] = eddy_xchg_seq_cst(&s.c->slab[page][k], 0);
	/* relaxed: pinned by these, or by the program's objects (I-SLAB-2). */
	if (row_of(eddy_load_relaxed(tag_at(h, s))) != row ||
	    arena_of(h, s.c) != a) {
		for (unsigned k = 0; k < n_words(class); k++)
			if (held[k] != 0)
				put(h, s, k, held[k]);
		return;
	}
	for (unsigned k = 0; k < n_words(class); k++)
		n -= (unsigned)__builtin_popcountll(held[k]);
	eddy_tally_put(&a->tally, row, n);
	/* With the last of them it retires. */
	for (unsigned k = 0; k < n_words(class); k++)
		put_as(h, s, k, full(class, k), false);
}

/* Whether no object of it is out, as far as a look can tell. */
static bool
looks_free(struct head s, const struct eddy_class *class)
{
	for (unsigned k = 0; k < n_words(class); k++) {
		/* relaxed: a guess. */
		if (eddy_load_relaxed(&s.c->slab[s.page][k]) != full(class, k))
			return false;
	}
	return true;
}

bool
eddy_slab_withdraw(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, uint32_t number)
{
	struct head s = {&h->chunks[chunk], chunk, page};
	uint32_t limbo = (uint32_t)EDDY_TAG_LIMBO << 28 | number;
	/* relaxed: a guess, checked below. */
	uint32_t tag = eddy_load_relaxed(tag_at(h, s));
	/* relaxed: as in is_pool. */
	unsigned row = eddy_load_relaxed(&a->pool_row);

	if (eddy_tag_kind(tag) == EDDY_TAG_LIMBO) {
		/* Of who was killed, or is not as far: he finds it gone.
		 * POOL-A1: it lies there since before our grace.  POOL-R1. */
		return tag != limbo &&
		       eddy_load_relaxed(&s.c->map.owner) == a->number &&
		       eddy_cas_acq_rel(tag_at(h, s), &tag, limbo);
	}
	if (eddy_tag_kind(tag) != EDDY_TAG_POOL || row_of(tag) != row ||
	    !looks_free(s, &eddy_classes[row]) || !take_whole(h, s, row))
		return false;
	/* Pinned now (I-SLAB-2). */
	if (arena_of(h, s.c) != a) {
		for (unsigned k = 0; k < n_words(&eddy_classes[row]); k++)
			put(h, s, k, full(&eddy_classes[row], k));
		return false;
	}
	end(a, s, row);
	/* POOL-R1: all of it is in hand. */
	eddy_store_release(tag_at(h, s), limbo);
	return true;
}

unsigned
eddy_slab_give(struct eddy_heap *h, struct eddy_arena *a, uint32_t chunk,
    unsigned page, uint32_t number)
{
	struct head s = {&h->chunks[chunk], chunk, page};
	uint32_t limbo = (uint32_t)EDDY_TAG_LIMBO << 28 | number;
	/* relaxed: as in is_pool. */
	unsigned row = eddy_load_relaxed(&a->pool_row);

	/* POOL-A1: of two that want it one gets it. */
	if (!eddy_cas_acquire(tag_at(h, s), &limbo, 0))
		return 0;
	give_pages(h, s, row);
	return eddy_classes[row].pages;
}

unsigned
eddy_slab_alive(struct eddy_heap *h, uint32_t chunk, unsigned page)
{
	struct head s = {&h->chunks[chunk], chunk, page};
	/* relaxed: the caller sees to it that nothing changes. */
	unsigned row = row_of(eddy_load_relaxed(tag_at(h, s)));
	unsigned n = eddy_classes[row].n_objects;

	if (row == 0)
		return 0;
	for (unsigned k = 0; k < n_words(&eddy_classes[row]); k++) {
		/* relaxed: as above. */
		n -= (unsigned)__builtin_popcountll(
		    eddy_load_relaxed(&s.c->slab[page][k]));
	}
	return n;
}

void
eddy_slab_put(
    struct eddy_heap *h, struct eddy_slab_bit bits, struct eddy_slab_puts *puts)
{
	size_t at = (uintptr_t)bits.word - (uintptr_t)h->chunks;
	struct eddy_arena *a;
	struct head s;
	unsigned row;

	s.chunk = (uint32_t)(at / sizeof(struct eddy_chunk));
	s.c = &h->chunks[s.chunk];
	at = at % sizeof(struct eddy_chunk) - offsetof(struct eddy_chunk, slab);
	s.page = (unsigned)(at / sizeof(s.c->slab[0]));
	/* relaxed: pinned by the bits in hand, until they are put. */
	row = row_of(eddy_load_relaxed(tag_at(h, s)));
	a = arena_of(h, s.c);
	if (puts->a != a || puts->row != row) {
		eddy_slab_count(puts);
		puts->a = a;
		puts->row = row;
	}
	puts->n += (unsigned)__builtin_popcountll(bits.mask);
	put(h, s,
	    (unsigned)(at % sizeof(s.c->slab[0]) / sizeof(s.c->slab[0][0])),
	    bits.mask);
}

struct eddy_slab_bit
eddy_slab_bit_of(struct eddy_heap *h, const void *p, uint32_t tag)
{
	const struct eddy_class *class = &eddy_classes[eddy_tag_row(tag)];
	size_t page = eddy_page_of(h, p) - eddy_tag_pages(tag);
	size_t offset = ((uintptr_t)p - h->base) - (page << EDDY_LG_PAGE);
	unsigned index = (unsigned)(offset * class->magic >> 32);
	struct eddy_slab_bit b;

	if ((size_t)index * class->size != offset || index >= class->n_objects)
		eddy_fatal("misaligned pointer", eddy_address_of(h, p));
	b.word = &h->chunks[page / EDDY_CHUNK_PAGES]
		      .slab[page % EDDY_CHUNK_PAGES][index / 64];
	b.mask = (uint64_t)1 << index % 64;
	return b;
}

/* ------------------------------------------------------------------ */
/* Refill */

static unsigned
spread(struct eddy_heap *h, struct head s, unsigned row, unsigned k,
    uint64_t bits, void **objects)
{
	size_t size = eddy_row_size(row);
	char *first = object_at(h, s, row, k * 64);
	unsigned n = 0;

	for (; bits != 0; bits &= bits - 1)
		objects[n++] = first + eddy_ctz64(bits) * size;
	return n;
}

/* The lowest n set bits of w. */
static uint64_t
lowest(uint64_t w, unsigned n)
{
	uint64_t rest = w;

	while (n-- > 0 && rest != 0)
		rest &= rest - 1;
	return w & ~rest;
}

/* Takes up to n objects from a slab that the hints name. */
static unsigned
take(struct eddy_heap *h, struct eddy_arena *a, struct head s, unsigned row,
    void **objects, unsigned n)
{
	const struct eddy_class *class = &eddy_classes[row];
	unsigned got = 0;

	for (unsigned k = 0; k < n_words(class) && got < n; k++) {
		_Atomic uint64_t *word = &s.c->slab[s.page][k];
		/* relaxed: a guess that the RMW checks. */
		uint64_t want = lowest(eddy_load_relaxed(word), n - got);
		uint64_t bits;

		if (want == 0)
			continue;
		/* SLAB-A2: pairs with SLAB-R2; the tag is read after. */
		bits = eddy_and_seq_cst(word, ~want) & want;
		if (bits == 0)
			continue;
		/* relaxed, both: ordered by the RMW, pinned by its bits. */
		if (row_of(eddy_load_relaxed(tag_at(h, s))) != row ||
		    eddy_load_relaxed(&s.c->map.owner) != a->number) {
			put(h, s, k, bits);
			break;
		}
		got += spread(h, s, row, k, bits, objects + got);
	}
	if (got == 0 || !any_word(s.c, s.page))
		unhint(h, a, s, row);
	return got;
}

/* Makes a new slab's objects what they are from then on. */
static EDDY_NOINLINE void
construct(
    struct eddy_heap *h, struct eddy_arena *a, struct head s, unsigned row)
{
	/* relaxed, both: as in is_pool. */
	eddy_construct *make = eddy_load_relaxed(&a->construct);
	void *arg = eddy_load_relaxed(&a->construct_arg);

	for (unsigned i = 0; make != NULL && i < eddy_classes[row].n_objects;
	     i++)
		make(arg, object_at(h, s, row, i));
}

/* A new slab; its first objects are the caller's. */
static unsigned
birth(struct eddy_heap *h, struct eddy_arena *a, unsigned row, void **objects,
    unsigned n)
{
	const struct eddy_class *class = &eddy_classes[row];
	struct eddy_run r;
	struct head s;
	uint64_t kept = lowest(full(class, 0), n);
	bool pool = is_pool(a, row);
	bool left = false;

	if (!eddy_pages_claim(h, a, class->pages, 1, EDDY_WANT_DIRTY, &r))
		return 0;
	eddy_pages_use(h, r.id, r.pos, class->pages, false);
	s.c = &h->chunks[r.id];
	s.chunk = r.id;
	s.page = r.pos;
	if (eddy_unlikely(pool))
		construct(h, a, s, row);
	for (unsigned i = 0; i < class->pages; i++) {
		/* relaxed: published with the free bits (SLAB-R2). */
		eddy_store_relaxed(tag_at(h, s) + i,
		    eddy_tag(
			pool ? EDDY_TAG_POOL : EDDY_TAG_SLAB, a->home, row, i));
	}
	for (unsigned k = n_words(class); k-- > 0;) {
		uint64_t open = full(class, k) & (k == 0 ? ~kept : ~0ULL);
		uint64_t old;

		/* SLAB-R2: the tags, before the objects can be taken. */
		old = eddy_xchg_seq_cst(&s.c->slab[s.page][k], open);
		if (old != 0)
			eddy_fatal("double free",
			    object_at(h, s, row, k * 64 + eddy_ctz64(old)));
		left |= open != 0;
	}
	eddy_tally_born(&a->tally, row);
	if (left)
		hint(a, s, row);
	return spread(h, s, row, 0, kept, objects);
}

/* The lowest head page that the chunk's index names, 512 if none. */
static unsigned
first_head(struct eddy_chunk *c, unsigned row)
{
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* SLAB-A1: what the hint announces is visible. */
		uint64_t w = eddy_load_seq_cst(&c->index[row - 1][i]);

		if (w != 0)
			return i * 64 + eddy_ctz64(w);
	}
	return EDDY_RUNMAP_UNITS;
}

bool
eddy_slab_below(struct eddy_heap *h, struct eddy_arena *a, unsigned row,
    uint32_t chunk, unsigned page)
{
	uint32_t first = eddy_idset_find(&a->hints, EDDY_HINT_CLASS(row), 0);

	if (first == EDDY_ID_NONE || first > chunk)
		return false;
	return first < chunk || first_head(&h->chunks[chunk], row) < page;
}

unsigned
eddy_slab_refill(struct eddy_heap *h, struct eddy_arena *a, unsigned row,
    void **objects, unsigned n)
{
	unsigned got = 0;
	uint32_t chunk = 0;

	eddy_assert(row >= 1 && row <= EDDY_N_SMALL && n >= 1);

	while (got < n) {
		struct head s;
		unsigned more;

		chunk = eddy_idset_find(&a->hints, EDDY_HINT_CLASS(row), chunk);
		if (chunk == EDDY_ID_NONE)
			break;
		s.c = &h->chunks[chunk];
		s.chunk = chunk;
		s.page = first_head(s.c, row);
		if (s.page == EDDY_RUNMAP_UNITS || arena_of(h, s.c) != a) {
			unhint_chunk(h, a, row, s.c, chunk);
			chunk++;
			continue;
		}
		more = take(h, a, s, row, objects + got, n - got);
		got += more;
	}
	while (got < n) {
		unsigned more = birth(h, a, row, objects + got, n - got);

		got += more;
		/* One new slab is enough for a refill of small objects. */
		if (more == 0 || got >= n / 2)
			break;
	}
	if (got != 0)
		eddy_tally_take(&a->tally, row, got);
	return got;
}
