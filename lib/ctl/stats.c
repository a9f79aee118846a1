/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/stats.h"

#include "lib/ctl/counts.h"
#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/explicit.h"
#include "lib/heap/pagemap.h"
#include "lib/heap/pool.h"
#include "lib/heap/region.h"
#include "lib/heap/returns.h"
#include "lib/os/zero.h"

/* ------------------------------------------------------------------ */
/* Caches */

/* Objects that the row of a place may hold at most, however it grows. */
static unsigned
row_limit(struct eddy_heap *h, unsigned cpu, uint32_t place)
{
	const struct eddy_class *class =
	    &eddy_classes[place / 16 % EDDY_HOME_ROWS];

	uint32_t number = place / 16 / EDDY_HOME_ROWS;

	if (eddy_is_group(h, number))
		return eddy_cache_group_depth(place / 16 % EDDY_HOME_ROWS);
	/* One batch, where it is of another home. */
	return number == eddy_cache_slot_home(h, cpu) ? class->depth
						      : class->batch;
}

/* What it holds. */
static uint64_t
row_count(struct eddy_heap *h, unsigned cpu, uint32_t place)
{
	struct eddy_row *r = eddy_cache_row(h, cpu, place);
	uint32_t beg = eddy_cache_row_begin(h, cpu, place);
	/* relaxed: a statistic; sections of that CPU move it. */
	uint32_t cur = eddy_load_relaxed(&r->cur);

	/* A row whose capacity was cut may hold more than that. */
	return cur > beg ? (cur - beg) / 8 : 0;
}

/* Of a slot in use: but for pools. */
static struct eddy_stats_cached
slot_row(struct eddy_heap *h, unsigned cpu, unsigned row)
{
	struct eddy_slot_stats *s = eddy_cache_stats(h, cpu);
	struct eddy_stats_cached c = {0};

	for (uint32_t home = 0; home < eddy_n_numbers(h); home++)
		c.n_cached += row_count(h, cpu, eddy_place(home, row));
	c.refills = eddy_peek(&s->row[row].refills);
	c.overflows = eddy_peek(&s->row[row].overflows);
	return c;
}

/* Pools' caches of one class. */
struct pool_row {
	struct eddy_stats_cached c;
	unsigned row;
};

static void
add_pool_row(void *arg, const struct eddy_pool_cached *c)
{
	struct pool_row *r = arg;

	if (c->row != r->row)
		return;
	r->c.n_cached += c->n;
	r->c.refills += c->refills;
	r->c.overflows += c->overflows;
}

struct eddy_stats_cached
eddy_stats_cpu_row(struct eddy_heap *h, unsigned cpu, unsigned row)
{
	struct pool_row r = {.row = row};

	if (eddy_cache_slot_used(h, cpu))
		r.c = slot_row(h, cpu, row);
	eddy_pools_tell(h, EDDY_POOL_ROWS, cpu, add_pool_row, &r);
	return r.c;
}

static struct eddy_stats_cached
cell_row(struct eddy_cell_set *set, unsigned row)
{
	struct eddy_stats_cached c;

	c.n_cached = eddy_cells_count(&set->row[row]);
	c.refills = eddy_peek(&set->stats.row[row].refills);
	c.overflows = eddy_peek(&set->stats.row[row].overflows);
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

static void
add_pool_cache(void *arg, const struct eddy_pool_cached *c)
{
	const struct eddy_stats_cached one = {c->n, c->refills, c->overflows};

	add_cache(arg, one, c->row);
}

bool
eddy_stats_cpu(struct eddy_heap *h, unsigned cpu, struct eddy_stats_cache *ret)
{
	bool used;

	if (h == NULL || !h->sections || cpu >= h->n_slots)
		return false;
	used = eddy_cache_slot_used(h, cpu);
	*ret = (struct eddy_stats_cache){0};
	for (unsigned row = 1; used && row < EDDY_N_ROWS; row++)
		add_cache(ret, slot_row(h, cpu, row), row);
	if (used)
		ret->aborts = eddy_peek(&eddy_cache_stats(h, cpu)->aborts);
	eddy_pools_tell(h, EDDY_POOL_ROWS, cpu, add_pool_cache, ret);
	return used || ret->n_cached + ret->refills != 0;
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

/*
 * Objects in a ring.  A descriptor that changes hands meanwhile may show those
 * of another ring: what is more than there can be is looked at again.
 */
static unsigned
ring_count(struct eddy_heap *h, uint32_t place, unsigned row)
{
	unsigned n = eddy_returns_count(h, place);

	for (int i = 0; i < 3 && n > eddy_returns_limit(row); i++)
		n = eddy_returns_count(h, place);
	return n;
}

uint64_t
eddy_stats_ring_count(struct eddy_heap *h, uint32_t home, unsigned row)
{
	return ring_count(h, eddy_place(home, row), row);
}

uint64_t
eddy_stats_row_count(
    struct eddy_heap *h, unsigned cpu, uint32_t home, unsigned row)
{
	return row_count(h, cpu, eddy_place(home, row));
}

/* Homes and groups from which memory was ever had. */
static uint32_t
n_homes_used(struct eddy_heap *h)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->n_homes; i++)
		n += eddy_arena_at(h, i + 1) != NULL;
	for (uint32_t i = h->n_homes; i < h->n_with_rows; i++)
		n += eddy_is_there(h, i);
	return n;
}

