/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/ctl/snapshot.h"

#include <string.h>

#include "lib/ctl/counts.h"
#include "lib/ctl/stats.h"

/* ------------------------------------------------------------------ */
/* Numbers */

int
eddy_snapshot_refresh(struct eddy_heap *h, uint64_t *ret)
{
	struct eddy_shelf_turn t;
	uint32_t n = eddy_stats_n_arenas(h) + 1;
	int err = eddy_shelf_take(&eddy_snapshot_numbers, n, &t);

	if (err != 0)
		return err;
	eddy_snapshot_take(h, &t, n);
	eddy_shelf_show(&t);
	*ret = eddy_shelf_shown(&eddy_snapshot_numbers);
	return 0;
}

int
eddy_snapshot_epoch(struct eddy_heap *h, uint64_t *ret)
{
	*ret = eddy_shelf_shown(&eddy_snapshot_numbers);
	return *ret != 0 ? 0 : eddy_snapshot_refresh(h, ret);
}

int
eddy_snapshot_read(struct eddy_heap *h, size_t offset, uint64_t *ret)
{
	uint64_t epoch;
	int err = eddy_snapshot_epoch(h, &epoch);

	if (err == 0)
		*ret = eddy_shelf_read(&eddy_snapshot_numbers, offset);
	return err;
}

/* ------------------------------------------------------------------ */
/* Free runs, and pages in somebody's hand */

struct head {
	uint64_t epoch; /* of the numbers that it belongs to */
};

struct work {
	struct eddy_snapshot_pages all;
	struct eddy_snapshot_pages one;
	struct eddy_stats_row rows[EDDY_N_ROWS]; /* of no use here */
};

static struct eddy_shelf pages = {
    .head = sizeof(struct head),
    .place = sizeof(struct eddy_snapshot_pages),
    .work = sizeof(struct work),
};

/* number 0: what no arena has. */
static void
walk(struct eddy_heap *h, uint32_t number, struct eddy_stats_row *rows,
    struct eddy_snapshot_pages *ret)
{
	struct eddy_walk w;

	memset(ret, 0, sizeof(*ret));
	memset(rows, 0, sizeof(*rows) * EDDY_N_ROWS);
	eddy_walk_begin(&w, h, number);
	w.extents = ret->extents;
	w.fill = ret->fill;
	w.rows = rows;
	eddy_walk(&w);
	ret->in_hand = w.in_hand;
}

static int
walk_all(struct eddy_heap *h, uint64_t epoch)
{
	struct head head = {epoch};
	struct eddy_shelf_turn t;
	struct work *w;
	uint32_t n = eddy_stats_n_arenas(h) + 1;
	int err = eddy_shelf_take(&pages, n, &t);

	if (err != 0)
		return err;
	w = eddy_shelf_work(&t);
	walk(h, 0, w->rows, &w->all);
	for (uint32_t i = 1; i < n; i++) {
		memset(&w->one, 0, sizeof(w->one));
		if (eddy_arena_at(h, i) != NULL)
			walk(h, i, w->rows, &w->one);
		eddy_add_words(&w->all, &w->one, sizeof(w->all));
		eddy_shelf_put_place(&t, i, &w->one);
	}
	eddy_shelf_put_place(&t, EDDY_SNAPSHOT_ALL, &w->all);
	eddy_shelf_put(&t, &head);
	eddy_shelf_show(&t);
	return 0;
}

int
eddy_snapshot_read_pages(
    struct eddy_heap *h, uint32_t place, size_t offset, uint64_t *ret)
{
	uint64_t epoch;
	int err = eddy_snapshot_epoch(h, &epoch);

	if (err == 0 &&
	    (eddy_shelf_shown(&pages) == 0 ||
		eddy_shelf_read(&pages, offsetof(struct head, epoch)) < epoch))
		err = walk_all(h, epoch);
	if (err == 0)
		*ret = place == EDDY_SNAPSHOT_ENDED
			   ? 0
			   : eddy_shelf_read_place(&pages, place, offset);
	return err;
}

/* ------------------------------------------------------------------ */
/* Arenas that have ended */

#define ARENA_WORDS (sizeof(struct eddy_snapshot_arena) / 8)

