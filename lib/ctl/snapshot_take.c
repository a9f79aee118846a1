/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot_take.c - the numbers of a snapshot, out of what is counted.
 */
#include <string.h>

#include "lib/ctl/counts.h"
#include "lib/ctl/snapshot.h"
#include "lib/ctl/stats.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/explicit.h"
#include "lib/heap/pool.h"
#include "lib/heap/reset.h"
#include "lib/heap/wake.h"
#include "lib/os/os.h"

/* What caches hold of one home's row, and how often they were filled. */
struct flow {
	uint64_t cached;
	uint64_t fills;
	uint64_t flushes;
};

/* Of one arena: chunks of its segments, objects in caches that the program
 * created, and what a pool's caches hold. */
struct ground {
	uint64_t ready; /* accessible */
	uint64_t used;  /* of these: cut into pages, or huge blocks' */
	uint32_t cached[EDDY_N_ROWS];
	unsigned pool_row; /* 0: it is no pool's */
	struct flow pool;
};

struct work {
	struct eddy_heap *h;
	uint32_t n_places;
	uint64_t now; /* ms */
	uint64_t segments;
	struct eddy_walk sum; /* as if all had been walked */
	struct eddy_stats stats;
	struct eddy_snapshot totals;
	struct eddy_snapshot_arena one;
	struct eddy_snapshot_arena all;
	/* Of hinted objects: what lives, pages in use for it; bytes. */
	uint64_t hinted_allocated[EDDY_N_LIVES + 1];
	uint64_t hinted_active[EDDY_N_LIVES + 1];
	struct flow flow[EDDY_MAX_HOMES][EDDY_N_ROWS];
	struct ground ground[EDDY_MAX_ARENAS + 1];
};

struct eddy_shelf eddy_snapshot_numbers = {
    .work = sizeof(struct work),
    .head = sizeof(struct eddy_snapshot),
    .place = sizeof(struct eddy_snapshot_arena),
};

/* ------------------------------------------------------------------ */
/* Caches */

static void
add_fills(struct flow *f, struct eddy_row_stats *s)
{
	f->fills += eddy_peek(&s->refills);
	f->flushes += eddy_peek(&s->overflows);
}

static void
take_slot(struct work *w, unsigned cpu)
{
	uint32_t own = eddy_cache_slot_home(w->h, cpu);

	for (uint32_t home = 0; home < eddy_n_numbers(w->h); home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			w->flow[home][row].cached +=
			    eddy_stats_row_count(w->h, cpu, home, row);
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		add_fills(
		    &w->flow[own][row], &eddy_cache_stats(w->h, cpu)->row[row]);
}

static void
take_cells(struct work *w)
{
	/* HEAP-A2: else the cells were never written. */
	if (!eddy_load_acquire(&w->h->cells_ready))
		return;
	for (unsigned i = 0; i < eddy_cache_n_cells(w->h); i++) {
		struct eddy_cell_set *set = eddy_cache_cells(w->h, i);
		struct flow *f = w->flow[i / w->h->n_cell_sets];

		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			f[row].cached += eddy_cells_count(&set->row[row]);
			add_fills(&f[row], &set->stats.row[row]);
		}
	}
}

