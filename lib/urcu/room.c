/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/urcu/room.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>

#include "lib/arch/rseq.h"
#include "lib/os/os.h"

/* Batches that a caller beyond the bound frees. */
#define HELPED 2

#define BOUND_OBJECTS ((uint64_t)1 << 20)
#define BOUND_BYTES   ((uint64_t)256 << 20)

/* glibc's registration, from 2.35 on. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
_Thread_local uint32_t eddy_in_hand;
/* eddy serves malloc: its free may be called wherever put may.
 * W: the constructor.  R: any thread. */
static bool is_eddy;
/* There if the process has that flavour. */
extern const struct rcu_flavor_struct urcu_bp_flavor __attribute__((weak));

/* W: who makes a room, by CAS.  R: any thread.  O: ROOM-R1 -> ROOM-A1. */
static _Atomic(struct eddy_room *) rooms;

/* ------------------------------------------------------------------ */
/* Rooms */

struct eddy_room *
eddy_room_first(void)
{
	/* ROOM-A1: a room that is complete. */
	return eddy_load_acquire(&rooms);
}

struct eddy_room *
eddy_room_find(const struct rcu_flavor_struct *flavor)
{
	struct eddy_room *r = eddy_room_first();

	while (r != NULL && r->flavor != flavor)
		r = r->next;
	return r;
}

static size_t
room_size(size_t n_lanes)
{
	return eddy_align_up(sizeof(struct eddy_room), EDDY_CACHELINE) +
	       n_lanes * sizeof(struct eddy_lane);
}

static struct eddy_room *
build(const struct rcu_flavor_struct *flavor)
{
	size_t n = 1;
	size_t limit = eddy_os_cpu_limit();
	struct eddy_room *r;

	while (n < limit && n < 8192)
		n *= 2;
	r = eddy_os_reserve(room_size(n));
	if (r == NULL)
		return NULL;
	if (eddy_os_commit(r, room_size(n)) != 0) {
		eddy_os_unmap(r, room_size(n));
		return NULL;
	}
	r->flavor = flavor;
	r->is_bp = &urcu_bp_flavor != NULL && flavor == &urcu_bp_flavor;
	r->lane_mask = (uint32_t)n - 1;
	r->lanes = (void *)((char *)r + room_size(n) - n * sizeof(r->lanes[0]));
	/* relaxed, all: published with the room. */
	eddy_store_relaxed(&r->bound_objects, BOUND_OBJECTS);
	eddy_store_relaxed(&r->bound_bytes, BOUND_BYTES);
	for (unsigned i = 0; i < EDDY_URCU_HANDS; i++)
		eddy_store_relaxed(&r->helper[i].word, EDDY_NONE);
	return r;
}

struct eddy_room *
eddy_room_open(const struct rcu_flavor_struct *flavor)
{
	struct eddy_room *r = eddy_room_find(flavor);
	struct eddy_room *top;

	if (r != NULL)
		return r;
	r = build(flavor);
	if (r == NULL)
		return NULL;
	top = eddy_room_first();
	do {
		/* Somebody may have made it meanwhile. */
		struct eddy_room *other = eddy_room_find(flavor);

		if (other != NULL) {
			eddy_os_unmap(r, room_size((size_t)r->lane_mask + 1));
			return other;
		}
		r->next = top;
		/* ROOM-R1: the room.  ROOM-A1: on failure, the newer one; it is
		 * looked at. */
	} while (!eddy_cas_acq_rel(&rooms, &top, r));
	return r;
}

/* ------------------------------------------------------------------ */
/* Counts */

bool
eddy_room_beyond(struct eddy_room *r, unsigned share)
{
	/* relaxed, all: as of some moment. */
	return eddy_load_relaxed(&r->n_waiting) * share >=
		   eddy_load_relaxed(&r->bound_objects) ||
	       eddy_load_relaxed(&r->bound_bytes) <=
		   eddy_load_relaxed(&r->bytes_waiting) * share;
}

static void
raise(_Atomic uint64_t *peak, uint64_t n)
{
	/* relaxed: a statistic. */
	uint64_t seen = eddy_load_relaxed(peak);

	/* relaxed: as above. */
	while (n > seen && !eddy_cas_relaxed(peak, &seen, n))
		;
}

static void
count_in(struct eddy_room *r, const struct eddy_deferred *b)
{
	/* relaxed, all: of a batch in hand; counts. */
	uint64_t n = eddy_load_relaxed(&b->n);
	uint64_t bytes = eddy_load_relaxed(&b->bytes);

	raise(&r->peak_objects, n + eddy_add_relaxed(&r->n_waiting, n));
	raise(
	    &r->peak_bytes, bytes + eddy_add_relaxed(&r->bytes_waiting, bytes));
	(void)eddy_add_relaxed(&r->batches_waiting, 1);
}

