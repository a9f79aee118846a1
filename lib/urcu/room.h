/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * room.h - what one flavour of liburcu has waiting, and who frees it.
 *
 * Layer     urcu; may include base, arch, os.  Of libeddy-urcu alone.
 * Progress  put: lock-free, no system call but to wake a helper that sleeps or
 *           to get memory for batches.  Helpers wait, for grace periods and for
 *           work: threads of the library's own.  The barrier waits, too.
 * Memory    rooms are made once a flavour and never unmapped.
 *
 * An object goes round like this:
 *
 *     lane of a CPU --closed--> full --taken, a grace period--> ripe --> freed
 *
 *   lane   the open batch of a CPU; who finds no place in it puts another in
 *          its stead, with his object, closes the old one and pushes it
 *   full   closed batches; a helper takes all of them at once
 *   ripe   batches whose grace period has ended; helpers pop and free them, and
 *          so do callers beyond the bound, two batches each
 *
 * Helper 0 closes the lanes too, 10 ms after the first object at the latest,
 * and sleeps for ever while nothing waits.  Others are called beyond the bound:
 * they take what is full while helper 0 waits for a grace period or frees.
 *
 * Why no object is freed early: the number of a batch is on `full` only when
 * no place of it is empty, so an object that is in it was put there before; the
 * grace period begins after it was taken from there.  A CAS that comes late
 * meets a full place, or an open batch that is yet to be closed.
 *
 * Order pairs
 *   ROOM-R1 -> ROOM-A1  a room, from its builder to all
 *   ROOM-R2 -> ROOM-A2  an open batch, on its lane
 *   ROOM-R3 -> ROOM-A3  what is in a helper's or a barrier's hand, to a barrier
 *   DOZE-R1 -> DOZE-A1  an object that is put || a helper that falls asleep:
 *                       store-load, seq_cst
 *   DOZE-R2 -> DOZE-A2  the same the other way round: that it sleeps
 *   PAUSE-R1 -> PAUSE-A1, PAUSE-R2 -> PAUSE-A2  a fork, or the process's end,
 *                       || a helper that goes for a grace period: store-load,
 *                       seq_cst
 *
 * A thread killed while it replaces or closes a batch costs that batch.
 * Model: tests/model/urcu.pml.
 */
#ifndef EDDY_URCU_ROOM_H
#define EDDY_URCU_ROOM_H

#include <eddy/urcu.h>

#include "lib/urcu/batches.h"

#define EDDY_URCU_HELPERS 4
/* Of their places one more is the barriers', which have no thread. */
#define EDDY_URCU_HANDS (EDDY_URCU_HELPERS + 1)
#define EDDY_URCU_DELAY 10 /* ms that objects gather */

/* Words of helpers.  EDDY_CALLED may come to any of them, late. */
enum {
	EDDY_CALLED = 1,
	EDDY_RUN = 0,
	EDDY_GATHER = 2,   /* sleeps a little, while objects gather */
	EDDY_STARTING = 4, /* somebody makes the thread */
	EDDY_NONE = 6,     /* no thread */
	EDDY_ASLEEP = 8,   /* until it is called */
};

/* Whether nobody looks, nor is sure to: no thread, one that sleeps, or one that
 * somebody makes, who may have been killed. */
static inline bool
eddy_helper_away(uint32_t word)
{
	return word - EDDY_STARTING <= EDDY_ASLEEP - EDDY_STARTING;
}

struct eddy_lane {
	/* {tag, number of the open batch, or 0}: the tag grows at each change.
	 * W, R: any thread, by RMW.  O: ROOM-R2 -> ROOM-A2, DOZE-R1. */
	_Atomic uint64_t open;
	/* {round, threads that have replaced a batch and not yet pushed it, or
	 * that free one}.  Who does not wait for them any longer begins a round
	 * without them.
	 * W, R: any thread, by RMW.  O: ROOM-R3 -> ROOM-A3. */
	_Atomic uint64_t hands;
} __attribute__((aligned(EDDY_CACHELINE)));

struct eddy_helper {
	/* W: the helper, and who calls it.  R: any thread.
	 * O: DOZE-R2 -> DOZE-A2. */
	_Atomic uint32_t word;
	/* Odd while it has something in hand.
	 * W: the helper.  R: barriers.  O: ROOM-R3 -> ROOM-A3. */
	_Atomic uint32_t turn;
	/* In a grace period.  W: the helper.  R: fork.  O: PAUSE-R2. */
	_Atomic uint32_t inside;
	/* What waits for that grace period.  Of helpers for statistics; of the
	 * barriers' place the next one takes it from one that was killed.
	 * W: the helper; a barrier, by RMW.  R: the next barrier; statistics.
	 * O: ROOM-R3 -> ROOM-A3, of barriers. */
	_Atomic uint32_t taken;
	/* ms when the grace period began, and of the oldest in `taken`.
	 * W: the helper.  R: statistics.  O: none: statistics. */
	_Atomic uint64_t since;
	_Atomic uint64_t oldest;
	/* ms when somebody began to make the thread that is not there yet.
	 * W, R: any thread.  O: none: a patience. */
	_Atomic uint64_t starting;
} __attribute__((aligned(EDDY_CACHELINE)));

