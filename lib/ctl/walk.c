/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/walk.h"

#include "lib/ctl/counts.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/region.h"

static unsigned
popcount(uint64_t x)
{
	return (unsigned)__builtin_popcountll(x);
}

static struct eddy_segment *
segment_of(struct eddy_heap *h, uint32_t chunk)
{
	return &h->segments[chunk / EDDY_SEGMENT_CHUNKS];
}

static uint32_t
tag_at(struct eddy_heap *h, uint32_t chunk, unsigned page)
{
	/* relaxed: below the limit; a tag is a hint to whoever looks on. */
	return eddy_load_relaxed(
	    &h->tags[(size_t)chunk * EDDY_CHUNK_PAGES + page]);
}

/* Ready bits of the 64 chunks around this one. */
static uint64_t
ready_word(struct eddy_heap *h, uint32_t chunk)
{
	struct eddy_runmap *m = &segment_of(h, chunk)->map;

	/* SEG-A3: pairs with SEG-R3: the descriptors are readable. */
	return eddy_load_acquire(&m->ready[chunk % EDDY_SEGMENT_CHUNKS / 64]);
}

static bool
chunk_is_free(struct eddy_heap *h, uint32_t chunk)
{
	uint32_t s = chunk / (uint32_t)EDDY_SEGMENT_CHUNKS;
	unsigned i = chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;

	/* The chunk bits of a free segment are zero (I-RUN-1). */
	if ((eddy_peek(&h->free_segments[s / 64]) >> s % 64 & 1) != 0)
		return true;
	return (eddy_peek(&h->segments[s].map.free[i]) >> chunk % 64 & 1) != 0;
}

/* ------------------------------------------------------------------ */
/* Free runs by size */

enum state {
	DIRTY,
	MUZZY,
	CLEAN,
};

static void
add_run(struct eddy_walk *w, enum state state, unsigned pages)
{
	struct eddy_walk_extent *e = &w->extents[eddy_sizes_extent_of(pages)];

	switch (state) {
	case DIRTY:
		e->ndirty++;
		e->dirty_bytes += pages * EDDY_PAGE;
		break;
	case MUZZY:
		e->nmuzzy++;
		e->muzzy_bytes += pages * EDDY_PAGE;
		break;
	default:
		e->nretained++;
		e->retained_bytes += pages * EDDY_PAGE;
		break;
	}
}

/* Maximal runs of set bits. */
static void
add_runs(struct eddy_walk *w, enum state state, const uint64_t *bits)
{
	unsigned before = 0; /* pages of a run that reaches the word */

	for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++)
		for (unsigned pos = 0; pos < 64;) {
			uint64_t left = bits[k] >> pos;
			unsigned n;

			if ((left & 1) != 0) {
				n = ~left != 0 ? eddy_ctz64(~left) : 64;
				n = n < 64 - pos ? n : 64 - pos;
				before += n;
			} else {
				if (before != 0)
					add_run(w, state, before);
				before = 0;
				n = left != 0 ? eddy_ctz64(left) : 64 - pos;
			}
			pos += n;
		}
	if (before != 0)
		add_run(w, state, before);
}

/* Whether the chunk is one of an arena's. */
static bool
is_open(struct eddy_heap *h, uint32_t chunk)
{
	/* relaxed: a hint. */
	return eddy_load_relaxed(&h->chunks[chunk].map.owner) != 0;
}

static void
tell(struct eddy_walk *w, uint32_t chunk, unsigned page, size_t pages)
{
	if (w->used != NULL)
		w->used(w, eddy_page_address(w->h, chunk, page), pages);
}

/* ------------------------------------------------------------------ */
/* Pages */

