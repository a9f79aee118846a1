/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/gather.h"

#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/pool.h"
#include "lib/heap/purge.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/returns.h"
#include "lib/heap/wake.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"
#include "numa/excluded.h"

/* Rows that are drained by one pair of barriers at most. */
#define MAX_DRAINED (EDDY_N_ROWS - 1)

/* Some rows of one CPU. */
struct drain {
	struct eddy_heap *h;
	unsigned cpu;
	const struct eddy_row_at *rows;
	unsigned n;
	bool closes;               /* rows that hold nothing, too */
	uint32_t gen[MAX_DRAINED]; /* 0: nothing to be drained */
};

static struct eddy_row *
row_at(const struct drain *d, unsigned row)
{
	return eddy_row_header(&d->rows[row], d->cpu);
}

static uint32_t
begin_of(const struct drain *d, unsigned row)
{
	return d->rows[row].beg;
}

static uint32_t
in_phase(uint32_t gen, enum eddy_row_phase phase)
{
	return (gen & ~(uint32_t)3) | (uint32_t)phase;
}

/* D1: stops the row, or finds it stopped; true if there is work. */
static bool
stop(struct drain *d, unsigned row)
{
	struct eddy_row *r = row_at(d, row);
	/* ROW-F2: what another drainer saw. */
	uint32_t gen = eddy_load_acquire(&r->gen);
	uint32_t stopped = in_phase(gen, EDDY_ROW_STOPPING);
	bool closes = d->closes && gen % 4 != EDDY_ROW_DRAINED;

	d->gen[row] = 0;
	/* relaxed: a hint; what comes later waits for the next drain. */
	if (gen % 4 == EDDY_ROW_VIRGIN ||
	    (!closes && eddy_load_relaxed(&r->cur) <= begin_of(d, row)))
		return false;
	/* ROW-F2: of two drainers and an owner one wins. */
	if (gen % 4 == EDDY_ROW_OPEN &&
	    !eddy_cas_acq_rel(&r->gen, &gen, stopped))
		return false;
	d->gen[row] = gen % 4 == EDDY_ROW_DRAINED ? gen : stopped;
	return true;
}

/* D6 to D9: batches below cur, as long as the row stays drained. */
static void
take_all(struct drain *d, unsigned row)
{
	struct eddy_row *r = row_at(d, row);
	uint32_t beg = begin_of(d, row);
	char *slot = (char *)r - d->rows[row].place;
	/* ROW-F2: pairs with the CAS that marked it drained. */
	uint64_t w = eddy_load_acquire(&r->w0);

	while ((uint32_t)(w >> 32) == in_phase(d->gen[row], EDDY_ROW_DRAINED) &&
	       (uint32_t)w > beg) {
		void *objects[EDDY_BATCH_MAX];
		uint32_t n = ((uint32_t)w - beg) / 8;
		_Atomic(void *) *from;

		if (n > EDDY_BATCH_MAX)
			n = EDDY_BATCH_MAX;
		from = (_Atomic(void *) *)(void *)(slot + (uint32_t)w - n * 8);
		/* relaxed: thrown away if the CAS fails. */
		for (uint32_t i = 0; i < n; i++)
			objects[i] = eddy_load_relaxed(&from[i]);
		/*
		 * ROW-F2: the reads come before it, and before who reopens the
		 * row.  In one epoch cur only falls, so equal words mean equal
		 * contents.
		 */
		if (!eddy_cas_acq_rel(&r->w0, &w, w - n * 8))
			continue;
		(void)eddy_arena_put(d->h, objects, n);
		/* ROW-F2: as above. */
		w = eddy_load_acquire(&r->w0);
	}
}

static bool
drain_rows(struct drain *d)
{
	unsigned cpu = d->cpu;
	bool any = false;

	if (eddy_cpu_excluded(d->h->opts.exclude_cpus, cpu))
		return false;
	for (unsigned row = 0; row < d->n; row++)
		any |= stop(d, row);
	/* D2: no section that saw the row open can open it any more. */
	if (!any || eddy_os_membarrier(cpu) != 0)
		return false;
	for (unsigned row = 0; row < d->n; row++) {
		/* D3.  relaxed: made visible by the barrier. */
		if (d->gen[row] % 4 == EDDY_ROW_STOPPING)
			eddy_store_relaxed(
			    &row_at(d, row)->limits, EDDY_ROW_CLOSED);
	}
	/* D4: no section that saw the limits open goes on. */
	if (eddy_os_membarrier(cpu) != 0)
		return false;
	for (unsigned row = 0; row < d->n; row++) {
		uint32_t gen = d->gen[row];

		/*
		 * D5, ROW-F2: what the barrier made visible, to who helps.
		 * Fails if the owner opened the row, or another marked it.
		 */
		if (gen % 4 == EDDY_ROW_STOPPING)
			(void)eddy_cas_release(&row_at(d, row)->gen, &gen,
			    in_phase(gen, EDDY_ROW_DRAINED));
		if (d->gen[row] != 0)
			take_all(d, row);
	}
	return true;
}

