/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/stats.h"

#include "lib/heap/cpu_cache.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/returns.h"

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

static uint64_t
minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ------------------------------------------------------------------ */
/* Chunks */

struct walk {
	struct eddy_heap *h;
	struct eddy_stats *st;
	uint32_t n_chunks; /* whose tags and segments are readable */
	uint64_t n_ready;
	bool begun; /* the first chunk that can be claimed was seen */
};

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
walk_free_chunk(struct walk *w, uint32_t chunk)
{
	struct eddy_segment *s = segment_of(w->h, chunk);
	unsigned i = chunk % (unsigned)EDDY_SEGMENT_CHUNKS / 64;
	uint64_t bit = (uint64_t)1 << chunk % 64;

	if ((peek(&s->map.dirty[i]) & bit) == 0)
		return;
	if ((peek(&s->uniform[i]) & bit) != 0) {
		w->st->dirty += EDDY_CHUNK;
		return;
	}
	w->st->metadata += EDDY_PAGE;
	for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++)
		w->st->dirty +=
		    EDDY_PAGE *
		    popcount(peek(&w->h->chunks[chunk].map.dirty[k]));
}

/* A slab: its pages. */
static unsigned
walk_slab(struct walk *w, struct eddy_chunk *c, unsigned page, unsigned row)
{
	const struct eddy_class *class = &eddy_classes[row];
	struct eddy_stats_row *r = &w->st->row[row];
	unsigned free = 0;

	for (unsigned k = 0; k * 64 < class->n_objects; k++)
		free += popcount(peek(&c->slab[page][k]));
	if (free > class->n_objects)
		free = class->n_objects;
	r->slabs++;
	r->free += free;
	r->live += class->n_objects - free; /* the cached go later */
	return class->pages;
}

static unsigned
walk_run(struct walk *w, uint32_t tag)
{
	unsigned row = eddy_tag_row(tag);
	unsigned pages = eddy_tag_pages(tag);

	if (row < EDDY_ROW_RUN || row >= EDDY_N_ROWS) {
		w->st->runs++;
		w->st->run_bytes += pages * EDDY_PAGE;
	} else {
		w->st->row[row].slabs++;
		w->st->row[row].live++;
	}
	return pages;
}

/* What begins at a page that is not free; returns its pages, 0 for nothing. */
static unsigned
walk_page(struct walk *w, uint32_t chunk, unsigned page, uint64_t *heads)
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
walk_free_pages(struct walk *w, struct eddy_chunk *c, uint64_t *free)
{
	uint64_t before = 0;

	for (unsigned k = 0; k < EDDY_RUNMAP_WORDS; k++) {
		free[k] = peek(&c->map.free[k]);
		/* Bits whose lower neighbour is not set. */
		w->st->free_runs +=
		    popcount(free[k] & ~(free[k] << 1 | before));
		before = free[k] >> 63;
		w->st->dirty +=
		    EDDY_PAGE * popcount(free[k] & peek(&c->map.dirty[k]));
	}
}

/* A chunk that is cut into pages. */
static void
walk_pages(struct walk *w, uint32_t chunk)
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
				w->st->in_hand += EDDY_PAGE;
			if (n > EDDY_CHUNK_PAGES - page)
				n = (unsigned)EDDY_CHUNK_PAGES - page;
			w->st->active += n * EDDY_PAGE;
		}
		page += n != 0 ? n : 1;
	}
	w->st->chunks++;
	/* Descriptor, tags, and free words, 64 slabs a page. */
	w->st->metadata += EDDY_PAGE + EDDY_CHUNK_PAGES * sizeof(uint32_t) +
			   EDDY_PAGE * popcount(heads);
}

/* A block of whole chunks; returns how many, 0 if it is none. */
static uint32_t
walk_huge(struct walk *w, uint32_t chunk)
{
	size_t size;

	if (eddy_tag_kind(tag_at(w->h, chunk, 0)) != EDDY_TAG_HUGE)
		return 0;
	/* relaxed: a statistic. */
	size = eddy_load_relaxed(&w->h->chunks[chunk].huge_size);
	if (size < EDDY_CHUNK ||
	    size > (size_t)(w->n_chunks - chunk) * EDDY_CHUNK)
		return 0;
	w->st->huge++;
	w->st->huge_bytes += size;
	w->st->active += size;
	w->st->dirty += eddy_align_up(size, EDDY_CHUNK) - size;
	w->st->metadata += 2 * EDDY_PAGE; /* descriptor and tag */
	return (uint32_t)((size + EDDY_CHUNK - 1) / EDDY_CHUNK);
}

/* A chunk that is not of a huge block. */
static void
walk_chunk(struct walk *w, uint32_t chunk)
{
	if (chunk_is_free(w->h, chunk)) {
		walk_free_chunk(w, chunk);
	} else if (is_open(w->h, chunk)) {
		walk_pages(w, chunk);
	} else {
		/* Those in front of the first serve nobody. */
		if (w->begun)
			w->st->in_hand += EDDY_CHUNK;
		return;
	}
	w->begun = true;
}

