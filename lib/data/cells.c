/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/data/cells.h"

bool
eddy_cells_put(struct eddy_cells *row, unsigned n, void *p)
{
	/* relaxed: a hint; a wrong one costs probes. */
	uintptr_t at = eddy_load_relaxed(&row->hint);

	for (uintptr_t i = 0; i < EDDY_CELL_PROBES; i++, at++) {
		void *none = NULL;

		if (at >= n)
			return false;
		/* relaxed: a guess that the CAS checks. */
		if (eddy_load_relaxed(&row->cell[at]) != NULL)
			continue;
		/* CELL-R1: pairs with CELL-A1 of whoever gets it.  IDLE-R1. */
		if (eddy_cas_seq_cst(&row->cell[at], &none, p)) {
			/* relaxed: a hint. */
			eddy_store_relaxed(&row->hint, at + 1);
			return true;
		}
	}
	return false;
}

void *
eddy_cells_get(struct eddy_cells *row)
{
	/* relaxed: a hint; a wrong one costs probes. */
	uintptr_t at = eddy_load_relaxed(&row->hint);

	if (at > EDDY_N_CELLS)
		at = EDDY_N_CELLS;
	for (uintptr_t i = 0; i < EDDY_CELL_PROBES && at > 0; i++) {
		void *p;

		at--;
		/* relaxed: a guess that the exchange checks. */
		if (eddy_load_relaxed(&row->cell[at]) == NULL)
			continue;
		/* CELL-A1: pairs with CELL-R1. */
		p = eddy_xchg_acquire(&row->cell[at], NULL);
		if (p != NULL) {
			/* relaxed: a hint. */
			eddy_store_relaxed(&row->hint, at);
			return p;
		}
	}
	/* Nothing here: the next search begins lower, or at the top again. */
	eddy_store_relaxed(&row->hint, at > 0 ? at : EDDY_CELL_PROBES);
	return NULL;
}

unsigned
eddy_cells_count(struct eddy_cells *row)
{
	unsigned n = 0;

	for (unsigned i = 0; i < EDDY_N_CELLS; i++) {
		/* relaxed: a statistic. */
		n += eddy_load_relaxed(&row->cell[i]) != NULL;
	}
	return n;
}
