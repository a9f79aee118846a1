/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cells.h - a row of independent words, each empty or a pointer.
 *
 * Layer     data (L2).
 * Progress  put, get: wait-free (at most EDDY_CELL_PROBES probes).
 * Memory    of the caller, zero at first.
 *
 * What a CPU's row is with restartable sequences, this is without: the word is
 * the object, so there is nothing to recover from a dead or frozen thread, and
 * anyone may take from it at any time.  Model: tests/model/cells.pml.
 *
 * Order pairs
 *   CELL-R1 -> CELL-A1  the user's last writes, from free to malloc.
 */
#ifndef EDDY_CELLS_H
#define EDDY_CELLS_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"

#define EDDY_N_CELLS     63
#define EDDY_CELL_PROBES 4

struct eddy_cells {
	/* W, R: any thread.  O: none: a hint where the top is. */
	_Atomic uintptr_t hint;
	/* W, R: any thread, by RMW.  O: CELL-R1 -> CELL-A1. */
	_Atomic(void *) cell[EDDY_N_CELLS];
};

/*
 * Puts p into one of the first n cells.
 *
 * Returns: false: none is empty near the hint; p is still the caller's.
 */
EDDY_MUST_USE bool eddy_cells_put(struct eddy_cells *row, unsigned n, void *p);

/* NULL: no full cell near the hint. */
EDDY_MUST_USE void *eddy_cells_get(struct eddy_cells *row);

/* Pointers in the row, as of some moments during the call. */
unsigned eddy_cells_count(struct eddy_cells *row);

#endif /* EDDY_CELLS_H */