static void
walk_chunks(struct walk *w)
{
	for (uint32_t c = 0; c < w->n_chunks;) {
		uint64_t ready = ready_word(w->h, c);
		uint32_t n;

		if ((ready >> c % 64 & 1) == 0) {
			c = ready != 0 ? c + 1 : (c / 64 + 1) * 64;
			continue;
		}
		n = chunk_is_free(w->h, c) ? 0 : walk_huge(w, c);
		if (n != 0) {
			c += n;
			w->begun = true;
			continue;
		}
		walk_chunk(w, c++);
	}
}

static void
count_ready(struct walk *w)
{
	for (uint32_t c = 0; c < w->n_chunks; c += 64)
		w->n_ready += popcount(ready_word(w->h, c));
}

/* ------------------------------------------------------------------ */
/* Caches */

/* A row's capacity in bytes and what it holds. */
static uint64_t
row_count(
    struct eddy_heap *h, unsigned cpu, uint32_t place, uint32_t *ret_bytes)
{
	struct eddy_row *r = eddy_cache_row(h, cpu, place);
	unsigned depth = eddy_classes[place / 16 % EDDY_HOME_ROWS].depth;
	uint64_t limits = peek(&r->limits);
	uint32_t end = (uint32_t)limits;
	uint32_t beg = eddy_cache_row_begin(h, cpu, place);
	/* relaxed: a statistic; sections of that CPU move it. */
	uint32_t cur = eddy_load_relaxed(&r->cur);
	uint32_t n;

	*ret_bytes = end > beg ? end - beg : 0;
	if (cur <= beg)
		return 0;
	n = (cur - beg) / 8;
	/* A row whose capacity was cut may hold more than that. */
	return n < depth ? n : depth;
}

struct eddy_stats_cached
eddy_stats_cpu_row(struct eddy_heap *h, unsigned cpu, unsigned row)
{
	struct eddy_slot_stats *s = eddy_cache_stats(h, cpu);
	struct eddy_stats_cached c = {0};
	uint32_t bytes;

	for (uint32_t home = 0; home < h->n_homes; home++)
		c.n_cached += row_count(h, cpu, eddy_place(home, row), &bytes);
	c.refills = peek(&s->row[row].refills);
	c.overflows = peek(&s->row[row].overflows);
	return c;
}

static struct eddy_stats_cached
cell_row(struct eddy_cell_set *set, unsigned row)
{
	struct eddy_stats_cached c;

	c.n_cached = eddy_cells_count(&set->row[row]);
	c.refills = peek(&set->stats.row[row].refills);
	c.overflows = peek(&set->stats.row[row].overflows);
	return c;
}

static void
add_cache(struct eddy_stats_cache *t, struct eddy_stats_cached c, unsigned row)
{
	t->bytes += c.n_cached * eddy_row_size(row);
	t->n_cached += c.n_cached;
	t->refills += c.refills;
	t->overflows += c.overflows;
}

bool
eddy_stats_cpu(struct eddy_heap *h, unsigned cpu, struct eddy_stats_cache *ret)
{
	if (h == NULL || !h->sections || cpu >= h->n_slots ||
	    !eddy_cache_slot_used(h, cpu))
		return false;
	*ret = (struct eddy_stats_cache){0};
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		add_cache(ret, eddy_stats_cpu_row(h, cpu, row), row);
	ret->aborts = peek(&eddy_cache_stats(h, cpu)->aborts);
	return true;
}

bool
eddy_stats_cells(
    struct eddy_heap *h, unsigned set, struct eddy_stats_cache *ret)
{
	/* HEAP-A2: else they were never written. */
	if (h == NULL || set >= eddy_cache_n_cells(h) ||
	    !eddy_load_acquire(&h->cells_ready))
		return false;
	*ret = (struct eddy_stats_cache){0};
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		add_cache(ret, cell_row(eddy_cache_cells(h, set), row), row);
	return ret->n_cached + ret->refills + ret->overflows != 0;
}

static void
add_row(struct eddy_stats *st, struct eddy_stats_cached c, unsigned row)
{
	st->row[row].cached += c.n_cached;
	st->row[row].refills += c.refills;
	st->row[row].overflows += c.overflows;
}

/* Batches between CPUs. */
static void
walk_rings(struct eddy_heap *h, struct eddy_stats *st)
{
	/* relaxed: a statistic. */
	size_t descriptors =
	    eddy_load_relaxed(&h->n_batches) * sizeof(struct eddy_batch);

	for (uint32_t home = 0; home < h->n_homes; home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			unsigned n =
			    eddy_returns_count(h, eddy_place(home, row));

			st->row[row].cached += n;
			st->ring_bytes += n * eddy_row_size(row);
		}
	descriptors = eddy_align_up(descriptors, EDDY_PAGE);
	st->metadata += descriptors;
	st->metadata_mapped += descriptors;
}

