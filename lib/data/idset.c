/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/data/idset.h"

static _Atomic uint64_t *
word_at(struct eddy_idset *s, unsigned level, unsigned kind, uint32_t word)
{
	return &s->level[level][(size_t)word * s->n_kinds + kind];
}

void
eddy_idset_shape(struct eddy_idset *s, uint32_t n_ids, uint32_t n_kinds)
{
	uint32_t n = n_ids;

	s->n_kinds = n_kinds;
	s->n_levels = 0;
	do {
		n = (n + 63) / 64;
		s->n_words[s->n_levels++] = n;
	} while (n > 1 && s->n_levels < EDDY_IDSET_LEVELS);
}

size_t
eddy_idset_bytes(const struct eddy_idset *s, unsigned level)
{
	if (level >= s->n_levels)
		return 0;
	return (size_t)s->n_words[level] * s->n_kinds * sizeof(uint64_t);
}

/* Sets the bits of id from one level up. */
static void
set_from(struct eddy_idset *s, unsigned kind, uint32_t id, unsigned level)
{
	for (; level < s->n_levels; level++) {
		_Atomic uint64_t *w = word_at(s, level, kind, id / 64);
		uint64_t bit = (uint64_t)1 << id % 64;

		/* IDS-R1: after what it announces; read again by IDS-A1. */
		if ((eddy_load_seq_cst(w) & bit) == 0)
			(void)eddy_or_seq_cst(w, bit);
		id /= 64;
	}
}

void
eddy_idset_set(struct eddy_idset *s, unsigned kind, uint32_t id)
{
	set_from(s, kind, id, 0);
}

/* The word `id` of level - 1 looked empty: clears its bit, looks again. */
static void
clear_above(struct eddy_idset *s, unsigned kind, uint32_t id, unsigned level)
{
	for (; level < s->n_levels; level++) {
		_Atomic uint64_t *w = word_at(s, level, kind, id / 64);
		uint64_t bit = (uint64_t)1 << id % 64;
		/* IDS-R1: a clear is an RMW in the same total order. */
		uint64_t left = eddy_and_seq_cst(w, ~bit) & ~bit;

		/*
		 * IDS-A1: the word below, after the clear above.  A setter
		 * either finds this bit cleared and sets it, or set its own
		 * before this load.
		 */
		if (eddy_load_seq_cst(word_at(s, level - 1, kind, id)) != 0) {
			set_from(s, kind, id, level);
			return;
		}
		if (left != 0)
			return;
		id /= 64;
	}
}

void
eddy_idset_clear(struct eddy_idset *s, unsigned kind, uint32_t id)
{
	_Atomic uint64_t *w = word_at(s, 0, kind, id / 64);
	uint64_t bit = (uint64_t)1 << id % 64;
	uint64_t left;

	/* IDS-A1: clear already, so that any later setter sets it. */
	if ((eddy_load_seq_cst(w) & bit) == 0)
		return;
	/* IDS-R1: a clear is an RMW in the same total order. */
	left = eddy_and_seq_cst(w, ~bit) & ~bit;
	if (left == 0)
		clear_above(s, kind, id / 64, 1);
}

/* Down from a set bit of `level`; EDDY_ID_NONE when a lower word is empty. */
static uint32_t
descend(struct eddy_idset *s, unsigned kind, uint32_t id, unsigned level)
{
	while (level > 0) {
		/* IDS-A1: also makes what the bit announces visible. */
		uint64_t w = eddy_load_seq_cst(word_at(s, level - 1, kind, id));

		if (w == 0) {
			/* A stale bit, of a dead setter or a racing one. */
			clear_above(s, kind, id, level);
			return EDDY_ID_NONE;
		}
		id = id * 64 + eddy_ctz64(w);
		level--;
	}
	return id;
}

uint32_t
eddy_idset_find(struct eddy_idset *s, unsigned kind, uint32_t from)
{
	unsigned top = s->n_levels - 1;
	unsigned level = 0;
	uint32_t id = from;

	/* Up while the place is the first of a word: see the precondition. */
	while (level < top && id % 64 == 0) {
		id /= 64;
		level++;
	}
	while (id / 64 < s->n_words[level]) {
		/* IDS-A1: as in descend. */
		uint64_t w =
		    eddy_load_seq_cst(word_at(s, level, kind, id / 64)) &
		    (~(uint64_t)0 << id % 64);
		uint32_t found;

		if (w != 0) {
			id = id / 64 * 64 + eddy_ctz64(w);
			found = descend(s, kind, id, level);
			if (found != EDDY_ID_NONE)
				return found;
			id++;
			if (id % 64 != 0)
				continue;
		} else {
			id = id / 64 * 64 + 64;
		}
		/* This word is done: the next one as seen from above. */
		while (level < top && id % 64 == 0) {
			id /= 64;
			level++;
		}
	}
	return EDDY_ID_NONE;
}