static void
take_caches(struct work *w)
{
	struct eddy_heap *h = w->h;

	memset(w->flow, 0, h->n_with_rows * sizeof(w->flow[0]));
	take_cells(w);
	if (!h->sections)
		return;
	for (unsigned i = 0; i * 64 < h->n_slots; i++) {
		/* HEAP-A2: these slots are readable. */
		uint64_t used = eddy_load_acquire(&h->slot_ready[i]);

		for (; used != 0; used &= used - 1)
			take_slot(w, i * 64 + eddy_ctz64(used));
	}
	for (uint32_t home = 0; home < eddy_n_numbers(h); home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			w->flow[home][row].cached +=
			    eddy_stats_ring_count(h, home, row);
}

static void
see_explicit(void *arg, const void *p, unsigned row)
{
	struct work *w = arg;
	struct eddy_arena *a = eddy_arena_of(w->h, p);

	if (a != NULL && a->number < w->n_places)
		w->ground[a->number].cached[row]++;
}

static void
see_pool(void *arg, const struct eddy_pool_cached *c)
{
	struct work *w = arg;
	struct ground *g = &w->ground[c->arena < w->n_places ? c->arena : 0];

	g->pool_row = c->row;
	g->pool.cached += c->n;
	g->pool.fills += c->refills;
	g->pool.flushes += c->overflows;
}

static void
take_pools(struct work *w)
{
	for (unsigned cpu = 0; w->h->sections && cpu < w->h->n_slots; cpu++)
		eddy_pools_tell(w->h, EDDY_POOL_ROWS, cpu, see_pool, w);
	eddy_pools_tell(w->h, EDDY_POOL_RINGS, 0, see_pool, w);
	for (size_t set = 0; set < w->h->n_cell_sets; set++)
		eddy_pools_tell(w->h, EDDY_POOL_CELLS, set, see_pool, w);
}

static struct flow
flow_of(struct work *w, struct eddy_arena *a, unsigned row)
{
	struct flow f = {0};

	if (a->home < EDDY_HOME_SAMPLES)
		f = w->flow[a->home][row];
	f.cached += w->ground[a->number].cached[row];
	if (row == w->ground[a->number].pool_row) {
		f.cached += w->ground[a->number].pool.cached;
		f.fills += w->ground[a->number].pool.fills;
		f.flushes += w->ground[a->number].pool.flushes;
	}
	return f;
}

/* ------------------------------------------------------------------ */
/* Segments */

static void
take_segment(struct work *w, uint32_t segment, struct ground *g)
{
	struct eddy_heap *h = w->h;
	struct eddy_runmap *m = &h->segments[segment].map;
	/* Its chunk bits are zero (I-RUN-1). */
	bool is_free =
	    (eddy_peek(&h->free_segments[segment / 64]) >> segment % 64 & 1) !=
	    0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* SEG-A3: pairs with SEG-R3.  A count all the same. */
		uint64_t ready = eddy_load_acquire(&m->ready[i]);

		/* Those in front of the first serve nobody. */
		if (segment == 0 && h->first_chunk >= i * 64)
			ready &= h->first_chunk >= i * 64 + 64
				     ? 0
				     : ~eddy_mask(0, h->first_chunk % 64);
		g->ready += (unsigned)__builtin_popcountll(ready);
		if (!is_free)
			g->used += (unsigned)__builtin_popcountll(
			    ready & ~eddy_peek(&m->free[i]));
	}
}

/* Accessible chunks of the heap. */
static uint64_t
n_ready(const struct work *w)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < w->n_places; i++)
		n += w->ground[i].ready;
	return n;
}

static void
take_segments(struct work *w, uint32_t n_places)
{
	/* Places of arenas; what no arena has is at 0. */
	memset(w->ground, 0, n_places * sizeof(w->ground[0]));
	w->segments = 0;
	for (uint32_t c = 0; c < w->sum.n_chunks; c += EDDY_SEGMENT_CHUNKS) {
		uint32_t s = c / (uint32_t)EDDY_SEGMENT_CHUNKS;
		/* relaxed: a hint. */
		uint32_t owner =
		    eddy_load_relaxed(&w->h->segments[s].map.owner);

		w->segments += owner != 0;
		take_segment(w, s, &w->ground[owner < n_places ? owner : 0]);
	}
}

/* ------------------------------------------------------------------ */
/* One arena */

/* Of objects that left slabs, some came back. */
static void
add_part(struct eddy_snapshot_part *p, uint64_t taken, uint64_t put,
    const struct flow *f)
{
	p->nmalloc += taken;
	p->ndalloc += put;
	p->nrequests += taken;
	p->nfills += f->fills;
	p->nflushes += f->flushes;
}

static void
take_bin(struct work *w, struct eddy_arena *a, unsigned row)
{
	struct eddy_tally_bin *t = &a->tally.bin[row - 1];
	struct flow f = flow_of(w, a, row);
	uint64_t put = eddy_peek(&t->put);
	uint64_t retired = eddy_peek(&t->retired);
	uint64_t taken = eddy_peek(&t->taken);
	uint64_t born = eddy_peek(&t->born);
	uint64_t out = eddy_less(taken, put);

	add_part(&w->one.small, taken, put, &f);
	w->one.tcache_bytes += f.cached * eddy_row_size(row);
	w->one.small.allocated += eddy_less(out, f.cached) * eddy_row_size(row);
	w->one.bins[row - 1] = (struct eddy_snapshot_bin){
	    .curregs = out,
	    .curslabs = eddy_less(born, retired),
	    .nonfull_slabs = eddy_peek_signed(&t->partial),
	    .nmalloc = taken,
	    .ndalloc = put,
	    .nrequests = taken,
	    .nfills = f.fills,
	    .nflushes = f.flushes,
	    .nslabs = born,
	};
}