static void
walk_free_chunk(struct eddy_walk *w, uint32_t chunk)
{
	struct eddy_segment *s = segment_of(w->h, chunk);
	unsigned i = chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
	uint64_t bit = (uint64_t)1 << chunk % 64;
	enum state state;
	unsigned n = 0;

	if ((eddy_peek(&s->map.dirty[i]) & bit) == 0) {
		if (w->extents != NULL)
			add_run(w, CLEAN, EDDY_CHUNK_PAGES);
		return;
	}
	state = (eddy_peek(&s->muzzy[i]) & bit) != 0 ? MUZZY : DIRTY;
	if ((eddy_peek(&s->uniform[i]) & bit) != 0) {
		n = EDDY_CHUNK_PAGES;
	} else {
		w->metadata += EDDY_PAGE;
		for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++)
			n += popcount(
			    eddy_peek(&w->h->chunks[chunk].map.dirty[k]));
	}
	*(state == MUZZY ? &w->muzzy : &w->dirty) += n * EDDY_PAGE;
	if (w->extents == NULL)
		return;
	/* Pages of either kind, taken together. */
	if (n != 0)
		add_run(w, state, n);
	if (n < EDDY_CHUNK_PAGES)
		add_run(w, CLEAN, (unsigned)EDDY_CHUNK_PAGES - n);
}

/* Full slabs of one class that follow each other, not yet in its row. */
struct full {
	unsigned row;
	unsigned n;
};

static void
flush_full(struct eddy_walk *w, struct full *f)
{
	struct eddy_stats_row *r = &w->rows[f->row];

	r->slabs += f->n;
	r->live += (uint64_t)f->n * eddy_classes[f->row].n_objects;
	if (w->fill != NULL && f->n != 0)
		w->fill[f->row - 1].slabs[EDDY_FILL_FULL] += f->n;
	f->n = 0;
}

static void
walk_partial(
    struct eddy_walk *w, struct eddy_chunk *c, unsigned page, unsigned row)
{
	const struct eddy_class *class = &eddy_classes[row];
	struct eddy_stats_row *r = &w->rows[row];
	unsigned free = 0;

	for (unsigned k = 0; k * 64 < class->n_objects; k++)
		free += popcount(eddy_peek(&c->slab[page][k]));
	if (free > class->n_objects)
		free = class->n_objects;
	r->slabs++;
	r->partial += free != 0;
	r->hinted++;
	r->free += free;
	r->live += class->n_objects - free;
	if (w->fill != NULL)
		w->fill[row - 1].slabs[(class->n_objects - free) *
				       EDDY_FILL_FULL / class->n_objects]++;
}

/*
 * A slab: its pages.  What has no hint has no free object: its words, which are
 * a line of their own, need not be looked at.
 */
static unsigned
walk_slab(struct eddy_walk *w, struct eddy_chunk *c, unsigned page,
    unsigned row, struct full *full)
{
	if (w->rows == NULL)
		return eddy_classes[row].pages;
	if ((eddy_peek(&c->index[row - 1][page / 64]) >> page % 64 & 1) != 0) {
		walk_partial(w, c, page, row);
	} else {
		if (full->row != row)
			flush_full(w, full);
		full->row = row;
		full->n++;
	}
	return eddy_classes[row].pages;
}

static unsigned
walk_run(struct eddy_walk *w, uint32_t tag)
{
	unsigned row = eddy_tag_row(tag);
	unsigned pages = eddy_tag_pages(tag);

	if (w->large != NULL && pages != 0)
		w->large[eddy_sizes_large_of(pages * EDDY_PAGE)]++;
	if (row < EDDY_ROW_RUN || row >= EDDY_N_ROWS) {
		w->runs++;
		w->run_bytes += pages * EDDY_PAGE;
	} else if (w->rows != NULL) {
		w->rows[row].slabs++;
		w->rows[row].live++;
	}
	return pages;
}

/* What begins at a page that is not free; returns its pages, 0 for nothing. */
static unsigned
walk_page(struct eddy_walk *w, uint32_t chunk, unsigned page, uint64_t *heads,
    struct full *full)
{
	uint32_t tag = tag_at(w->h, chunk, page);
	unsigned row = eddy_tag_row(tag);
	const void *place;