/* Batches between CPUs. */
static void
walk_rings(struct eddy_heap *h, struct eddy_stats *st)
{
	/* relaxed: a statistic. */
	size_t n_batches = eddy_load_relaxed(&h->n_batches);
	size_t descriptors =
	    eddy_align_up(n_batches * sizeof(struct eddy_batch), EDDY_PAGE);
	size_t rings = eddy_align_up(
	    (size_t)h->n_with_rows * EDDY_HOME_ROWS * sizeof(struct eddy_ring),
	    EDDY_PAGE);

	st->metadata_mapped += rings + descriptors;
	if (!h->sections)
		return;
	for (uint32_t home = 0; home < eddy_n_numbers(h); home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			size_t size = eddy_row_size(row);
			unsigned n = ring_count(h, eddy_place(home, row), row);

			st->row[row].cached += n;
			st->ring_bytes += n * size;
			st->stranded_bound += eddy_returns_limit(row) * size;
		}
	/* Nothing writes to a ring before there is a batch; then to a few. */
	if (n_batches != 0)
		st->metadata += n_homes_used(h) * EDDY_PAGE + descriptors;
}

/* Rows of one class in the slot of a CPU in use. */
static void
walk_slot_row(
    struct eddy_heap *h, struct eddy_stats *st, unsigned cpu, unsigned row)
{
	uint32_t own = eddy_cache_slot_home(h, cpu);
	size_t size = eddy_row_size(row);

	for (uint32_t home = 0; home < eddy_n_numbers(h); home++) {
		uint32_t place = eddy_place(home, row);
		uint64_t n = row_count(h, cpu, place);

		st->row[row].cached += n;
		*(eddy_is_own(h, own, home) ? &st->row_bytes
					    : &st->remote_row_bytes) +=
		    n * size;
		st->stranded_bound += row_limit(h, cpu, place) * size;
		st->metadata +=
		    eddy_cache_capacity(eddy_cache_row(h, cpu, place)) *
		    sizeof(void *);
	}
}

static void
walk_slots(struct eddy_heap *h, struct eddy_stats *st)
{
	/* Headers and counters. */
	size_t fixed =
	    EDDY_PAGE + eddy_align_up((size_t)n_homes_used(h) * EDDY_HOME_ROWS *
					  sizeof(struct eddy_row),
			    EDDY_PAGE);

	for (unsigned cpu = 0; cpu < h->n_slots; cpu++) {
		struct eddy_slot_stats *s;

		if (!h->sections || !eddy_cache_slot_used(h, cpu))
			continue;
		s = eddy_cache_stats(h, cpu);
		st->n_cpus++;
		st->aborts += eddy_peek(&s->aborts);
		st->metadata += fixed;
		st->metadata_mapped += eddy_cache_slot_size(h);
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			walk_slot_row(h, st, cpu, row);
			st->row[row].refills += eddy_peek(&s->row[row].refills);
			st->row[row].overflows +=
			    eddy_peek(&s->row[row].overflows);
		}
	}
}

/* Cells of a row that are ever used: 64 KiB, but for the largest. */
static size_t
cell_limit(unsigned row)
{
	size_t n = ((size_t)64 << 10) / eddy_row_size(row);

	return n < 4 ? 4 : n < EDDY_N_CELLS ? n : EDDY_N_CELLS;
}

