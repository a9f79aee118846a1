/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/warm.h"

#include <errno.h>

#include "lib/heap/backing.h"
#include "lib/heap/cpu_cache.h"
#include "lib/heap/gather.h"
#include "lib/heap/hooks.h"
#include "lib/heap/purge.h"
#include "lib/heap/reclaim.h"
#include "lib/heap/segment.h"
#include "lib/heap/wake.h"
#include "lib/os/os.h"
#include "numa/usable.h"

/* Chunks that are claimed together: 32 MiB. */
#define AT_ONCE 16

static uint64_t beyond(struct eddy_heap *h, size_t pages);

static int64_t
missing(struct eddy_arena *a, int64_t pages)
{
	/* relaxed: a hint. */
	int64_t n = pages - eddy_load_relaxed(&a->reclaim.backed);

	return n > 0 ? n : 0;
}

/* Chunks that hold nothing get their memory, and are free as before. */
static bool
add_chunks(struct eddy_heap *h, struct eddy_arena *a, unsigned n)
{
	uint32_t chunk;
	bool there;

	if (!eddy_backing_here(&a->backing) ||
	    (h->limited && beyond(h, n * EDDY_CHUNK_PAGES) != 0) ||
	    !eddy_chunks_claim(h, a, n, 1, EDDY_ONLY_COLD, &chunk))
		return false;
	there = (!eddy_hooked(a) || eddy_hooks_fill_chunks(h, a, chunk, n)) &&
		eddy_backing_populate(
		    h, eddy_page_address(h, chunk, 0), n * EDDY_CHUNK) == 0;
	/* I-BACK-1: dirty pages there have their room. */
	if (!there && (a->backing.fill || eddy_hooked(a))) {
		eddy_chunks_put(chunk, n);
		return false;
	}
	/* Part of it may be there. */
	eddy_chunks_use(h, chunk, n, 0);
	eddy_chunks_free(h, chunk, n);
	return there;
}

int
eddy_warm_prefault(struct eddy_heap *h, struct eddy_arena *a, size_t bytes)
{
	int64_t pages = (int64_t)(bytes / EDDY_PAGE + (bytes % EDDY_PAGE != 0));
	int64_t before = INT64_MAX;
	int64_t left;

	if (bytes > (size_t)h->n_chunks * EDDY_CHUNK)
		return -ENOMEM;
	/* relaxed: an option. */
	eddy_store_relaxed(&a->reclaim.floor, pages);
	/* Somebody may use the memory up meanwhile; then that is enough. */
	while ((left = missing(a, pages)) > 0 && left < before) {
		unsigned n =
		    (unsigned)(((uint64_t)left + EDDY_CHUNK_PAGES - 1) /
			       EDDY_CHUNK_PAGES);

		if (n > AT_ONCE)
			n = AT_ONCE;
		if (!add_chunks(h, a, n) && (n == 1 || !add_chunks(h, a, 1)))
			return -ENOMEM;
		before = left;
	}
	return missing(a, pages) == 0 ? 0 : -ENOMEM;
}

unsigned
eddy_warm_chunks(struct eddy_heap *h, struct eddy_arena *a)
{
	uint32_t i = eddy_segment_from(a, 0);
	unsigned n = 0;

	for (; i != EDDY_ID_NONE; i = eddy_segment_from(a, i + 1)) {
		struct eddy_segment *s = &h->segments[i];

		if (!eddy_segment_is_of(h, i, a))
			continue;
		for (unsigned w = 0; w < EDDY_RUNMAP_WORDS; w++) {
			/* relaxed, both: a guess. */
			n += (unsigned)__builtin_popcountll(
			    eddy_load_relaxed(&s->map.free[w]) &
			    eddy_load_relaxed(&s->map.dirty[w]));
		}
	}
	return n;
}

bool
eddy_warm_ahead(struct eddy_heap *h, struct eddy_arena *a)
{
	return add_chunks(h, a, 1);
}

