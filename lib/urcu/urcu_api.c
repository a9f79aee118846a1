/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of <eddy/urcu.h>.
 */
#include <errno.h>
#include <string.h>
#include <urcu/flavor.h>

#include "lib/os/os.h"
#include "lib/urcu/room.h"

/* Batches of a stack that statistics look at. */
#define MAX_WALKED 65536

/* The first room is the one, as a rule. */
static inline struct eddy_room *
room_of(const struct rcu_flavor_struct *flavor)
{
	struct eddy_room *r = eddy_room_first();

	if (eddy_likely(r != NULL && r->flavor == flavor))
		return r;
	return eddy_room_open(flavor);
}

EDDY_EXPORT int
eddy_urcu_free(const struct rcu_flavor_struct *flavor, void *p)
{
	struct eddy_room *r;

	if (eddy_unlikely(p == NULL))
		return 0;
	r = room_of(flavor);
	return eddy_likely(r != NULL) ? eddy_room_put(r, p) : ENOMEM;
}

EDDY_EXPORT size_t
eddy_urcu_free_batch(
    const struct rcu_flavor_struct *flavor, void *const *p, size_t n)
{
	struct eddy_room *r = room_of(flavor);
	size_t i = 0;

	while (
	    r != NULL && i < n && (p[i] == NULL || eddy_room_put(r, p[i]) == 0))
		i++;
	return i;
}

EDDY_EXPORT int
eddy_urcu_try_free(const struct rcu_flavor_struct *flavor, void *p)
{
	struct eddy_room *r;

	if (p == NULL)
		return 0;
	r = room_of(flavor);
	if (r == NULL)
		return ENOMEM;
	if (eddy_room_beyond(r, 1)) {
		/* relaxed: a statistic. */
		(void)eddy_add_relaxed(&r->n_refused, 1);
		return EAGAIN;
	}
	return eddy_room_put(r, p);
}

EDDY_EXPORT int
eddy_urcu_barrier(const struct rcu_flavor_struct *flavor)
{
	struct eddy_room *r = eddy_room_find(flavor);
	bool online;

	if (r == NULL)
		return 0;
	/* relaxed: a fact. */
	if (eddy_load_relaxed(&r->cut) != 0)
		return ENOTSUP;
	/* Of urcu-qsbr: others' grace periods, for which we wait, would wait
	 * for us.  urcu-bp would register who asks. */
	online = !r->is_bp && flavor->read_ongoing();
	if (online)
		flavor->thread_offline();
	eddy_room_sweep(r);
	/* What others were about to push is there. */
	eddy_helper_await_hands(r);
	eddy_helper_bar(r);
	eddy_helper_await_turns(r);
	eddy_helper_await_hands(r);
	if (online)
		flavor->thread_online();
	return 0;
}

EDDY_EXPORT int
eddy_urcu_start(const struct rcu_flavor_struct *flavor)
{
	struct eddy_room *r = eddy_room_open(flavor);

	return r != NULL ? eddy_helper_start(r) : ENOMEM;
}

EDDY_EXPORT int
eddy_urcu_set_bound(
    const struct rcu_flavor_struct *flavor, size_t objects, size_t bytes)
{
	struct eddy_room *r;

	if (objects == 0 || bytes == 0)
		return EINVAL;
	r = eddy_room_open(flavor);
	if (r == NULL)
		return ENOMEM;
	/* relaxed, both: settings. */
	eddy_store_relaxed(&r->bound_objects, objects);
	eddy_store_relaxed(&r->bound_bytes, bytes);
	return 0;
}

/* ------------------------------------------------------------------ */
/* Statistics */

static void
older(uint64_t *oldest, uint64_t since)
{
	if (since != 0 && since < *oldest)
		*oldest = since;
}

/* A stack that others change meanwhile: what is read of it may be wrong, but is
 * of a batch. */
static uint64_t
walk(struct eddy_room *r, uint32_t number, uint64_t *oldest)
{
	uint64_t n = 0;

	while (number != 0 && n < MAX_WALKED) {
		struct eddy_deferred *b = eddy_deferred_at(&r->store, number);

		/* relaxed, both: statistics. */
		older(oldest, eddy_load_relaxed(&b->since));
		number = eddy_load_relaxed(&b->next);
		n++;
	}
	return n;
}