static void
count_out(struct eddy_room *r, const struct eddy_deferred *b)
{
	/* relaxed, all: of a batch in hand; counts. */
	uint64_t n = eddy_load_relaxed(&b->n);
	uint64_t bytes = eddy_load_relaxed(&b->bytes);

	(void)eddy_add_relaxed(&r->n_waiting, -n);
	(void)eddy_add_relaxed(&r->bytes_waiting, -bytes);
	(void)eddy_add_relaxed(&r->batches_waiting, (uint64_t)-1);
	(void)eddy_add_relaxed(&r->n_freed, n);
	(void)eddy_add_relaxed(&r->bytes_freed, bytes);
}

void
eddy_room_recount(struct eddy_room *r)
{
	uint64_t n[3] = {0};

	/* What is in our hand we count out. */
	if (eddy_in_hand != 0)
		return;
	/* relaxed, all: there are no other threads. */
	for (unsigned i = 0; i < 2; i++) {
		uint32_t at = eddy_deferred_top(
		    eddy_load_relaxed(i == 0 ? &r->full : &r->ripe));

		while (at != 0) {
			struct eddy_deferred *b =
			    eddy_deferred_at(&r->store, at);

			n[0] += eddy_load_relaxed(&b->n);
			n[1] += eddy_load_relaxed(&b->bytes);
			n[2]++;
			at = eddy_load_relaxed(&b->next);
		}
	}
	eddy_store_relaxed(&r->n_waiting, n[0]);
	eddy_store_relaxed(&r->bytes_waiting, n[1]);
	eddy_store_relaxed(&r->batches_waiting, n[2]);
}

static size_t
size_of(void *p)
{
	return malloc_usable_size(p);
}

void
eddy_room_adopt(struct eddy_room *r)
{
	/* A handler that has interrupted us: what is in our hand is nobody
	 * else's, and cannot be told from what was in others'. */
	if (eddy_in_hand != 0)
		return;
	for (uint32_t i = 0; i <= r->lane_mask; i++) {
		/* relaxed: there are no others. */
		eddy_store_relaxed(&r->lanes[i].hands, 0);
	}
	eddy_deferred_find(&r->store, &r->full);
	eddy_deferred_find(&r->store, &r->ripe);
	eddy_deferred_find(&r->store, &r->store.free);
	eddy_deferred_push_chain(
	    &r->store, &r->full, eddy_deferred_adopt(&r->store, size_of));
}

/* ------------------------------------------------------------------ */
/* Batches */

/* From here on a barrier waits for the caller; returns the round. */
static uint32_t
hand_in(struct eddy_lane *lane)
{
	eddy_hand_begin();
	/* ROOM-R3: pairs with ROOM-A3 of a barrier. */
	return (uint32_t)(eddy_add_release(&lane->hands, 1) >> 32);
}

/* Up to here, if one has not given up. */
static void
hand_out(struct eddy_lane *lane, uint32_t round)
{
	/* relaxed: checked by the CAS. */
	uint64_t w = eddy_load_relaxed(&lane->hands);

	/* ROOM-R3: it is on the stack. */
	while ((uint32_t)(w >> 32) == round &&
	       !eddy_cas_release(&lane->hands, &w, w - 1))
		;
	eddy_hand_end();
}

/* Closes a batch that is on no lane any more, and pushes it. */
static void
publish(struct eddy_room *r, uint32_t number)
{
	struct eddy_deferred *b = eddy_deferred_at(&r->store, number);

	eddy_deferred_close(b, size_of);
	count_in(r, b);
	eddy_deferred_push(&r->store, &r->full, number);
}

static void
sweep(struct eddy_room *r, struct eddy_lane *lane)
{
	/* ROOM-A2: the batch. */
	uint64_t open = eddy_load_acquire(&lane->open);
	uint32_t round;

	if (eddy_deferred_top(open) == 0)
		return;
	round = hand_in(lane);
	/* ROOM-A2: the batch.  ROOM-R2: nothing.  Who was faster has it. */
	if (eddy_cas_acq_rel(&lane->open, &open, ((open >> 32) + 1) << 32))
		publish(r, eddy_deferred_top(open));
	hand_out(lane, round);
}

void
eddy_room_sweep(struct eddy_room *r)
{
	for (uint32_t i = 0; i <= r->lane_mask; i++)
		sweep(r, &r->lanes[i]);
}

