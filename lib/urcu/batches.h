/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batches.h - batches of objects that wait for a grace period, and stacks of
 * them.
 *
 * Layer     urcu; may include base, arch, os.  Of libeddy-urcu alone.
 * Progress  get, push, pop, take: lock-free: a CAS fails only if another's
 *           succeeded.  put: at most EDDY_DEFERRED probes.  close: wait-free.
 * Memory    type-stable: numbers 1 .., never unmapped, and all of one store are
 *           of one flavour: who comes late with the number of a batch that has
 *           been used again since puts his object into a later batch of the
 *           same flavour, which is as good.
 * Context   any thread, async-signal-safe.
 *
 * A batch is a row of independent places.  An *open* one has empty places, and
 * putting is one CAS of an empty place; no index is drawn, so nobody can leave
 * a hole that others would wait for.  Closing fills what is empty: from then on
 * no CAS can succeed.  Who frees an object marks its place as closed without
 * one before he does.  Places stay full when the batch is free again, until it
 * is opened anew: a late CAS fails, so no object can come to lie in a batch
 * that is nowhere.
 *
 * So what a batch holds is told by its places alone, at each instant, and a
 * forked child finds what its parent's other threads had in hand: all batches
 * that are on no stack and no lane (eddy_deferred_adopt).
 *
 * Invariants
 *   I-URCU-1  a batch on a stack has no empty place
 *   I-URCU-2  an open batch is the newest of a CPU, or in the hand of the one
 *             who is about to make it that
 *   I-URCU-3  an object that is handed over and not yet freed is in a place of
 *             one batch, but for one that is being freed just now
 *
 * Order pairs
 *   URCU-R1 -> URCU-A1  the program's writes before an object was handed over,
 *                       to who closes its batch
 *   URCU-R2 -> URCU-A2  a batch with its places, from stack to stack; a block
 *                       of batches
 *
 * A thread killed in here costs the batch in its hand.
 * Model: tests/model/urcu.pml.
 */
#ifndef EDDY_URCU_BATCHES_H
#define EDDY_URCU_BATCHES_H

#include "lib/base/atomic.h"
#include "lib/base/base.h"

#define EDDY_DEFERRED       64 /* places of a batch */
#define EDDY_DEFERRED_EMPTY ((void *)1)

struct eddy_deferred {
	/* W: who has the batch in hand.  R: any thread.  O: URCU-R2 -> URCU-A2,
	 * or none: a guess that a CAS checks. */
	_Atomic uint32_t next;
	/* W, R: any thread.  O: none: a hint, the next empty place. */
	_Atomic uint32_t hint;
	/*
	 * Objects and their bytes, once it is closed; ms of its first object.
	 * W: who has the batch in hand.  R: any thread.  O: URCU-R2 -> URCU-A2.
	 */
	_Atomic uint32_t n;
	/* Found on a stack.  W, R: fork's child.  O: none: it is alone. */
	_Atomic uint32_t found;
	_Atomic uint64_t bytes;
	_Atomic uint64_t since;
	/* NULL: empty; EDDY_DEFERRED_EMPTY: closed without an object, or
	 * it was freed.
	 * W, R: any thread.  O: URCU-R1 -> URCU-A1. */
	_Atomic(void *) place[EDDY_DEFERRED]
	    __attribute__((aligned(EDDY_CACHELINE)));
};

/* {tag, number of the newest}: the tag grows at pops. */
typedef _Atomic uint64_t eddy_deferred_stack;

#define EDDY_DEFERRED_BLOCKS 27

/* Zero at first. */
struct eddy_deferred_store {
	/* W, R: any thread, by RMW.  O: URCU-R2 -> URCU-A2. */
	eddy_deferred_stack free __attribute__((aligned(EDDY_CACHELINE)));
	/* W, R: any thread.  O: none: a number of one's own. */
	_Atomic uint32_t n;
	/* Block i: 64 << i batches.
	 * W: who maps it, once.  R: any thread.  O: URCU-R2 -> URCU-A2. */
	_Atomic(struct eddy_deferred *) block[EDDY_DEFERRED_BLOCKS];
};

/* The batch of a number that has been given out. */
static inline struct eddy_deferred *
eddy_deferred_at(struct eddy_deferred_store *s, uint32_t number)
{
	uint32_t i = number - 1;
	unsigned k = eddy_log2(i / 64 + 1);

	/* URCU-A2: of who has mapped it. */
	return eddy_load_acquire(&s->block[k]) + (i - 64 * ((1u << k) - 1));
}

static inline uint32_t
eddy_deferred_top(uint64_t stack)
{
	return (uint32_t)stack;
}

/*
 * eddy_deferred_put - an object into an open batch.
 *
 * Returns: false: no place is empty; p is still the caller's.
 */
static inline bool
eddy_deferred_put(struct eddy_deferred *b, void *p)
{
	/* relaxed: a hint; a wrong one costs probes. */
	uint32_t i = eddy_load_relaxed(&b->hint);

	for (; i < EDDY_DEFERRED; i++) {
		void *none = NULL;

		/* relaxed: a guess that the CAS checks. */
		if (eddy_load_relaxed(&b->place[i]) != NULL)
			continue;
		/* URCU-R1: pairs with URCU-A1 of who closes.  DOZE-R1: seen by
		 * a helper that falls asleep, or we see that it does. */
		if (eddy_cas_seq_cst(&b->place[i], &none, p)) {
			/* relaxed: a hint. */
			eddy_store_relaxed(&b->hint, i + 1);
			return true;
		}
	}
	return false;
}

/* An open batch with one object, in nobody else's sight; 0: no memory. */
uint32_t eddy_deferred_open(
    struct eddy_deferred_store *s, void *p, uint64_t now_ms);

/* Closes a batch that nobody can find any more.  size: of an object. */
void eddy_deferred_close(struct eddy_deferred *b, size_t (*size)(void *));

void eddy_deferred_push(
    struct eddy_deferred_store *s, eddy_deferred_stack *stack, uint32_t number);

/* The same for a chain, by `next`, in hand; 0: nothing. */
void eddy_deferred_push_chain(
    struct eddy_deferred_store *s, eddy_deferred_stack *stack, uint32_t first);

/* 0: there is none. */
uint32_t eddy_deferred_pop(
    struct eddy_deferred_store *s, eddy_deferred_stack *stack);

/* All that is on the stack, as a chain; 0: nothing. */
uint32_t eddy_deferred_take(eddy_deferred_stack *stack);

/* Remembers the batches of a stack for eddy_deferred_adopt. */
void eddy_deferred_find(
    struct eddy_deferred_store *s, eddy_deferred_stack *stack);

/*
 * eddy_deferred_adopt - a chain of all batches but those that were
 * found, closed; forgets what was found.  0: there is none.
 *
 * Pre: no other thread, nothing in the caller's hand: in a forked child.
 */
uint32_t eddy_deferred_adopt(
    struct eddy_deferred_store *s, size_t (*size)(void *));

#endif /* EDDY_URCU_BATCHES_H */