static void
look_at_lanes(struct eddy_room *r, struct eddy_urcu_stats *s, uint64_t *oldest)
{
	for (uint32_t i = 0; i <= r->lane_mask; i++) {
		/* ROOM-A2: the batch. */
		uint32_t number =
		    eddy_deferred_top(eddy_load_acquire(&r->lanes[i].open));
		struct eddy_deferred *b;

		if (number == 0)
			continue;
		b = eddy_deferred_at(&r->store, number);
		/* relaxed, all: statistics. */
		older(oldest, eddy_load_relaxed(&b->since));
		for (unsigned k = 0; k < EDDY_DEFERRED; k++)
			s->open_objects +=
			    eddy_load_relaxed(&b->place[k]) != NULL;
	}
}

static void
look_at_helpers(
    struct eddy_room *r, struct eddy_urcu_stats *s, uint64_t *oldest)
{
	uint64_t since = UINT64_MAX;

	for (unsigned i = 0; i < EDDY_URCU_HANDS; i++) {
		struct eddy_helper *h = &r->helper[i];
		/* relaxed, all: statistics. */
		uint32_t word = eddy_load_relaxed(&h->word);

		s->helpers += (word | EDDY_CALLED) != (EDDY_NONE | EDDY_CALLED);
		if (eddy_load_relaxed(&h->taken) == 0)
			continue;
		older(&since, eddy_load_relaxed(&h->since));
		older(oldest, eddy_load_relaxed(&h->oldest));
	}
	if (since != UINT64_MAX)
		s->grace_ms = since;
}

static void
look(struct eddy_room *r, struct eddy_urcu_stats *s)
{
	uint64_t oldest = UINT64_MAX;
	uint64_t now;

	/* relaxed, all: statistics. */
	s->waiting_objects = eddy_load_relaxed(&r->n_waiting);
	s->waiting_bytes = eddy_load_relaxed(&r->bytes_waiting);
	s->waiting_batches = eddy_load_relaxed(&r->batches_waiting);
	s->peak_objects = eddy_load_relaxed(&r->peak_objects);
	s->peak_bytes = eddy_load_relaxed(&r->peak_bytes);
	s->bound_objects = eddy_load_relaxed(&r->bound_objects);
	s->bound_bytes = eddy_load_relaxed(&r->bound_bytes);
	s->freed_objects = eddy_load_relaxed(&r->n_freed);
	s->freed_bytes = eddy_load_relaxed(&r->bytes_freed);
	/* relaxed, all: as above. */
	s->graces = eddy_load_relaxed(&r->n_graces);
	s->beyond = eddy_load_relaxed(&r->n_beyond);
	s->helped = eddy_load_relaxed(&r->n_helped);
	s->refused = eddy_load_relaxed(&r->n_refused);
	s->cut = eddy_load_relaxed(&r->cut);
	look_at_lanes(r, s, &oldest);
	look_at_helpers(r, s, &oldest);
	/* URCU-A2: what was pushed. */
	(void)walk(r, eddy_deferred_top(eddy_load_acquire(&r->full)), &oldest);
	s->ripe_batches =
	    walk(r, eddy_deferred_top(eddy_load_acquire(&r->ripe)), &oldest);
	now = eddy_os_milliseconds();
	if (s->grace_ms != 0)
		s->grace_ms = now > s->grace_ms ? now - s->grace_ms : 0;
	if (oldest != UINT64_MAX)
		s->oldest_ms = now > oldest ? now - oldest : 0;
}

EDDY_EXPORT int
eddy_urcu_stats(const struct rcu_flavor_struct *flavor,
    struct eddy_urcu_stats *ret, size_t size)
{
	struct eddy_room *r = eddy_room_find(flavor);
	struct eddy_urcu_stats s = {0};

	if (r != NULL)
		look(r, &s);
	memset(ret, 0, size);
	memcpy(ret, &s, size < sizeof(s) ? size : sizeof(s));
	return 0;
}