bool
eddy_room_has_work(struct eddy_room *r)
{
	/* DOZE-A1: all pair with DOZE-R1 of who puts. */
	if (eddy_deferred_top(eddy_load_seq_cst(&r->full)) != 0 ||
	    eddy_deferred_top(eddy_load_seq_cst(&r->ripe)) != 0)
		return true;
	for (uint32_t i = 0; i <= r->lane_mask; i++)
		if (eddy_deferred_top(eddy_load_seq_cst(&r->lanes[i].open)) !=
		    0)
			return true;
	return false;
}

static void
free_batch(struct eddy_room *r, uint32_t number)
{
	struct eddy_deferred *b = eddy_deferred_at(&r->store, number);

	for (unsigned i = 0; i < EDDY_DEFERRED; i++) {
		/* relaxed: ordered by what took the batch. */
		void *p = eddy_load_relaxed(&b->place[i]);

		if (p == EDDY_DEFERRED_EMPTY)
			continue;
		/* relaxed: a child that is forked now loses it, and frees the
		 * rest. */
		eddy_store_relaxed(&b->place[i], EDDY_DEFERRED_EMPTY);
		free(p);
	}
	count_out(r, b);
	eddy_deferred_push(&r->store, &r->store.free, number);
}

unsigned
eddy_room_free_ripe(struct eddy_room *r, unsigned n)
{
	unsigned done = 0;

	eddy_hand_begin();
	while (done < n) {
		uint32_t number = eddy_deferred_pop(&r->store, &r->ripe);

		if (number == 0)
			break;
		free_batch(r, number);
		done++;
	}
	eddy_hand_end();
	return done;
}

/* ------------------------------------------------------------------ */
/* Put */

/* The calling thread's CPU: where to look first, no more. */
static uint32_t
cpu(void)
{
	if (eddy_likely(&__rseq_size != NULL && __rseq_size != 0)) {
		const struct eddy_rseq *area =
		    (const void *)((const char *)__builtin_thread_pointer() +
				   __rseq_offset);
		/* relaxed: the kernel writes it for this thread. */
		uint32_t id = eddy_load_relaxed(&area->cpu_id);

		/* Negative: not registered. */
		if (eddy_likely((int32_t)id >= 0))
			return id;
	}
	return (uint32_t)sched_getcpu();
}

/* A caller whose batch went beyond the bound. */
static void
work_off(struct eddy_room *r)
{
	unsigned done;

	/* relaxed: a statistic. */
	(void)eddy_add_relaxed(&r->n_beyond, 1);
	eddy_helper_hurry(r);
	eddy_helper_call_more(r);
	if (!is_eddy)
		return;
	done = eddy_room_free_ripe(r, HELPED);
	/* relaxed: a statistic. */
	if (done != 0)
		(void)eddy_add_relaxed(&r->n_helped, done);
}

/* No place in the lane's batch, or no batch. */
static EDDY_NOINLINE int
put_slow(struct eddy_room *r, struct eddy_lane *lane, uint64_t open, void *p)
{
	uint32_t round = hand_in(lane);
	uint32_t number =
	    eddy_deferred_open(&r->store, p, eddy_os_milliseconds_coarse());
	uint32_t old = 0;

	if (number == 0) {
		hand_out(lane, round);
		return ENOMEM;
	}
	/* ROOM-R2: the batch, and our object; DOZE-R1: as in put.  Who was
	 * faster has made room on the lane: ours is full early. */
	if (eddy_cas_seq_cst(
		&lane->open, &open, ((open >> 32) + 1) << 32 | number))
		old = eddy_deferred_top(open);
	else
		old = number;
	if (old != 0)
		publish(r, old);
	if (old != 0 && eddy_room_beyond(r, 4)) {
		if (eddy_room_beyond(r, 1))
			work_off(r);
		else
			eddy_helper_hurry(r);
	}
	hand_out(lane, round);
	return 0;
}

int
eddy_room_put(struct eddy_room *r, void *p)
{
	struct eddy_lane *lane = &r->lanes[cpu() & r->lane_mask];
	/* ROOM-A2: the batch. */
	uint64_t open = eddy_load_acquire(&lane->open);
	uint32_t number = eddy_deferred_top(open);
	int err = 0;

	if (eddy_unlikely(number == 0) ||
	    eddy_unlikely(
		!eddy_deferred_put(eddy_deferred_at(&r->store, number), p)))
		err = put_slow(r, lane, open, p);
	/* DOZE-A2: that helper 0 sleeps; or it sees what we have put. */
	if (eddy_unlikely(
		eddy_helper_away(eddy_load_seq_cst(&r->helper[0].word))))
		eddy_helper_rouse(r);
	return err;
}

__attribute__((constructor)) static void
at_load(void)
{
	is_eddy = dlsym(RTLD_DEFAULT, "eddy_version") != NULL;
}
