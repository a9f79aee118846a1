/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/explicit.h"

#include <errno.h>

#include "lib/data/cells.h"
#include "lib/heap/arena.h"
#include "lib/heap/pagemap.h"
#include "lib/os/os.h"

#define N_WORDS ((EDDY_MAX_EXPLICIT + 63) / 64)
/* Objects that leave a full row together. */
#define MAX_FLUSHED 16

struct eddy_explicit {
	struct eddy_cells row[EDDY_N_ROWS];
} __attribute__((aligned(4096)));

/*
 * By id.  W: who creates the first.  R: any CPU.  O: EXPL-R1 -> EXPL-A1.
 */
static _Atomic(struct eddy_explicit *) caches;
/* Ids given out.  W, R: any CPU, by RMW.  O: none: what it names comes later.
 */
static _Atomic uint64_t used[N_WORDS];
/* Caches that are there.  The same.  O: EXPL-R1 -> EXPL-A1. */
static _Atomic uint64_t live[N_WORDS];

static uint64_t
bit_of(unsigned id)
{
	return (uint64_t)1 << id % 64;
}

/* Where all of them lie, reserved now if it is the first call; NULL: no room.
 */
static struct eddy_explicit *
ground(void)
{
	const size_t size = EDDY_MAX_EXPLICIT * sizeof(struct eddy_explicit);
	/* EXPL-A1: pairs with EXPL-R1. */
	struct eddy_explicit *e = eddy_load_acquire(&caches);
	struct eddy_explicit *fresh;

	if (e != NULL)
		return e;
	fresh = eddy_os_reserve(size);
	if (fresh == NULL)
		return NULL;
	/* EXPL-R1: the addresses.  EXPL-A1: or another's. */
	if (eddy_cas_acq_rel(&caches, &e, fresh))
		return fresh;
	eddy_os_unmap(fresh, size);
	return e;
}

static bool
take_id(unsigned *ret)
{
	for (unsigned i = 0; i < N_WORDS; i++) {
		/* relaxed, both: a number of one's own. */
		uint64_t w = eddy_load_relaxed(&used[i]);

		while (~w != 0) {
			*ret = i * 64 + eddy_ctz64(~w);
			if (*ret >= EDDY_MAX_EXPLICIT)
				return false;
			if (eddy_cas_relaxed(&used[i], &w, w | bit_of(*ret)))
				return true;
		}
	}
	return false;
}

static void
put_id(unsigned id)
{
	/* relaxed: what it named stays what it is. */
	(void)eddy_and_relaxed(&used[id / 64], ~bit_of(id));
}

int
eddy_explicit_create(struct eddy_heap *h, unsigned *ret)
{
	struct eddy_explicit *e = ground();
	const size_t page = eddy_os_page_size();
	uintptr_t from;
	uintptr_t to;

	(void)h;
	if (e == NULL)
		return -ENOMEM;
	if (!take_id(ret))
		return -EAGAIN;
	from = eddy_align_down((uintptr_t)&e[*ret], page);
	to = eddy_align_up((uintptr_t)&e[*ret + 1], page);
	if (eddy_os_commit((void *)from, to - from) != 0) {
		put_id(*ret);
		return -ENOMEM;
	}
	/* EXPL-R1: it is accessible. */
	(void)eddy_or_release(&live[*ret / 64], bit_of(*ret));
	return 0;
}

struct eddy_explicit *
eddy_explicit_find(unsigned id)
{
	/* EXPL-A1: pairs with EXPL-R1, both of them. */
	if (id >= EDDY_MAX_EXPLICIT ||
	    (eddy_load_acquire(&live[id / 64]) & bit_of(id)) == 0)
		return NULL;
	/* EXPL-A1: as above. */
	return eddy_load_acquire(&caches) + id;
}

/* ------------------------------------------------------------------ */
/* Objects */

/* Cells in use: 64 KiB a row, but for a few of the largest. */
static unsigned
n_cells(unsigned row)
{
	size_t n = ((size_t)64 << 10) / eddy_row_size(row);

	return n < 4 ? 4 : n > EDDY_N_CELLS ? EDDY_N_CELLS : (unsigned)n;
}

static bool
may_cache(const struct eddy_heap *h, unsigned row)
{
	return h->cached && eddy_row_size(row) <= h->opts.tcache_max;
}

/* A batch from the arena, the lowest address for the caller. */
static void *
refill(struct eddy_heap *h, struct eddy_cells *cells, struct eddy_arena *a,
    unsigned row)
{
	void *objects[EDDY_BATCH_MAX];
	unsigned want = eddy_classes[row].batch;
	unsigned n;

	if (want > n_cells(row) / 2)
		want = n_cells(row) / 2;
	if (row >= EDDY_ROW_RUN)
		want = 1;
	n = eddy_arena_refill(h, a, row, objects, want);
	if (n == 0)
		return NULL;
	/* The lowest on top. */
	while (n > 1 && eddy_cells_put(cells, n_cells(row), objects[n - 1]))
		n--;
	if (n > 1)
		(void)eddy_arena_put(h, objects + 1, n - 1);
	return objects[0];
}

