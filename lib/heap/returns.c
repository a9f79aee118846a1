/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/returns.h"

#include <string.h>

#include "lib/heap/pagemap.h"
#include "lib/os/os.h"

/* Bytes that may wait in the cells of a ring, and as many spilled, give or take
 * a batch. */
#define RING_BYTES ((size_t)128 << 10)
/* Batches looked at in one spill stack by a sweep. */
#define MAX_SWEPT EDDY_RING_CELLS

static struct eddy_ring *
ring_at(struct eddy_heap *h, uint32_t place)
{
	return &h->rings[place / 16];
}

/*
 * Cells in use, and batches that may be spilled: fewer for rows whose batches
 * are large.
 */
static unsigned
n_cells(unsigned row)
{
	const struct eddy_class *class = &eddy_classes[row];
	size_t n = RING_BYTES / ((size_t) class->batch * class->size);

	return n >= EDDY_RING_CELLS ? EDDY_RING_CELLS : n < 2 ? 2 : (unsigned)n;
}

static unsigned
row_at(uint32_t place)
{
	return place / 16 % EDDY_HOME_ROWS;
}

unsigned
eddy_returns_limit(unsigned row)
{
	return 2 * n_cells(row) * eddy_classes[row].batch;
}

static struct eddy_gather *
gather_at(struct eddy_heap *h, uint32_t place)
{
	return &h->gathers[place / 16 / EDDY_HOME_ROWS];
}

/* ------------------------------------------------------------------ */
/* Descriptors */

static struct eddy_batch *
batch_at(struct eddy_heap *h, uint32_t number)
{
	return &h->batches[number - 1];
}

/* A stack of batches in one word: {tag, number of the newest}. */
static uint32_t
top_of(uint64_t stack)
{
	return (uint32_t)stack;
}

/*
 * Takes the newest batch of a stack, 0 if there is none; gives up after so many
 * failures.
 */
static uint32_t
pop(struct eddy_heap *h, _Atomic uint64_t *stack, unsigned tries,
    unsigned *rmws)
{
	/* RET-A1, RET-A2: pairs with RET-R1 or RET-R2 of who pushed it. */
	uint64_t top = eddy_load_acquire(stack);

	while (top_of(top) != 0 && tries-- > 0) {
		uint64_t tag = (top >> 32) + 1;
		/* relaxed: garbage if it was taken; the CAS fails then. */
		uint32_t next =
		    eddy_load_relaxed(&batch_at(h, top_of(top))->next);

		++*rmws;
		/*
		 * RET-A1, RET-A2: the tag grows at every pop, so ABA takes
		 * 2^32 pops.  On failure too: next of the new top is read.
		 */
		if (eddy_cas_acq_rel(stack, &top, tag << 32 | next))
			return top_of(top);
	}
	return 0;
}

