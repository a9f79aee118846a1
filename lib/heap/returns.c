/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/returns.h"

#include <string.h>

#include "lib/heap/pagemap.h"
#include "lib/os/os.h"

/* Bytes that may wait in one ring, give or take a batch. */
#define RING_BYTES ((size_t)256 << 10)

static struct eddy_ring *
ring_at(struct eddy_heap *h, uint32_t place)
{
	return &h->rings[place / 16];
}

/* Cells in use: fewer for rows whose batches are large. */
static unsigned
n_cells(uint32_t place)
{
	const struct eddy_class *class =
	    &eddy_classes[place / 16 % EDDY_HOME_ROWS];
	size_t n = RING_BYTES / ((size_t) class->batch * class->size);

	return n >= EDDY_RING_CELLS ? EDDY_RING_CELLS : n < 2 ? 2 : (unsigned)n;
}

/* ------------------------------------------------------------------ */
/* Descriptors */

static struct eddy_batch *
batch_at(struct eddy_heap *h, uint32_t number)
{
	return &h->batches[number - 1];
}

static uint32_t
fresh_batch(struct eddy_heap *h)
{
	/* relaxed: a number of one's own. */
	uint32_t n = eddy_add_relaxed(&h->n_batches, 1) + 1;

	if (n > h->max_batches) {
		(void)eddy_add_relaxed(&h->n_batches, (uint32_t)-1);
		return 0;
	}
	/*
	 * Others may open the same page: it does no harm.  A number that is
	 * refused its memory is lost: giving it back could give it twice.
	 */
	if (eddy_os_commit(batch_at(h, n), sizeof(struct eddy_batch)) != 0)
		return 0;
	return n;
}

static uint32_t
batch_get(struct eddy_heap *h)
{
	/* RET-A2: pairs with RET-R2. */
	uint64_t top = eddy_load_acquire(&h->free_batches);

	for (;;) {
		uint32_t n = (uint32_t)top;
		uint64_t tag = (top >> 32) + 1;
		uint32_t next;

		if (n == 0)
			return fresh_batch(h);
		/* relaxed: garbage if it was taken; the CAS fails then. */
		next = eddy_load_relaxed(&batch_at(h, n)->next);
		/* RET-A2: the tag grows at every pop, so ABA takes 2^32 pops.
		 */
		if (eddy_cas_acquire(&h->free_batches, &top, tag << 32 | next))
			return n;
	}
}

static void
batch_drop(struct eddy_heap *h, uint32_t n)
{
	/* relaxed: a guess that the CAS checks. */
	uint64_t top = eddy_load_relaxed(&h->free_batches);
	uint64_t new;

	do {
		/* relaxed: published by the CAS. */
		eddy_store_relaxed(&batch_at(h, n)->next, (uint32_t)top);
		new = (top >> 32) << 32 | n;
		/* RET-R2: our reads of p[] come before. */
	} while (!eddy_cas_release(&h->free_batches, &top, new));
}

/* ------------------------------------------------------------------ */

static int
empty_cell(struct eddy_ring *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		/* relaxed: a guess that the CAS checks. */
		if (eddy_load_relaxed(&r->cell[i]) == 0)
			return (int)i;
	}
	return -1;
}

bool
eddy_returns_put(
    struct eddy_heap *h, uint32_t place, void *const *objects, unsigned n)
{
	struct eddy_ring *r = ring_at(h, place);
	unsigned cells = n_cells(place);
	int at = empty_cell(r, cells);
	struct eddy_batch *b;
	uint32_t number;

	if (at < 0)
		return false;
	eddy_assert(n >= 1 && n <= EDDY_BATCH_MAX);
	number = batch_get(h);
	if (number == 0)
		return false;
	b = batch_at(h, number);
	/* relaxed: published with the batch. */
	eddy_store_relaxed(&b->n, n);
	memcpy(b->p, objects, n * sizeof(objects[0]));
	for (; at >= 0; at = empty_cell(r, cells)) {
		uint32_t none = 0;

		/* RET-R1: the batch, and its objects' last writes. */
		if (eddy_cas_release(&r->cell[at], &none, number))
			return true;
	}
	batch_drop(h, number);
	return false;
}

unsigned
eddy_returns_take(struct eddy_heap *h, uint32_t place, void **objects)
{
	struct eddy_ring *r = ring_at(h, place);

	/* From the far end: the batch that came last, most likely. */
	for (unsigned i = n_cells(place); i-- > 0;) {
		struct eddy_batch *b;
		uint32_t number;
		unsigned n;

		/* relaxed: a guess that the exchange checks. */
		if (eddy_load_relaxed(&r->cell[i]) == 0)
			continue;
		/* RET-A1: pairs with RET-R1. */
		number = eddy_xchg_acquire(&r->cell[i], 0);
		if (number == 0)
			continue;
		b = batch_at(h, number);
		/* relaxed: ordered by the exchange. */
		n = eddy_load_relaxed(&b->n);
		memcpy(objects, b->p, n * sizeof(objects[0]));
		batch_drop(h, number);
		return n;
	}
	return 0;
}

void
eddy_returns_sweep(struct eddy_heap *h)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		void *objects[EDDY_BATCH_MAX];
		unsigned n;

		/* Each round empties a cell; bounded lest others refill. */
		for (unsigned i = 0; i < EDDY_RING_CELLS; i++) {
			n = eddy_returns_take(h, row * 16, objects);
			if (n == 0)
				break;
			eddy_arena_put(h, objects, n);
		}
	}
}

unsigned
eddy_returns_count(struct eddy_heap *h, uint32_t place)
{
	struct eddy_ring *r = ring_at(h, place);
	unsigned sum = 0;

	for (unsigned i = 0; i < EDDY_RING_CELLS; i++) {
		/* relaxed: a statistic; descriptors are type-stable. */
		uint32_t number = eddy_load_relaxed(&r->cell[i]);

		if (number != 0) /* relaxed: as above. */
			sum += eddy_load_relaxed(&batch_at(h, number)->n);
	}
	return sum;
}
