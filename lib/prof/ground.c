/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/prof/ground.h"

#include "lib/base/atomic.h"
#include "lib/os/os.h"

#define PIECE ((size_t)1 << 20)

struct piece {
	/* Bytes given out, its own included; beyond PIECE: it is full.
	 * W, R: any CPU, by RMW.  O: none: a place of one's own. */
	_Alignas(16) _Atomic size_t used;
};

/* W: who finds the one before full.  R: any CPU.  O: GROUND-R1 -> GROUND-A1.
 */
static _Atomic(struct piece *) current;
/* W, R: any CPU.  O: none: a count. */
static _Atomic size_t bytes;

void *
eddy_ground_map(size_t n)
{
	void *p = eddy_os_reserve(n);

	if (p == NULL)
		return NULL;
	if (eddy_os_commit(p, n) != 0) {
		eddy_os_unmap(p, n);
		return NULL;
	}
	/* relaxed: a count. */
	(void)eddy_add_relaxed(&bytes, n);
	return p;
}

void
eddy_ground_unmap(void *p, size_t n)
{
	eddy_os_unmap(p, n);
	/* relaxed: a count. */
	(void)eddy_add_relaxed(&bytes, -n);
}

void *
eddy_ground_take(size_t n)
{
	/* GROUND-A1: pairs with GROUND-R1. */
	struct piece *c = eddy_load_acquire(&current);

	n = eddy_align_up(n, 16);
	/* Goes round where another has put a new piece there. */
	for (;;) {
		struct piece *fresh;

		if (c != NULL) {
			/* relaxed: a place of one's own. */
			size_t at = eddy_add_relaxed(&c->used, n);

			if (at <= PIECE - n)
				return (char *)c + at;
		}
		fresh = eddy_ground_map(PIECE);
		if (fresh == NULL)
			return NULL;
		/* relaxed: published by GROUND-R1. */
		eddy_store_relaxed(&fresh->used, sizeof(*fresh));
		/* GROUND-R1: it is accessible.  GROUND-A1: or another's. */
		if (eddy_cas_acq_rel(&current, &c, fresh))
			c = fresh;
		else
			eddy_ground_unmap(fresh, PIECE);
	}
}

size_t
eddy_ground_bytes(void)
{
	/* relaxed: a count. */
	return eddy_load_relaxed(&bytes);
}