static void
take_large(struct work *w, struct eddy_arena *a)
{
	uint64_t bytes = eddy_peek_signed(&a->tally.run_bytes) +
			 eddy_peek_signed(&a->tally.huge_bytes);
	uint64_t cached = 0;
	struct flow none = {0};

	for (unsigned i = 0; i < EDDY_N_LARGE; i++) {
		struct eddy_tally_large *t = &a->tally.large[i];
		uint64_t put = eddy_peek(&t->put);
		uint64_t taken = eddy_peek(&t->taken);

		w->one.lextents[i] = (struct eddy_snapshot_lextent){
		    .curlextents = eddy_less(taken, put),
		    .nmalloc = taken,
		    .ndalloc = put,
		};
		add_part(&w->one.large, taken, put, &none);
	}
	for (unsigned row = EDDY_ROW_RUN; row < EDDY_N_ROWS; row++) {
		struct flow f = flow_of(w, a, row);

		cached += f.cached * eddy_row_size(row);
		add_part(&w->one.large, 0, 0, &f);
	}
	w->one.tcache_bytes += cached;
	w->one.large.allocated = eddy_less(bytes, cached);
}

/* Pages: in use, dirty, muzzy; and what describes the chunks. */
static void
take_pages(struct work *w, struct eddy_arena *a, const struct ground *g)
{
	struct eddy_snapshot_arena *one = &w->one;
	struct eddy_counted c = eddy_counted_of(a);
	uint64_t cut = eddy_less(g->used, c.huge_chunks);
	uint64_t heads = 0;

	/* Free words of slabs: a page for each 64 pages where slabs begin; as
	 * claims take the lowest place, these lie side by side. */
	for (unsigned i = 0; i < EDDY_N_SMALL; i++)
		heads += one->bins[i].curslabs * eddy_classes[i + 1].pages;
	heads = heads / 64 + cut;
	if (heads > cut * (EDDY_CHUNK_PAGES / 64))
		heads = cut * (EDDY_CHUNK_PAGES / 64);
	one->pactive = c.active / EDDY_PAGE;
	one->pdirty = c.dirty / EDDY_PAGE;
	one->pmuzzy = c.muzzy / EDDY_PAGE;
	one->mapped = c.active + c.dirty + c.muzzy;
	one->retained = eddy_less(g->ready * EDDY_CHUNK, one->mapped);
	one->metadata_edata = (cut + heads) * EDDY_PAGE;
	one->metadata_rtree = cut * EDDY_CHUNK_PAGES * sizeof(uint32_t);
	one->internal = one->metadata_edata + one->metadata_rtree;
	one->base = eddy_stats_arena_written(a);
	one->resident = c.active + c.dirty + one->internal + one->base;
}

static void
take_purges(struct eddy_snapshot_arena *one, struct eddy_tally *t)
{
	one->dirty_npurge = eddy_peek(&t->dirty.sweeps);
	one->dirty_nmadvise = eddy_peek(&t->dirty.calls);
	one->dirty_purged = eddy_peek(&t->dirty.pages);
	one->muzzy_npurge = eddy_peek(&t->muzzy.sweeps);
	one->muzzy_nmadvise = eddy_peek(&t->muzzy.calls);
	one->muzzy_purged = eddy_peek(&t->muzzy.pages);
}

static void
add_sums(struct work *w, struct eddy_arena *a)
{
	struct eddy_walk *sum = &w->sum;

	sum->active += w->one.pactive * EDDY_PAGE;
	sum->dirty += w->one.pdirty * EDDY_PAGE;
	sum->muzzy += w->one.pmuzzy * EDDY_PAGE;
	sum->metadata += w->one.internal;
	sum->run_bytes += eddy_peek_signed(&a->tally.run_bytes);
	sum->huge_bytes += eddy_peek_signed(&a->tally.huge_bytes);
}

static void
add_hinted(struct work *w, struct eddy_arena *a)
{
	enum eddy_life life = eddy_life_of(w->h, a->home);

	w->hinted_allocated[life] +=
	    w->one.small.allocated + w->one.large.allocated;
	w->hinted_active[life] += w->one.pactive * EDDY_PAGE;
}

