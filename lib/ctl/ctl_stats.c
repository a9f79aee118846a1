/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_stats.c - statistics by name: epoch, stats, eddy. */
#include <errno.h>

#include "lib/ctl/conf.h"
#include "lib/ctl/ctl_gen_names.h"
#include "lib/ctl/snapshot.h"
#include "lib/ctl/stats.h"
#include "lib/heap/region.h"
#include "lib/prof/sample.h"

/* Whoever writes gets a refresh, even if he cannot take the number. */
int
eddy_ctl_epoch(struct eddy_ctl *c)
{
	/* Number 1 is that of the first look, though it be this one. */
	int err = eddy_snapshot_epoch(c->h, &c->out);

	if (err == 0 && c->newp != NULL)
		err = eddy_snapshot_refresh(c->h, &c->out);
	return -err;
}

int
eddy_ctl_snapshot(struct eddy_ctl *c)
{
	return -eddy_snapshot_read(c->h, (size_t)c->arg, &c->out);
}

/* ------------------------------------------------------------------ */
/* Arenas */

static uint32_t
place_of(struct eddy_ctl *c)
{
	if (c->i == EDDY_CTL_DESTROYED)
		return EDDY_SNAPSHOT_ENDED;
	return eddy_ctl_is_all(c->h, c->i) ? EDDY_SNAPSHOT_ALL
					   : (uint32_t)c->i + 1;
}

static int
read_arena(struct eddy_ctl *c, size_t offset)
{
	return -eddy_snapshot_read_arena(c->h, place_of(c), offset, &c->out);
}

int
eddy_ctl_snapshot_arena(struct eddy_ctl *c)
{
	return read_arena(c, (size_t)c->arg);
}

int
eddy_ctl_snapshot_bin(struct eddy_ctl *c)
{
	return read_arena(c, offsetof(struct eddy_snapshot_arena, bins) +
				 c->j * sizeof(struct eddy_snapshot_bin) +
				 (size_t)c->arg);
}

int
eddy_ctl_snapshot_lextent(struct eddy_ctl *c)
{
	return read_arena(c, offsetof(struct eddy_snapshot_arena, lextents) +
				 c->j * sizeof(struct eddy_snapshot_lextent) +
				 (size_t)c->arg);
}

int
eddy_ctl_snapshot_extent(struct eddy_ctl *c)
{
	return -eddy_snapshot_read_pages(c->h, place_of(c),
	    offsetof(struct eddy_snapshot_pages, extents) +
		c->j * sizeof(struct eddy_walk_extent) + (size_t)c->arg,
	    &c->out);
}

int
eddy_ctl_snapshot_fill(struct eddy_ctl *c)
{
	return -eddy_snapshot_read_pages(c->h, place_of(c),
	    offsetof(struct eddy_snapshot_pages, fill) +
		c->j * sizeof(struct eddy_walk_fill) + (size_t)c->arg,
	    &c->out);
}

int
eddy_ctl_snapshot_in_hand(struct eddy_ctl *c)
{
	return -eddy_snapshot_read_pages(c->h, EDDY_SNAPSHOT_ALL,
	    offsetof(struct eddy_snapshot_pages, in_hand), &c->out);
}

bool
eddy_ctl_index_stats_arena(struct eddy_heap *h, size_t i)
{
	if (i == EDDY_CTL_DESTROYED)
		return eddy_snapshot_any_ended();
	return eddy_ctl_is_all(h, i) || eddy_ctl_arena(h, i) != NULL;
}

/* Extents at a time of jemalloc's allocator of huge pages: none. */
bool
eddy_ctl_index_hpa_alloc(struct eddy_heap *h, size_t i)
{
	(void)h;
	return i < EDDY_N_HPA_ALLOC;
}

/* ------------------------------------------------------------------ */
/* What needs no snapshot */

int
eddy_ctl_approximate_active(struct eddy_ctl *c)
{
	c->out = 0;
	for (uint32_t i = 1; i <= eddy_stats_n_arenas(c->h); i++) {
		struct eddy_arena *a = eddy_arena_at(c->h, i);
		/* relaxed: a hint. */
		int64_t n =
		    a != NULL ? eddy_load_relaxed(&a->reclaim.active) : 0;

		c->out += n > 0 ? (uint64_t)n * EDDY_PAGE : 0;
	}
	return 0;
}

/* By samples: what was asked for, and what it takes. */
enum estimate {
	SAMPLES,
	REQUESTED,
	USABLE,
};

static int
estimate(struct eddy_ctl *c, unsigned class)
{
	uint64_t requested = 0;
	uint64_t usable = 0;
	uint64_t n = eddy_prof_estimate(class, &requested, &usable);

	c->out = c->arg == SAMPLES     ? n
		 : c->arg == REQUESTED ? requested
				       : usable;
	return 0;
}

int
eddy_ctl_estimate_bin(struct eddy_ctl *c)
{
	return estimate(c, (unsigned)c->i);
}

int
eddy_ctl_estimate_lextent(struct eddy_ctl *c)
{
	return estimate(c, EDDY_N_SMALL + (unsigned)c->i);
}

_Atomic uint64_t eddy_ctl_n_zero_reallocs;

int
eddy_ctl_zero_reallocs(struct eddy_ctl *c)
{
	/* relaxed: a count. */
	c->out = eddy_load_relaxed(&eddy_ctl_n_zero_reallocs);
	return 0;
}

int
eddy_ctl_homes(struct eddy_ctl *c)
{
	c->out = c->h->n_homes;
	return 0;
}

int
eddy_ctl_mode(struct eddy_ctl *c)
{
	enum eddy_stats_mode mode = c->h->sections ? EDDY_STATS_RSEQ
				    : c->h->cached ? EDDY_STATS_CLAIM
						   : EDDY_STATS_NONE;

	c->out = eddy_ctl_pointer(eddy_stats_mode_name(mode));
	return 0;
}

int
eddy_ctl_eddy_version(struct eddy_ctl *c)
{
	c->out = eddy_ctl_pointer(eddy_version);
	return 0;
}

/* arg: where the word is in struct eddy_region_counts. */
int
eddy_ctl_regions(struct eddy_ctl *c)
{
	const char *counts = (const char *)&eddy_region_counts;

	/* relaxed: a count. */
	c->out = eddy_load_relaxed(
	    (const _Atomic uint64_t *)(const void *)(counts + c->arg));
	return 0;
}