struct eddy_room {
	/* Constant. */
	const struct rcu_flavor_struct *flavor;
	struct eddy_room *next;
	struct eddy_lane *lanes;
	uint32_t lane_mask;
	bool is_bp;

	struct eddy_helper helper[EDDY_URCU_HANDS];
	/* The thread that is in the midst of a barrier, or 0.
	 * W, R: barriers, by CAS.  O: ROOM-R3 -> ROOM-A3. */
	_Atomic uint32_t barring;

	/* W, R: any thread, by RMW.  O: URCU-R2 -> URCU-A2, DOZE-R1. */
	eddy_deferred_stack full __attribute__((aligned(EDDY_CACHELINE)));
	/* Closed and not yet freed.
	 * W, R: any thread.  O: none: counts. */
	_Atomic uint64_t n_waiting;
	_Atomic uint64_t bytes_waiting;
	_Atomic uint64_t batches_waiting;
	_Atomic uint64_t peak_objects;
	_Atomic uint64_t peak_bytes;
	_Atomic uint64_t n_beyond;
	_Atomic uint64_t n_helped;
	_Atomic uint64_t n_refused;

	/* W, R: any thread, by RMW.  O: URCU-R2 -> URCU-A2. */
	eddy_deferred_stack ripe __attribute__((aligned(EDDY_CACHELINE)));
	/* W, R: any thread.  O: none: counts. */
	_Atomic uint64_t n_freed;
	_Atomic uint64_t bytes_freed;
	_Atomic uint64_t n_graces;
	/* No grace period can be had in this child.
	 * W: fork's child.  R: any thread.  O: none: before others exist. */
	_Atomic uint32_t cut;

	/* W: who sets it.  R: any thread.  O: none: settings. */
	_Atomic uint64_t bound_objects __attribute__((aligned(EDDY_CACHELINE)));
	_Atomic uint64_t bound_bytes;

	struct eddy_deferred_store store;
};

/* How often the thread is where it has batches in hand: more than once where
 * signal handlers interrupt it.  A longjmp out of one leaves it above 0: then
 * children of that thread adopt nothing. */
extern _Thread_local uint32_t eddy_in_hand;

static inline void
eddy_hand_begin(void)
{
	eddy_in_hand++;
	eddy_handler_fence();
}

static inline void
eddy_hand_end(void)
{
	eddy_handler_fence();
	eddy_in_hand--;
}

/* The room of a flavour; NULL: none yet. */
struct eddy_room *eddy_room_find(const struct rcu_flavor_struct *flavor);
/* The same, made if need be; NULL: no memory. */
struct eddy_room *eddy_room_open(const struct rcu_flavor_struct *flavor);
/* The newest room; others by next. */
struct eddy_room *eddy_room_first(void);

/* Returns 0 or an errno value; the object is the caller's then. */
int eddy_room_put(struct eddy_room *r, void *p);

/* Closes the open batch of each lane and pushes it. */
void eddy_room_sweep(struct eddy_room *r);

/* Whether something is on a lane or a stack: seq_cst loads. */
bool eddy_room_has_work(struct eddy_room *r);

/* Frees up to n ripe batches; returns how many. */
unsigned eddy_room_free_ripe(struct eddy_room *r, unsigned n);

/* Whether more waits than a share of the bound: 1 of `share`. */
bool eddy_room_beyond(struct eddy_room *r, unsigned share);

/* What is on no stack and no lane becomes full: what other threads had in hand
 * when a child was forked, whose one thread is the caller. */
void eddy_room_adopt(struct eddy_room *r);

/* Counts anew what waits: in a child, whose one thread is the caller. */
void eddy_room_recount(struct eddy_room *r);

/* Sees to it that helper 0 runs: it sleeps, or is not there. */
void eddy_helper_rouse(struct eddy_room *r);

/* Ends the gathering of helper 0. */
void eddy_helper_hurry(struct eddy_room *r);

/* Calls one more helper. */
void eddy_helper_call_more(struct eddy_room *r);

/* Makes helper 0, if it is absent.  Returns 0 or an errno value. */
int eddy_helper_start(struct eddy_room *r);

/* Waits for a grace period for what is full, and frees it: one barrier at a
 * time, so that what another has taken is freed as well. */
void eddy_helper_bar(struct eddy_room *r);

/* Waits until what each helper has in hand is freed. */
void eddy_helper_await_turns(struct eddy_room *r);

/* Waits until no caller has a batch in hand. */
void eddy_helper_await_hands(struct eddy_room *r);

#endif /* EDDY_URCU_ROOM_H */