	switch (eddy_tag_kind(tag)) {
	case EDDY_TAG_SLAB:
	case EDDY_TAG_POOL:
		if (eddy_tag_pages(tag) != 0 || row == 0 || row > EDDY_N_SMALL)
			return 0;
		*heads |= (uint64_t)1 << page / 64;
		return walk_slab(w, &w->h->chunks[chunk], page, row, full);
	case EDDY_TAG_RUN:
		return walk_run(w, tag);
	case EDDY_TAG_REGION:
		/* A run as any other, whose tag is set aside. */
		place = eddy_page_place(w->h, chunk, page);
		tag = eddy_tag_pages(tag) == 0
			  ? eddy_region_unit(w->h, place, tag)->stretch.tag
			  : 0;
		return eddy_tag_kind(tag) == EDDY_TAG_RUN ? walk_run(w, tag)
							  : 0;
	default:
		return 0;
	}
}

static void
walk_free_pages(struct eddy_walk *w, struct eddy_chunk *c, uint64_t *free)
{
	uint64_t before = 0;
	uint64_t dirty[EDDY_RUNMAP_WORDS];
	uint64_t muzzy[EDDY_RUNMAP_WORDS];
	uint64_t clean[EDDY_RUNMAP_WORDS];

	for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++) {
		free[k] = eddy_peek(&c->map.free[k]);
		/* Bits whose lower neighbour is not set. */
		w->free_runs += popcount(free[k] & ~(free[k] << 1 | before));
		before = free[k] >> 63;
		dirty[k] = free[k] & eddy_peek(&c->map.dirty[k]);
		muzzy[k] = dirty[k] & eddy_peek(&c->map.muzzy[k]);
		clean[k] = free[k] & ~dirty[k];
		dirty[k] &= ~muzzy[k];
		w->dirty += EDDY_PAGE * popcount(dirty[k]);
		w->muzzy += EDDY_PAGE * popcount(muzzy[k]);
	}
	if (w->extents == NULL)
		return;
	add_runs(w, DIRTY, dirty);
	add_runs(w, MUZZY, muzzy);
	add_runs(w, CLEAN, clean);
}

/* A chunk that is cut into pages. */
static void
walk_pages(struct eddy_walk *w, uint32_t chunk)
{
	uint64_t free[EDDY_RUNMAP_WORDS];
	struct full full = {0};
	uint64_t heads = 0;
	unsigned page = 0;

	walk_free_pages(w, &w->h->chunks[chunk], free);
	/* What hooks took is nobody's. */
	for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++)
		free[k] |= eddy_peek(&w->h->chunks[chunk].absent[k]);
	while (page < EDDY_CHUNK_PAGES) {
		unsigned n = 0;

		if ((free[page / 64] >> page % 64 & 1) == 0) {
			n = walk_page(w, chunk, page, &heads, &full);
			if (n == 0)
				w->in_hand += EDDY_PAGE;
			if (n > EDDY_CHUNK_PAGES - page)
				n = (unsigned)EDDY_CHUNK_PAGES - page;
			w->active += n * EDDY_PAGE;
			if (n != 0)
				tell(w, chunk, page, n);
		}
		page += n != 0 ? n : 1;
	}
	if (full.n != 0)
		flush_full(w, &full);
	w->cut++;
	w->chunks++;
	/* Descriptor, tags, and free words, 64 slabs a page. */
	w->metadata += EDDY_PAGE + EDDY_CHUNK_PAGES * sizeof(uint32_t) +
		       EDDY_PAGE * popcount(heads);
}

/* ------------------------------------------------------------------ */
/* Chunks */

/* The size of a block of whole chunks that begins here; 0: none does. */
static size_t
huge_at(struct eddy_walk *w, uint32_t chunk)
{
	uint32_t tag = tag_at(w->h, chunk, 0);
	size_t size;

	if (chunk_is_free(w->h, chunk) ||
	    (eddy_tag_kind(tag) != EDDY_TAG_HUGE &&
		(eddy_tag_kind(tag) != EDDY_TAG_REGION ||
		    eddy_tag_pages(tag) != EDDY_REGION_HUGE)))
		return 0;
	/* relaxed: a statistic. */
	size = eddy_load_relaxed(&w->h->chunks[chunk].huge_size);
	return size >= EDDY_CHUNK &&
		       size <= (size_t)(w->n_chunks - chunk) * EDDY_CHUNK
		   ? size
		   : 0;
}

