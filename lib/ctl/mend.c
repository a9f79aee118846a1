/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/mend.h"

#include "lib/ctl/walk.h"
#include "lib/heap/warm.h"

#define EVERY_MS 600000
#define AGAIN_MS 1000

/* relaxed, in all of this file: counts, and hints of when to look. */

static int64_t
diff(_Atomic uint64_t *up, _Atomic uint64_t *down, uint64_t is)
{
	/* relaxed, both: as above. */
	return (int64_t)(eddy_load_relaxed(up) - eddy_load_relaxed(down) - is);
}

static int64_t
diff_signed(_Atomic int64_t *count, uint64_t is)
{
	/* relaxed: as above. */
	return eddy_load_relaxed(count) - (int64_t)is;
}

/* A value that changes whenever a count does. */
static uint64_t
signature(struct eddy_tally *t)
{
	uint64_t sum = 1;

	/* relaxed, all: as above. */
	for (unsigned i = 0; i < EDDY_N_SMALL; i++)
		sum += eddy_load_relaxed(&t->bin[i].taken) +
		       eddy_load_relaxed(&t->bin[i].put);
	for (unsigned i = 0; i < EDDY_N_LARGE; i++)
		sum += eddy_load_relaxed(&t->large[i].taken) +
		       eddy_load_relaxed(&t->large[i].put);
	return sum;
}

/* What a look does with a difference: adds it to a hash, or takes it off. */
struct look {
	bool mends;
	uint64_t hash; /* 0: there is none */
};

static bool
see(struct look *l, int64_t d)
{
	l->hash = (l->hash + (uint64_t)d) * 0x9e3779b97f4a7c15u;
	return l->mends && d != 0;
}

static void
see_count(
    struct look *l, _Atomic uint64_t *up, _Atomic uint64_t *down, uint64_t is)
{
	int64_t d = diff(up, down, is);

	/* relaxed, both: as above. */
	if (see(l, d) && d > 0)
		(void)eddy_add_relaxed(down, (uint64_t)d);
	else if (l->mends && d < 0)
		(void)eddy_add_relaxed(up, (uint64_t)-d);
}

static void
see_signed(struct look *l, _Atomic int64_t *count, uint64_t is)
{
	int64_t d = diff_signed(count, is);

	/* relaxed: as above. */
	if (see(l, d))
		(void)eddy_add_relaxed(count, -d);
}

/* Counts against what a walk found. */
static void
compare(struct look *l, struct eddy_arena *a, const struct eddy_walk *w)
{
	struct eddy_tally *t = &a->tally;
	uint64_t run_bytes = w->run_bytes + w->huge_bytes - w->over_bytes;

	for (unsigned row = 1; row < EDDY_N_ROWS; row++) {
		const struct eddy_stats_row *r = &w->rows[row];

		if (row > EDDY_N_SMALL) {
			run_bytes += r->live * eddy_row_size(row);
			continue;
		}
		see_count(
		    l, &t->bin[row - 1].taken, &t->bin[row - 1].put, r->live);
		see_count(l, &t->bin[row - 1].born, &t->bin[row - 1].retired,
		    r->slabs);
		see_signed(l, &t->bin[row - 1].partial, r->hinted);
	}
	for (unsigned i = 0; i < EDDY_N_LARGE; i++)
		see_count(l, &t->large[i].taken, &t->large[i].put, w->large[i]);
	see_signed(l, &t->run_bytes, run_bytes);
	see_signed(l, &t->huge_bytes, w->over_bytes);
	see_signed(l, &t->huge_chunks, w->over_chunks);
	/* All pages of the chunks of huge blocks count as used. */
	see_signed(l, &a->reclaim.active,
	    (w->active - w->over_bytes) / EDDY_PAGE +
		w->over_chunks * EDDY_CHUNK_PAGES);
}

static bool
mend_arena(struct eddy_heap *h, struct eddy_arena *a)
{
	struct eddy_tally *t = &a->tally;
	struct eddy_stats_row rows[EDDY_N_ROWS] = {0};
	uint64_t large[EDDY_N_LARGE] = {0};
	struct look l = {0};
	struct eddy_walk w;
	uint64_t before = signature(t);

	/* relaxed: as above.  Nothing moved since all was found well. */
	if (before == eddy_load_relaxed(&t->seen))
		return false;
	eddy_walk_begin(&w, h, a->number);
	w.rows = rows;
	w.large = large;
	eddy_walk(&w);
	compare(&l, a, &w);
	if (signature(t) != before)
		return false;
	/* relaxed, all: as above. */
	if (l.hash != 0 && l.hash == eddy_load_relaxed(&t->wrong)) {
		l = (struct look){.mends = true};
		compare(&l, a, &w);
		l.hash = 0;
	}
	eddy_store_relaxed(&t->wrong, l.hash);
	eddy_store_relaxed(&t->seen, l.hash == 0 ? signature(t) : 0);
	return l.hash != 0;
}

bool
eddy_mend(struct eddy_heap *h)
{
	/* relaxed: as above. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);
	bool again = false;

	for (uint32_t i = 1; i <= n && i <= EDDY_MAX_ARENAS; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a != NULL)
			again |= mend_arena(h, a);
	}
	return again;
}

uint64_t
eddy_mend_idle(struct eddy_heap *h, uint64_t now)
{
	/* When the next look may be.  W, R: threads of the library's own.
	 * O: none: a hint. */
	static _Atomic uint64_t next;

	/* relaxed, both: as above. */
	if (now < eddy_load_relaxed(&next) || eddy_frozen(h))
		return UINT64_MAX;
	if (eddy_mend(h))
		return AGAIN_MS;
	eddy_store_relaxed(&next, now + EVERY_MS);
	return UINT64_MAX;
}
