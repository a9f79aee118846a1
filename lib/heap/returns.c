/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/returns.h"

#include <string.h>

#include "lib/heap/pagemap.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"

/*
 * Bytes that may wait in the cells of a ring, and as many spilled, give or take
 * a batch.  All cells are used up to 1 KiB: a thousand objects that come back
 * at once find room.
 */
#define RING_BYTES ((size_t)128 << 10)
#define RING_SMALL 1024
/* Descriptors that a freeze makes accessible. */
#define N_PREPARED 1024

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

	if (class->size <= RING_SMALL || n > EDDY_RING_CELLS)
		return EDDY_RING_CELLS;
	return n < 2 ? 2 : (unsigned)n;
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
	uint32_t n;

	/* relaxed, both: as of some moment. */
	if (eddy_frozen(h) && eddy_load_relaxed(&h->n_batches) >=
				  eddy_load_relaxed(&h->batches_ready))
		return 0;
	/* relaxed: a number of one's own. */
	n = eddy_add_relaxed(&h->n_batches, 1) + 1;
	++*rmws;
	if (n > h->max_batches) {
		(void)eddy_add_relaxed(&h->n_batches, (uint32_t)-1);
		return 0;
	}
	/*
	 * Others may open the same page: it does no harm.  A number that is
	 * refused its memory is lost: giving it back could give it twice.
	 */
	/* relaxed: a larger number was told by who made them accessible. */
	if (n > eddy_load_relaxed(&h->batches_ready) &&
	    eddy_os_commit(batch_at(h, n), sizeof(struct eddy_batch)) != 0)
		return 0;
	return n;
}

void
eddy_returns_prepare(struct eddy_heap *h)
{
	/* relaxed: as of some moment. */
	uint32_t from = eddy_load_relaxed(&h->n_batches);
	uint32_t to = from + N_PREPARED;

	if (to > h->max_batches)
		to = h->max_batches;
	if (from < to && eddy_os_commit(batch_at(h, from + 1),
			     (to - from) * sizeof(struct eddy_batch)) == 0)
		/* relaxed: for threads that do without ordering: who sees a
		 * smaller number makes them accessible again. */
		eddy_store_relaxed(&h->batches_ready, to);
}

/* The spare in hand, or another; 0 if there is none to be had. */
static uint32_t
batch_get(struct eddy_heap *h, struct eddy_carry *c)
{
	uint32_t n = c->spare;

	c->spare = 0;
	if (n == 0)
		n = pop(h, &h->free_batches, UINT32_MAX, &c->rmws);
	return n != 0 ? n : fresh_batch(h, &c->rmws);
}

void
eddy_returns_drop(struct eddy_heap *h, struct eddy_carry *c)
{
	/* relaxed: a guess that the CAS checks. */
	uint64_t top = eddy_load_relaxed(&h->free_batches);
	uint64_t new;

	if (c->spare == 0)
		return;
	do {
		/* relaxed: published by the CAS. */
		eddy_store_relaxed(&batch_at(h, c->spare)->next, top_of(top));
		new = (top >> 32) << 32 | c->spare;
		c->rmws++;
		/* RET-R2: our reads of p[] come before. */
	} while (!eddy_cas_release(&h->free_batches, &top, new));
	c->spare = 0;
}

/* ------------------------------------------------------------------ */