/* ------------------------------------------------------------------ */

void
eddy_warm_freeze(struct eddy_heap *h)
{
	/* Threads may move to CPUs that they have not been on. */
	eddy_cache_prepare(h);
	/* relaxed, all: from some moment on. */
	eddy_store_relaxed(&h->frozen_calls, eddy_os_calls());
	eddy_store_relaxed(&h->frozen_faults, eddy_os_faults());
	eddy_store_relaxed(&h->frozen_purges, eddy_load_relaxed(&h->n_purges));
	eddy_store_relaxed(&h->frozen_growth, 0);
	eddy_store_relaxed(&h->frozen, 1);
	/* Those that sleep until their next step would wake for nothing. */
	for (uint32_t home = 0; home < h->n_homes; home++)
		eddy_wake(h, home);
}

void
eddy_warm_thaw(struct eddy_heap *h)
{
	/* relaxed, both: as above. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);

	if (eddy_xchg_relaxed(&h->frozen, 0) == 0)
		return;
	/* Calls that came meanwhile were not heard. */
	eddy_gather_watch(h);
	for (uint32_t i = 1; i <= n && i <= EDDY_MAX_ARENAS; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);

		if (a != NULL)
			eddy_reclaim_call(h, a);
	}
}

/* ------------------------------------------------------------------ */

/* Bytes that the heap may have backed; looked at anew once a second. */
static uint64_t
limit_of(struct eddy_heap *h)
{
	/* relaxed, all: any moment's answer is good. */
	uint64_t limit = eddy_load_relaxed(&h->limit);
	uint32_t last = eddy_load_relaxed(&h->limit_time);
	uint32_t now;
	uint64_t all;

	if (h->opts.heap_limit_share == 0)
		return h->opts.heap_limit;
	now = eddy_os_seconds();
	if ((limit != 0 && now == last) || eddy_frozen(h) ||
	    !eddy_cas_relaxed(&h->limit_time, &last, now))
		return limit != 0 ? limit : UINT64_MAX;
	all = eddy_usable_memory("");
	limit = all == EDDY_NO_QUOTA ? UINT64_MAX
				     : all / 100 * h->opts.heap_limit_share;
	if (h->opts.heap_limit != 0 && h->opts.heap_limit < limit)
		limit = h->opts.heap_limit;
	/* relaxed: as above. */
	eddy_store_relaxed(&h->limit, limit != 0 ? limit : 1);
	return limit;
}

/* Bytes beyond the limit, if so many pages came to what is backed. */
static uint64_t
beyond(struct eddy_heap *h, size_t pages)
{
	/* relaxed: one that is made just now has nothing. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);
	uint64_t limit = limit_of(h);
	uint64_t sum = pages * EDDY_PAGE;

	for (uint32_t i = 1; i <= n && i <= EDDY_MAX_ARENAS; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);
		int64_t backed;

		if (a == NULL)
			continue;
		/* relaxed: a hint. */
		backed = eddy_load_relaxed(&a->reclaim.backed);
		sum += backed > 0 ? (uint64_t)backed * EDDY_PAGE : 0;
	}
	return sum > limit ? sum - limit : 0;
}

bool
eddy_warm_is_tight(struct eddy_heap *h, size_t pages)
{
	return eddy_frozen(h) || beyond(h, pages) != 0;
}

EDDY_COLD bool
eddy_warm_may_grow(struct eddy_heap *h, size_t pages)
{
	struct eddy_purge p = {.kind = EDDY_PURGE_ALL};

	if (eddy_frozen(h)) {
		/* relaxed: a count. */
		(void)eddy_add_relaxed(&h->frozen_growth, 1);
		if (h->opts.freeze_growth == EDDY_FREEZE_GROWTH_NULL)
			return false;
	}
	if (!h->limited)
		return true;
	p.want = beyond(h, pages);
	if (p.want != 0 && !eddy_frozen(h))
		eddy_purge_some(h, &p);
	return beyond(h, pages) == 0;
}
