/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/data/runset.h"

#include "lib/os/fatal.h"

/* Containers that do not fit and are passed over before a caller grows. */
#define MAX_MISSES 16

typedef uint64_t words[EDDY_RUNMAP_WORDS];

/* The bits of [pos, pos + n) that lie in word i. */
static uint64_t
part(unsigned i, unsigned pos, unsigned n)
{
	unsigned lo = pos > i * 64 ? pos - i * 64 : 0;
	unsigned hi = pos + n < (i + 1) * 64 ? pos + n - i * 64 : 64;

	return eddy_mask(lo, hi - lo);
}

static void
look(struct eddy_runmap *m, words w)
{
	/* RUN-A1: after the clear of a hint, or after our own OR. */
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++)
		w[i] = eddy_load_seq_cst(&m->free[i]);
}

/* First place >= pos whose bit is `bit`, 512 if none. */
static unsigned
next_bit(const words w, unsigned pos, unsigned bit)
{
	while (pos < EDDY_RUNMAP_UNITS) {
		uint64_t x = (bit ? w[pos / 64] : ~w[pos / 64]) >> pos % 64;

		if (x != 0)
			return pos + eddy_ctz64(x);
		pos = (pos / 64 + 1) * 64;
	}
	return EDDY_RUNMAP_UNITS;
}

/* Start of the free run that contains pos, whose bit is set. */
static unsigned
run_start(const words w, unsigned pos)
{
	for (;;) {
		uint64_t x = ~w[pos / 64] << (63 - pos % 64);

		if (x != 0)
			return pos - (unsigned)__builtin_clzll(x) + 1;
		if (pos < 64)
			return 0;
		pos = pos / 64 * 64 - 1;
		if ((w[pos / 64] >> 63) == 0)
			return pos + 1;
	}
}

/* Lowest place of a run of n at a multiple of align; 512 if none. */
static unsigned
fit(const words w, unsigned n, unsigned align)
{
	unsigned pos = next_bit(w, 0, 1);

	while (pos < EDDY_RUNMAP_UNITS) {
		unsigned end = next_bit(w, pos, 0);
		unsigned at = (pos + align - 1) & ~(align - 1);

		if (at + n <= end)
			return at;
		pos = next_bit(w, end, 1);
	}
	return EDDY_RUNMAP_UNITS;
}

static unsigned
longest(const words w)
{
	unsigned best = 0;
	unsigned pos = next_bit(w, 0, 1);

	while (pos < EDDY_RUNMAP_UNITS) {
		unsigned end = next_bit(w, pos, 0);

		if (end - pos > best)
			best = end - pos;
		pos = next_bit(w, end, 1);
	}
	return best;
}

#define DIRTY 1u
#define CLEAN 2u
#define READY 4u
#define FRESH 8u

/* Of the free units those of all the kinds. */
static void
narrow(struct eddy_runmap *m, unsigned kinds, const words w, words ret)
{
	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		/* relaxed, both: a preference; ready is read again after the
		 * claim. */
		uint64_t dirty = eddy_load_relaxed(&m->dirty[i]);

		ret[i] = w[i];
		if (kinds & DIRTY)
			ret[i] &= dirty;
		if (kinds & CLEAN)
			ret[i] &= ~dirty;
		if (kinds & (READY | FRESH))
			ret[i] &= eddy_load_relaxed(&m->ready[i]) ^
				  (kinds & FRESH ? ~(uint64_t)0 : 0);
	}
}

/* What units a claim looks for, in this order; then any, unless `only`. */
static const struct {
	uint8_t first;
	uint8_t second;
	bool only;
} wants[] = {
    [EDDY_WANT_DIRTY] = {DIRTY, 0, false},
    [EDDY_WANT_CLEAN] = {CLEAN, 0, false},
    [EDDY_WANT_READY] = {READY, 0, false},
    [EDDY_WANT_WARM] = {DIRTY, READY, false},
    [EDDY_ONLY_READY] = {READY, 0, true},
    [EDDY_ONLY_DIRTY] = {DIRTY, 0, true},
    [EDDY_ONLY_COLD] = {CLEAN | READY, CLEAN, true},
    [EDDY_ONLY_FRESH] = {FRESH, 0, true},
};

