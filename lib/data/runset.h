/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runset.h - runs of units in containers of 512: pages in chunks, chunks in
 * segments.
 *
 * Layer      data (L2).
 * Progress   put: wait-free.  claim: lock-free; it goes round only where
 *            another thread's claim, put or purge succeeded.
 * Memory     of the caller; type-stable, never unmapped.
 *
 * A container has a bit per unit; a bit that is set may be taken by whoever
 * clears it.  Coalescing is implicit.  Protocol and mutants: tests/model/
 * runs.pml.
 *
 * Invariants
 *   I-RUN-1  Free bits are zero unless the container is live: set last at
 *            birth, all taken before retirement.  So a stale claimer finds
 *            nothing to take, and a bit in hand pins the container's owner.
 *   I-RUN-2  Take, then read what you took: the owner is checked after.
 *   I-RUN-3  One way to put back: OR, then the hint, then a look whether all
 *            is free.  Roll-backs and purges take it too.
 *   I-RUN-4  Words are claimed in ascending order, so the winner of the
 *            highest contested word is blocked by nobody.
 *   I-RUN-5  If the longest free run has length L, a hint of a bucket
 *            >= log2(L) is set, or a thread that owes it is on its way (or
 *            dead: the next put heals that, and who would answer NULL
 *            looks into every container).
 *
 * Order pairs
 *   RUN-R1 -> RUN-A1  bits put back against the second look of who cleared
 *                     the hint: store-load, sequentially consistent.
 *   RUN-R2 -> RUN-A2  last writes to a unit, to its next owner.
 */
#ifndef EDDY_RUNSET_H
#define EDDY_RUNSET_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"
#include "lib/data/idset.h"

#define EDDY_RUNMAP_UNITS 512
#define EDDY_RUNMAP_WORDS (EDDY_RUNMAP_UNITS / 64)
#define EDDY_RUN_BUCKETS  10 /* runs of 2^b to 2^(b+1) - 1 units */

/* The head of each container's descriptor. */
struct eddy_runmap {
	/* W, R: any CPU.  O: RUN-R1 -> RUN-A1, RUN-R2 -> RUN-A2. */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t free[EDDY_RUNMAP_WORDS];
	/*
	 * Units that may hold something else than zero.
	 * W: whoever has the unit in hand, by RMW (the word is shared).
	 * R: the same.  O: none of its own; ordered by the unit's free bit.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint64_t dirty[EDDY_RUNMAP_WORDS];
	union {
		/*
		 * Segments: chunks whose memory is accessible.  Cleared only
		 * by who has the whole segment in hand.
		 * W, R: any CPU.  O: SEG-R3 -> SEG-A3.
		 */
		_Alignas(
		    EDDY_CACHELINE) _Atomic uint64_t ready[EDDY_RUNMAP_WORDS];
		/*
		 * Chunks: dirty pages whose memory the kernel may take while
		 * they are free.  As `dirty`.
		 */
		_Alignas(
		    EDDY_CACHELINE) _Atomic uint64_t muzzy[EDDY_RUNMAP_WORDS];
	};
	/*
	 * W: whoever has all units in hand (birth, retirement).
	 * R: any CPU, as a hint; true while a bit is in hand.
	 * O: RUN-R2 -> RUN-A2; for segments, BIND-R2 -> BIND-A2 as well.
	 */
	_Alignas(EDDY_CACHELINE) _Atomic uint32_t owner;
	/*
	 * Chunks: bytes from the chunk's place in the range to where its memory
	 * is; 0 but for memory of users' hooks: see lib/heap/hooks.h.
	 * W: whoever has the chunk in hand.  R: who has part of it.
	 * O: RUN-R2 -> RUN-A2.
	 */
	_Atomic ptrdiff_t away;
};

struct eddy_runset {
	struct eddy_idset *hints;
	unsigned first_kind; /* of EDDY_RUN_BUCKETS in hints */
	char *descriptors;   /* the container's at id * stride */
	size_t stride;
	uint32_t owner; /* containers of this owner only */
	/* Puts n units back to their container, whoever owns it. */
	void (*put)(uint32_t id, unsigned pos, unsigned n);
};

enum eddy_run_want {
	EDDY_WANT_DIRTY, /* units used before first: their memory is there */
	EDDY_WANT_CLEAN, /* units known to be zero first */
	/* The rest for chunks in segments only. */
	EDDY_WANT_READY, /* accessible units first */
	EDDY_WANT_WARM,  /* units used before, then accessible ones */
	EDDY_ONLY_READY, /* accessible units or none */
	EDDY_ONLY_DIRTY, /* units used before or none; for pages as well */
	EDDY_ONLY_COLD,  /* units known to be zero or none, accessible first */
	EDDY_ONLY_FRESH, /* units that are not accessible or none */
};

struct eddy_run {
	uint32_t id;
	unsigned pos;
};

static inline struct eddy_runmap *
eddy_runset_map(const struct eddy_runset *s, uint32_t id)
{
	return (struct eddy_runmap *)(s->descriptors + id * s->stride);
}

/*
 * eddy_runset_claim - takes n adjacent units, the first at a multiple of align.
 *
 * Pre:     1 <= n <= 512, align a power of two <= 512.
 * Looks at a bounded number of containers that do not fit.
 * Returns: true and the run; the run's units and their container are the
 *          caller's until eddy_runset_put.
 * Context: any thread; async-signal-safe; lock-free.
 */
EDDY_MUST_USE bool eddy_runset_claim(struct eddy_runset *s, unsigned n,
    unsigned align, enum eddy_run_want want, struct eddy_run *ret);

/* The same in one container, whether a hint names it or not. */
EDDY_MUST_USE bool eddy_runset_claim_in(struct eddy_runset *s, uint32_t id,
    unsigned n, unsigned align, enum eddy_run_want want, unsigned *ret_pos);

/* The same in one container, at this place only (growing in place). */
EDDY_MUST_USE bool eddy_runset_claim_at(
    struct eddy_runset *s, uint32_t id, unsigned pos, unsigned n);

/*
 * eddy_runset_put - puts units back and makes them findable.
 *
 * Pre:     the units are the caller's; s is of their container's owner.
 * Returns: true when all 512 units were free afterwards, so that the caller
 *          may try to retire the container.
 * A unit that was free already is a double free: fatal, named by `blame`.
 */
EDDY_MUST_USE bool eddy_runset_put(struct eddy_runset *s, uint32_t id,
    unsigned pos, unsigned n, const void *blame);

/*
 * eddy_runset_open - the birth of a container: sets the free bits of
 * [pos, pos + n) and announces them.
 *
 * Pre: all units are the caller's, owner is set.
 */
void eddy_runset_open(
    struct eddy_runset *s, uint32_t id, unsigned pos, unsigned n);

/* A container all of whose units are in hand, or nobody's for good, holds
 * nothing: its hints are cleared, and its owner is 0. */
void eddy_runset_close(struct eddy_runset *s, uint32_t id);

/*
 * eddy_runset_retire - takes all 512 units if all are free.
 *
 * Returns: true: the container is the caller's, its hints are cleared, and
 *          `owner` is 0.
 */
EDDY_MUST_USE bool eddy_runset_retire(struct eddy_runset *s, uint32_t id);

#endif /* EDDY_RUNSET_H */
