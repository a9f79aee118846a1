/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tally.h - how much of an arena is out: objects, slabs, large blocks.
 *
 * Layer     heap (L3).
 * Progress  wait-free.
 * Memory    struct eddy_tally in each arena, a line a class.
 *
 * Kept where memory changes hands: one relaxed addition for each batch of
 * objects that leaves slabs or comes back, for each slab's birth, retirement,
 * and change between full and not full, and two or three for each large block.
 * So statistics cost the same whatever the heap holds.  An object that lies in
 * a cache is out.
 *
 * All are counts: a thread that is killed between the bits and its count leaves
 * them apart by what it had in hand, until somebody looks (lib/ctl/mend.h).  An
 * arena that ends begins anew.
 */
#ifndef EDDY_TALLY_H
#define EDDY_TALLY_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"
#include "lib/heap/sizes.h"

#define EDDY_TALLY_CHUNK ((size_t)1 << 21)

/* One small class. */
struct eddy_tally_bin {
	/* Objects that left slabs and that came back, ever.
	 * W, R: any CPU.  O: none: counts; so are the others. */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t taken;
	_Atomic uint64_t put;
	/* Slabs: born and retired, ever. */
	_Atomic uint64_t born;
	_Atomic uint64_t retired;
	/* Slabs with a hint that they have free objects. */
	_Atomic int64_t partial;
};

/* One large class, as of sizes.h. */
struct eddy_tally_large {
	/* Blocks handed out and taken back, ever; cached ones are out.
	 * W, R: any CPU.  O: none: counts. */
	_Atomic uint64_t taken;
	_Atomic uint64_t put;
};

/* Purges of one arena: of dirty pages, or of muzzy ones. */
struct eddy_tally_purges {
	/* Times, calls to the kernel, pages.  W: who purges.  R: any CPU.
	 * O: none: counts. */
	_Atomic uint64_t sweeps;
	_Atomic uint64_t calls;
	_Atomic uint64_t pages;
};

struct eddy_tally {
	struct eddy_tally_bin bin[EDDY_N_SMALL];
	/* Bytes of the large blocks that are out, to 2 MiB and above; chunks of
	 * the latter.  W, R: any CPU.  O: none: counts. */
	_Alignas(EDDY_CACHELINE) _Atomic int64_t run_bytes;
	_Atomic int64_t huge_bytes;
	_Atomic int64_t huge_chunks;
	/* When the arena began, ms.  W: who makes it, who revives it.  R: any.
	 * O: none. */
	_Atomic uint64_t begun;
	/* What was wrong at the last look, and a mark of the counts at the last
	 * one that found all well: see lib/ctl/mend.h.  W, R: who looks.
	 * O: none: hints. */
	_Atomic uint64_t wrong;
	_Atomic uint64_t seen;
	struct eddy_tally_purges dirty;
	struct eddy_tally_purges muzzy;
	struct eddy_tally_large large[EDDY_N_LARGE];
};

/* n objects of a small row left their slabs. */
static inline void
eddy_tally_take(struct eddy_tally *t, unsigned row, uint64_t n)
{
	/* relaxed, in all of these: a count. */
	(void)eddy_add_relaxed(&t->bin[row - 1].taken, n);
}

static inline void
eddy_tally_put(struct eddy_tally *t, unsigned row, uint64_t n)
{
	/* relaxed: the same. */
	(void)eddy_add_relaxed(&t->bin[row - 1].put, n);
}

/* A slab was born, retired. */
static inline void
eddy_tally_born(struct eddy_tally *t, unsigned row)
{
	/* relaxed: the same. */
	(void)eddy_add_relaxed(&t->bin[row - 1].born, 1);
}

static inline void
eddy_tally_retired(struct eddy_tally *t, unsigned row)
{
	/* relaxed: the same. */
	(void)eddy_add_relaxed(&t->bin[row - 1].retired, 1);
}

/* 1: a slab has free objects, from now on.  -1: no more. */
static inline void
eddy_tally_partial(struct eddy_tally *t, unsigned row, int64_t n)
{
	/* relaxed: the same. */
	(void)eddy_add_relaxed(&t->bin[row - 1].partial, n);
}

/* 1: a large block of so many bytes went out.  -1: it came back. */
static inline void
eddy_tally_bytes(struct eddy_tally *t, size_t size, int64_t sign)
{
	int64_t chunks =
	    (int64_t)((size + EDDY_TALLY_CHUNK - 1) / EDDY_TALLY_CHUNK);

	/* relaxed, all: the same. */
	if (size <= EDDY_TALLY_CHUNK) {
		(void)eddy_add_relaxed(&t->run_bytes, sign * (int64_t)size);
		return;
	}
	(void)eddy_add_relaxed(&t->huge_bytes, sign * (int64_t)size);
	(void)eddy_add_relaxed(&t->huge_chunks, sign * chunks);
}

static inline void
eddy_tally_large_take(struct eddy_tally *t, size_t size)
{
	/* relaxed: the same. */
	(void)eddy_add_relaxed(&t->large[eddy_sizes_large_of(size)].taken, 1);
	eddy_tally_bytes(t, size, 1);
}

static inline void
eddy_tally_large_put(struct eddy_tally *t, size_t size)
{
	/* relaxed: the same. */
	(void)eddy_add_relaxed(&t->large[eddy_sizes_large_of(size)].put, 1);
	eddy_tally_bytes(t, size, -1);
}

/* One sweep of so many calls, by which so many pages went. */
static inline void
eddy_tally_purge(struct eddy_tally_purges *t, uint64_t calls, uint64_t pages)
{
	/* relaxed, all: the same. */
	(void)eddy_add_relaxed(&t->sweeps, 1);
	(void)eddy_add_relaxed(&t->calls, calls);
	(void)eddy_add_relaxed(&t->pages, pages);
}

#endif /* EDDY_TALLY_H */