/* All rows of a home in a CPU's slot. */
static void
drain(struct eddy_heap *h, unsigned cpu, uint32_t home, bool closes)
{
	struct eddy_row_at rows[EDDY_N_ROWS - 1];
	struct drain d = {.h = h,
	    .cpu = cpu,
	    .rows = rows,
	    .n = EDDY_N_ROWS - 1,
	    .closes = closes};

	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		uint32_t place = eddy_place(home, row);

		rows[row - 1] = (struct eddy_row_at){(uintptr_t)h->slots, place,
		    eddy_cache_row_begin(h, cpu, place)};
	}
	if (drain_rows(&d))
		eddy_cache_recount(h, cpu);
}

static_assert(EDDY_GATHER_ROWS <= MAX_DRAINED, "as many at once");

void
eddy_gather_rows(struct eddy_heap *h, unsigned cpu,
    const struct eddy_row_at *rows, unsigned n, bool closes)
{
	struct drain d = {
	    .h = h, .cpu = cpu, .rows = rows, .n = n, .closes = closes};

	(void)drain_rows(&d);
}

/* Rows for objects of the home on all CPUs of others, or on all CPUs. */
static void
drain_cpus(struct eddy_heap *h, uint32_t home, bool own)
{
	for (unsigned cpu = 0; cpu < h->n_slots; cpu++)
		if (eddy_cache_slot_used(h, cpu) &&
		    (own ||
			!eddy_is_own(h, eddy_cache_slot_home(h, cpu), home)))
			drain(h, cpu, home, false);
}

void
eddy_gather_note(struct eddy_heap *h, struct eddy_arena *a)
{
	struct eddy_gather *g;
	/* relaxed: a count. */
	uint32_t grown = eddy_load_relaxed(&a->n_grown);
	uint32_t last;
	uint32_t now;

	if (a->home >= h->n_with_rows || eddy_frozen(h))
		return;
	g = &h->gathers[a->home];
	/* relaxed, all: whoever moves the clock on does it. */
	if (grown == eddy_load_relaxed(&g->chunks))
		return;
	/* relaxed; the stamp first: a sleeper must not set it back. */
	last = eddy_load_relaxed(&g->time);
	now = eddy_os_seconds();
	/* relaxed: as above.  Whoever loses leaves it to the winner. */
	if (now - last >= EDDY_GATHER_SECONDS &&
	    !eddy_cas_relaxed(&g->time, &last, now))
		return;
	/* relaxed: as above. */
	eddy_store_relaxed(&g->chunks, grown);
	if (now - last < EDDY_GATHER_SECONDS || last == 0)
		return;
	/* relaxed: as above. */
	last = eddy_add_relaxed(&g->epoch, 1);
	eddy_returns_sweep(h, a->home, last);
	drain_cpus(h, a->home, false);
}

void
eddy_gather_all(struct eddy_heap *h)
{
	for (uint32_t home = 0; home < eddy_n_numbers(h); home++) {
		if (h->sections && !eddy_frozen(h))
			drain_cpus(h, home, true);
		eddy_returns_sweep(h, home, EDDY_ALL_EPOCHS);
		eddy_cache_sweep_cells(h, home);
	}
}

size_t
eddy_gather_purge(struct eddy_heap *h, struct eddy_arena *a, size_t keep)
{
	/* No cache holds what is of a program's arena. */
	if (a == NULL || a->home < h->n_with_rows) {
		eddy_cache_flush(h);
		eddy_gather_all(h);
	}
	return a == NULL ? eddy_purge(h, keep) : eddy_purge_arena(h, a);
}

/* ------------------------------------------------------------------ */
/* Idle */

/* Looks may become so many times as rare. */
#define RARE 8
/* More looks than one in so many ms are of no use. */
#define MIN_LOOK_MS 10

void
eddy_gather_watch(struct eddy_heap *h)
{
	/* IDLE-A2: after the row was opened. */
	if (eddy_load_seq_cst(&h->watched) != 0 || h->opts.idle_purge_ms < 0 ||
	    eddy_frozen(h))
		return;
	/* relaxed, both: WAKE-R2 orders them.  Until the look all ask, for one
	 * may be killed before he has called. */
	eddy_store_relaxed(&h->look_at, 0);
	eddy_store_relaxed(&h->due, 0);
	eddy_wake(h, 0);
}

bool
eddy_look_idle(struct eddy_look *l, struct eddy_seen *seen, uint64_t sum)
{
	uint64_t since;

	if (sum == 0)
		return false;
	l->any = true;
	/* relaxed, all: of lookers at once either will do. */
	if (eddy_load_relaxed(&seen->sum) != sum) {
		eddy_store_relaxed(&seen->sum, sum);
		eddy_store_relaxed(&seen->at, l->now);
		return false;
	}
	since = eddy_load_relaxed(&seen->at);
	if (l->now - since >= l->ms)
		return true;
	if (l->ms - (l->now - since) < l->next)
		l->next = l->ms - (l->now - since);
	return false;
}

