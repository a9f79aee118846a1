/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helpers: threads that wait for grace periods, and what becomes of them
 * at fork, at the end of the main thread and of the process.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <urcu/flavor.h>

#include "lib/os/os.h"
#include "lib/os/thread.h"
#include "lib/urcu/room.h"

#define STACK ((size_t)128 << 10)

/* ms: until somebody else may make a thread that one has begun to make. */
#define START_PATIENCE 1000
/* ms that a fork waits for grace periods under way; that helpers wait for the
 * fork; that exit waits. */
#define FORK_PATIENCE  100
#define PAUSE_PATIENCE 1000
#define EXIT_PATIENCE  50
/* ms that a barrier waits for a thread that has a batch in hand. */
#define HAND_PATIENCE 1000

/* Batches that are freed between two looks. */
#define FREED_AT_ONCE 64

/* Forks under way.  W, R: any thread.  O: PAUSE-R1 -> PAUSE-A1. */
static _Atomic uint32_t pauses;
/* The main thread has ended: helpers end as well, when nothing waits.
 * W, R: any thread.  O: DOZE-R1 -> DOZE-A1. */
static _Atomic uint32_t main_ended;
/* The process ends: no grace period is begun.
 * W, R: any thread.  O: PAUSE-R1 -> PAUSE-A1. */
static _Atomic uint32_t process_ends;
/* Handlers are registered.  W, R: any thread.  O: none: once. */
static _Atomic uint32_t hooked;
/* Of the main thread's end.  W: the constructor.  R: any thread. */
static pthread_key_t main_key;
static bool main_key_made;

/* What a thread is given: the room's address and the helper's number. */
static void *
ticket(struct eddy_room *r, unsigned i)
{
	return (char *)r + i;
}

/* ------------------------------------------------------------------ */
/* Calls */

static bool
is(uint32_t word, uint32_t state)
{
	return (word & ~(uint32_t)EDDY_CALLED) == state;
}

static int start(struct eddy_room *r, unsigned i);

void
eddy_helper_rouse(struct eddy_room *r)
{
	/* relaxed: checked by what follows. */
	uint32_t word = eddy_load_relaxed(&r->helper[0].word);

	if (is(word, EDDY_NONE) || is(word, EDDY_STARTING))
		(void)start(r, 0);
	else if (word == EDDY_ASLEEP)
		eddy_os_futex_mark_and_wake(&r->helper[0].word, EDDY_CALLED);
}

void
eddy_helper_hurry(struct eddy_room *r)
{
	/* relaxed: a hint; it wakes by itself soon. */
	uint32_t word = eddy_load_relaxed(&r->helper[0].word);

	if (word == EDDY_GATHER)
		eddy_os_futex_mark_and_wake(&r->helper[0].word, EDDY_CALLED);
}

void
eddy_helper_call_more(struct eddy_room *r)
{
	for (unsigned i = 1; i < EDDY_URCU_HELPERS; i++) {
		/* relaxed: a hint. */
		uint32_t word = eddy_load_relaxed(&r->helper[i].word);

		if (word == EDDY_ASLEEP) {
			eddy_os_futex_mark_and_wake(
			    &r->helper[i].word, EDDY_CALLED);
			return;
		}
	}
}

/* ------------------------------------------------------------------ */
/* The thread */

/* Waits for a grace period; false: the process ends, and where nobody asked for
 * it there was none. */
static bool
grace(struct eddy_room *r, struct eddy_helper *me, bool asked)
{
	uint64_t until = 0;

	for (;;) {
		/* PAUSE-R2: pairs with PAUSE-A2 of a fork. */
		(void)eddy_xchg_seq_cst(&me->inside, 1);
		/* PAUSE-A1: a fork is under way; or it sees us inside. */
		if (eddy_load_seq_cst(&pauses) == 0)
			break;
		if (until == 0)
			until = eddy_os_milliseconds() + PAUSE_PATIENCE;
		/* Who forks may have been killed. */
		if (eddy_os_milliseconds() >= until)
			break;
		/* PAUSE-R2: as above. */
		(void)eddy_xchg_seq_cst(&me->inside, 0);
		(void)eddy_os_futex_wait(
		    &me->inside, 0, eddy_os_milliseconds() + 1);
	}
	/* PAUSE-A1: the process ends; or it sees us inside. */
	if (asked) {
		r->flavor->update_synchronize_rcu();
	} else if (eddy_load_seq_cst(&process_ends) == 0) {
		r->flavor->update_synchronize_rcu();
		/* relaxed: a statistic. */
		(void)eddy_add_relaxed(&r->n_graces, 1);
	}
	/* PAUSE-R2: as above. */
	(void)eddy_xchg_seq_cst(&me->inside, 0);
	/* PAUSE-A1: as above. */
	return eddy_load_seq_cst(&process_ends) == 0;
}