/* A cell that holds no full batch; n if all do.  *seen: what it holds. */
static unsigned
open_cell(struct eddy_ring *r, unsigned n, uint32_t *seen)
{
	for (unsigned i = 0; i < n; i++) {
		/* relaxed: a guess that the CAS checks. */
		*seen = eddy_load_relaxed(&r->cell[i]);
		if ((*seen & EDDY_CELL_FULL) == 0)
			return i;
	}
	return n;
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
eddy_ring_put(struct eddy_heap *h, struct eddy_ring *r, unsigned row,
    uint32_t epoch, void *const *objects, unsigned n, struct eddy_carry *c)
{
	unsigned cells = n_cells(row);
	uint32_t seen;
	unsigned at = open_cell(r, cells, &seen);
	struct eddy_batch *b;
	uint32_t number;

	/* RET-A1: as in spill, which decides. */
	if (at == cells && depth_of(h, eddy_load_acquire(&r->spill)) >= cells)
		return EDDY_PUT_NOWHERE;
	eddy_assert(n >= 1 && n <= EDDY_BATCH_MAX);
	number = batch_get(h, c);
	if (number == 0)
		return EDDY_PUT_NOWHERE;
	b = batch_at(h, number);
	/* relaxed, both: published with the batch. */
	eddy_store_relaxed(&b->n, n);
	eddy_store_relaxed(&b->epoch, epoch);
	memcpy(b->p, objects, n * sizeof(objects[0]));
	for (; at < cells; at = open_cell(r, cells, &seen)) {
		c->rmws++;
		/*
		 * RET-R1: the batch, and its objects' last writes.  RET-A2: the
		 * reads of the empty one that comes into our hand.
		 */
		if (eddy_cas_acq_rel(
			&r->cell[at], &seen, number | EDDY_CELL_FULL)) {
			c->spare = seen;
			return EDDY_PUT_CELL;
		}
	}
	if (spill(h, r, number, cells, &c->rmws))
		return EDDY_PUT_SPILL;
	c->spare = number;
	return EDDY_PUT_NOWHERE;
}

enum eddy_put
eddy_returns_put(struct eddy_heap *h, uint32_t place, void *const *objects,
    unsigned n, struct eddy_carry *c)
{
	/* relaxed: a guess. */
	return eddy_ring_put(h, ring_at(h, place), row_at(place),
	    eddy_load_relaxed(&gather_at(h, place)->epoch), objects, n, c);
}

/* The spare for what is in a cell, if that looks full; true if it was. */
static bool
take_cell(_Atomic uint32_t *cell, struct eddy_carry *c)
{
	uint32_t old;

	/* relaxed: a guess that the exchange checks. */
	if ((eddy_load_relaxed(cell) & EDDY_CELL_FULL) == 0)
		return false;
	c->rmws++;
	/*
	 * RET-A1: pairs with RET-R1.  RET-R2: our reads of the spare come
	 * before; RET-A2: those of an empty one that comes for it.
	 */
	old = eddy_xchg_acq_rel(cell, c->spare);
	c->spare = old & ~EDDY_CELL_FULL;
	return (old & EDDY_CELL_FULL) != 0;
}

/* What is in the batch in hand, which is the spare from now on. */
static unsigned
unpack(struct eddy_heap *h, void **objects, const struct eddy_carry *c)
{
	struct eddy_batch *b = batch_at(h, c->spare);
	/* relaxed: ordered by what took it. */
	unsigned n = eddy_load_relaxed(&b->n);

	memcpy(objects, b->p, n * sizeof(objects[0]));
	return n;
}

/* Out of the spill stack, if there is something. */
static bool
take_spilled(struct eddy_heap *h, struct eddy_ring *r, struct eddy_carry *c)
{
	/* relaxed: a guess that the CAS checks. */
	if (top_of(eddy_load_relaxed(&r->spill)) == 0)
		return false;
	/* One in hand at most. */
	eddy_returns_drop(h, c);
	/* Twice: whoever loses has slabs to go to. */
	c->spare = pop(h, &r->spill, 2, &c->rmws);
	return c->spare != 0;
}

unsigned
eddy_ring_take(struct eddy_heap *h, struct eddy_ring *r, unsigned row,
    void **objects, struct eddy_carry *c)
{
	bool got = false;

	/* From the far end: the batch that came last, most likely. */
	for (unsigned i = n_cells(row); !got && i-- > 0;)
		got = take_cell(&r->cell[i], c);
	return got || take_spilled(h, r, c) ? unpack(h, objects, c) : 0;
}

unsigned
eddy_returns_take(
    struct eddy_heap *h, uint32_t place, void **objects, struct eddy_carry *c)
{
	return eddy_ring_take(h, ring_at(h, place), row_at(place), objects, c);
}

/* ------------------------------------------------------------------ */

/* Whether a batch has waited since before the gather of that number. */
static bool
is_old(struct eddy_heap *h, uint32_t number, uint32_t epoch)
{
	/* relaxed: a guess; nobody is hurt by a batch too early in its slab. */
	return epoch == EDDY_ALL_EPOCHS ||
	       (int32_t)(eddy_load_relaxed(&batch_at(h, number)->epoch) -
			 epoch) < 0;
}

void
eddy_ring_sweep(struct eddy_heap *h, struct eddy_ring *r, uint32_t epoch)
{
	void *objects[EDDY_BATCH_MAX];
	struct eddy_carry c = {0};

	for (unsigned i = 0; i < EDDY_RING_CELLS; i++) {
		/* relaxed: a guess that the exchange checks. */
		uint32_t seen = eddy_load_relaxed(&r->cell[i]);

		if ((seen & EDDY_CELL_FULL) != 0 &&
		    is_old(h, seen & ~EDDY_CELL_FULL, epoch) &&
		    take_cell(&r->cell[i], &c))
			(void)eddy_arena_put(
			    h, objects, unpack(h, objects, &c));
	}
	/* Of any age: the old ones lie below.  Bounded, since others may go on
	 * putting. */
	for (unsigned i = 0; i < MAX_SWEPT && take_spilled(h, r, &c); i++)
		(void)eddy_arena_put(h, objects, unpack(h, objects, &c));
	eddy_returns_drop(h, &c);
}

void
eddy_returns_sweep(struct eddy_heap *h, uint32_t home, uint32_t epoch)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		eddy_ring_sweep(h, ring_at(h, eddy_place(home, row)), epoch);
}

unsigned
eddy_ring_count(struct eddy_heap *h, struct eddy_ring *r, unsigned row)
{
	unsigned sum = 0;
	uint32_t number;

	for (unsigned i = 0; i < EDDY_RING_CELLS; i++) {
		/* relaxed: a statistic; descriptors are type-stable. */
		number = eddy_load_relaxed(&r->cell[i]);
		if ((number & EDDY_CELL_FULL) != 0) /* relaxed: as above. */
			sum += eddy_load_relaxed(
			    &batch_at(h, number & ~EDDY_CELL_FULL)->n);
	}
	/* relaxed: as above; a chain that changes meanwhile is cut short. */
	number = top_of(eddy_load_relaxed(&r->spill));
	for (unsigned i = n_cells(row); number != 0 && i-- > 0;) {
		/* relaxed, both: as above. */
		sum += eddy_load_relaxed(&batch_at(h, number)->n);
		number = eddy_load_relaxed(&batch_at(h, number)->next);
	}
	return sum;
}

unsigned
eddy_returns_count(struct eddy_heap *h, uint32_t place)
{
	return eddy_ring_count(h, ring_at(h, place), row_at(place));
}