static void
walk_huge(struct eddy_walk *w, uint32_t chunk, size_t size)
{
	size_t whole = eddy_align_up(size, EDDY_CHUNK);

	w->huge++;
	w->huge_bytes += size;
	if (size > EDDY_CHUNK) {
		w->over_bytes += size;
		w->over_chunks += whole / EDDY_CHUNK;
	}
	if (w->large != NULL)
		w->large[eddy_sizes_large_of(size)]++;
	w->active += size;
	w->dirty += whole - size;
	w->chunks += whole / EDDY_CHUNK;
	w->metadata += 2 * EDDY_PAGE; /* descriptor and tag */
	tell(w, chunk, 0, size / EDDY_PAGE);
}

/* A chunk that is not of a huge block. */
static void
walk_chunk(struct eddy_walk *w, uint32_t chunk)
{
	if (chunk_is_free(w->h, chunk)) {
		walk_free_chunk(w, chunk);
	} else if (is_open(w->h, chunk)) {
		walk_pages(w, chunk);
	} else {
		/* Those in front of the first serve nobody. */
		if (w->begun)
			w->in_hand += EDDY_CHUNK;
		return;
	}
	w->begun = true;
}

/* One chunk that is accessible, or the block that begins there: how many. */
static uint32_t
walk_one(struct eddy_walk *w, uint32_t chunk)
{
	size_t size = huge_at(w, chunk);

	if (size == 0) {
		walk_chunk(w, chunk);
		return 1;
	}
	walk_huge(w, chunk, size);
	w->begun = true;
	return (uint32_t)((size + EDDY_CHUNK - 1) / EDDY_CHUNK);
}

/* ------------------------------------------------------------------ */

static uint32_t
owner_of(const struct eddy_walk *w, uint32_t chunk)
{
	/* relaxed: a hint. */
	return eddy_load_relaxed(&segment_of(w->h, chunk)->map.owner);
}

static bool
is_wanted(const struct eddy_walk *w, uint32_t chunk)
{
	return w->arena == EDDY_WALK_ALL || owner_of(w, chunk) == w->arena;
}

static uint32_t
next_segment(uint32_t chunk)
{
	return (chunk / (uint32_t)EDDY_SEGMENT_CHUNKS + 1) *
	       (uint32_t)EDDY_SEGMENT_CHUNKS;
}

void
eddy_walk(struct eddy_walk *w)
{
	for (uint32_t c = 0; c < w->n_chunks; c = next_segment(c))
		w->segments += owner_of(w, c) != 0 && is_wanted(w, c);
	for (uint32_t c = 0; c < w->n_chunks;) {
		uint64_t ready;

		if (!is_wanted(w, c)) {
			w->begun |= owner_of(w, c) != 0;
			c = next_segment(c);
			continue;
		}
		/* Of memory that hooks gave, or a file, the first chunks may be
		 * nobody's, too.  relaxed: a guess. */
		if (c % EDDY_SEGMENT_CHUNKS == 0 &&
		    eddy_load_relaxed(&segment_of(w->h, c)->tied) != 0)
			w->begun = false;
		ready = ready_word(w->h, c);
		if ((ready >> c % 64 & 1) != 0)
			c += walk_one(w, c);
		else
			c = ready != 0 ? c + 1 : (c / 64 + 1) * 64;
	}
}

uint32_t
eddy_walk_step(struct eddy_walk *w, uint32_t chunk)
{
	bool ready = (ready_word(w->h, chunk) >> chunk % 64 & 1) != 0;

	return ready ? walk_one(w, chunk) : 0;
}

uint64_t
eddy_walk_ready(const struct eddy_walk *w)
{
	uint64_t n = 0;

	for (uint32_t c = 0; c < w->n_chunks; c += 64)
		if (is_wanted(w, c))
			n += popcount(ready_word(w->h, c));
	return n;
}

void
eddy_walk_begin(struct eddy_walk *w, struct eddy_heap *h, uint32_t arena)
{
	size_t limit = eddy_chunks_readable();

	*w = (struct eddy_walk){.h = h, .arena = arena};
	w->n_chunks = limit < h->n_chunks ? (uint32_t)limit : h->n_chunks;
}
