/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/heap/reclaim.h"

#include "lib/heap/gather.h"
#include "lib/heap/purge.h"
#include "lib/heap/segment.h"
#include "lib/heap/wake.h"
#include "lib/heap/warm.h"
#include "lib/os/os.h"

/* What is not worth a purge while the arena is at work: pages, and a share of
 * the pages in use. */
#define SLACK       256
#define SLACK_SHARE 64
/* Decay times that a long sleep may last. */
#define LONG_SLEEPS 16
/* After refusals the kernel is asked again so many ms later. */
#define HOLD_MS 60000
/* Free pages that an arena at work may need as holes: half of what is in use,
 * in 256ths; and decay times until what it needed counts half. */
#define MAX_HOLES  128
#define KEEP_HOLES 16
/* Fewer steps than one in so many ms are no loss. */
#define MIN_STEP_MS 10
/* What a step waits for where the rate is low. */
#define MIN_BATCH ((uint64_t)64 << 10)

static int64_t
positive(int64_t v)
{
	return v > 0 ? v : 0;
}

void
eddy_reclaim_begin(const struct eddy_heap *h, struct eddy_arena *a)
{
	struct eddy_reclaim *r = &a->reclaim;
	/* Of locked memory the kernel takes nothing back. */
	int64_t dirty_ms = h->opts.lock_memory ? -1 : h->opts.dirty_decay_ms;

	/* relaxed, all: published by HEAP-R3. */
	eddy_store_relaxed(&r->due, EDDY_NEVER);
	eddy_store_relaxed(
	    &r->floor, (int64_t)(h->opts.decay_floor / EDDY_PAGE));
	eddy_store_relaxed(&r->dirty_decay_ms, dirty_ms);
	eddy_store_relaxed(&r->muzzy_decay_ms, h->opts.muzzy_decay_ms);
	eddy_store_relaxed(
	    &r->wake_at, dirty_ms < 0 ? INT64_MAX : (int64_t)SLACK);
}

void
eddy_reclaim_grow(struct eddy_reclaim *r, int64_t active, int64_t clean)
{
	/* relaxed, all: hints. */
	int64_t idle = eddy_add_relaxed(&r->backed, clean) + clean - active;
	uint32_t holes;

	if (idle <= 0 || active <= 0)
		return;
	holes =
	    idle >= active / 2 ? MAX_HOLES : (uint32_t)(idle * 256 / active);
	if (holes > eddy_load_relaxed(&r->holes))
		eddy_store_relaxed(&r->holes, holes);
}

void
eddy_reclaim_call(struct eddy_heap *h, struct eddy_arena *a)
{
	/* relaxed, all: hints; the step sets what calls for the next. */
	eddy_store_relaxed(&a->reclaim.wake_at, INT64_MAX);
	eddy_store_relaxed(&a->reclaim.due, 0);
	if (eddy_frozen(h))
		return;
	eddy_store_relaxed(&h->due, 0);
	eddy_wake(h, a->home);
}

void
eddy_reclaim_decay(struct eddy_heap *h, struct eddy_arena *a, int64_t dirty_ms,
    int64_t muzzy_ms)
{
	/* relaxed, both: options. */
	eddy_store_relaxed(&a->reclaim.dirty_decay_ms, dirty_ms);
	eddy_store_relaxed(&a->reclaim.muzzy_decay_ms, muzzy_ms);
	eddy_reclaim_call(h, a);
}

/* ------------------------------------------------------------------ */
/* One arena */

/* A step's view of an arena. */
struct step {
	struct eddy_heap *h;
	struct eddy_arena *a;
	struct eddy_reclaim *r;
	uint64_t now;
	int64_t left; /* bytes that it may still give back */
	int64_t active;
	int64_t slack;
	int64_t holes; /* pages that are free for want of fit */
	int64_t ahead; /* pages of chunks that are to be there */
	bool all_seen; /* purges looked at everything */
};