static void
take_arena(struct work *w, struct eddy_arena *a)
{
	memset(&w->one, 0, sizeof(w->one));
	w->one.initialized = 1;
	for (unsigned row = 1; row <= EDDY_N_SMALL; row++)
		take_bin(w, a, row);
	take_large(w, a);
	take_pages(w, a, &w->ground[a->number]);
	take_purges(&w->one, &a->tally);
	add_sums(w, a);
	add_hinted(w, a);
	w->one.uptime = eddy_less(w->now, eddy_peek(&a->tally.begun)) * 1000000;
	eddy_add_words(&w->all, &w->one, sizeof(w->one));
	/* relaxed, both: options. */
	w->one.dirty_decay_ms =
	    (uint64_t)eddy_load_relaxed(&a->reclaim.dirty_decay_ms);
	w->one.muzzy_decay_ms =
	    (uint64_t)eddy_load_relaxed(&a->reclaim.muzzy_decay_ms);
}

/* ------------------------------------------------------------------ */
/* All of them */

static void
take_workers(struct work *w)
{
	struct eddy_wake *wake = eddy_wake_peek(w->h);
	struct eddy_snapshot *t = &w->totals;

	for (unsigned i = 0; wake != NULL && i < EDDY_MAX_WORKERS; i++) {
		t->num_threads += eddy_wake_runs(wake, i);
		t->num_runs += eddy_peek(&wake->worker[i].steps);
	}
	/* Between two runs of a thread, if it has been there from the start. */
	if (t->num_runs != 0)
		t->run_interval = w->all.uptime * t->num_threads / t->num_runs;
}

static void
take_totals(struct work *w)
{
	struct eddy_stats *st = &w->stats;

	w->sum.segments = w->segments;
	memset(st, 0, sizeof(*st));
	eddy_stats_complete(w->h, &w->sum, n_ready(w), st);
	w->totals = (struct eddy_snapshot){
	    .live = w->all.small.allocated + w->all.large.allocated,
	    .active = st->active,
	    .dirty = st->dirty,
	    .muzzy = st->muzzy,
	    .metadata = st->metadata,
	    .metadata_edata = w->all.metadata_edata,
	    .metadata_rtree = w->all.metadata_rtree,
	    .resident = st->resident - st->muzzy,
	    .mapped = st->resident,
	    .retained = st->clean,
	    .stranded = st->stranded,
	    .stranded_bound = st->stranded_bound,
	    .cpus = st->n_cpus,
	    .short_allocated = w->hinted_allocated[EDDY_LIFE_SHORT],
	    .short_active = w->hinted_active[EDDY_LIFE_SHORT],
	    .long_allocated = w->hinted_allocated[EDDY_LIFE_LONG],
	    .long_active = w->hinted_active[EDDY_LIFE_LONG],
	};
	take_workers(w);
}

static void
finish_all(struct work *w, uint64_t uptime)
{
	w->all.initialized = 1;
	w->all.uptime = uptime;
	/* Free segments are no arena's, but what is dirty in them is counted
	 * with the one that had them. */
	w->all.retained = eddy_less(n_ready(w) * EDDY_CHUNK, w->all.mapped);
	/* Those of all arenas at once, too. */
	w->all.dirty_nmadvise =
	    eddy_less(eddy_peek(&w->h->n_purges), w->all.muzzy_nmadvise);
	w->all.dirty_purged = eddy_less(
	    eddy_peek(&w->h->n_purged) / EDDY_PAGE, w->all.muzzy_purged);
}

void
eddy_snapshot_take(
    struct eddy_heap *h, struct eddy_shelf_turn *t, uint32_t n_places)
{
	struct work *w = eddy_shelf_work(t);
	uint64_t uptime = 0;

	w->h = h;
	w->n_places = n_places;
	w->now = eddy_os_milliseconds();
	eddy_walk_begin(&w->sum, h, EDDY_WALK_ALL);
	memset(&w->all, 0, sizeof(w->all));
	memset(w->hinted_allocated, 0, sizeof(w->hinted_allocated));
	memset(w->hinted_active, 0, sizeof(w->hinted_active));
	take_caches(w);
	take_segments(w, n_places);
	eddy_explicit_tell(see_explicit, w);
	take_pools(w);
	for (uint32_t i = 1; i < n_places; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a != NULL)
			take_arena(w, a);
		if (a != NULL && w->one.uptime > uptime)
			uptime = w->one.uptime;
		/* One that ended has at most what is in somebody's hand. */
		if (a == NULL || eddy_arena_phase(a) == EDDY_ARENA_ENDED)
			memset(&w->one, 0, sizeof(w->one));
		eddy_shelf_put_place(t, i, &w->one);
	}
	finish_all(w, uptime);
	eddy_shelf_put_place(t, EDDY_SNAPSHOT_ALL, &w->all);
	take_totals(w);
	eddy_shelf_put(t, &w->totals);
}