/* ms of the oldest object of a chain. */
static uint64_t
oldest_of(struct eddy_room *r, uint32_t number)
{
	uint64_t oldest = UINT64_MAX;

	while (number != 0) {
		struct eddy_deferred *b = eddy_deferred_at(&r->store, number);
		/* relaxed, both: of a batch in hand. */
		uint64_t since = eddy_load_relaxed(&b->since);

		oldest = since < oldest ? since : oldest;
		number = eddy_load_relaxed(&b->next);
	}
	return oldest;
}

/* The process ends. */
static _Noreturn void
park(void)
{
	/* W, R: nobody. */
	static _Atomic uint32_t word;

	for (;;)
		(void)eddy_os_futex_wait(&word, 0, UINT64_MAX);
}

/* What is full, a grace period, and it is freed.  Returns whether there was
 * anything to do. */
static bool
work(struct eddy_room *r, unsigned i)
{
	struct eddy_helper *me = &r->helper[i];
	uint32_t first;
	bool any = false;

	/* ROOM-R3: pairs with ROOM-A3 of a barrier. */
	(void)eddy_add_acq_rel(&me->turn, 1);
	if (i == 0)
		eddy_room_sweep(r);
	first = eddy_deferred_take(&r->full);
	if (first != 0) {
		any = true;
		/* relaxed, all: statistics. */
		eddy_store_relaxed(&me->taken, first);
		eddy_store_relaxed(&me->oldest, oldest_of(r, first));
		eddy_store_relaxed(&me->since, eddy_os_milliseconds_coarse());
		if (i + 1 < EDDY_URCU_HELPERS && eddy_room_beyond(r, 2) &&
		    is(eddy_load_relaxed(&r->helper[i + 1].word), EDDY_NONE))
			(void)start(r, i + 1);
		if (!grace(r, me, false)) {
			/* ROOM-R3: nobody shall wait for it. */
			(void)eddy_add_release(&me->turn, 1);
			park();
		}
		eddy_store_relaxed(&me->since, 0);
		eddy_store_relaxed(&me->taken, 0);
		eddy_deferred_push_chain(&r->store, &r->ripe, first);
	}
	while (eddy_room_free_ripe(r, FREED_AT_ONCE) != 0)
		any = true;
	/* ROOM-R3: pairs with ROOM-A3 of a barrier. */
	(void)eddy_add_release(&me->turn, 1);
	return any;
}

/* Whether the helper has work to look for after it has said that it has none.
 */
static bool
look_again(struct eddy_room *r, unsigned i)
{
	if (i == 0)
		return eddy_room_has_work(r);
	/* DOZE-A1: helper 0 sees to all that is left. */
	return eddy_deferred_top(eddy_load_seq_cst(&r->full)) != 0 &&
	       eddy_room_beyond(r, 1);
}

/* Sleeps until it is called; false: the thread ends. */
static bool
doze(struct eddy_room *r, unsigned i)
{
	struct eddy_helper *me = &r->helper[i];
	/* DOZE-A1: that the main thread has ended. */
	bool ends = eddy_load_seq_cst(&main_ended) != 0;
	uint32_t word = ends ? EDDY_NONE : EDDY_ASLEEP;

	/* DOZE-R2: pairs with DOZE-A2 of who puts.  DOZE-A1: what was called
	 * before. */
	(void)eddy_xchg_seq_cst(&me->word, word);
	if (look_again(r, i) ||
	    (!ends && eddy_load_seq_cst(&main_ended) != 0)) {
		uint32_t seen = word;

		/* DOZE-R2: it does not sleep.  Somebody may have made another
		 * thread by now. */
		while (is(seen, word))
			if (eddy_cas_seq_cst(&me->word, &seen, EDDY_RUN))
				return true;
		return false;
	}
	if (ends)
		return false;
	/* DOZE-A2: pairs with DOZE-R2 of who calls. */
	while (eddy_load_acquire(&me->word) == EDDY_ASLEEP)
		(void)eddy_os_futex_wait(&me->word, EDDY_ASLEEP, UINT64_MAX);
	/* DOZE-R2, DOZE-A2: as above. */
	(void)eddy_xchg_seq_cst(&me->word, EDDY_RUN);
	return true;
}