/*
 * Purges so many pages; returns how many of them are left to do.  What is not
 * found is not left to do: it may be in somebody's hand.
 */
static int64_t
purge(struct step *s, enum eddy_purge_kind kind, int64_t pages)
{
	int64_t want = pages * (int64_t)EDDY_PAGE;
	struct eddy_purge p = {
	    .kind = kind,
	    .arena = s->a->number,
	    .want = (size_t)(want < s->left ? want : s->left),
	    /* relaxed: a hint. */
	    .cursor = eddy_load_relaxed(&s->r->cursor),
	};
	bool from_top = p.cursor == 0;

	if (s->left < (int64_t)EDDY_PAGE)
		return pages;
	eddy_purge_some(s->h, &p);
	if (p.cursor == 0 && !from_top) {
		eddy_purge_some(s->h, &p);
		from_top = p.cursor == 0;
	}
	s->left -= (int64_t)p.done;
	/* relaxed, both: hints. */
	eddy_store_relaxed(&s->r->cursor, p.cursor);
	if (p.n_refused != 0 && p.done == 0) {
		/* As long as the kernel takes nothing, it is not worth it. */
		eddy_store_relaxed(&s->r->hold, s->now + HOLD_MS);
		return 0;
	}
	if (p.cursor == 0) {
		s->all_seen = from_top;
		return 0;
	}
	want -= (int64_t)p.done;
	return want > 0 ? (want - 1) / (int64_t)EDDY_PAGE + 1 : 0;
}

/*
 * What an age of pages calls for: `idle` of them are not used, `used` are.
 * Sets *due, in ms.  Returns whether there is more to do at once.
 */
static bool
decay(struct step *s, struct eddy_decay *d, int64_t ms, uint64_t used,
    int64_t idle, int64_t floor, enum eddy_purge_kind kind, uint64_t *due)
{
	/* What may stay until the next step, which is an epoch away. */
	struct eddy_decay_view v = eddy_decay_look(d, used, 1);
	int64_t slack = v.flat ? 0 : s->slack;
	int64_t allowed = ms == 0 ? 0 : (int64_t)v.allowed;
	int64_t excess;

	if (!v.flat && kind != EDDY_PURGE_MUZZY && ms != 0)
		allowed += s->holes;

	if (allowed < floor)
		allowed = floor;
	excess = idle - allowed;
	if (excess > slack && purge(s, kind, excess) != 0)
		return true;
	if (excess > slack)
		idle = allowed;
	if (idle <= floor) {
		*due = EDDY_NEVER;
		return false;
	}
	/* When slack is not counted any more, or more has aged. */
	*due = eddy_decay_span((uint64_t)ms,
	    eddy_decay_due(d, used, (uint64_t)idle, (uint64_t)s->slack));
	if (*due < MIN_STEP_MS)
		*due = MIN_STEP_MS;
	return false;
}

/*
 * All that is backed was in use since the last step: nothing is to be given
 * back.  Where a second look one epoch later finds the same, the arena is at
 * work, and the next look is a long time away.
 */
static bool
in_full_use(struct step *s, int64_t peak, uint64_t ms, uint64_t *due)
{
	struct eddy_reclaim *r = s->r;
	/* relaxed, all: hints. */
	uint64_t quiet = eddy_load_relaxed(&r->quiet);
	bool second = eddy_load_relaxed(&r->probe) != 0;

	if (peak + s->slack + s->holes < eddy_load_relaxed(&r->backed) ||
	    peak <= s->active) { /* relaxed: a hint */
		eddy_store_relaxed(&r->quiet, 0);
		eddy_store_relaxed(&r->probe, 0);
		return false;
	}
	eddy_store_relaxed(&r->probe, !second);
	if (!second) {
		*due = eddy_decay_span(ms, 1);
		if (*due < MIN_STEP_MS)
			*due = MIN_STEP_MS;
		return true;
	}
	quiet = quiet == 0 ? ms : quiet * 2;
	if (quiet > ms * LONG_SLEEPS)
		quiet = ms * LONG_SLEEPS;
	if (quiet > UINT32_MAX)
		quiet = UINT32_MAX;
	/* relaxed: a hint. */
	eddy_store_relaxed(&r->quiet, (uint32_t)quiet);
	*due = quiet;
	return true;
}

