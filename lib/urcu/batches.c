/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/urcu/batches.h"

#include "lib/os/os.h"

/* Makes the block accessible; false: no memory. */
static bool
block_ready(struct eddy_deferred_store *s, unsigned k)
{
	struct eddy_deferred *none = NULL;
	size_t size = ((size_t)64 << k) * sizeof(struct eddy_deferred);
	void *p;

	/* URCU-A2: of who has mapped it. */
	if (eddy_load_acquire(&s->block[k]) != NULL)
		return true;
	p = eddy_os_reserve(size);
	if (p == NULL)
		return false;
	/* URCU-R2: zeros, and accessible. */
	if (eddy_os_commit(p, size) == 0 &&
	    eddy_cas_acq_rel(&s->block[k], &none, p))
		return true;
	eddy_os_unmap(p, size);
	return none != NULL;
}

/* A number that was never used; 0: no memory. */
static uint32_t
fresh(struct eddy_deferred_store *s)
{
	/* relaxed: checked by the CAS, which hands out a number of one's own.
	 */
	uint32_t n = eddy_load_relaxed(&s->n);

	do {
		unsigned k = eddy_log2(n / 64 + 1);

		if (k >= EDDY_DEFERRED_BLOCKS || !block_ready(s, k))
			return 0;
		/* relaxed: as above. */
	} while (!eddy_cas_relaxed(&s->n, &n, n + 1));
	return n + 1;
}

uint32_t
eddy_deferred_open(struct eddy_deferred_store *s, void *p, uint64_t now_ms)
{
	uint32_t number = eddy_deferred_pop(s, &s->free);
	struct eddy_deferred *b;

	if (number == 0)
		number = fresh(s);
	if (number == 0)
		return 0;
	b = eddy_deferred_at(s, number);
	/* relaxed, all: published with the batch.  Who comes late may put
	 * something into a place that is empty again. */
	eddy_store_relaxed(&b->since, now_ms);
	eddy_store_relaxed(&b->hint, 1);
	eddy_store_relaxed(&b->place[0], p);
	for (unsigned i = 1; i < EDDY_DEFERRED; i++)
		eddy_store_relaxed(&b->place[i], NULL);
	return number;
}

void
eddy_deferred_close(struct eddy_deferred *b, size_t (*size)(void *))
{
	uint64_t bytes = 0;
	uint32_t n = 0;

	for (unsigned i = 0; i < EDDY_DEFERRED; i++) {
		/* URCU-A1: what its user did before. */
		void *p = eddy_load_acquire(&b->place[i]);

		/* URCU-A1, when another was first.  URCU-R1: nothing. */
		if (p == NULL &&
		    eddy_cas_acq_rel(&b->place[i], &p, EDDY_DEFERRED_EMPTY))
			continue;
		if (p == EDDY_DEFERRED_EMPTY)
			continue;
		n++;
		bytes += size(p);
	}
	/* relaxed, both: published with the batch. */
	eddy_store_relaxed(&b->n, n);
	eddy_store_relaxed(&b->bytes, bytes);
}

static void
push(struct eddy_deferred_store *s, eddy_deferred_stack *stack, uint32_t first,
    uint32_t last)
{
	struct eddy_deferred *b = eddy_deferred_at(s, last);
	/* relaxed: a guess that the CAS checks. */
	uint64_t top = eddy_load_relaxed(stack);
	uint64_t new;

	do {
		/* relaxed: published by the CAS. */
		eddy_store_relaxed(&b->next, eddy_deferred_top(top));
		new = (top >> 32) << 32 | first;
		/* URCU-R2: the batches.  DOZE-R1: as in put. */
	} while (!eddy_cas_seq_cst(stack, &top, new));
}

void
eddy_deferred_push(
    struct eddy_deferred_store *s, eddy_deferred_stack *stack, uint32_t number)
{
	push(s, stack, number, number);
}

void
eddy_deferred_push_chain(
    struct eddy_deferred_store *s, eddy_deferred_stack *stack, uint32_t first)
{
	uint32_t last = first;
	uint32_t next = first;

	if (first == 0)
		return;
	while (next != 0) {
		last = next;
		/* relaxed: of a batch in hand. */
		next = eddy_load_relaxed(&eddy_deferred_at(s, last)->next);
	}
	push(s, stack, first, last);
}

uint32_t
eddy_deferred_pop(struct eddy_deferred_store *s, eddy_deferred_stack *stack)
{
	/* URCU-A2: next of the top. */
	uint64_t top = eddy_load_acquire(stack);

	while (eddy_deferred_top(top) != 0) {
		uint64_t tag = (top >> 32) + 1;
		struct eddy_deferred *b =
		    eddy_deferred_at(s, eddy_deferred_top(top));
		/* relaxed: garbage if it was taken; the CAS fails then. */
		uint32_t next = eddy_load_relaxed(&b->next);

		/* URCU-A2: the tag grows at every pop, so ABA takes 2^32 of
		 * them.  URCU-R2: nothing of its own. */
		if (eddy_cas_acq_rel(stack, &top, tag << 32 | next))
			return eddy_deferred_top(top);
	}
	return 0;
}

uint32_t
eddy_deferred_take(eddy_deferred_stack *stack)
{
	/* URCU-A2: all of it. */
	uint64_t top = eddy_load_acquire(stack);

	while (eddy_deferred_top(top) != 0) {
		/* URCU-A2 and URCU-R2: as in pop. */
		if (eddy_cas_acq_rel(stack, &top, ((top >> 32) + 1) << 32))
			return eddy_deferred_top(top);
	}
	return 0;
}

void
eddy_deferred_find(struct eddy_deferred_store *s, eddy_deferred_stack *stack)
{
	/* relaxed, all: there are no others. */
	uint32_t at = eddy_deferred_top(eddy_load_relaxed(stack));

	while (at != 0) {
		struct eddy_deferred *b = eddy_deferred_at(s, at);

		eddy_store_relaxed(&b->found, 1);
		at = eddy_load_relaxed(&b->next);
	}
}

uint32_t
eddy_deferred_adopt(struct eddy_deferred_store *s, size_t (*size)(void *))
{
	/* relaxed, all: there are no others. */
	uint32_t n = eddy_load_relaxed(&s->n);
	uint32_t first = 0;

	for (uint32_t at = 1; at <= n; at++) {
		struct eddy_deferred *b = eddy_deferred_at(s, at);

		if (eddy_load_relaxed(&b->found) == 0) {
			eddy_deferred_close(b, size);
			eddy_store_relaxed(&b->next, first);
			first = at;
		}
		eddy_store_relaxed(&b->found, 0);
	}
	return first;
}
