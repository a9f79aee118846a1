/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/giants.h"

#include "lib/heap/bind.h"
#include "lib/os/os.h"

#define MAX_GIANTS 256

/*
 * Adjacent pages of one mapping.
 * W: who maps them; who gives chunks, by CAS; who brings the last one back.
 * R: any CPU.
 */
struct giant {
	/* 0: the slot is free, 1: taken, and not ready.  O: GIANT-R1 ->
	 * GIANT-A1. */
	_Atomic uintptr_t base;
	/* The rest: relaxed; constant while base is an address, but for the
	 * counts.  O: GIANT-R1 -> GIANT-A1. */
	_Atomic size_t n_chunks;
	_Atomic uint32_t arena;
	_Atomic size_t given; /* up to here, in chunks from the first on */
	_Atomic size_t back;  /* of these, those that are nobody's */
};

static struct giant giants[MAX_GIANTS];

/* The address that a slot has, 0: none. */
static uintptr_t
base_of(struct giant *g)
{
	/* GIANT-A1: pairs with GIANT-R1. */
	uintptr_t base = eddy_load_acquire(&g->base);

	return base > 1 ? base : 0;
}

/* n chunks of what a giant has left; what alignment leaves out is nobody's. */
static void *
take_from(struct giant *g, uintptr_t base, size_t n, size_t align)
{
	/* relaxed, all: a chunk is who takes it; the mapping is GIANT-A1's. */
	size_t given = eddy_load_relaxed(&g->given);
	size_t all = eddy_load_relaxed(&g->n_chunks);

	for (;;) {
		uintptr_t at = eddy_align_up(base + given * EDDY_CHUNK, align);
		size_t from = (at - base) >> EDDY_LG_CHUNK;

		if (from > all || n > all - from)
			return NULL;
		if (!eddy_cas_relaxed(&g->given, &given, from + n))
			continue;
		if (from != given)
			(void)eddy_add_relaxed(&g->back, from - given);
		return (void *)at;
	}
}

static void *
take_left(struct eddy_arena *a, size_t n, size_t align)
{
	for (unsigned i = 0; i < MAX_GIANTS; i++) {
		struct giant *g = &giants[i];
		uintptr_t base = base_of(g);
		void *p;

		/* relaxed: constant while the arena lives. */
		if (base == 0 || eddy_load_relaxed(&g->arena) != a->number)
			continue;
		p = take_from(g, base, n, align);
		if (p != NULL)
			return p;
	}
	return NULL;
}

static struct giant *
take_slot(void)
{
	for (unsigned i = 0; i < MAX_GIANTS; i++) {
		uintptr_t none = 0;

		/* GIANT-A1: after who had it; relaxed if it fails: a look. */
		if (eddy_load_relaxed(&giants[i].base) == 0 &&
		    eddy_cas_acquire(&giants[i].base, &none, 1))
			return &giants[i];
	}
	return NULL;
}

void *
eddy_giants_take(
    struct eddy_heap *h, struct eddy_arena *a, size_t n, size_t align)
{
	const size_t size = eddy_align_up(n * EDDY_CHUNK, EDDY_GIANT);
	/* relaxed: where it is to be from now on. */
	const uint32_t policy =
	    eddy_bind_wanted(h, a->home, eddy_load_relaxed(&a->node));
	struct giant *g;
	void *p;

	if (align > EDDY_GIANT)
		return NULL;
	p = take_left(a, n, align);
	if (p != NULL)
		return p;
	g = take_slot();
	if (g == NULL)
		return NULL;
	p = eddy_os_map_giant(size);
	if (p == NULL) {
		/* GIANT-R1: as it was. */
		eddy_store_release(&g->base, 0);
		return NULL;
	}
	if (policy != EDDY_BOUND_NOT &&
	    eddy_bind_tell(h, p, size, policy, false) != 0)
		/* relaxed: a statistic. */
		(void)eddy_add_relaxed(&h->n_unplaced, 1);
	/* relaxed, all: GIANT-R1. */
	eddy_store_relaxed(&g->n_chunks, size / EDDY_CHUNK);
	eddy_store_relaxed(&g->arena, a->number);
	eddy_store_relaxed(&g->given, n);
	eddy_store_relaxed(&g->back, 0);
	/* GIANT-R1: the mapping and all about it. */
	eddy_store_release(&g->base, (uintptr_t)p);
	return p;
}

static struct giant *
find(const void *p)
{
	for (unsigned i = 0; i < MAX_GIANTS; i++) {
		uintptr_t base = base_of(&giants[i]);

		/* relaxed: constant while a part is in use. */
		if (base != 0 &&
		    (uintptr_t)p - base <
			eddy_load_relaxed(&giants[i].n_chunks) * EDDY_CHUNK)
			return &giants[i];
	}
	return NULL;
}

bool
eddy_giants_have(const void *p)
{
	return find(p) != NULL;
}

/* The arena has ended: nobody takes of it any more. */
static void
put(struct giant *g, size_t n)
{
	/* GIANT-A1, GIANT-R1: who brings the last one comes after the others.
	 */
	size_t back = eddy_add_acq_rel(&g->back, n) + n;

	/* relaxed, both: as above. */
	if (back != eddy_load_relaxed(&g->given))
		return;
	eddy_os_unmap(
	    (void *)base_of(g), eddy_load_relaxed(&g->n_chunks) * EDDY_CHUNK);
	/* GIANT-R1: the slot is free. */
	eddy_store_release(&g->base, 0);
}

void
eddy_giants_put(void *p, size_t n)
{
	char *at = p;

	/* Two of them may lie side by side. */
	while (n != 0) {
		struct giant *g = find(at);
		size_t left;

		if (g == NULL)
			return;
		/* relaxed: as in find. */
		left = eddy_load_relaxed(&g->n_chunks) -
		       (((uintptr_t)at - base_of(g)) >> EDDY_LG_CHUNK);
		if (left > n)
			left = n;
		put(g, left);
		at += left * EDDY_CHUNK;
		n -= left;
	}
}