/* W: who ends one.  R: any.  O: none: sums. */
static _Atomic uint64_t ended[ARENA_WORDS];

int
eddy_snapshot_read_arena(
    struct eddy_heap *h, uint32_t place, size_t offset, uint64_t *ret)
{
	uint64_t epoch;
	int err = eddy_snapshot_epoch(h, &epoch);

	if (err != 0)
		return err;
	/* relaxed: a sum. */
	*ret =
	    place == EDDY_SNAPSHOT_ENDED
		? eddy_load_relaxed(&ended[offset / 8])
		: eddy_shelf_read_place(&eddy_snapshot_numbers, place, offset);
	return 0;
}

static void
add_ended(size_t offset, uint64_t n)
{
	/* relaxed: a sum. */
	(void)eddy_add_relaxed(&ended[offset / 8], n);
}

/* Takes a count back to where it began. */
static uint64_t
end(_Atomic uint64_t *count)
{
	/* relaxed: a count. */
	return eddy_xchg_relaxed(count, 0);
}

static void
add_part(size_t part, uint64_t taken, uint64_t put)
{
	add_ended(part + offsetof(struct eddy_snapshot_part, nmalloc), taken);
	add_ended(part + offsetof(struct eddy_snapshot_part, ndalloc), put);
	add_ended(part + offsetof(struct eddy_snapshot_part, nrequests), taken);
}

static void
end_bin(struct eddy_tally_bin *t, unsigned i)
{
	const size_t small = offsetof(struct eddy_snapshot_arena, small);
	const size_t bin = offsetof(struct eddy_snapshot_arena, bins) +
			   i * sizeof(struct eddy_snapshot_bin);
	uint64_t taken = end(&t->taken);
	uint64_t put = end(&t->put);

	add_part(small, taken, put);
	add_ended(bin + offsetof(struct eddy_snapshot_bin, nmalloc), taken);
	add_ended(bin + offsetof(struct eddy_snapshot_bin, ndalloc), put);
	add_ended(bin + offsetof(struct eddy_snapshot_bin, nrequests), taken);
	add_ended(
	    bin + offsetof(struct eddy_snapshot_bin, nslabs), end(&t->born));
	(void)end(&t->retired);
	/* relaxed: a count. */
	eddy_store_relaxed(&t->partial, 0);
}

static void
end_large(struct eddy_tally_large *t, unsigned i)
{
	const size_t part = offsetof(struct eddy_snapshot_arena, large);
	const size_t large = offsetof(struct eddy_snapshot_arena, lextents) +
			     i * sizeof(struct eddy_snapshot_lextent);
	uint64_t taken = end(&t->taken);
	uint64_t put = end(&t->put);

	add_part(part, taken, put);
	add_ended(
	    large + offsetof(struct eddy_snapshot_lextent, nmalloc), taken);
	add_ended(large + offsetof(struct eddy_snapshot_lextent, ndalloc), put);
}

/* Three numbers side by side. */
static void
end_purges(struct eddy_tally_purges *t, size_t at)
{
	add_ended(at, end(&t->sweeps));
	add_ended(at + 8, end(&t->calls));
	add_ended(at + 16, end(&t->pages));
}

void
eddy_snapshot_ended(struct eddy_arena *a)
{
	for (unsigned i = 0; i < EDDY_N_SMALL; i++)
		end_bin(&a->tally.bin[i], i);
	for (unsigned i = 0; i < EDDY_N_LARGE; i++)
		end_large(&a->tally.large[i], i);
	/* relaxed, all: counts. */
	eddy_store_relaxed(&a->tally.run_bytes, 0);
	eddy_store_relaxed(&a->tally.huge_bytes, 0);
	eddy_store_relaxed(&a->tally.huge_chunks, 0);
	end_purges(&a->tally.dirty,
	    offsetof(struct eddy_snapshot_arena, dirty_npurge));
	end_purges(&a->tally.muzzy,
	    offsetof(struct eddy_snapshot_arena, muzzy_npurge));
	add_ended(offsetof(struct eddy_snapshot_arena, initialized), 1);
}

bool
eddy_snapshot_any_ended(void)
{
	/* relaxed: a sum; initialized is the first word. */
	return eddy_load_relaxed(&ended[0]) != 0;
}
