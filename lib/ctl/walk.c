/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/walk.h"

#include "lib/heap/pagemap.h"

static uint64_t
peek(_Atomic uint64_t *p)
{
	/* relaxed: a walk is a sum of moments, whatever the order. */
	return eddy_load_relaxed(p);
}

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
	if ((peek(&h->free_segments[s / 64]) >> s % 64 & 1) != 0)
		return true;
	return (peek(&h->segments[s].map.free[i]) >> chunk % 64 & 1) != 0;
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

	if ((peek(&s->map.dirty[i]) & bit) == 0)
		return;
	if ((peek(&s->uniform[i]) & bit) != 0) {
		w->dirty += EDDY_CHUNK;
		return;
	}
	w->metadata += EDDY_PAGE;
	for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++)
		w->dirty += EDDY_PAGE *
			    popcount(peek(&w->h->chunks[chunk].map.dirty[k]));
}

/* A slab: its pages. */
static unsigned
walk_slab(
    struct eddy_walk *w, struct eddy_chunk *c, unsigned page, unsigned row)
{
	const struct eddy_class *class = &eddy_classes[row];
	struct eddy_stats_row *r;
	unsigned free = 0;

	if (w->rows == NULL)
		return class->pages;
	for (unsigned k = 0; k * 64 < class->n_objects; k++)
		free += popcount(peek(&c->slab[page][k]));
	if (free > class->n_objects)
		free = class->n_objects;
	r = &w->rows[row];
	r->slabs++;
	r->free += free;
	r->live += class->n_objects - free;
	return class->pages;
}

static unsigned
walk_run(struct eddy_walk *w, uint32_t tag)
{
	unsigned row = eddy_tag_row(tag);
	unsigned pages = eddy_tag_pages(tag);

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
walk_page(struct eddy_walk *w, uint32_t chunk, unsigned page, uint64_t *heads)
{
	uint32_t tag = tag_at(w->h, chunk, page);
	unsigned row = eddy_tag_row(tag);

	switch (eddy_tag_kind(tag)) {
	case EDDY_TAG_SLAB:
		if (eddy_tag_pages(tag) != 0 || row == 0 || row > EDDY_N_SMALL)
			return 0;
		*heads |= (uint64_t)1 << page / 64;
		return walk_slab(w, &w->h->chunks[chunk], page, row);
	case EDDY_TAG_RUN:
		return walk_run(w, tag);
	default:
		return 0;
	}
}

static void
walk_free_pages(struct eddy_walk *w, struct eddy_chunk *c, uint64_t *free)
{
	uint64_t before = 0;

	for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++) {
		free[k] = peek(&c->map.free[k]);
		/* Bits whose lower neighbour is not set. */
		w->free_runs += popcount(free[k] & ~(free[k] << 1 | before));
		before = free[k] >> 63;
		w->dirty +=
		    EDDY_PAGE * popcount(free[k] & peek(&c->map.dirty[k]));
	}
}

/* A chunk that is cut into pages. */
static void
walk_pages(struct eddy_walk *w, uint32_t chunk)
{
	uint64_t free[EDDY_RUNMAP_WORDS];
	uint64_t heads = 0;
	unsigned page = 0;

	walk_free_pages(w, &w->h->chunks[chunk], free);
	while (page < EDDY_CHUNK_PAGES) {
		unsigned n = 0;

		if ((free[page / 64] >> page % 64 & 1) == 0) {
			n = walk_page(w, chunk, page, &heads);
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
	size_t size;

	if (chunk_is_free(w->h, chunk) ||
	    eddy_tag_kind(tag_at(w->h, chunk, 0)) != EDDY_TAG_HUGE)
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
owner_of(struct eddy_walk *w, uint32_t chunk)
{
	/* relaxed: a hint. */
	return eddy_load_relaxed(&segment_of(w->h, chunk)->map.owner);
}

static bool
is_wanted(struct eddy_walk *w, uint32_t chunk)
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
			c = next_segment(c);
			continue;
		}
		ready = ready_word(w->h, c);
		if ((ready >> c % 64 & 1) != 0)
			c += walk_one(w, c);
		else
			c = ready != 0 ? c + 1 : (c / 64 + 1) * 64;
	}
}

uint64_t
eddy_walk_ready(const struct eddy_walk *w)
{
	uint64_t n = 0;

	for (uint32_t c = 0; c < w->n_chunks; c += 64)
		n += popcount(ready_word(w->h, c));
	return n;
}

void
eddy_walk_begin(struct eddy_walk *w, struct eddy_heap *h, uint32_t arena)
{
	/* SEG-A1: what is below is readable. */
	size_t limit = eddy_load_acquire(&eddy_fast.limit) / EDDY_CHUNK_PAGES;

	*w = (struct eddy_walk){.h = h, .arena = arena};
	w->n_chunks = limit < h->n_chunks ? (uint32_t)limit : h->n_chunks;
}