/* Lets objects gather. */
static void
gather(struct eddy_room *r, struct eddy_helper *me)
{
	/* DOZE-R2, DOZE-A2: a call that came is an end of the gathering. */
	(void)eddy_xchg_seq_cst(&me->word, EDDY_GATHER);
	if (!eddy_room_beyond(r, 4))
		(void)eddy_os_futex_wait(&me->word, EDDY_GATHER,
		    eddy_os_milliseconds() + EDDY_URCU_DELAY);
	/* DOZE-R2, DOZE-A2: as above. */
	(void)eddy_xchg_seq_cst(&me->word, EDDY_RUN);
}

static void *
run(void *arg)
{
	unsigned i = (unsigned)((uintptr_t)arg % EDDY_CACHELINE);
	struct eddy_room *r = (void *)((char *)arg - i);
	/* relaxed: checked by the CAS. */
	uint32_t word = eddy_load_relaxed(&r->helper[i].word);
	char name[] = "eddy_urcu0";

	/* Who has lost patience may have made another. */
	do {
		if (!is(word, EDDY_STARTING))
			return NULL;
		/* DOZE-R2: it is there. */
	} while (!eddy_cas_seq_cst(&r->helper[i].word, &word, EDDY_RUN));
	/* relaxed: it may be made again when it has ended. */
	eddy_store_relaxed(&r->helper[i].starting, 0);
	name[sizeof(name) - 2] = (char)('0' + i);
	eddy_os_name_thread(name);
	do {
		if (i == 0)
			gather(r, &r->helper[0]);
	} while (work(r, i) || doze(r, i));
	return NULL;
}

/* ------------------------------------------------------------------ */
/* Fork */

/* Whether a wait that was to end at that ms is over. */
static bool
is_over(uint64_t until)
{
	return eddy_os_milliseconds() >= until;
}

/* Lets the grace periods under way end, unless they are waiting for us. */
static void
before_fork(void)
{
	uint64_t until = eddy_os_milliseconds() + FORK_PATIENCE;

	/* PAUSE-R1: pairs with PAUSE-A1 of a helper. */
	(void)eddy_add_seq_cst(&pauses, 1);
	for (struct eddy_room *r = eddy_room_first(); r != NULL; r = r->next) {
		if (r->is_bp || r->flavor->read_ongoing())
			continue;
		for (unsigned i = 0; i < EDDY_URCU_HANDS; i++) {
			struct eddy_helper *h = &r->helper[i];

			/* PAUSE-A2: it is inside; or it sees the pause. */
			while (eddy_load_seq_cst(&h->inside) != 0 &&
			       !is_over(until))
				(void)eddy_os_futex_wait(
				    &h->inside, 1, eddy_os_milliseconds() + 1);
		}
	}
}

static void
after_fork(void)
{
	/* PAUSE-R1: it is over. */
	(void)eddy_add_seq_cst(&pauses, (uint32_t)-1);
}

/*
 * In the child, whose one thread is the caller.  If it reads nothing, nobody
 * does, and nothing needs to wait any more.
 */
static void
inherit(struct eddy_room *r)
{
	/* urcu-bp would register the thread, with locks that its own handlers
	 * may still hold. */
	bool reads = r->is_bp || r->flavor->read_ongoing();
	bool was_inside = false;

	for (unsigned i = 0; i < EDDY_URCU_HANDS; i++) {
		struct eddy_helper *h = &r->helper[i];

		/* relaxed, all: there are no others. */
		was_inside = was_inside || eddy_load_relaxed(&h->inside) != 0;
		eddy_store_relaxed(&h->taken, 0);
		eddy_store_relaxed(&h->inside, 0);
		eddy_store_relaxed(&h->since, 0);
		eddy_store_relaxed(&h->turn, 0);
		eddy_store_relaxed(&h->starting, 0);
		eddy_store_relaxed(&h->word, EDDY_NONE);
	}
	/* relaxed: as above. */
	eddy_store_relaxed(&r->barring, 0);
	eddy_room_sweep(r);
	eddy_room_adopt(r);
	if (!reads)
		eddy_deferred_push_chain(
		    &r->store, &r->ripe, eddy_deferred_take(&r->full));
	eddy_room_recount(r);
	/* Its locks are held by a thread that is not here. */
	if (was_inside && !r->is_bp) /* relaxed: as above. */
		eddy_store_relaxed(&r->cut, 1);
}