static void
walk_caches(struct eddy_heap *h, struct eddy_stats *st)
{
	for (unsigned cpu = 0; cpu < h->n_slots; cpu++) {
		if (!h->sections || !eddy_cache_slot_used(h, cpu))
			continue;
		st->n_cpus++;
		st->aborts += peek(&eddy_cache_stats(h, cpu)->aborts);
		st->metadata += 2 * EDDY_PAGE; /* headers and counters */
		st->metadata_mapped += eddy_cache_slot_size(h);
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			uint32_t bytes;

			add_row(st, eddy_stats_cpu_row(h, cpu, row), row);
			for (uint32_t i = 0; i < h->n_homes; i++) {
				(void)row_count(
				    h, cpu, eddy_place(i, row), &bytes);
				st->metadata += bytes;
			}
		}
	}
	/* HEAP-A2: else the cells were never written. */
	if (!eddy_load_acquire(&h->cells_ready))
		return;
	st->metadata_mapped +=
	    eddy_cache_n_cells(h) * sizeof(struct eddy_cell_set);
	for (unsigned set = 0; set < eddy_cache_n_cells(h); set++) {
		struct eddy_stats_cache used;

		if (!eddy_stats_cells(h, set, &used))
			continue;
		st->metadata += sizeof(struct eddy_cell_set);
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			add_row(
			    st, cell_row(eddy_cache_cells(h, set), row), row);
	}
}

/* ------------------------------------------------------------------ */

static void
sum_rows(struct eddy_stats *st)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		struct eddy_stats_row *r = &st->row[row];
		size_t size = eddy_row_size(row);

		r->live = minus(r->live, r->cached);
		st->live += r->live * size;
		st->stranded += r->cached * size;
		st->n_cached += r->cached;
		st->refills += r->refills;
		st->overflows += r->overflows;
	}
	st->live += st->run_bytes + st->huge_bytes;
}

/* The parts that grow with the number of segments, and the fixed one. */
static void
sum_metadata(struct eddy_heap *h, struct eddy_stats *st, size_t n_chunks)
{
	const size_t hints = EDDY_SEGMENT_CHUNKS / 64 * EDDY_N_HINTS * 8;
	const size_t segment =
	    eddy_align_up(sizeof(struct eddy_segment), EDDY_PAGE) +
	    eddy_align_up(hints, EDDY_PAGE);
	size_t n = (n_chunks + EDDY_SEGMENT_CHUNKS - 1) / EDDY_SEGMENT_CHUNKS;

	/* Of the upper levels of hints a page each is written. */
	st->metadata += eddy_align_up(sizeof(struct eddy_heap), EDDY_PAGE) +
			2 * EDDY_IDSET_LEVELS * EDDY_PAGE + n * segment;
	st->metadata_mapped +=
	    h->fixed_size +
	    n * (segment + EDDY_SEGMENT / EDDY_PAGE * sizeof(uint32_t));
}

void
eddy_stats_read(struct eddy_heap *h, struct eddy_stats *ret)
{
	struct walk w = {.h = h, .st = ret};
	size_t limit;
	size_t objects;

	*ret = (struct eddy_stats){0};
	if (h == NULL)
		return;
	ret->mode = h->sections ? EDDY_STATS_RSEQ
		    : h->cached ? EDDY_STATS_CLAIM
				: EDDY_STATS_NONE;
	/* SEG-A1: what is below is readable. */
	limit = eddy_load_acquire(&eddy_fast.limit) / EDDY_CHUNK_PAGES;
	w.n_chunks = limit < h->n_chunks ? (uint32_t)limit : h->n_chunks;
	count_ready(&w);
	walk_chunks(&w);
	walk_caches(h, ret);
	walk_rings(h, ret);
	sum_rows(ret);
	sum_metadata(h, ret, w.n_chunks);

	objects = (size_t)w.n_ready * EDDY_CHUNK;
	ret->metadata_mapped += (size_t)w.n_ready * sizeof(struct eddy_chunk);
	ret->mapped = objects + ret->metadata_mapped;
	ret->clean = minus(objects, ret->active + ret->dirty + ret->in_hand);
	ret->resident = ret->active + ret->dirty + ret->in_hand + ret->metadata;
	ret->retained = minus(h->reservation_size,
	    h->reserved ? ret->mapped : ret->metadata_mapped);
}

const char *
eddy_stats_mode_name(enum eddy_stats_mode mode)
{
	return mode == EDDY_STATS_RSEQ    ? "rseq"
	       : mode == EDDY_STATS_CLAIM ? "claim"
					  : "none";
}