/* Whether what is cached is of the arena, or (NULL) of any but a file's. */
static bool
is_good(struct eddy_heap *h, const void *p, const struct eddy_arena *a)
{
	const struct eddy_arena *of = eddy_arena_of(h, p);

	return a != NULL ? of == a
			 : of != NULL && of->backing.kind == EDDY_PRIVATE;
}

void *
eddy_explicit_alloc(struct eddy_heap *h, struct eddy_explicit *e,
    struct eddy_arena *a, bool any, unsigned row)
{
	struct eddy_cells *cells = &e->row[row];
	void *p;

	if (!may_cache(h, row))
		return eddy_arena_refill(h, a, row, &p, 1) != 0 ? p : NULL;
	p = eddy_cells_get(cells);
	if (p != NULL && is_good(h, p, any ? NULL : a))
		return p;
	if (p == NULL)
		return refill(h, cells, a, row);
	/* Others' stay where they are, or go home. */
	if (!eddy_cells_put(cells, n_cells(row), p))
		(void)eddy_arena_put(h, &p, 1);
	return eddy_arena_refill(h, a, row, &p, 1) != 0 ? p : NULL;
}

void
eddy_explicit_free(
    struct eddy_heap *h, struct eddy_explicit *e, void *p, uint32_t tag)
{
	unsigned row = eddy_tag_row(tag);
	void *objects[MAX_FLUSHED];
	unsigned n = 1;

	if (may_cache(h, row) && eddy_cells_put(&e->row[row], n_cells(row), p))
		return;
	objects[0] = p;
	while (may_cache(h, row) && n < n_cells(row) / 2 && n < MAX_FLUSHED) {
		objects[n] = eddy_cells_get(&e->row[row]);
		if (objects[n] == NULL)
			break;
		n++;
	}
	(void)eddy_arena_put(h, objects, n);
}

/* ------------------------------------------------------------------ */
/* All that a cache holds */

static bool
sweep_row(
    struct eddy_heap *h, struct eddy_cells *cells, const struct eddy_arena *a)
{
	bool any = false;

	for (unsigned i = 0; i < EDDY_N_CELLS; i++) {
		/* relaxed: a guess that the CAS checks. */
		void *p = eddy_load_relaxed(&cells->cell[i]);

		if (p == NULL || (a != NULL && eddy_arena_of(h, p) != a))
			continue;
		/* CELL-A1: as any get. */
		if (!eddy_cas_acquire(&cells->cell[i], &p, NULL))
			continue;
		(void)eddy_arena_put(h, &p, 1);
		any = true;
	}
	/* relaxed: a hint; else puts went on from where the last one ended, and
	 * soon found no cell. */
	if (a == NULL)
		eddy_store_relaxed(&cells->hint, 0);
	return any;
}

static bool
sweep(struct eddy_heap *h, struct eddy_explicit *e, const struct eddy_arena *a)
{
	bool any = false;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		any |= sweep_row(h, &e->row[row], a);
	return any;
}

int
eddy_explicit_flush(struct eddy_heap *h, unsigned id)
{
	struct eddy_explicit *e = eddy_explicit_find(id);

	if (e == NULL)
		return -EFAULT;
	(void)sweep(h, e, NULL);
	return 0;
}

int
eddy_explicit_destroy(struct eddy_heap *h, unsigned id)
{
	struct eddy_explicit *e = eddy_explicit_find(id);

	/* relaxed: of two at once one does it. */
	if (e == NULL ||
	    (eddy_and_relaxed(&live[id / 64], ~bit_of(id)) & bit_of(id)) == 0)
		return -EFAULT;
	(void)sweep(h, e, NULL);
	put_id(id);
	return 0;
}

bool
eddy_explicit_sweep(struct eddy_heap *h, const struct eddy_arena *a)
{
	bool any = false;

	for (unsigned id = 0; id < EDDY_MAX_EXPLICIT; id++) {
		struct eddy_explicit *e = eddy_explicit_find(id);

		if (e != NULL)
			any |= sweep(h, e, a);
	}
	return any;
}

static void
tell(struct eddy_explicit *e,
    void (*seen)(void *arg, const void *p, unsigned row), void *arg)
{
	for (unsigned row = 1; row < EDDY_N_ROWS; row++)
		for (unsigned i = 0; i < n_cells(row); i++) {
			/* relaxed: a statistic. */
			const void *p = eddy_load_relaxed(&e->row[row].cell[i]);

			if (p != NULL)
				seen(arg, p, row);
		}
}

void
eddy_explicit_tell(
    void (*seen)(void *arg, const void *p, unsigned row), void *arg)
{
	for (unsigned i = 0; i < N_WORDS; i++) {
		/* EXPL-A1: as in find. */
		uint64_t w = eddy_load_acquire(&live[i]);

		for (; w != 0; w &= w - 1)
			tell(
			    /* EXPL-A1: as in find. */
			    eddy_load_acquire(&caches) + i * 64 + eddy_ctz64(w),
			    seen, arg);
	}
}

static uint64_t
n_live(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < N_WORDS; i++) {
		/* relaxed: a count. */
		n +=
		    (unsigned)__builtin_popcountll(eddy_load_relaxed(&live[i]));
	}
	return n;
}

uint64_t
eddy_explicit_limit(unsigned row)
{
	return n_live() * n_cells(row);
}

size_t
eddy_explicit_bytes(void)
{
	return n_live() * sizeof(struct eddy_explicit);
}