static void
in_child(void)
{
	/* relaxed, all: there are no others. */
	eddy_store_relaxed(&pauses, 0);
	eddy_store_relaxed(&main_ended, 0);
	eddy_store_relaxed(&process_ends, 0);
	for (struct eddy_room *r = eddy_room_first(); r != NULL; r = r->next)
		inherit(r);
	if (main_key_made)
		(void)pthread_setspecific(main_key, &main_key);
}

/* ------------------------------------------------------------------ */
/* Ends */

/* The main thread ends, and the process does not: it shall not live on for
 * helpers alone. */
static void
at_main_end(void *arg)
{
	(void)arg;
	/* DOZE-R1: pairs with DOZE-A1. */
	(void)eddy_xchg_seq_cst(&main_ended, 1);
	for (struct eddy_room *r = eddy_room_first(); r != NULL; r = r->next)
		for (unsigned i = 0; i < EDDY_URCU_HELPERS; i++)
			/* DOZE-A2: one that runs looks before it sleeps. */
			if (eddy_load_seq_cst(&r->helper[i].word) ==
			    EDDY_ASLEEP)
				eddy_os_futex_mark_and_wake(
				    &r->helper[i].word, EDDY_CALLED);
}

/*
 * Before the destructors of libraries: urcu-bp unmaps what a grace period
 * reads.  One that does not end now, since the caller reads, is left alone.
 */
static void
at_exit(void)
{
	uint64_t until = eddy_os_milliseconds() + EXIT_PATIENCE;

	/* PAUSE-R1: pairs with PAUSE-A1 of a helper. */
	(void)eddy_xchg_seq_cst(&process_ends, 1);
	for (struct eddy_room *r = eddy_room_first(); r != NULL; r = r->next)
		for (unsigned i = 0; i < EDDY_URCU_HANDS; i++)
			/* PAUSE-A2: it is inside. */
			while (eddy_load_seq_cst(&r->helper[i].inside) != 0 &&
			       !is_over(until))
				(void)eddy_os_futex_wait(&r->helper[i].inside,
				    1, eddy_os_milliseconds() + 1);
}

__attribute__((constructor)) static void
at_load(void)
{
	if (eddy_os_tid() != eddy_os_pid() ||
	    pthread_key_create(&main_key, at_main_end) != 0)
		return;
	main_key_made = true;
	(void)pthread_setspecific(main_key, &main_key);
}

/* ------------------------------------------------------------------ */
/* Start */

static void
hook_once(void)
{
	/* relaxed: whoever does it. */
	if (eddy_xchg_relaxed(&hooked, 1) != 0)
		return;
	(void)pthread_atfork(before_fork, after_fork, in_child);
	(void)atexit(at_exit);
}

static int
start(struct eddy_room *r, unsigned i)
{
	struct eddy_helper *h = &r->helper[i];
	uint64_t now = eddy_os_milliseconds();
	/* relaxed, both: checked by a CAS. */
	uint32_t word = eddy_load_relaxed(&h->word);
	uint64_t before = eddy_load_relaxed(&h->starting);
	int kept = errno;
	uint64_t mask;
	pthread_t t;
	int err;

	if (eddy_load_relaxed(&r->cut) != 0) /* relaxed: a fact. */
		return ENOTSUP;
	if (!is(word, EDDY_NONE) && !is(word, EDDY_STARTING))
		return 0;
	/* One at a time, once in a while: where it fails, and where the one
	 * who began was killed. */
	if (before != 0 && now - before < START_PATIENCE)
		return EAGAIN;
	/* relaxed: a patience. */
	if (!eddy_cas_relaxed(&h->starting, &before, now))
		return EAGAIN;
	/* DOZE-R2: nobody need call. */
	if (!eddy_cas_seq_cst(&h->word, &word, EDDY_STARTING))
		return 0;
	hook_once();
	mask = eddy_os_block_signals();
	err = eddy_os_thread_start(&t, STACK, run, ticket(r, i));
	eddy_os_restore_signals(mask);
	if (err == 0) {
		(void)pthread_detach(t);
	} else {
		word = EDDY_STARTING;
		/* DOZE-R2: the next may try, after a while. */
		(void)eddy_cas_seq_cst(&h->word, &word, EDDY_NONE);
	}
	errno = kept;
	return -err;
}