/* The rows of a set in use. */
static void
walk_set(struct eddy_stats *st, struct eddy_cell_set *set)
{
	size_t page = SIZE_MAX;

	st->metadata += EDDY_PAGE; /* counters */
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		struct eddy_stats_cached c = cell_row(set, row);
		size_t at = row * sizeof(struct eddy_cells) / EDDY_PAGE;

		st->row[row].cached += c.n_cached;
		st->row[row].refills += c.refills;
		st->row[row].overflows += c.overflows;
		st->cell_bytes += c.n_cached * eddy_row_size(row);
		st->stranded_bound += cell_limit(row) * eddy_row_size(row);
		if (at != page && (c.n_cached | c.refills) != 0) {
			st->metadata += EDDY_PAGE;
			page = at;
		}
	}
}

static void
walk_cells(struct eddy_heap *h, struct eddy_stats *st)
{
	/* HEAP-A2: else the cells were never written. */
	if (!eddy_load_acquire(&h->cells_ready))
		return;
	st->metadata_mapped += (size_t)h->n_with_rows * h->n_cell_sets *
			       sizeof(struct eddy_cell_set);
	for (unsigned set = 0; set < eddy_cache_n_cells(h); set++) {
		struct eddy_stats_cache used;

		if (eddy_stats_cells(h, set, &used))
			walk_set(st, eddy_cache_cells(h, set));
	}
}

/* ------------------------------------------------------------------ */
/* Pools */

struct pools {
	struct eddy_stats *st;
	size_t *bytes;
};

static void
see_pool(void *arg, const struct eddy_pool_cached *c)
{
	struct pools *p = arg;
	size_t size = eddy_row_size(c->row);

	p->st->row[c->row].cached += c->n;
	p->st->row[c->row].refills += c->refills;
	p->st->row[c->row].overflows += c->overflows;
	*p->bytes += c->n * size;
	p->st->stranded_bound += c->most * size;
}

static void
walk_pools(struct eddy_heap *h, struct eddy_stats *st)
{
	struct pools rows = {st, &st->row_bytes};
	struct pools rings = {st, &st->ring_bytes};
	struct pools cells = {st, &st->cell_bytes};

	for (unsigned cpu = 0; h->sections && cpu < h->n_slots; cpu++)
		eddy_pools_tell(h, EDDY_POOL_ROWS, cpu, see_pool, &rows);
	eddy_pools_tell(h, EDDY_POOL_RINGS, 0, see_pool, &rings);
	for (size_t set = 0; set < h->n_cell_sets; set++)
		eddy_pools_tell(h, EDDY_POOL_CELLS, set, see_pool, &cells);
}

static void
see_explicit(void *arg, const void *p, unsigned row)
{
	struct eddy_stats *st = arg;

	(void)p;
	st->row[row].cached++;
	st->cell_bytes += eddy_row_size(row);
}

/* Caches that the program created: cells as well. */
static void
walk_explicit(struct eddy_stats *st)
{
	size_t bytes = eddy_explicit_bytes();

	if (bytes == 0)
		return;
	st->metadata_mapped += bytes;
	eddy_explicit_tell(see_explicit, st);
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		st->stranded_bound +=
		    eddy_explicit_limit(row) * eddy_row_size(row);
}

/* ------------------------------------------------------------------ */

static void
sum_rows(struct eddy_stats *st)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		struct eddy_stats_row *r = &st->row[row];

		r->live = eddy_less(r->live, r->cached);
		st->live += r->live * eddy_row_size(row);
		st->n_cached += r->cached;
		st->refills += r->refills;
		st->overflows += r->overflows;
	}
	st->live += st->run_bytes + st->huge_bytes;
	st->stranded = st->row_bytes + st->remote_row_bytes + st->ring_bytes +
		       st->cell_bytes;
}

/* The struct, and a page of each upper level of its hints. */
size_t
eddy_stats_arena_written(struct eddy_arena *a)
{
	size_t n = eddy_align_up(sizeof(*a), EDDY_PAGE);

	/* relaxed: a count. */
	if (eddy_load_relaxed(&a->n_grown) != 0)
		n += EDDY_IDSET_LEVELS * EDDY_PAGE;
	return n < a->fixed_size ? n : a->fixed_size;
}

/* Of the lowest level of its hints a page a segment is written. */
static void
sum_arenas(struct eddy_heap *h, struct eddy_stats *st, uint64_t n_segments)
{
	const size_t hints = EDDY_SEGMENT_CHUNKS / 64 * EDDY_N_HINTS * 8;

	for (uint32_t i = 1; i <= eddy_stats_n_arenas(h); i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a == NULL)
			continue;
		st->metadata_mapped += a->fixed_size;
		st->retained += eddy_arena_bytes(a);
		st->metadata += eddy_stats_arena_written(a);
	}
	st->metadata += n_segments * EDDY_PAGE;
	st->metadata_mapped += n_segments * hints;
}