/*
 * Numbers that threads left wrong which died between a bit and its count: the
 * bits are the truth, if they say the same twice and nobody uses or frees a
 * page meanwhile.  Returns whether to look again.
 */
static bool
mend(struct step *s)
{
	struct eddy_reclaim *r = s->r;
	int64_t bits = eddy_segments_dirty(s->h, s->a);
	/* relaxed, all: hints. */
	int64_t wrong = eddy_load_relaxed(&r->backed) - bits;

	if (eddy_load_relaxed(&r->active) != s->active ||
	    eddy_load_relaxed(&r->peak) != 0)
		wrong = 0;
	if (wrong != 0 && wrong == eddy_load_relaxed(&r->wrong)) {
		(void)eddy_add_relaxed(&r->backed, -wrong);
		wrong = 0;
	}
	eddy_store_relaxed(&r->wrong, wrong);
	return wrong != 0;
}

/* Returns ms until the next step. */
static uint64_t
step_decay(struct step *s)
{
	struct eddy_reclaim *r = s->r;
	/* relaxed, all: hints, options. */
	int64_t dirty_ms = eddy_load_relaxed(&r->dirty_decay_ms);
	int64_t muzzy_ms = eddy_load_relaxed(&r->muzzy_decay_ms);
	int64_t peak = eddy_load_relaxed(&r->peak);
	int64_t most = positive(eddy_load_relaxed(&r->before));
	int64_t dirty = eddy_reclaim_dirty(r);
	int64_t muzzy = positive(eddy_load_relaxed(&r->muzzy));
	int64_t floor = eddy_load_relaxed(&r->floor);
	uint64_t used = (uint64_t)(s->active + dirty);
	uint64_t due = EDDY_NEVER;
	uint64_t due_muzzy = EDDY_NEVER;

	if (floor < s->active + s->ahead)
		floor = s->active + s->ahead;
	floor -= s->active;
	if (most < peak)
		most = peak;
	if (dirty_ms >= 0) {
		bool flat;

		if (eddy_decay_advance(&r->dirty, s->now, (uint64_t)dirty_ms,
			(uint64_t)most)) {
			/* relaxed, both: hints. */
			eddy_store_relaxed(&r->peak, 0);
			eddy_store_relaxed(&r->before, s->active);
			if (dirty_ms != 0 &&
			    in_full_use(s, peak, (uint64_t)dirty_ms, &due))
				return due;
			most = s->active;
		}
		eddy_decay_note(&r->dirty, (uint64_t)most);
		flat = eddy_decay_look(&r->dirty, (uint64_t)s->active, 0).flat;
		if (decay(s, &r->dirty, dirty_ms, (uint64_t)s->active, dirty,
			floor,
			muzzy_ms != 0 ? EDDY_PURGE_LAZY : EDDY_PURGE_DIRTY,
			&due))
			return 0;
		if (flat && s->all_seen && mend(s))
			due = (uint64_t)dirty_ms + MIN_STEP_MS;
		/* Use fell within the open epoch: it ends soon, lest all that
		 * passes until the next step count as use. */
		if (most > s->active + s->slack && dirty_ms != 0 &&
		    due > eddy_decay_span((uint64_t)dirty_ms, 1))
			due = eddy_decay_span((uint64_t)dirty_ms, 1);
	}
	if (muzzy_ms >= 0) {
		(void)eddy_decay_advance(
		    &r->muzzy_age, s->now, (uint64_t)muzzy_ms, used);
		if (muzzy != 0 && decay(s, &r->muzzy_age, muzzy_ms, used, muzzy,
				      0, EDDY_PURGE_MUZZY, &due_muzzy))
			return 0;
	}
	return due < due_muzzy ? due : due_muzzy;
}

