/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idset.h - sets of small integers, one per kind: where to look first.
 *
 * Layer      data (L2).
 * Progress   set, clear: wait-free (a bounded number of RMWs).  find:
 *            wait-free (every step moves to a larger id).
 * Memory     of the caller, zero at first; never unmapped.
 *
 * A set is a hierarchy of 64-ary bit words.  Level 0 has a bit per id; a bit
 * above says that the word below it may not be empty.  The words of all kinds
 * for the same 64 ids lie together, so that a small heap touches one page a
 * level.
 *
 * The bits are hints, the truth lies in what they point to.  The rules that
 * make them good ones (tests/model/index.pml):
 *   I-IDS-1  Whoever makes something findable does so first, and then sets
 *            the bit at every level, bottom up, testing each even where the
 *            lower one was set: its setter may be dead.
 *   I-IDS-2  Whoever found nothing clears, then looks again, then sets again.
 *            eddy_idset_clear does that for the levels above 0; for level 0
 *            the caller does.
 *
 * Order pairs (store-load, hence sequentially consistent on every access)
 *   IDS-R1 -> IDS-A1  a bit set at one level, read again by who clears above.
 *   The caller's truth and its bit: RUN-R1 -> RUN-A1, SLAB-R1 -> SLAB-A1.
 */
#ifndef EDDY_IDSET_H
#define EDDY_IDSET_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"

#define EDDY_IDSET_LEVELS 4
#define EDDY_ID_NONE      UINT32_MAX

struct eddy_idset {
	/* Set before the set is published, constant afterwards. */
	_Atomic uint64_t *level[EDDY_IDSET_LEVELS];
	uint32_t n_words[EDDY_IDSET_LEVELS]; /* per kind */
	uint32_t n_levels;
	uint32_t n_kinds;
};

/* Shapes a set for ids 0 to n_ids - 1 without giving it memory. */
void eddy_idset_shape(struct eddy_idset *s, uint32_t n_ids, uint32_t n_kinds);

/* Bytes of one level of a set that has been shaped. */
size_t eddy_idset_bytes(const struct eddy_idset *s, unsigned level);

/* Makes id a member of kind, at every level (I-IDS-1). */
void eddy_idset_set(struct eddy_idset *s, unsigned kind, uint32_t id);

/*
 * Takes id out of kind.  The caller looks at the truth again afterwards and
 * sets the bit again if there is something (I-IDS-2).
 */
void eddy_idset_clear(struct eddy_idset *s, unsigned kind, uint32_t id);

/*
 * eddy_idset_find - the smallest member of kind that is >= from, or
 * EDDY_ID_NONE.
 *
 * Pre: from is 0, an id found before, or one more than that: no word is read
 *      that belongs to ids which never were members (their memory may not be
 *      accessible yet).
 */
uint32_t eddy_idset_find(struct eddy_idset *s, unsigned kind, uint32_t from);

#endif /* EDDY_IDSET_H */
