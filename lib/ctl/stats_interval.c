/* SPDX-License-Identifier: BSD-2-Clause */
/* stats_interval.c - statistics every so many bytes: option stats_interval. */
#include "lib/ctl/stats.h"

/* Printing may call malloc. */
static __thread bool inside;

/* Bytes that left slabs and large blocks, ever, by size class. */
static uint64_t
taken(struct eddy_heap *h)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= eddy_stats_n_arenas(h); i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a == NULL)
			continue;
		/* relaxed, both: counts. */
		for (unsigned k = 0; k < EDDY_N_SMALL; k++)
			sum += eddy_load_relaxed(&a->tally.bin[k].taken) *
			       eddy_row_size(k + 1);
		for (unsigned k = 0; k < EDDY_N_LARGE; k++)
			sum += eddy_load_relaxed(&a->tally.large[k].taken) *
			       eddy_sizes_large(k);
	}
	return sum;
}

void
eddy_stats_interval_now(struct eddy_heap *h)
{
	/* When to print next.  W, R: any CPU.  O: none: of two one prints. */
	static _Atomic uint64_t next;
	uint64_t every = (uint64_t)h->opts.stats_interval;
	uint64_t now = taken(h);
	/* relaxed, both: as above. */
	uint64_t at = eddy_load_relaxed(&next);

	every = every != 0 ? every : 1;
	if (inside || (at != 0 && now < at) ||
	    !eddy_cas_relaxed(&next, &at, now - now % every + every) || at == 0)
		return;
	inside = true;
	eddy_stats_print(h, NULL, NULL, h->opts.stats_interval_opts);
	inside = false;
}