/* What was needed as holes of late, of what is in use now. */
static int64_t
holes_of(struct step *s)
{
	struct eddy_reclaim *r = s->r;
	/* relaxed, all: hints, an option. */
	uint32_t holes = eddy_load_relaxed(&r->holes);
	uint64_t time = eddy_load_relaxed(&r->holes_time);
	int64_t ms = eddy_load_relaxed(&r->dirty_decay_ms);

	if (ms > 0 && holes != 0 && s->now - time > (uint64_t)ms * KEEP_HOLES) {
		if (time != 0)
			eddy_store_relaxed(&r->holes, holes / 2);
		eddy_store_relaxed(&r->holes_time, s->now);
	}
	return s->active * holes / 256;
}

/* Returns ms until the next step. */
static uint64_t
step_arena(
    struct eddy_heap *h, struct eddy_arena *a, uint64_t now, int64_t *left)
{
	struct eddy_reclaim *r = &a->reclaim;
	struct step s = {.h = h, .a = a, .r = r, .now = now, .left = *left};
	/* relaxed, all: hints. */
	uint64_t at = eddy_load_relaxed(&r->due);
	uint64_t hold = eddy_load_relaxed(&r->hold);
	uint64_t due;
	int64_t wake_at;
	int64_t idle;

	if (hold > now && at < hold)
		at = hold;
	if (at > now)
		return at == EDDY_NEVER ? EDDY_NEVER : at - now;
	s.active = positive(eddy_load_relaxed(&r->active));
	idle = positive(eddy_load_relaxed(&r->backed) - s.active);
	s.slack = SLACK + s.active / SLACK_SHARE;
	s.ahead = (int64_t)(h->opts.prefault_ahead * EDDY_CHUNK_PAGES);
	s.holes = holes_of(&s);
	due = step_decay(&s);
	*left = s.left;

	/*
	 * What calls for the next step: while the arena is in full use, more
	 * than was ever free of late; else what would change the forecast.
	 * relaxed, all: hints.
	 */
	if (eddy_load_relaxed(&r->quiet) != 0) {
		if (idle < eddy_load_relaxed(&r->most))
			idle = eddy_load_relaxed(&r->most);
		wake_at = idle + idle / 4 + s.slack;
	} else {
		wake_at = idle + idle / 32 + s.slack;
	}
	if (eddy_load_relaxed(&r->dirty_decay_ms) < 0)
		wake_at = INT64_MAX;
	eddy_store_relaxed(&r->most, 0);
	eddy_store_relaxed(&r->due, due == EDDY_NEVER ? due : now + due);
	eddy_store_relaxed(&r->wake_at, wake_at);
	/* Who put pages meanwhile has called for a step that was this one. */
	if (due > MIN_STEP_MS &&
	    eddy_load_relaxed(&r->backed) - eddy_load_relaxed(&r->active) >
		wake_at) {
		due = MIN_STEP_MS;
		eddy_store_relaxed(&r->due, now + due);
	}
	return due;
}

/* Chunks that have their memory before they are needed. */
static void
keep_ahead(struct eddy_heap *h, struct eddy_arena *a)
{
	unsigned want = h->opts.prefault_ahead;

	if (want == 0 || !eddy_wake_served(h))
		return;
	for (unsigned n = eddy_warm_chunks(h, a);
	     n < want && eddy_warm_ahead(h, a); n++)
		continue;
}

/* ------------------------------------------------------------------ */

/* Bytes a millisecond; 0: any number. */
static uint64_t
rate_of(const struct eddy_heap *h)
{
	uint64_t rate = h->opts.purge_rate;

	return rate == 0 || rate > 1000 ? rate / 1000 : 1;
}

/* Milliseconds to save up for a step: for a batch if that does not take longer
 * than a second, for a page in any case. */
