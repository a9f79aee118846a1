/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/gather.h"

#include "lib/heap/arena.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/returns.h"
#include "lib/os/os.h"

/* Rows of one home in one slot. */
struct drain {
	struct eddy_heap *h;
	unsigned cpu;
	uint32_t home;
	uint32_t gen[EDDY_N_ROWS]; /* 0: nothing to be drained */
};

static struct eddy_row *
row_at(const struct drain *d, unsigned row)
{
	return eddy_cache_row(d->h, d->cpu, eddy_place(d->home, row));
}

static uint32_t
begin_of(const struct drain *d, unsigned row)
{
	return eddy_cache_row_begin(d->h, d->cpu, eddy_place(d->home, row));
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

	d->gen[row] = 0;
	/* relaxed: a hint; what comes later waits for the next drain. */
	if (gen % 4 == EDDY_ROW_VIRGIN ||
	    eddy_load_relaxed(&r->cur) <= begin_of(d, row))
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
	char *slot = (char *)eddy_cache_row(d->h, d->cpu, 0);
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

/* All rows of a home in a CPU's slot. */
static void
drain(struct eddy_heap *h, unsigned cpu, uint32_t home)
{
	struct drain d = {.h = h, .cpu = cpu, .home = home};
	bool any = false;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		any |= stop(&d, row);
	/* D2: no section that saw the row open can open it any more. */
	if (!any || eddy_os_membarrier(cpu) != 0)
		return;
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		/* D3.  relaxed: made visible by the barrier. */
		if (d.gen[row] % 4 == EDDY_ROW_STOPPING)
			eddy_store_relaxed(
			    &row_at(&d, row)->limits, EDDY_ROW_CLOSED);
	}
	/* D4: no section that saw the limits open goes on. */
	if (eddy_os_membarrier(cpu) != 0)
		return;
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		uint32_t gen = d.gen[row];

		/*
		 * D5, ROW-F2: what the barrier made visible, to who helps.
		 * Fails if the owner opened the row, or another marked it.
		 */
		if (gen % 4 == EDDY_ROW_STOPPING)
			(void)eddy_cas_release(&row_at(&d, row)->gen, &gen,
			    in_phase(gen, EDDY_ROW_DRAINED));
		if (d.gen[row] != 0)
			take_all(&d, row);
	}
	eddy_cache_recount(h, cpu);
}

/* Rows for objects of the home on all CPUs of others, or on all CPUs. */
static void
drain_cpus(struct eddy_heap *h, uint32_t home, bool own)
{
	for (unsigned cpu = 0; cpu < h->n_slots; cpu++)
		if (eddy_cache_slot_used(h, cpu) &&
		    (own || eddy_cache_slot_home(h, cpu) != home))
			drain(h, cpu, home);
}

void
eddy_gather_note(struct eddy_heap *h, struct eddy_arena *a)
{
	struct eddy_gather *g;
	/* relaxed: a count. */
	uint32_t grown = eddy_load_relaxed(&a->n_grown);
	uint32_t last;
	uint32_t now;

	if (a->home >= h->n_homes)
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
	for (uint32_t home = 0; home < h->n_homes; home++) {
		if (h->sections)
			drain_cpus(h, home, true);
		eddy_returns_sweep(h, home, EDDY_ALL_EPOCHS);
		eddy_cache_sweep_cells(h, home);
	}
}