/* A sum over the rows of a slot in use; 0: none is open, nor holds anything. */
static uint64_t
sum_slot(struct eddy_heap *h, unsigned cpu)
{
	struct eddy_slot_stats *s = eddy_cache_stats(h, cpu);
	uint64_t sum = 1;
	bool any = false;

	for (uint32_t home = 0; home < eddy_n_numbers(h); home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			uint32_t place = eddy_place(home, row);
			const struct eddy_row_at at = {(uintptr_t)h->slots,
			    place, eddy_cache_row_begin(h, cpu, place)};

			sum = sum * 31 + eddy_row_sum(&at, cpu, &any);
		}
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		/* relaxed, both: as above. */
		sum = sum * 31 + eddy_load_relaxed(&s->row[row].refills) +
		      eddy_load_relaxed(&s->row[row].overflows);
	}
	return any ? sum | 1 : 0;
}

static void
look_at_cpu(struct eddy_heap *h, unsigned cpu, struct eddy_look *l)
{
	bool any = l->any;

	if (eddy_look_idle(
		l, &eddy_cache_stats(h, cpu)->seen, sum_slot(h, cpu))) {
		for (uint32_t home = 0; home < eddy_n_numbers(h); home++)
			drain(h, cpu, home, true);
		/* What cannot be drained is not waited for. */
		l->any = any;
	}
}

static void
look_at_rings(struct eddy_heap *h, struct eddy_look *l)
{
	uint64_t n = 0;

	for (uint32_t home = 0; home < eddy_n_numbers(h); home++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++)
			n += eddy_returns_count(h, eddy_place(home, row));
	if (n == 0)
		return;
	l->any = true;
	for (uint32_t home = 0; home < eddy_n_numbers(h); home++) {
		/* relaxed: a rule of thumb. */
		uint32_t last = eddy_add_relaxed(&h->gathers[home].epoch, 1);

		eddy_returns_sweep(h, home, last);
	}
}

/* A sum over the cells in use. */
static uint64_t
sum_cells(struct eddy_heap *h)
{
	uint64_t sum = 0;

	/* HEAP-A2 and IDLE-A1: else they were never written; as of rows. */
	if (!eddy_load_seq_cst(&h->cells_ready))
		return 0;
	for (unsigned s = 0; s < eddy_cache_n_cells(h); s++)
		for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
			struct eddy_cells *c =
			    &eddy_cache_cells(h, s)->row[row];

			for (unsigned i = 0; i < EDDY_N_CELLS; i++) {
				/* IDLE-A1: as of rows. */
				sum = sum * 31 +
				      (uintptr_t)eddy_load_seq_cst(&c->cell[i]);
			}
		}
	return sum;
}

static void
look_at_cells(struct eddy_heap *h, struct eddy_look *l)
{
	if (eddy_look_idle(l, &h->cells_seen, sum_cells(h)))
		for (uint32_t home = 0; home < eddy_n_numbers(h); home++)
			eddy_cache_sweep_cells(h, home);
}

uint64_t
eddy_gather_idle(struct eddy_heap *h, uint64_t now)
{
	struct eddy_look l = {.now = now, .next = EDDY_NEVER};
	/* relaxed, all: hints. */
	uint64_t at = eddy_load_relaxed(&h->look_at);
	uint64_t every = eddy_load_relaxed(&h->look_every);

	if (h->opts.idle_purge_ms < 0 ||
	    (at != 0 && eddy_load_relaxed(&h->watched) == 0))
		return EDDY_NEVER;
	if (at > now)
		return at - now;
	l.ms = (uint64_t)h->opts.idle_purge_ms;
	if (l.ms < MIN_LOOK_MS)
		l.ms = MIN_LOOK_MS;
	if (at == 0)
		every = 0;
	/* relaxed: of two at once one looks. */
	if (!eddy_cas_relaxed(&h->look_at, &at, now + l.ms))
		return l.ms;
	/* IDLE-R2: before the look; a row opened later asks for another. */
	(void)eddy_xchg_seq_cst(&h->watched, 0);
	for (unsigned cpu = 0; cpu < h->n_slots; cpu++)
		if (h->sections && eddy_cache_slot_used(h, cpu))
			look_at_cpu(h, cpu, &l);
	look_at_rings(h, &l);
	look_at_cells(h, &l);
	eddy_pools_look(h, &l);
	/* relaxed, all: hints. */
	if (!l.any)
		return eddy_load_relaxed(&h->look_at) == 0 ? 1 : EDDY_NEVER;
	eddy_store_relaxed(&h->watched, 1);
	if (l.next == EDDY_NEVER) {
		/* All are at work. */
		l.next = every == 0 ? l.ms : every * 2;
		if (l.next > l.ms * RARE)
			l.next = l.ms * RARE;
		eddy_store_relaxed(&h->look_every, l.next);
	}
	if (l.next == 0)
		l.next = 1;
	eddy_store_relaxed(&h->look_at, now + l.next);
	return l.next;
}