int
eddy_helper_start(struct eddy_room *r)
{
	return start(r, 0);
}

/* ------------------------------------------------------------------ */
/* Barrier */

/* Waits until no other barrier is under way. */
static void
enter(struct eddy_room *r, struct eddy_helper *me)
{
	uint32_t self = (uint32_t)eddy_os_tid();
	uint32_t who = 0;

	/* ROOM-A3: pairs with ROOM-R3 of the one before. */
	while (!eddy_cas_acq_rel(&r->barring, &who, self)) {
		/* Who was killed in the midst leaves it to the next. */
		if (who == self ||
		    (who != 0 && !eddy_os_thread_there((pid_t)who)))
			continue;
		(void)eddy_os_futex_wait(
		    &r->barring, who, eddy_os_milliseconds() + 1);
		who = 0;
	}
	/* ROOM-A3: as above: what a killed one had taken is full again. */
	eddy_deferred_push_chain(
	    &r->store, &r->full, eddy_xchg_acq_rel(&me->taken, 0));
}

void
eddy_helper_bar(struct eddy_room *r)
{
	struct eddy_helper *me = &r->helper[EDDY_URCU_HELPERS];
	uint32_t first;

	eddy_hand_begin();
	enter(r, me);
	first = eddy_deferred_take(&r->full);
	if (first != 0) {
		/* ROOM-R3: as of a helper. */
		(void)eddy_xchg_seq_cst(&me->taken, first);
		/* relaxed, all: statistics. */
		eddy_store_relaxed(&me->oldest, oldest_of(r, first));
		eddy_store_relaxed(&me->since, eddy_os_milliseconds_coarse());
		(void)grace(r, me, true);
		eddy_store_relaxed(&me->since, 0);
		/* ROOM-R3: as above. */
		(void)eddy_xchg_seq_cst(&me->taken, 0);
		eddy_deferred_push_chain(&r->store, &r->ripe, first);
	}
	while (eddy_room_free_ripe(r, 1) != 0)
		;
	/* ROOM-R3: what it had is freed. */
	eddy_store_release(&r->barring, 0);
	eddy_hand_end();
}

void
eddy_helper_await_turns(struct eddy_room *r)
{
	for (unsigned i = 0; i < EDDY_URCU_HELPERS; i++) {
		struct eddy_helper *h = &r->helper[i];
		/* ROOM-A3: pairs with ROOM-R3 of the helper. */
		uint32_t turn = eddy_load_acquire(&h->turn);

		/* ROOM-A3: as above. */
		while (turn % 2 != 0 && eddy_load_acquire(&h->turn) == turn)
			(void)eddy_os_futex_wait(
			    &h->turn, turn, eddy_os_milliseconds() + 1);
	}
}

void
eddy_helper_await_hands(struct eddy_room *r)
{
	/* Nobody wakes who waits here: it is a nap. */
	_Atomic uint32_t nap = 0;

	for (uint32_t i = 0; i <= r->lane_mask; i++) {
		_Atomic uint64_t *word = &r->lanes[i].hands;
		/* ROOM-A3: pairs with ROOM-R3 of who replaces a batch. */
		uint64_t w = eddy_load_acquire(word);
		uint64_t until = eddy_os_milliseconds() + HAND_PATIENCE;

		while ((uint32_t)w != 0 && !is_over(until)) {
			(void)eddy_os_futex_wait(
			    &nap, 0, eddy_os_milliseconds() + 1);
			/* ROOM-A3: as above. */
			w = eddy_load_acquire(word);
		}
		/* Killed in the midst, or stopped: not to be waited for again.
		 * ROOM-R3: nothing. */
		while ((uint32_t)w != 0 &&
		       !eddy_cas_acq_rel(word, &w, ((w >> 32) + 1) << 32))
			;
	}
}