static unsigned
choose(struct eddy_runmap *m, enum eddy_run_want want, const words w,
    unsigned n, unsigned align)
{
	const uint8_t kinds[] = {wants[want].first, wants[want].second};
	words some;

	for (unsigned i = 0; i < 2 && kinds[i] != 0; i++) {
		unsigned pos;

		narrow(m, kinds[i], w, some);
		pos = fit(some, n, align);
		if (pos < EDDY_RUNMAP_UNITS)
			return pos;
	}
	return wants[want].only ? EDDY_RUNMAP_UNITS : fit(w, n, align);
}

/*
 * Takes the bits of [pos, pos + n), words ascending (I-RUN-4).  Returns how
 * many units were taken: n, or less after a conflict.
 */
static unsigned
take(struct eddy_runmap *m, unsigned pos, unsigned n)
{
	unsigned taken = 0;

	for (unsigned i = pos / 64; taken < n; i++) {
		uint64_t mask = part(i, pos, n);
		/* relaxed: a guess that the CAS checks. */
		uint64_t v = eddy_load_relaxed(&m->free[i]);

		do {
			if ((v & mask) != mask)
				return taken;
			/* RUN-A2: pairs with RUN-R2 of whoever put them. */
		} while (!eddy_cas_acquire(&m->free[i], &v, v & ~mask));
		taken +=
		    64 - (unsigned)__builtin_clzll(mask) - eddy_ctz64(mask);
	}
	return taken;
}

/* Sets the hint for every free run that touches [pos, pos + n). */
static unsigned
announce(struct eddy_runset *s, uint32_t id, unsigned pos, unsigned n)
{
	struct eddy_runmap *m = eddy_runset_map(s, id);
	unsigned end = pos + n;
	unsigned best = 0;
	words w;

	look(m, w);
	for (pos = next_bit(w, pos, 1); pos < end; pos = next_bit(w, pos, 1)) {
		unsigned start = run_start(w, pos);

		pos = next_bit(w, pos, 0);
		eddy_idset_set(
		    s->hints, s->first_kind + eddy_log2(pos - start), id);
		if (pos - start > best)
			best = pos - start;
	}
	return best;
}

bool
eddy_runset_put(struct eddy_runset *s, uint32_t id, unsigned pos, unsigned n,
    const void *blame)
{
	struct eddy_runmap *m = eddy_runset_map(s, id);

	eddy_assert(n >= 1 && pos + n <= EDDY_RUNMAP_UNITS);
	for (unsigned i = pos / 64; i <= (pos + n - 1) / 64; i++) {
		uint64_t mask = part(i, pos, n);

		/*
		 * RUN-R1: before the hint is tested; RUN-R2: the units' last
		 * writes, their tags and dirty bits.
		 */
		if (eddy_or_seq_cst(&m->free[i], mask) & mask)
			eddy_fatal("double free", blame);
	}
	return announce(s, id, pos, n) == EDDY_RUNMAP_UNITS;
}

/* Nothing that fits in container id: is its hint of this bucket true? */
static void
doubt(struct eddy_runset *s, uint32_t id, unsigned bucket)
{
	struct eddy_runmap *m = eddy_runset_map(s, id);
	unsigned n;
	words w;

	look(m, w);
	n = longest(w);
	if (n != 0 && eddy_log2(n) == bucket &&
	    /* relaxed: a hint; a wrong owner is found out by a claimer. */
	    eddy_load_relaxed(&m->owner) == s->owner)
		return;
	eddy_idset_clear(s->hints, s->first_kind + bucket, id);
	look(m, w);
	n = longest(w);
	/*
	 * relaxed: read after the words; a word seen non-zero carries (RUN-A2)
	 * the owner that it was opened with.
	 */
	if (n != 0 && eddy_load_relaxed(&m->owner) == s->owner)
		eddy_idset_set(s->hints, s->first_kind + eddy_log2(n), id);
}