static uint64_t
saving(uint64_t rate)
{
	uint64_t ms = MIN_BATCH / rate;

	if (ms > 1000)
		ms = 1000;
	if (ms * rate < EDDY_PAGE)
		ms = EDDY_PAGE / rate + 1;
	return ms > MIN_STEP_MS ? ms : MIN_STEP_MS;
}

/* The time that may be saved up. */
static uint64_t
savings(uint64_t rate)
{
	uint64_t ms = saving(rate);

	return ms > 1000 ? ms : 1000;
}

/* Bytes that the rate allows now. */
static int64_t
affordable(struct eddy_heap *h, uint64_t now, int64_t most)
{
	uint64_t rate = rate_of(h);
	/* relaxed: a hint. */
	uint64_t paid = eddy_load_relaxed(&h->paid_until);
	uint64_t ms = now > paid ? now - paid : 0;

	if (rate == 0)
		return most;
	if (ms > savings(rate))
		ms = savings(rate);
	return (int64_t)(rate * ms) < most ? (int64_t)(rate * ms) : most;
}

static void
pay(struct eddy_heap *h, uint64_t now, int64_t bytes)
{
	uint64_t rate = rate_of(h);
	/* relaxed, both: a hint; of two at once one may go unpaid. */
	uint64_t paid = eddy_load_relaxed(&h->paid_until);

	if (rate == 0 || bytes == 0)
		return;
	if (paid + savings(rate) < now)
		paid = now - savings(rate);
	eddy_store_relaxed(
	    &h->paid_until, paid + ((uint64_t)bytes - 1) / rate + 1);
}

uint64_t
eddy_reclaim_step(struct eddy_heap *h, unsigned part, unsigned parts,
    uint64_t now, size_t most)
{
	uint64_t due;
	int64_t limit = most < INT64_MAX ? (int64_t)most : INT64_MAX;
	int64_t can = affordable(h, now, limit);
	int64_t left = can;
	uint64_t wait = can < limit ? saving(rate_of(h)) : 0;
	/* relaxed: an arena that is made just now calls when it has work. */
	uint32_t n = eddy_load_relaxed(&h->n_arenas);
	uint64_t before;

	if (eddy_frozen(h))
		return EDDY_NEVER;
	due = part == 0 ? eddy_gather_idle(h, now) : EDDY_NEVER;
	for (uint32_t i = 1; i <= n && i <= EDDY_MAX_ARENAS; i++) {
		struct eddy_arena *a = eddy_arena_at(h, i);
		uint64_t next;

		if (a == NULL || a->home % parts != part)
			continue;
		if (left < (int64_t)EDDY_PAGE) {
			/* The rest when there is more to spend. */
			due = wait < due ? wait : due;
			break;
		}
		keep_ahead(h, a);
		next = step_arena(h, a, now, &left);
		if (next == 0 && left < (int64_t)EDDY_PAGE)
			next = wait;
		due = next < due ? next : due;
	}
	pay(h, now, can - left);
	/* relaxed, both: a hint, for a process without background threads. */
	before = eddy_load_relaxed(&h->due);
	if (before <= now || (due != EDDY_NEVER && now + due < before))
		eddy_store_relaxed(
		    &h->due, due == EDDY_NEVER ? due : now + due);
	return due;
}

EDDY_COLD void
eddy_reclaim_share_now(struct eddy_heap *h)
{
	uint64_t now;
	/* relaxed: a hint. */
	uint64_t due = eddy_load_relaxed(&h->due);

	if (eddy_wake_served(h))
		return;
	now = eddy_os_milliseconds_coarse();
	/* relaxed: a hint; whoever wins does it. */
	if (due > now || !eddy_cas_relaxed(&h->due, &due, now + MIN_STEP_MS))
		return;
	(void)eddy_reclaim_step(h, 0, 1, now, EDDY_RECLAIM_SHARE);
}