/* The parts that grow with the number of segments, and the fixed one. */
static void
sum_metadata(struct eddy_heap *h, struct eddy_stats *st, size_t n_chunks)
{
	size_t n = (n_chunks + EDDY_SEGMENT_CHUNKS - 1) / EDDY_SEGMENT_CHUNKS;
	size_t descriptors =
	    eddy_align_up(n * sizeof(struct eddy_segment), EDDY_PAGE);

	/* Options and homes, the first arenas, free segments, the rest. */
	st->metadata += 5 * EDDY_PAGE + descriptors;
	st->metadata_mapped +=
	    h->fixed_size + descriptors +
	    n * (EDDY_SEGMENT / EDDY_PAGE * sizeof(uint32_t));
}

/* What lies beside the memory of regions; beside what is free only the kernel
 * knows what there is. */
static void
sum_regions(struct eddy_stats *st)
{
	struct eddy_region_counts *c = &eddy_region_counts;
	size_t mapped = eddy_peek(&c->parts) * eddy_region_beside(EDDY_CHUNK);

	st->metadata += eddy_region_beside(eddy_peek(&c->marked));
	st->metadata_mapped += mapped;
	/* Its reservation is not counted. */
	st->retained += mapped;
}

static void
take_walk(struct eddy_stats *st, const struct eddy_walk *w)
{
	st->active = w->active;
	st->dirty = w->dirty;
	st->muzzy = w->muzzy;
	st->in_hand = w->in_hand;
	st->metadata = w->metadata;
	st->chunks = w->cut;
	st->runs = w->runs;
	st->run_bytes = w->run_bytes;
	st->huge = w->huge;
	st->huge_bytes = w->huge_bytes;
	st->free_runs = w->free_runs;
}

uint32_t
eddy_stats_n_arenas(struct eddy_heap *h)
{
	/* relaxed: arenas are looked at by number. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);
	const struct eddy_arena *a;

	if (n > EDDY_MAX_ARENAS)
		n = EDDY_MAX_ARENAS;
	/* The next one has the number of the last that came to nothing. */
	while (n > h->n_homes + h->n_samples &&
	       (a = eddy_arena_at(h, n)) != NULL &&
	       /* relaxed: as above. */
	       eddy_load_relaxed(&a->stillborn))
		n--;
	return n;
}

void
eddy_stats_read(struct eddy_heap *h, struct eddy_stats *ret)
{
	struct eddy_walk w;
	uint64_t n_ready;

	*ret = (struct eddy_stats){0};
	if (h == NULL)
		return;
	eddy_walk_begin(&w, h, EDDY_WALK_ALL);
	w.rows = ret->row;
	n_ready = eddy_walk_ready(&w);
	eddy_walk(&w);
	eddy_stats_complete(h, &w, n_ready, ret);
}

void
eddy_stats_complete(struct eddy_heap *h, const struct eddy_walk *w,
    uint64_t n_ready, struct eddy_stats *ret)
{
	struct eddy_zero_counts zero = eddy_os_zero_counts();
	size_t objects = n_ready * EDDY_CHUNK;

	ret->mode = h->sections ? EDDY_STATS_RSEQ
		    : h->cached ? EDDY_STATS_CLAIM
				: EDDY_STATS_NONE;
	take_walk(ret, w);
	walk_slots(h, ret);
	walk_cells(h, ret);
	walk_explicit(ret);
	walk_pools(h, ret);
	walk_rings(h, ret);
	sum_rows(ret);
	sum_arenas(h, ret, w->segments);
	sum_metadata(h, ret, w->n_chunks);
	sum_regions(ret);

	ret->zeroed = zero.written;
	ret->zero_skipped = zero.skipped;
	ret->metadata_mapped += n_ready * sizeof(struct eddy_chunk);
	ret->mapped = objects + ret->metadata_mapped;
	ret->clean = eddy_less(
	    objects, ret->active + ret->dirty + ret->muzzy + ret->in_hand);
	ret->resident = ret->active + ret->dirty + ret->muzzy + ret->in_hand +
			ret->metadata;
	ret->retained = eddy_less(h->reservation_size + ret->retained,
	    h->reserved ? ret->mapped : ret->metadata_mapped);
}

const char *
eddy_stats_mode_name(enum eddy_stats_mode mode)
{
	return mode == EDDY_STATS_RSEQ    ? "rseq"
	       : mode == EDDY_STATS_CLAIM ? "claim"
					  : "none";
}