bool
eddy_runset_claim_in(struct eddy_runset *s, uint32_t id, unsigned n,
    unsigned align, enum eddy_run_want want, unsigned *ret)
{
	struct eddy_runmap *m = eddy_runset_map(s, id);

	for (;;) {
		unsigned pos;
		words w;

		look(m, w);
		pos = choose(m, want, w, n, align);
		if (pos == EDDY_RUNMAP_UNITS)
			return false;
		if (!eddy_runset_claim_at(s, id, pos, n)) {
			/* relaxed: pinned or not, a reason to look elsewhere */
			if (eddy_load_relaxed(&m->owner) != s->owner)
				return false;
			continue; /* another's claim went through */
		}
		*ret = pos;
		return true;
	}
}

bool
eddy_runset_claim_at(
    struct eddy_runset *s, uint32_t id, unsigned pos, unsigned n)
{
	struct eddy_runmap *m = eddy_runset_map(s, id);
	unsigned taken;

	eddy_assert(n >= 1 && pos + n <= EDDY_RUNMAP_UNITS);
	taken = take(m, pos, n);

	/* relaxed: true, since the bits in hand pin it (I-RUN-2). */
	if (taken == n && eddy_load_relaxed(&m->owner) == s->owner)
		return true;
	if (taken != 0)
		s->put(id, pos, taken);
	return false;
}

bool
eddy_runset_claim(struct eddy_runset *s, unsigned n, unsigned align,
    enum eddy_run_want want, struct eddy_run *ret)
{
	eddy_assert(n >= 1 && n <= EDDY_RUNMAP_UNITS && eddy_is_pow2(align));
	for (unsigned b = eddy_log2(n); b < EDDY_RUN_BUCKETS; b++) {
		unsigned misses = 0;
		uint32_t id = 0;

		for (;;) {
			id = eddy_idset_find(s->hints, s->first_kind + b, id);
			if (id == EDDY_ID_NONE)
				break;
			if (eddy_runset_claim_in(
				s, id, n, align, want, &ret->pos)) {
				ret->id = id;
				return true;
			}
			doubt(s, id, b);
			if (++misses > MAX_MISSES)
				break;
			id++;
		}
	}
	return false;
}

void
eddy_runset_open(struct eddy_runset *s, uint32_t id, unsigned pos, unsigned n)
{
	struct eddy_runmap *m = eddy_runset_map(s, id);

	if (n == 0)
		return;
	for (unsigned i = pos / 64; i <= (pos + n - 1) / 64; i++) {
		/*
		 * RUN-R1, RUN-R2: owner and dirty bits before the units.  A
		 * bit in a container that was closed is of a double free.
		 */
		if (eddy_or_seq_cst(&m->free[i], part(i, pos, n)) != 0)
			eddy_fatal("double free", m);
	}
	(void)announce(s, id, pos, n);
}

void
eddy_runset_close(struct eddy_runset *s, uint32_t id)
{
	/* Nobody else has a unit to put, so nothing needs a second look. */
	for (unsigned b = 0; b < EDDY_RUN_BUCKETS; b++)
		eddy_idset_clear(s->hints, s->first_kind + b, id);
	/* relaxed: published when the container is put one level up. */
	eddy_store_relaxed(&eddy_runset_map(s, id)->owner, 0);
}

bool
eddy_runset_retire(struct eddy_runset *s, uint32_t id)
{
	struct eddy_runmap *m = eddy_runset_map(s, id);
	unsigned taken = 0;

	for (unsigned i = 0; i < EDDY_RUNMAP_WORDS; i++) {
		uint64_t all = ~(uint64_t)0;

		/* RUN-A2: as any claim. */
		if (!eddy_cas_acquire(&m->free[i], &all, 0))
			break;
		taken += 64;
	}
	/* relaxed: pinned by what was taken; it may be another's by now. */
	if (taken != EDDY_RUNMAP_UNITS ||
	    eddy_load_relaxed(&m->owner) != s->owner) {
		if (taken != 0)
			s->put(id, 0, taken);
		return false;
	}
	eddy_runset_close(s, id);
	return true;
}