static uint32_t
fresh_batch(struct eddy_heap *h, unsigned *rmws)
{
	/* relaxed: a number of one's own. */
	uint32_t n = eddy_add_relaxed(&h->n_batches, 1) + 1;

	++*rmws;
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
batch_get(struct eddy_heap *h, unsigned *rmws)
{
	uint32_t n = pop(h, &h->free_batches, UINT32_MAX, rmws);

	return n != 0 ? n : fresh_batch(h, rmws);
}

static void
batch_drop(struct eddy_heap *h, uint32_t n, unsigned *rmws)
{
	/* relaxed: a guess that the CAS checks. */
	uint64_t top = eddy_load_relaxed(&h->free_batches);
	uint64_t new;

	do {
		/* relaxed: published by the CAS. */
		eddy_store_relaxed(&batch_at(h, n)->next, top_of(top));
		new = (top >> 32) << 32 | n;
		++*rmws;
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

/* How deep the stack is below a top that was read: right, if a CAS finds it. */
static uint32_t
depth_of(struct eddy_heap *h, uint64_t top)
{
	/* relaxed: of a batch that may be another's by now. */
	return top_of(top) != 0
		   ? eddy_load_relaxed(&batch_at(h, top_of(top))->depth)
		   : 0;
}

static bool
spill(struct eddy_heap *h, struct eddy_ring *r, uint32_t number, unsigned limit,
    unsigned *rmws)
{
	struct eddy_batch *b = batch_at(h, number);
	/* RET-A1: the depth is of the batch that was pushed. */
	uint64_t top = eddy_load_acquire(&r->spill);
	uint64_t new;

	for (;;) {
		uint32_t depth = depth_of(h, top) + 1;

		if (depth > limit)
			return false;
		/* relaxed, both: published by the CAS. */
		eddy_store_relaxed(&b->depth, depth);
		eddy_store_relaxed(&b->next, top_of(top));
		new = (top >> 32) << 32 | number;
		++*rmws;
		/*
		 * RET-R1: the batch, and its objects' last writes.  RET-A1: on
		 * failure, as above.
		 */
		if (eddy_cas_acq_rel(&r->spill, &top, new))
			return true;
	}
}

enum eddy_put
eddy_returns_put(struct eddy_heap *h, uint32_t place, void *const *objects,
    unsigned n, unsigned *rmws)
{
	struct eddy_ring *r = ring_at(h, place);
	unsigned cells = n_cells(row_at(place));
	int at = empty_cell(r, cells);
	struct eddy_batch *b;
	uint32_t number;

	/* RET-A1: as in spill, which decides. */
	if (at < 0 && depth_of(h, eddy_load_acquire(&r->spill)) >= cells)
		return EDDY_PUT_NOWHERE;
	eddy_assert(n >= 1 && n <= EDDY_BATCH_MAX);
	number = batch_get(h, rmws);
	if (number == 0)
		return EDDY_PUT_NOWHERE;
	b = batch_at(h, number);
	/* relaxed, both: published with the batch. */
	eddy_store_relaxed(&b->n, n);
	eddy_store_relaxed(
	    &b->epoch, eddy_load_relaxed(&gather_at(h, place)->epoch));
	memcpy(b->p, objects, n * sizeof(objects[0]));
	for (; at >= 0; at = empty_cell(r, cells)) {
		uint32_t none = 0;

		++*rmws;
		/* RET-R1: the batch, and its objects' last writes. */
		if (eddy_cas_release(&r->cell[at], &none, number))
			return EDDY_PUT_CELL;
	}
	if (spill(h, r, number, cells, rmws))
		return EDDY_PUT_SPILL;
	batch_drop(h, number, rmws);
	return EDDY_PUT_NOWHERE;
}

/* Out of a cell, if something is there: the number of a batch. */
static uint32_t
take_cell(_Atomic uint32_t *cell, unsigned *rmws)
{
	/* relaxed: a guess that the exchange checks. */
	if (eddy_load_relaxed(cell) == 0)
		return 0;
	++*rmws;
	/* RET-A1: pairs with RET-R1. */
	return eddy_xchg_acquire(cell, 0);
}

/* What is in a batch in hand; its descriptor is free then. */
static unsigned
unpack(struct eddy_heap *h, uint32_t number, void **objects, unsigned *rmws)
{
	struct eddy_batch *b = batch_at(h, number);
	/* relaxed: ordered by what took it. */
	unsigned n = eddy_load_relaxed(&b->n);

	memcpy(objects, b->p, n * sizeof(objects[0]));
	batch_drop(h, number, rmws);
	return n;
}

unsigned
eddy_returns_take(
    struct eddy_heap *h, uint32_t place, void **objects, unsigned *rmws)
{
	struct eddy_ring *r = ring_at(h, place);
	uint32_t number = 0;

	/* From the far end: the batch that came last, most likely. */
	for (unsigned i = n_cells(row_at(place)); number == 0 && i-- > 0;)
		number = take_cell(&r->cell[i], rmws);
	/* Twice: whoever loses has slabs to go to. */
	if (number == 0)
		number = pop(h, &r->spill, 2, rmws);
	return number != 0 ? unpack(h, number, objects, rmws) : 0;
}

/* ------------------------------------------------------------------ */

/* Whether a batch has waited since before the gather of that number. */
static bool
is_old(struct eddy_heap *h, uint32_t number, uint32_t epoch)
{
	/* relaxed: a guess; nobody is hurt by a batch too early in its slab. */
	return number != 0 &&
	       (epoch == EDDY_ALL_EPOCHS ||
		   (int32_t)(eddy_load_relaxed(&batch_at(h, number)->epoch) -
			     epoch) < 0);
}

static void
sweep_ring(struct eddy_heap *h, uint32_t place, uint32_t epoch)
{
	struct eddy_ring *r = ring_at(h, place);
	void *objects[EDDY_BATCH_MAX];
	unsigned rmws = 0;
	uint32_t number;

	for (unsigned i = 0; i < EDDY_RING_CELLS; i++) {
		/* relaxed: a guess that the exchange checks. */
		if (!is_old(h, eddy_load_relaxed(&r->cell[i]), epoch))
			continue;
		number = take_cell(&r->cell[i], &rmws);
		if (number != 0)
			(void)eddy_arena_put(
			    h, objects, unpack(h, number, objects, &rmws));
	}
	/* Of any age: the old ones lie below.  Bounded, since others may go on
	 * putting. */
	for (unsigned i = 0; i < MAX_SWEPT; i++) {
		number = pop(h, &r->spill, 2, &rmws);
		if (number == 0)
			break;
		(void)eddy_arena_put(
		    h, objects, unpack(h, number, objects, &rmws));
	}
}

void
eddy_returns_sweep(struct eddy_heap *h, uint32_t home, uint32_t epoch)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		sweep_ring(h, eddy_place(home, row), epoch);
}

unsigned
eddy_returns_count(struct eddy_heap *h, uint32_t place)
{
	struct eddy_ring *r = ring_at(h, place);
	unsigned sum = 0;
	uint32_t number;

	for (unsigned i = 0; i < EDDY_RING_CELLS; i++) {
		/* relaxed: a statistic; descriptors are type-stable. */
		number = eddy_load_relaxed(&r->cell[i]);
		if (number != 0) /* relaxed: as above. */
			sum += eddy_load_relaxed(&batch_at(h, number)->n);
	}
	/* relaxed: as above; a chain that changes meanwhile is cut short. */
	number = top_of(eddy_load_relaxed(&r->spill));
	for (unsigned i = n_cells(row_at(place)); number != 0 && i-- > 0;) {
		/* relaxed, both: as above. */
		sum += eddy_load_relaxed(&batch_at(h, number)->n);
		number = eddy_load_relaxed(&batch_at(h, number)->next);
	}
	return sum;
}
